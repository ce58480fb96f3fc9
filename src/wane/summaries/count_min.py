"""Heavy hitters of ids by prefix: the hierarchy of Count-Min sketches of "Holistic UDAFs at Streaming Speeds".

For each of some lengths of prefix there is a table of counters (:mod:`wane.summaries._cells`). An id's weight is added
to a few counters of each, and no counter holds less than the weight of any prefix that it stands for. So what is heavy
is found from the top: only under a heavy prefix can there be a heavier one.

While few distinct ids have come, there are no tables but the ids themselves with their weights: the adaptive form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import serde
from wane.decay import Decay, NoDecay
from wane.decay.base import Floats
from wane.decay.weigh import CHUNK, Weighed
from wane.errors import BadInput, BadParameter, CorruptState, Unsupported
from wane.hashing import Hashes, combine
from wane.registry import Equality, Spec
from wane.summaries._cells import Cells, Layout, Wide
from wane.summaries._ordered import WholeKeys
from wane.summaries._tally import FEW, Tally, added_up, alike, scaled, shift
from wane.summaries.base import Batch, Summary, fraction, ldexp, plus, whole
from wane.summaries.space_saving import Hit

_EXACT = 2.0**53
"""Whole numbers up to this are doubles, and so are their sums, in whatever order."""

_NARROW = 2.0**32
"""Counts under this fit four bytes."""

_ROUNDING = 1e-9
"""How far rounding may carry a sum, relatively: far less than shows."""

_MOST = 2**22
"""Prefixes that a search may have to look at."""

_FARTHEST = 16
"""Bits between neighbouring levels: a search looks at that power of two of prefixes under each heavy one."""


class Prefix(NamedTuple):
    """The ids that begin alike, with their weight.

    Attributes:
        item: The lowest of them; with `bits`, what :func:`ipaddress.ip_network` takes.
        bits: How many leading bits they share.
        weight: Their decayed weight, or a little more.
        rest: What is left of it without the heavy prefixes under this one.
        error: By how much `weight` may be too high; more is as rare as the summary's `delta`.
    """

    item: Any
    bits: int
    weight: float
    rest: float
    error: float


class CountMinHierarchy(Summary):
    """Heavy hitters of whole numbers such as IP addresses, and of their prefixes.

    A weight is never too low, and too high by more than ``epsilon C`` with a probability of ``delta`` at most, where
    ``epsilon = e / width``, ``delta = exp(-depth)`` and `C` is the decayed count of all ids: 1.1 and 14 percent by
    default. Up to `exact` distinct ids every weight is exact. In any order of arrival, after any merges. By default 7
    KB as long as weights are whole numbers, nothing decays and they sum to less than ``2**32``, and 14 KB otherwise;
    the same rows give the same bytes where nothing decays and whole weights sum to ``2**53`` at most. About 11 ns a row
    in bulk where ids repeat, 19 where they do not. Takes any forward decay, or a backward one whose time is fixed.

    Ids are whole numbers from 0 to ``2**bits - 1``: 32 bits for IPv4, 64 for plain ids, 128 for IPv6, which may come as
    16 bytes each as well. Anything else is dropped and counted; an id of weight 0 leaves no trace.

    Args:
        width: Counters in a row.
        depth: Rows for each length of prefix.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        bits: The length of an id, up to 128.
        levels: The lengths of prefixes that are counted, the last of them `bits`; those of ``width * depth`` or fewer
            prefixes are counted exactly. By default each eighth bit: 8, 16, 24 and 32 for IPv4.
        exact: Up to how many distinct ids are kept with exact weights instead of counters: 64, 128, 256, or 0.
        seed: Chooses the hashes. Summaries merge if it is the same.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> ids = CountMinHierarchy(decay="exp(half_life=1m)")
    >>> a, b, c = 0x0A000001, 0x0A000002, 0xC0000201  # 10.0.0.1, 10.0.0.2, 192.0.2.1
    >>> ids.update([a, b, b, c], times=[0, 60, 60, 60]).heavy(0.3, now=60)
    [Hit(item=167772162, weight=2.0, error=0.0)]
    >>> [(hex(p.item), p.bits, p.rest) for p in ids.hierarchical(0.3, now=60)]
    [('0xa000002', 32, 2.0)]
    """

    def __init__(
        self,
        width: int = 256,
        depth: int = 2,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        bits: int = 32,
        levels: Sequence[int] | None = None,
        exact: int = 64,
        seed: int = 0,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.width, self.depth = _upto(width, "width", 2, 2**24), _upto(depth, "depth", 1, 64)
        self.bits = _upto(bits, "bits", 1, 128)
        self.levels = _levels(levels, self.bits)
        self.exact = _upto(exact, "exact", 0, 2**20)
        self.seed = _upto(seed, "seed", 0, 2**64 - 1)
        self._layout = Layout(self.levels, self.width, self.depth, self.seed)
        self._whole = isinstance(self.decay, NoDecay)  # whether all sums are whole numbers that doubles hold exactly
        self._exponent = 0
        self._total = self._lost = 0.0  # the decayed count, and what its rounding lost
        self._pairs: Tally | None = Tally(self.exact) if self.exact else None
        self._ids = _none()  # of the pairs
        self._cells: Cells = self._no_cells()  # used where there are no pairs

    @property
    def epsilon(self) -> float:
        """The error of a weight, as a share of the decayed count, that has a probability of :attr:`delta` at most."""
        return math.e / self.width

    @property
    def delta(self) -> float:
        """The probability of a larger error, for each weight that is asked for."""
        return math.exp(-self.depth)

    @property
    def nbytes(self) -> int:
        """The memory of the counters, or of the pairs of an id and its weight."""
        self._settle()
        if self._pairs is None:
            return int(self._cells.nbytes)
        return len(self._pairs) * (24 if self.bits > 64 else 16)

    def estimate(self, item: Any, now: Any = None, *, historical: bool = False) -> Hit:
        """The weight of one id; it is never too low, and seldom by more than the error too high."""
        column, good = self._column([item])
        if good is not None and not good.all():
            raise BadParameter(f"an id must be a whole number from 0 to 2**{self.bits} - 1, got {item!r}")
        self._settle()
        found = self._weights(len(self.levels) - 1, self._aligned(column))
        high, error = self._normalised([float(found[0]), self._error], now, historical)
        return Hit(item, high, error)

    def heavy(self, phi: float, now: Any = None, *, historical: bool = False) -> list[Hit]:
        """Every id of ``phi C`` or more, heaviest first; one under ``(phi - epsilon) C`` is as rare as `delta`."""
        _, ids, weights = self._search(phi)[-1]
        order = np.lexsort((*ids[::-1], -weights))
        highs = self._normalised([*weights[order].tolist(), self._error], now, historical)
        error = highs.pop()
        items = self._numbers((ids[0][order], ids[1][order]))
        return [Hit(item, high, error) for item, high in zip(items, highs, strict=True)]

    def prefixes(self, phi: float, now: Any = None, *, historical: bool = False) -> list[Prefix]:
        """Every prefix of ``phi C`` or more, the short ones first, each before what is under it."""
        return self._hierarchy(phi, now, historical)[0]

    def hierarchical(self, phi: float, now: Any = None, *, historical: bool = False) -> list[Prefix]:
        """The hierarchical heavy hitters: prefixes of ``phi C`` or more without the heavy ones under them.

        What is counted once, at the longest prefix that is heavy by itself, is not counted again above it. `rest` is
        too high by ``epsilon C`` seldom, and too low by that for each heavy prefix right under it.
        """
        found, alone = self._hierarchy(phi, now, historical)
        return [prefix for prefix, heavy in zip(found, alone, strict=True) if heavy]

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count `C` of all ids."""
        self._settle()
        return self._normalised([self._total + self._lost], now, historical)[0]

    def _search(self, phi: float) -> list[tuple[int, Wide, Floats]]:
        """The prefixes of each length that may weigh ``phi C``: the length, the prefixes, and their weights."""
        share = fraction(phi, "phi", self.epsilon, "e / width, since any prefix may seem to weigh that much")
        self._settle()
        least = share * (self._total + self._lost) * (1 - _ROUNDING)
        root = np.zeros(1 if self._total else 0, np.uint64)
        alive: Wide = (root, root)
        found = []
        for level, length in enumerate(self.levels):
            step = length - (self.levels[level - 1] if level else 0)
            if self._pairs is not None:
                alive = self._present(length)
            elif len(alive[0]) << step > _MOST:
                raise Unsupported(
                    f"{len(alive[0])} prefixes seem to weigh {phi!r} of all, and {len(alive[0]) << step} under them "
                    "would have to be looked at; ask with a larger phi, or keep more counters (width, depth)"
                )
            else:
                alive = self._layout.children(level, alive)
            weights = self._weights(level, alive)
            heavy = weights >= least
            alive = alive[0][heavy], alive[1][heavy]
            found.append((length, alive, weights[heavy]))
        return found

    def _hierarchy(self, phi: float, now: Any, historical: bool) -> tuple[list[Prefix], list[bool]]:
        """The heavy prefixes, and whether each is heavy without those under it."""
        found = self._search(phi)
        least = float(phi) * (self._total + self._lost) * (1 - _ROUNDING)
        rests: list[Floats] = [weights.copy() for _, _, weights in found]
        taken: dict[tuple[int, int], float] = {}  # by prefix: what the heavy ones under it weigh
        for (_, ids, weights), rest, above in zip(found[::-1], rests[::-1], [*self.levels[-2::-1], 0], strict=True):
            upper = zip(*(column.tolist() for column in _cut(ids, above)), strict=True)
            passed: dict[tuple[int, int], float] = {}
            for i, (key, parent) in enumerate(zip(zip(*(c.tolist() for c in ids), strict=True), upper, strict=True)):
                rest[i] = max(weights[i] - taken.get(key, 0.0), 0.0)
                lost = float(weights[i]) if rest[i] >= least else taken.get(key, 0.0)
                passed[parent] = passed.get(parent, 0.0) + lost
            taken = passed
        alone = [bool(heavy) for rest in rests for heavy in rest >= least]
        plain = [x for (_, _, weights), rest in zip(found, rests, strict=True) for x in (*weights, *rest)]
        scales = iter(self._normalised([self._error, *map(float, plain)], now, historical))
        error = next(scales)
        made = []
        for length, ids, weights in found:
            highs, lows = ([next(scales) for _ in weights] for _ in range(2))
            made += [
                Prefix(item, length, high, rest, error)
                for item, high, rest in zip(self._numbers(ids), highs, lows, strict=True)
            ]
        return made, alone

    @property
    def _error(self) -> float:
        """What a weight may be too high by, relative to the state's power of two."""
        return 0.0 if self._pairs is not None else min(self.epsilon, 1.0) * (self._total + self._lost)

    def _present(self, length: int) -> Wide:
        """The prefixes of one length that there are, in order, while all ids are known."""
        both = np.unique(np.stack(_cut(self._ids, length), axis=1), axis=0)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def _weights(self, level: int, ids: Wide) -> Floats:
        """What some prefixes of one length weigh, or more."""
        if self._pairs is None:
            return self._layout.estimates(level, ids, self._cells)
        length = self.levels[level]
        known, wanted = (zip(*(c.tolist() for c in _cut(some, length)), strict=True) for some in (self._ids, ids))
        parts: dict[Any, list[float]] = {}
        for key, weight in zip(known, self._pairs.sums.tolist(), strict=True):
            parts.setdefault(key, []).append(weight)
        return np.array([math.fsum(parts.get(key, ())) for key in wanted], np.float64)

    def _normalised(self, weights: list[float], now: Any, historical: bool) -> list[float]:
        """Weights of the state as they are at a time."""
        weight, exponent = self._now(now, historical)
        return [ldexp(one / weight, self._exponent - exponent) for one in weights]

    # --- Ids

    def _column(self, given: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        if isinstance(given, list):
            given = [int(item) if isinstance(item, (IPv4Address, IPv6Address)) else item for item in given]
        if self.bits <= 64:
            return WholeKeys(self.bits).read(given)
        return _long_ids(given, self.bits)

    def _plain(self, item: Any) -> bool:
        return type(item) is int and 0 <= item < 2**self.bits

    def _aligned(self, column: NDArray[np.uint64]) -> Wide:
        """Ids of a column with their first bit on the left."""
        if self.bits <= 64:
            highs = column << np.uint64(64 - self.bits)
            return highs, np.zeros_like(highs)
        return np.ascontiguousarray(column[:, 0]), np.ascontiguousarray(column[:, 1])

    def _numbers(self, ids: Wide) -> list[int]:
        """Ids as whole numbers again."""
        return [
            (high << 64 | low) >> 128 - self.bits for high, low in zip(ids[0].tolist(), ids[1].tolist(), strict=True)
        ]

    # --- The state

    def _add_rows(self, column: Any, batch: Batch) -> None:
        for rows, weights, exponent in self._chunks(batch):
            ids, loads = self._aligned(column[rows]), scaled(weights, self._meet(exponent))
            if len(loads) >= FEW:  # what many rows have in common is looked for once
                keys = _keys(ids, self.bits)
                if alike(keys):
                    firsts, loads = added_up(keys, loads)
                    ids = ids[0][firsts], ids[1][firsts]
            self._count(ids, loads)

    def _chunks(self, batch: Batch) -> Iterator[Weighed]:
        """The rows with their weights: as they are, as long as they are whole numbers and sum exactly."""
        loads = batch.weights
        plain = np.array([float(batch.size)]) if loads is None else loads
        self._whole = self._exactly(plain, 0)
        if not self._whole:
            yield from self._weigh(batch)
            return
        ones = np.ones(min(batch.size, CHUNK))
        for start in range(0, batch.size, CHUNK):
            rows = slice(start, min(start + CHUNK, batch.size))
            yield Weighed(rows, ones[: rows.stop - start] if loads is None else loads[rows], 0)

    def _count(self, ids: Wide, weights: Floats) -> None:
        """Add ids with their weights, relative to the state's power of two."""
        self._total, self._lost = plus(self._total, self._lost, float(weights.sum()))
        taken = 0
        if self._pairs is not None:
            taken = self._pair(ids, weights)
        if taken < len(weights):
            self._spread()
            self._layout.add((ids[0][taken:], ids[1][taken:]), weights[taken:].astype(self._cells.dtype), self._cells)

    def _pair(self, ids: Wide, weights: Floats) -> int:
        """Add rows to the pairs; gives how many of them were taken before there were too many ids."""
        assert self._pairs is not None
        before = len(self._pairs)
        taken = self._pairs.add(_keys(ids, self.bits), weights)
        fresh = self._pairs.rows[before:]
        self._ids = np.append(self._ids[0], ids[0][fresh]), np.append(self._ids[1], ids[1][fresh])
        return taken

    def _spread(self) -> None:
        """Have counters, of the size that they need."""
        if self._pairs is not None:
            pairs, ids = self._pairs, self._ids
            self._pairs, self._ids = None, _none()
            self._cells = self._no_cells()
            self._layout.add(ids, pairs.sums.astype(self._cells.dtype), self._cells)
        elif not self._narrow:
            self._cells = self._cells.astype(np.float64, copy=False)

    def take_pairs(self, ids: Any, weights: Floats, exponent: int = 0) -> Self:
        """Add ids with what they weigh, relative to ``2**exponent``, as a strategy of two levels has summed it up."""
        self._settle()
        column, good = self._column(ids)
        if good is not None and not good.all():
            raise BadInput(
                f"{int((~good).sum())} of {len(good)} ids are not from 0 to 2**{self.bits} - 1; drop them first"
            )
        self._whole = self._exactly(weights, exponent)
        self._count(self._aligned(column), scaled(weights, self._meet(exponent)))
        return self

    def take_cells(self, cells: Floats, exponent: int = 0) -> Self:
        """Add the counters of other ids, of the same parameters and relative to ``2**exponent``."""
        self._settle()
        if len(cells) != self._layout.size:
            raise BadInput(f"{len(cells)} counters were given, and these parameters have {self._layout.size}")
        self._whole = self._exactly(next(self._layout.rows(cells)), exponent)
        self._add_cells(cells, float(next(self._layout.rows(cells)).sum()), 0.0, self._meet(exponent))
        return self

    def _exactly(self, weights: Floats, exponent: int) -> bool:
        """Whether sums stay whole numbers that doubles hold exactly, with these weights."""
        fits = self._whole and not exponent and self._total + float(weights.sum()) <= _EXACT
        return bool(fits and (weights == np.floor(weights)).all())

    def _add_cells(self, cells: Cells, total: float, lost: float, by: int) -> None:
        """Add counters that hold a total, and the power of two that they are scaled by."""
        self._total, self._lost = plus(self._total, self._lost + shift(lost, by), shift(total, by))
        self._spread()
        theirs = cells if by == 0 else scaled(cells.astype(np.float64), by)
        self._cells += theirs.astype(self._cells.dtype)

    @property
    def _narrow(self) -> bool:
        """Whether the counters have four bytes."""
        return self._whole and self._total < _NARROW

    def _no_cells(self) -> Cells:
        size = 0 if self._pairs is not None else self._layout.size
        return np.zeros(size, np.uint32 if self._narrow else np.float64)

    def _absorb(self, other: Self) -> None:
        if not other._total:
            return
        by = self._meet(other._exponent)
        self._whole = self._whole and other._whole and self._total + other._total <= _EXACT
        if other._pairs is None:
            self._add_cells(other._cells, other._total, other._lost, by)
        else:
            highs, lows = other._ids
            self._count((highs.copy(), lows.copy()), scaled(other._pairs.sums.copy(), by))

    def _meet(self, exponent: int) -> int:
        """Bring the state to the larger of two powers of two; gives the shift that weights at `exponent` still need."""
        if exponent > self._exponent or not self._total:
            by = self._exponent - exponent
            self._total, self._lost = shift(self._total, by), shift(self._lost, by)
            if by and self._pairs is not None:
                self._pairs.sums[:] = scaled(self._pairs.sums, by)
            elif by:
                self._cells = scaled(self._cells.astype(np.float64, copy=False), by)
            self._exponent = exponent
        return max(exponent - self._exponent, -3000)

    # --- Bytes

    def _parameters(self) -> dict[str, Any]:
        own = {"width": self.width, "depth": self.depth, "bits": self.bits, "levels": self.levels}
        return own | {"exact": self.exact, "seed": self.seed}

    def _write(self, writer: serde.Writer) -> None:
        writer.int(self._exponent).float(self._total).float(self._lost).uint(int(self._whole))
        writer.uint(int(self._pairs is not None))
        if self._pairs is None:
            writer.array(self._cells)
            return
        order = np.lexsort(self._ids[::-1])
        for column in (*self._ids, self._pairs.sums):
            writer.array(column[order])

    def _read(self, reader: serde.Reader) -> None:
        self._exponent = reader.int()
        self._total, self._lost = reader.finite(), reader.finite()
        self._whole, paired = bool(reader.uint()), bool(reader.uint())
        if not 0 <= self._total < 2.0**1000 or abs(self._lost) > _ROUNDING * self._total:
            raise CorruptState(f"the state has a count of {self._total} and {self._lost}")
        if paired:
            ids, weights = (reader.array(np.uint64), reader.array(np.uint64)), reader.array(np.float64)
            self._read_pairs(ids, weights)
        else:
            self._pairs = None
            self._cells = reader.array(np.uint32 if self._narrow else np.float64)
            if len(self._cells) != self._layout.size:
                raise CorruptState(f"the state has {len(self._cells)} counters, and must have {self._layout.size}")
            for row in self._layout.rows(self._cells):
                self._check(row)
        if self._whole and not (
            isinstance(self.decay, NoDecay) and self._total <= _EXACT and not self._exponent and not self._lost
        ):
            raise CorruptState("the state counts whole numbers where there are none")

    def _read_pairs(self, ids: Wide, weights: Floats) -> None:
        size = len(weights)
        if not (len(ids[0]) == len(ids[1]) == size <= self.exact):
            raise CorruptState(f"the state has {size} weights for {len(ids[0])} ids, and may have {self.exact}")
        first, second = ((column[:-1], column[1:]) for column in ids)
        ordered = (first[0] < first[1]) | ((first[0] == first[1]) & (second[0] < second[1]))
        inside = all((column == cut).all() for column, cut in zip(ids, _cut(ids, self.bits), strict=True))
        if not (ordered.all() and inside):
            raise CorruptState("the ids in the state are not in order, or too long")
        self._check(weights)
        assert self._pairs is not None
        self._pairs.add(_keys(ids, self.bits), np.ones(size))
        if len(self._pairs) != size:
            raise CorruptState("two ids in the state have one hash")
        self._pairs.sums[:] = weights
        self._ids = ids

    def _check(self, weights: NDArray[Any]) -> None:
        """Refuse weights that do not make up the count."""
        found = weights.astype(np.float64)
        if not ((found >= 0) & (found <= self._total * (1 + _ROUNDING))).all():
            raise CorruptState("a weight in the state is negative, or more than all")
        allowed = 0.0 if self._whole else _ROUNDING * self._total + 1e-300
        if not abs(float(found.sum()) - self._total) <= allowed or (self._whole and (found != np.floor(found)).any()):
            raise CorruptState("the weights in the state do not add up to its count")


def _none() -> Wide:
    return np.empty(0, np.uint64), np.empty(0, np.uint64)


def _keys(ids: Wide, bits: int) -> Hashes:
    """What ids are told apart by: themselves, or hashes of those of more than 64 bits."""
    return ids[0] if bits <= 64 else combine(*ids)


def _cut(ids: Wide, length: int) -> Wide:
    """Ids without the bits after the first `length`."""
    high = (2**64 - 1) << max(64 - length, 0) & (2**64 - 1)
    low = (2**64 - 1) << min(128 - length, 64) & (2**64 - 1)
    return ids[0] & np.uint64(high), ids[1] & np.uint64(low)


def _long_ids(given: Any, bits: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_] | None]:
    """A column of ids of more than 64 bits, left-aligned in two words each, and where they can be used."""
    if hasattr(given, "to_pylist"):
        given = given.to_pylist()
    elif hasattr(given, "tolist"):
        given = given.tolist()
    made = np.zeros((len(given), 2), np.uint64)
    good = np.ones(len(given), np.bool_)
    for i, item in enumerate(given):
        if isinstance(item, bytes) and len(item) == 16 and bits == 128:
            number = int.from_bytes(item, "big")
        elif item is None or item != item or (isinstance(item, (int, float, np.number)) and not 0 <= item < 2**bits):
            number = -1
        elif isinstance(item, (int, float, np.number)):
            number = int(item) if item == int(item) else -1
        else:
            raise BadInput(f"an id must be a whole number, or 16 bytes where bits=128, got {item!r:.60}; convert it")
        good[i] = number >= 0
        if good[i]:
            made[i] = divmod(number << 128 - bits, 2**64)
    return made, None if good.all() else good


