"""Counts over every window of a stream in order, in constant time for each item: the deterministic wave.

Items are numbered as they come. Of those whose number has exactly `l` factors of two, the times of the newest few are
kept. Near the edge of a window of `n` items, the numbers that are kept are then at most ``epsilon n`` apart, and the
edge lies between two of them (Gibbons and Tirthapura, Distributed streams algorithms for sliding windows, 2002). An
item takes one place in one ring, however many came before: there is no step in which much has to be done at once.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from wane import serde
from wane._jit import kernel
from wane.decay import Decay
from wane.decay.base import Floats, Ints
from wane.errors import CorruptState, Unsupported
from wane.registry import Equality, Spec
from wane.summaries._any_decay import FARTHEST, nanoseconds
from wane.summaries._in_order import ABSENT, Buckets, InOrder, together
from wane.summaries.base import Batch

_LEVELS = 48
"""Items are numbered up to ``2**48``: a million a second for nine years."""


@kernel("int64(r_i8, w_i8, int64, int64)")
def _number(times: Ints, rings: Ints, room: int, seen: int) -> int:
    """Number the items, and keep the time of each in the ring of its factors of two."""
    for i in range(times.shape[0]):
        seen += 1
        level, odd = 0, seen
        while odd & 1 == 0:
            odd >>= 1
            level += 1
        rings[level * room + (odd >> 1) % room] = times[i]
    return seen


class Wave(InOrder):
    """Counts of a stream in order, over any window and under any decay, chosen when asked; constant time an item.

    :meth:`count` is right to `epsilon` of itself. ``1 / (2 epsilon) + 2`` times of 8 bytes for each doubling of the
    number of items; about 5 ns a row in bulk, and never more than a few steps for one item. Any decay, backward or
    forward, a user's own too; a forward one counts items before its landmark as nothing. Items have no weights:
    :class:`wane.ExponentialHistogram` takes them.

    Rows come in the order of their times. An item older than one before it is refused, or with ``late="drop"`` left out
    and counted. Merging adds errors as it does there: :attr:`error` says what a merged one is right to.

    Args:
        epsilon: The error allowed, relative to the answer.
        decay: The decay of questions that name none.
        landmark: The landmark of questions that name none.
        late: The policy for items out of order: ``"error"`` or ``"drop"``.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> wave = Wave(0.1).update([1.0] * 5, times=[103, 104, 105, 107, 108])
    >>> wave.count(window="4s", now=110), round(wave.count(decay="exp(half_life=2s)", now=110), 3)
    (2.0, 1.244)
    """

    def __init__(
        self,
        epsilon: float = 0.01,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        late: str = "error",
        before: str = "error",
    ) -> None:
        super().__init__(epsilon, decay, landmark, late=late, before=before)
        self._room = math.ceil(1 / (2 * self.epsilon)) + 2
        self._rings = np.zeros(0, np.int64)
        self._seen = 0
        self._first = 0

    def update(self, items: Any, times: Any = None, weights: Any = None) -> Self:
        """Add items: one, or a column of them, with their times; gives the summary itself."""
        if weights is not None:
            raise Unsupported("a Wave numbers its items, and takes no weights; use ExponentialHistogram")
        return super().update(items, times)

    @property
    def kept(self) -> int:
        """How many times are kept."""
        self._settle()
        return len(self._known()[0])

    def _known(self) -> tuple[Ints, Ints]:
        """The numbers that are kept, in order, and their times."""
        numbers, times = [np.zeros(1, np.int64)], [np.full(1, self._first)]
        for level in range(self._seen.bit_length()):
            count = (self._seen + (1 << level)) >> (level + 1)  # items with this many factors of two
            which = np.arange(max(0, count - self._room), count, dtype=np.int64)
            numbers.append((2 * which + 1) << level)
            times.append(self._rings[level * self._room + which % self._room])
        every = np.concatenate(numbers)
        order = np.argsort(every)
        return every[order], np.concatenate(times)[order]

    def _counted(self) -> Buckets:
        """Each item that is kept for itself, and those between two of them together."""
        self._settle()
        numbers, times = self._known()
        gaps = np.diff(numbers) - 1
        between = gaps > 0
        lows = np.concatenate([times[:-1][between], times[1:]])
        highs = np.concatenate([times[1:][between], times[1:]])
        loads = np.concatenate([gaps[between], np.ones(len(times) - 1)]).astype(np.float64)
        return Buckets(lows, highs, loads)

    def _add_rows(self, values: Floats, batch: Batch) -> None:
        if not batch.size:
            return
        assert batch.times is not None
        times = nanoseconds(batch.times)
        if not self._seen:
            self._first = int(times[0])
        self._make_room(self._seen + batch.size)
        self._seen = _number(times, self._rings, self._room, self._seen)

    def _make_room(self, seen: int) -> None:
        wanted = seen.bit_length() * self._room
        if wanted > len(self._rings):
            self._rings = np.concatenate([self._rings, np.zeros(wanted - len(self._rings), np.int64)])

    def _absorb(self, other: Self) -> None:
        if not other._seen:
            return
        if not self._seen:
            self._rings, self._seen = other._rings.copy(), other._seen
            self._first, self._merged = other._first, other._merged
            return
        mine, theirs = self._counted(), other._counted()
        self._note_merge(other, mine.exact and theirs.exact)
        times, loads = together(mine, theirs)
        upto = np.cumsum(loads)
        self._seen += other._seen
        self._first = min(self._first, other._first)
        self._make_room(self._seen)
        for level in range(self._seen.bit_length()):
            count = (self._seen + (1 << level)) >> (level + 1)
            which = np.arange(max(0, count - self._room), count, dtype=np.int64)
            at = np.searchsorted(upto, ((2 * which + 1) << level) - 0.25)
            self._rings[level * self._room + which % self._room] = times[np.minimum(at, len(times) - 1)]

    def _write(self, writer: serde.Writer) -> None:
        _, times = self._known()
        writer.float(self._merged).uint(self._seen).array(times if self._seen else times[:0])

    def _read(self, reader: serde.Reader) -> None:
        self._merged, self._seen = reader.finite(), reader.uint()
        times = reader.array(np.int64)
        if self._merged < 0 or self._seen != self.rows or self._seen.bit_length() > _LEVELS:
            raise CorruptState(f"the state has numbered {self._seen!r:.60} items, and seen {self.rows!r:.60} rows")
        self._rings = np.zeros(self._seen.bit_length() * self._room, np.int64)
        if not self._seen:
            if len(times):
                raise CorruptState("the state has times of no items")
            return
        numbers, _ = self._known()
        newest = self.newest if self.newest is not None else -FARTHEST
        inside = len(times) == len(numbers) and times[0] > -FARTHEST and times[-1] <= newest < FARTHEST
        if not (inside and (times[1:] >= times[:-1]).all()):
            raise CorruptState(f"the state must have {len(numbers)} times in order, up to its newest")
        self._first = int(times[0])
        for number, time in zip(numbers[1:].tolist(), times[1:].tolist(), strict=True):
            level = (number & -number).bit_length() - 1
            self._rings[level * self._room + (number >> level + 1) % self._room] = time


SPEC = Spec(
    name="wave",
    make=Wave,
    version=1,
    title="counts over any window, in order, by deterministic wave",
    questions=("count",),
    timeless=(),
    guarantee="count to epsilon of itself, in every window, under every decay",
    space="O(log(N epsilon) / epsilon): times of 8 bytes",
    time="O(1) in the worst case, about 5 ns a row in bulk",
    paper="Gibbons and Tirthapura (SPAA 2002); Cohen and Strauss (PODS 2003) for any decay",
    equality=Equality.GUARANTEED,
    bounds=lambda p: {"count": p["epsilon"]},
    decays=frozenset({"backward", "forward"}),
    items="numbers",
    weighted=False,
    ordered=True,
    parameters=({"epsilon": 0.1},),
    absent=ABSENT,
    state_bytes=lambda p: 512 + 8 * (1 + _LEVELS * (2 + math.ceil(1 / (2 * p["epsilon"])))),
)
Wave.SPEC = SPEC
