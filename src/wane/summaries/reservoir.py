"""Reservoir sampling with skips: the unweighted sample that decayed ones are compared with (Vitter, 1985).

A row's random number decides, as in :mod:`wane.summaries._bottom`: the smallest are kept. Without ids these numbers
are never made but for the rows that enter: how many rows pass until the next one that is small enough is a geometric
random number, and how small it is a uniform one. So a sample of a long stream looks at few of its rows. What is kept is
a sample like any other: reservoirs merge by their numbers, and one that has merged goes on.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from wane import serde
from wane._jit import inline, kernel
from wane.decay.base import Ints
from wane.errors import CorruptState
from wane.hashing import Hashes, hash_range
from wane.registry import Equality, Spec
from wane.summaries._bottom import log
from wane.summaries._candidates import Wide, unit
from wane.summaries._sampled import BottomSample, Draw, Rows, bytes_of_bottom, weighing
from wane.summaries.base import Batch

_WHOLE = 2.0**64
_LONGEST = 2.0**62
_LAST = np.uint64(2**64 - 1)
_TOGETHER = 8192


@inline
def _sink(heap: Hashes, size: int) -> None:
    """Bring the first of a heap of the largest to its place."""
    at = 0
    word = heap[0]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= word:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = word


@inline
def _gap(word: Any, odds: float) -> int:
    """How many rows pass before one of these odds: a geometric random number, from a random word."""
    if odds >= 1.0:
        return 0
    rest = 1.0 - odds
    slope = log(rest) * (-odds / (rest - 1.0)) if rest < 1.0 else -odds  # the logarithm of what is nearly 1 (Kahan)
    return int(min(np.floor(log(unit(word)) / slope), _LONGEST))


@kernel("int64(w_u8, r_u8, int64, int64, w_i8, w_u8, w_i8, w_u8)", fuse=False)
def _skip(
    heap: Hashes,
    random: Hashes,
    rows: int,
    start: int,
    counters: Ints,
    word: Hashes,
    entered: Ints,
    words: Hashes,
) -> int:
    """Find the rows that may enter, until the random numbers are used up or the rows are; gives the row to go on from.

    Args:
        heap: The numbers in the reservoir, the largest first.
        random: Two random words for each row that enters.
        rows: How many rows there are.
        start: The row to begin at.
        counters: How many numbers are in the heap, how many rows pass before the next that may enter, and how many
            have entered in this call.
        word: The number of the next that may enter.
        entered: Where to write the rows that may enter, and
        words: their numbers.
    """
    at = start
    while counters[2] < entered.shape[0]:
        if counters[1] >= rows - at:
            counters[1] -= rows - at
            return rows
        at += counters[1]
        size, found = counters[0], counters[2]
        entered[found], words[found] = at, word[0]
        if size < heap.shape[0]:
            place = size
            while place > 0 and heap[(place - 1) >> 1] < word[0]:
                heap[place] = heap[(place - 1) >> 1]
                place = (place - 1) >> 1
            heap[place] = word[0]
            counters[0] = size + 1
        elif word[0] < heap[0]:  # a merge may have left less room than there was
            heap[0] = word[0]
            _sink(heap, size)
        found += 1
        counters[2] = found
        at += 1
        full = counters[0] == heap.shape[0]
        top = heap[0] if full else _LAST
        counters[1] = _gap(random[2 * found - 2], np.float64(top) / _WHOLE if full else 1.0)
        word[0] = min(np.uint64(unit(random[2 * found - 1]) * np.float64(top)), top - np.uint64(1))
    return at


class Reservoir(BottomSample):
    """A uniform sample of `k` rows without replacement, by skipping over the rows that do not enter.

    Every set of `k` rows is as likely as any other. Rows weigh 1 each: no decay, a landmark window, or a sliding window
    whose time is fixed; under any other decay use a `WeightedReservoir` or a `PrioritySample`. 24 bytes a row and its
    item. Well under 1 ns a row in bulk, without ids.

    Args:
        k: How many rows.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        seed: Chooses the random numbers. Parts that merge have seeds of their own; if rows have ids, one seed.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> Reservoir(3, seed=7).update(range(1000)).items()
    [511, 601, 795]
    """

    def _begin(self) -> None:
        super()._begin()
        self._pass = 0  # rows to pass before the next that may enter
        self._events = 0  # how many of those there were
        self._word = hash_range(0, 1, self.seed)  # the number of the next

    def update(self, items: Any, times: Any = None, *, ids: Any = None) -> Self:  # type: ignore[override]
        """Add items: one, or a column of them.

        Args:
            items: The items.
            times: Their times, where the decay needs them.
            ids: What tells rows apart: then the sample is a function of the set of rows. All rows have ids, or none.
        """
        return super().update(items, times, ids=ids)

    def _add_rows(self, rows: Rows, batch: Batch) -> None:
        if rows.ids is not None:
            super()._add_rows(rows, batch)
            return
        places = weighing(self, batch)
        size = batch.size if places is None else len(places)
        if size:
            self._number(size)
        self._enter(size, rows if places is None else rows[_mask(places, batch.size)])

    def _enter(self, size: int, rows: Rows) -> None:
        """Let those rows enter that the random numbers choose."""
        if self._pass >= size:
            self._pass -= size
            return
        known = np.sort(self._bottom.hashes)[::-1]  # a heap
        heap = np.zeros(self.k + 1, np.uint64)
        heap[: len(known)] = known
        at, counters = 0, np.array([len(known), self._pass, 0])
        while at < size:
            room = min(_TOGETHER, size)
            random = hash_range(2 * self._events + 1, 2 * (self._events + room) + 1, self.seed)
            entered, words = np.empty(room, np.int64), np.empty(room, np.uint64)
            counters[2] = 0
            at = int(_skip(heap, random, size, at, counters, self._word, entered, words))
            found = int(counters[2])
            self._events += found
            chosen = entered[:found]
            ones = Wide(np.ones(found), np.zeros(found, np.int64))
            self._bottom.add(words[:found], ones, lambda some, chosen=chosen: rows.items.take(chosen[some]))  # type: ignore[misc]
        self._pass = int(counters[1])

    def _follow(self, other: Self) -> None:
        super()._follow(other)
        self._pass, self._events, self._word = other._pass, other._events, other._word.copy()

    def _write(self, writer: serde.Writer) -> None:
        super()._write(writer)
        writer.uint(self._pass).uint(self._events).uint(int(self._word[0]))

    def _read(self, reader: serde.Reader) -> None:
        super()._read(reader)
        self._pass, self._events, word = reader.uint(), reader.uint(), reader.uint()
        if self._pass > 2**62 or self._events > 2**61 or word >= 2**64:
            raise CorruptState("the skips in the state are too long")
        if (self._bottom.weights.mantissas != 1).any() or self._bottom.weights.exponents.any():
            raise CorruptState("the rows in the state do not weigh 1 each")
        self._word = np.array([word], np.uint64)


def _mask(places: Ints, size: int) -> Any:
    found = np.zeros(size, np.bool_)
    found[places] = True
    return found


SPEC = Spec(
    name="reservoir",
    make=Reservoir,
    version=1,
    title="a uniform sample, by skips",
    questions=("count", "items"),
    timeless=("items",),
    guarantee="every set of k rows is as likely as any other",
    space="O(k): 24 bytes and an item for each of k rows",
    time="O(1 + k / n) for row n, under 1 ns a row in bulk",
    paper="Vitter, Random sampling with a reservoir (1985), which the forward-decay paper compares with",
    equality=Equality.IDENTICAL,
    weighted=False,
    numbered=True,
    bounds=lambda p: {} if p.get("k", 1000) >= 300 else {"count": None},
    decays=frozenset({"landmark"}),
    items="any",
    parameters=({"k": 3},),
    records={"sample": Draw},
    functions=("sample",),
    state_bytes=lambda p: bytes_of_bottom(p["k"]) + 32,
)
Reservoir.SPEC = SPEC
