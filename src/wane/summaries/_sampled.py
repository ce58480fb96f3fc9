"""What samples have in common: random numbers that belong to rows, and the streams that these come from.

The random number of a row is a hash. Where rows carry ids it is that of the id, under the sample's seed: then a sample
is a function of the set of rows, a row that comes twice is one row, and parts that merge share their seed. Where they
do not, it is that of the row's number in the stream of the seed: any batches of the same rows give the same sample, and
parts that merge must have seeds of their own, since the same random numbers in both would draw the same rows of both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane.decay import Decay, NoDecay
from wane.errors import BadInput, BadParameter, CorruptState, MergeRefused
from wane.hashing import Hashes, hash_range
from wane.items import Items
from wane.summaries._bottom import UNIFORM, Bottom, Interval, Ranks, Represented
from wane.summaries.base import Batch, Summary, fraction, is_scalar, ldexp, whole

LARGEST = 1 << 24
"""The most rows of a sample."""

SEEDS = 256
"""How many seeds a state remembers: of more, the smallest."""

_MOST_ROWS = 2**62

Identities = Callable[[slice], Hashes]
"""Gives the hashes that stand for some rows of a batch."""

Where = Callable[[Any], Any]


class Draw(NamedTuple):
    """A row of a sample.

    Attributes:
        item: Its item.
        weight: Its own decayed weight.
        stands_for: The decayed weight that it stands for; the sum over some rows estimates that of all such rows.
    """

    item: Any
    weight: float
    stands_for: float


class Rows:
    """A column of items, and perhaps one of their ids."""

    def __init__(self, items: Items, ids: Items | None) -> None:
        self.items = items
        self.ids = ids

    def __len__(self) -> int:
        """The number of rows, unusable ones included."""
        return len(self.items)

    def __getitem__(self, keep: NDArray[np.bool_]) -> Rows:
        """The rows where `keep` is true."""
        return Rows(self.items[keep], None if self.ids is None else self.ids[keep])


class Sampler(Summary):
    """A sample of `k` rows under one seed."""

    def __init__(
        self,
        k: int = 1000,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        seed: int = 0,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.k = size_of(k)
        self.seed = seed_of(seed)
        self._with_ids: bool | None = None  # None before the first row
        self._numbered = 0  # rows without ids that were seen under the seed
        self._seeds: Hashes = np.empty(0, np.uint64)  # of all parts whose rows have no ids, in order
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Make what an empty sample keeps."""

    @abstractmethod
    def items(self) -> list[Any]:
        """The items of the sample."""

    def update(self, items: Any, times: Any = None, weights: Any = None, *, ids: Any = None) -> Self:
        """Add items: one, or a column of them.

        Args:
            items: The items.
            times: Their times, where the decay needs them.
            weights: Weights of their own, 1 by default; a row that weighs 0 is never drawn.
            ids: What tells rows apart: then the sample is a function of the set of rows. All rows have ids, or none.
        """
        if not is_scalar(items):
            self._settle()  # rows are numbered in their order
        before = False if self._waiting[0] else self._with_ids
        if before is not None and before != (ids is not None):
            raise BadInput(
                f"rows came {'without' if ids is None else 'with'} ids to a sample of rows that "
                f"{'have' if ids is None else 'have no'} ids; give ids= always or never, or make another sample"
            )
        if ids is None:
            return super().update(items, times, weights)
        if is_scalar(items):
            times, weights = ([one] if one is not None else None for one in (times, weights))
            items, ids = [items], [ids]
        return super().update(_Column(items, ids), times, weights)

    def _column(self, given: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        if not isinstance(given, _Column):
            column = items.read(given)
            return Rows(column, None), column.valid
        column, ids = items.read(given.items), items.read(given.ids, self.seed)
        if len(ids) != len(column):
            raise BadInput(f"{len(column)} items came with {len(ids)} ids; give one id for each item")
        valid = [one for one in (column.valid, ids.valid) if one is not None]
        return Rows(column, ids), np.logical_and.reduce(valid) if valid else None

    def _identify(self, rows: Rows, size: int) -> Identities:
        """The identities of accepted rows: the hashes of their ids, or of their numbers."""
        if rows.ids is not None:
            self._with_ids = True
            return rows.ids.hash
        first = self._number(size)
        return lambda some: hash_range(first + some.start, first + some.stop, self.seed)

    def _number(self, size: int) -> int:
        """Number some rows; gives the number of the first."""
        first = self._numbered
        self._with_ids = False
        self._numbered += size
        if not first:
            self._seeds = _seeds(self._seeds, np.array([self.seed], np.uint64))
        return first

    def _meet(self, other: Self) -> None:
        """Bring the random streams of two samples together, or refuse to."""
        kinds = {self._with_ids, other._with_ids} - {None}
        if len(kinds) == 2:
            raise MergeRefused("the rows of one sample have ids and those of the other have none; give ids= to both")
        if True in kinds and self.seed != other.seed:
            raise MergeRefused(
                f"seed differs: {self.seed} here, {other.seed} there; rows that have ids are drawn by the ids' hashes, "
                "so that parts need one seed"
            )
        shared = np.intersect1d(self._seeds, other._seeds)
        mine = self.seed in other._seeds
        if len(shared) or (mine and self.seed != other.seed):
            seed = int(shared[0]) if len(shared) else self.seed
            raise MergeRefused(
                f"both samples have rows drawn by seed={seed}, and the same random numbers would draw them; give each "
                "part that is to merge a seed of its own, or give ids="
            )
        if mine:  # nothing was drawn here yet: go on where the other is
            self._follow(other)
        if kinds:
            (self._with_ids,) = kinds
        self._seeds = _seeds(self._seeds, other._seeds)

    def _follow(self, other: Self) -> None:
        """Go on with the random stream where another sample of the same seed is."""
        self._numbered = other._numbered

    def _identity(self) -> dict[str, Any]:
        # Whether seeds must agree or differ depends on the rows: see _meet.
        return {name: value for name, value in super()._identity().items() if name != "seed"}

    def _parameters(self) -> dict[str, Any]:
        return {"k": self.k, "seed": self.seed}

    def _write(self, writer: serde.Writer) -> None:
        writer.value(self._with_ids).uint(self._numbered).array(self._seeds)

    def _read(self, reader: serde.Reader) -> None:
        kind, self._numbered, self._seeds = reader.value(), reader.uint(), reader.array(np.uint64)
        if kind not in (None, True, False) or isinstance(kind, (int, float)) != isinstance(kind, bool):
            raise CorruptState(f"the state holds {kind!r:.60} where yes, no or nothing must be")
        self._with_ids = kind
        if len(self._seeds) > SEEDS or (self._seeds[1:] <= self._seeds[:-1]).any() or self._numbered >= _MOST_ROWS:
            raise CorruptState("the random streams in the state are out of order, or too long")
        if (kind is False) != bool(len(self._seeds)):
            raise CorruptState("the random streams in the state do not fit its rows")
        if self._numbered and len(self._seeds) < SEEDS and self.seed not in self._seeds:
            raise CorruptState("the state has rows of its own seed, and does not name it")


class _Column:
    """Items and their ids on the way through :meth:`Summary.update`, as one column."""

    def __init__(self, items: Any, ids: Any) -> None:
        self.items = items
        self.ids = ids

    def __len__(self) -> int:
        return len(self.items)


def _seeds(mine: Hashes, theirs: Hashes) -> Hashes:
    """The smallest seeds of both: which those are does not depend on the order of merging."""
    found: Hashes = np.union1d(mine, theirs)[:SEEDS]
    return found


class BottomSample(Sampler):
    """A sample of the rows of the smallest keys (:mod:`wane.summaries._bottom`), and what it stands for."""

    ranks: Ranks = UNIFORM

    def _begin(self) -> None:
        self._bottom = Bottom(self.k, self.ranks)

    def items(self) -> list[Any]:
        """The items of the sample, `k` of them at most; they do not depend on now."""
        self._settle()
        found: list[Any] = self._bottom.items[: len(self._bottom)].tolist()
        return found

    def sample(self, now: Any = None, *, historical: bool = False) -> list[Draw]:
        """The rows of the sample, each with its decayed weight and the decayed weight that it stands for."""
        found, by, weight = self._found(None, now, historical)
        scale = [[ldexp(one / weight, by) for one in column.tolist()] for column in (found.weights, found.stands)]
        return [Draw(*row) for row in zip(found.items, *scale, strict=True)]

    def estimate(self, where: Where | None = None, now: Any = None, *, historical: bool = False) -> float:
        """The decayed weight of all rows for whose item a function gives true; its mean over all seeds is the true one.

        Args:
            where: A function of an item; None for all.
            now: When.
            historical: Whether now may be before the newest item.
        """
        found, by, weight = self._found(where, now, historical)
        return ldexp(found.estimate() / weight, by)

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count: :meth:`estimate` of all rows."""
        return self.estimate(None, now, historical=historical)

    def variance(self, where: Where | None = None, now: Any = None, *, historical: bool = False) -> float:
        """The variance of :meth:`estimate`, itself estimated without bias; 0 where all rows are in the sample."""
        found, by, weight = self._found(where, now, historical)
        return ldexp(found.variance() / weight / weight, 2 * by)

    def interval(
        self, where: Where | None = None, now: Any = None, *, confidence: float = 0.95, historical: bool = False
    ) -> Interval:
        """An interval around :meth:`estimate` that holds the true one with a probability of about `confidence`."""
        z = NormalDist().inv_cdf((1 + fraction(confidence, "confidence", 0, "it is a probability")) / 2)
        found, by, weight = self._found(where, now, historical)
        return Interval(*(ldexp(end / weight, by) for end in found.interval(z)))

    def _found(self, where: Where | None, now: Any, historical: bool) -> tuple[Represented, int, float]:
        """What a part of the sample stands for, and the power of two and the weight that bring it to now."""
        self._settle()
        weight, exponent = self._now(now, historical)
        found = self._bottom.represented().part(where)
        return found, found.exponent - exponent, weight

    def _add_rows(self, rows: Rows, batch: Batch) -> None:
        if batch.size:
            self._bottom.feed(self.decay, self.landmark, batch, self._identify(rows, batch.size), rows.items.take)

    def _absorb(self, other: Self) -> None:
        self._meet(other)
        theirs, kept = other._bottom, other._bottom.items
        self._bottom.add(theirs.hashes, theirs.weights, lambda chosen: kept[chosen])

    def _write(self, writer: serde.Writer) -> None:
        super()._write(writer)
        self._bottom.write(writer, hashes=True)

    def _read(self, reader: serde.Reader) -> None:
        super()._read(reader)
        self._bottom.read(reader, None)
        if len(self._bottom) and self._with_ids is None:
            raise CorruptState("the state has a sample of no rows")


def size_of(k: Any) -> int:
    """Check how many rows a sample is to have."""
    size = whole(k, "k", 1)
    if size > LARGEST:
        raise BadParameter(f"k must be at most {LARGEST}, got {k!r}; a sample is meant to be small")
    return size


def seed_of(seed: Any) -> int:
    """Check a seed of random numbers."""
    found = whole(seed, "seed", 0)
    if found >= 2**64:
        raise BadParameter(f"seed must be under 2**64, got {seed!r}; give seed % 2**64")
    return found


def weighing(sampler: Summary, batch: Batch) -> NDArray[np.int64] | None:
    """The rows of a batch that weigh something, where all that do weigh 1; None for all."""
    if isinstance(sampler.decay, NoDecay) or batch.times is None or not batch.size:
        return None
    if sampler.decay.at(batch.span[0], sampler.landmark)[0]:  # the oldest weighs something
        return None
    found = [np.flatnonzero(loads) + rows.start for rows, loads, _ in sampler._weigh(batch)]
    return np.concatenate([np.empty(0, np.int64), *found])


def bytes_of_bottom(k: int) -> int:
    """An upper bound of the size of the state of a sample of `k` rows, whose items have 8 bytes."""
    return 640 + 8 * SEEDS + 40 * (k + 1)
