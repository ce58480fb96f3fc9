"""Aggarwal's biased reservoir (VLDB 2006), the baseline that the forward-decay paper's samples are compared with.

A new row goes into the reservoir, and with the odds that a place is filled it takes the place of another, chosen at
random. So a row stays with a probability that falls by ``1 / k`` with each that comes after it: a bias by rank, which
is an exponential decay for rows that come in order and at a steady pace, and for no others.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane._jit import kernel
from wane.decay.base import Ints
from wane.errors import BadParameter, CorruptState, MergeRefused
from wane.hashing import Hashes, hash_range, scramble
from wane.items import Items
from wane.registry import Equality, Spec
from wane.summaries._bottom import spliced
from wane.summaries._candidates import unit
from wane.summaries._sampled import seed_of, size_of, weighing
from wane.summaries.base import Batch, Summary

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_STRIDE = 65536


@kernel("int64(r_u8, int64, float64, int64, w_i8)", fuse=False)
def _replace(random: Hashes, start: int, odds: float, filled: int, places: Ints) -> int:
    """Let rows enter: `places` tells which row took each place; gives how many are filled."""
    k = places.shape[0]
    for i in range(random.shape[0]):
        word = random[i]
        if odds < 1.0 and unit(word) >= odds:
            continue
        word = scramble(word + _GOLDEN)
        place = np.int64(((word >> _HALF) * np.uint64(k)) >> _HALF)
        if place < filled:
            places[place] = start + i
        else:  # with the odds that a place is free
            places[filled] = start + i
            filled += 1
    return filled


class BiasedReservoir(Summary):
    """Aggarwal's biased reservoir: of rows in order, each is kept with odds near ``exp(-rate r)`` if `r` came after it.

    What it cannot do, and a `WeightedReservoir` or `PrioritySample` under ``exp(half_life=...)`` can: it does not know
    times, so that its bias is by how many rows came later and not by how long ago; rows that come late or out of order
    count as new; rows have no weights; no sum can be estimated from it; reservoirs do not merge. Until it is full,
    which takes some ``k ln(k)`` rows, old ones are kept too often. 8 bytes a row. Some 4 ns a row in bulk. Takes no
    decay (or a landmark window, or a sliding window whose time is fixed), since the bias is its own.

    Args:
        k: How many rows.
        decay: A decay or its text form, which only says which rows count at all.
        landmark: The time that decay measures from, where it needs one.
        rate: The bias: at most ``1 / k``, the default. Under it, a row enters with the odds ``k rate``.
        seed: Chooses the random numbers.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> BiasedReservoir(3, seed=7).update(range(1000)).items()
    [999, 998, 995]
    """

    def __init__(
        self,
        k: int = 1000,
        decay: Any = "none",
        landmark: Any = None,
        *,
        rate: Any = None,
        seed: int = 0,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.k = size_of(k)
        if rate is not None and not (isinstance(rate, (int, float)) and 0 < rate <= 1 / self.k):
            raise BadParameter(f"rate must be a number above 0 and up to 1/k, got {rate!r}; for a larger one lower k")
        self.rate = 1 / self.k if rate is None else float(rate)
        self.seed = seed_of(seed)
        self._numbered = 0  # rows seen under the seed
        self._items: NDArray[Any] = np.empty(0, np.int64)

    def update(self, items: Any, times: Any = None) -> Self:  # type: ignore[override]
        """Add items: one, or a column of them, in their order; times only say which count."""
        self._settle()
        return super().update(items, times)

    def items(self) -> list[Any]:
        """The items of the reservoir; they do not depend on now."""
        self._settle()
        found: list[Any] = self._items.tolist()
        return found

    def _column(self, given: Any) -> tuple[Items, NDArray[np.bool_] | None]:
        column = items.read(given)
        return column, column.valid

    def _add_rows(self, rows: Items, batch: Batch) -> None:
        there = weighing(self, batch)
        size = batch.size if there is None else len(there)
        filled, places = len(self._items), np.full(self.k, -1)
        for start in range(0, size, _STRIDE):
            stop = min(start + _STRIDE, size)
            random = hash_range(self._numbered + start, self._numbered + stop, self.seed)
            filled = _replace(random, start, self.k * self.rate, filled, places)
        self._numbered += size
        fresh = np.flatnonzero(places >= 0)
        if len(fresh):
            chosen = np.arange(filled)
            chosen[fresh] = len(self._items) + np.arange(len(fresh))
            taken = places[fresh] if there is None else there[places[fresh]]
            self._items = spliced(self._items, chosen, taken, rows.take)

    def _absorb(self, other: Self) -> None:
        if self.rows and other.rows:
            raise MergeRefused(
                "biased reservoirs do not merge: their bias is by the order in which rows came, which two of them do "
                "not share; use WeightedReservoir or PrioritySample with decay='exp(half_life=...)'"
            )
        if other.rows:
            self._items = other._items
            self._numbered = other._numbered

    def _identity(self) -> dict[str, Any]:
        return {name: value for name, value in super()._identity().items() if name != "seed"}

    def _parameters(self) -> dict[str, Any]:
        return {"k": self.k, "rate": self.rate, "seed": self.seed}

    def _write(self, writer: serde.Writer) -> None:
        writer.uint(self._numbered)
        items.write(writer, items.plain(self._items))

    def _read(self, reader: serde.Reader) -> None:
        self._numbered = reader.uint()
        self._items, _ = items.parse(reader, unique=False)
        if len(self._items) > min(self.k, self._numbered) or self._numbered > self.rows:
            raise CorruptState(f"the state has {len(self._items)} rows of {self._numbered}, and {self.k} fit")


_ORDER = "its bias is by the order in which rows come, which two reservoirs do not share: merging is refused"

SPEC = Spec(
    name="biased_reservoir",
    make=BiasedReservoir,
    version=1,
    title="Aggarwal's sample with a bias to what came last",
    questions=("items",),
    timeless=("items",),
    guarantee="for rows in order: each kept with odds near exp(-rate r), r the number of rows after it",
    space="O(k): an item for each of k rows",
    time="O(1), about 4 ns a row in bulk",
    paper="Aggarwal, On biased reservoir sampling (VLDB 2006), which the forward-decay paper compares with",
    equality=Equality.GUARANTEED,
    weighted=False,
    numbered=True,
    decays=frozenset({"landmark"}),
    items="any",
    parameters=({"k": 4},),
    absent=dict.fromkeys(
        (
            "merge_is_commutative",
            "merge_is_associative",
            "merge_is_concatenation",
            "merge_with_itself_doubles",
            "merge_leaves_the_other",
        ),
        _ORDER,
    ),
    state_bytes=lambda p: 512 + 24 * p["k"],
)
BiasedReservoir.SPEC = SPEC