def _levels(given: Sequence[int] | None, bits: int) -> tuple[int, ...]:
    """Check the lengths of prefixes, or choose them."""
    if given is None:
        return (*range(8, bits, 8), bits)
    found = tuple(whole(length, "a level", 1) for length in given)
    gaps = [after - before for before, after in zip((0, *found), found, strict=False)]
    if not found or found[-1] != bits or not all(0 < gap <= _FARTHEST for gap in gaps):
        raise BadParameter(
            f"levels must go up to {bits} in steps of 1 to {_FARTHEST} bits, got {given!r}; by default they are "
            f"{(*range(8, bits, 8), bits)}"
        )
    return found


def _upto(value: Any, what: str, least: int, most: int) -> int:
    """Check a parameter that is a whole number in some range."""
    found = whole(value, what, least)
    if found > most:
        raise BadParameter(f"{what} must be a whole number from {least} to {most}, got {value!r}")
    return found


def _cells_of(parameters: Any) -> int:
    given = dict(parameters)
    bits = given.get("bits", 32)
    width, depth = given.get("width", 256), given.get("depth", 2)
    return Layout(_levels(given.get("levels"), bits), width, depth, 0).size


SPEC = Spec(
    name="countmin",
    make=CountMinHierarchy,
    version=1,
    title="heavy hitters by prefix, by a hierarchy of Count-Min sketches",
    questions=("count", "heavy", "prefixes", "hierarchical"),
    timeless=(),
    arguments={question: {"phi": 0.3} for question in ("heavy", "prefixes", "hierarchical")},
    guarantee="no weight too low; too high by epsilon C with probability delta at most, epsilon = e / width, "
    "delta = exp(-depth); exact for up to `exact` distinct ids",
    space="O(levels width depth): by default 7 KB of whole numbers, 14 KB of doubles; 16 bytes a pair before that",
    time="O(levels depth), about 11 ns a row in bulk by default where ids repeat, 19 where not",
    paper="Holistic UDAFs at Streaming Speeds (SIGMOD 2004), section 4.2",
    equality=Equality.GUARANTEED,
    undecayed=Equality.IDENTICAL,
    bounds=lambda p: {
        "count": 1e-12,
        **dict.fromkeys(("heavy", "prefixes", "hierarchical"), 1e-12 if p.get("exact", 64) >= 400 else None),
    },
    decays=frozenset({"forward"}),
    items="ids",
    parameters=({"exact": 512}, {"width": 16, "exact": 8}),
    records={"heavy": Hit, "prefixes": Prefix, "hierarchical": Prefix},
    functions=("prefixes", "hierarchical"),
    state_bytes=lambda p: 512 + max(8 * _cells_of(p), 24 * p.get("exact", 64)),
)
CountMinHierarchy.SPEC = SPEC
