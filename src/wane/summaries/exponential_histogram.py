"""Counts and sums over every window of a stream in order, and under any decay: the exponential histogram.

Buckets grow with age. Going back in time, two neighbours become one as long as they weigh no more together than
``2 epsilon`` of all that is newer; so half of a bucket, which is what the edge of a window leaves in doubt, is at most
`epsilon` of what is surely in the window. That is the invariant of Datar, Gionis, Indyk and Motwani (Maintaining stream
statistics over sliding windows, 2002). Their buckets hold powers of two of items; these hold any weights, so that sums
of any numbers need no rounding.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from wane import serde
from wane._jit import kernel
from wane.decay import Decay
from wane.decay.base import Floats, Ints
from wane.errors import CorruptState
from wane.registry import Equality, Spec
from wane.summaries._any_decay import FARTHEST, nanoseconds
from wane.summaries._in_order import ABSENT, Buckets, InOrder, together
from wane.summaries.base import Batch

_LEAST = 4096
"""Buckets that are collected at least before they are joined: joining costs little a row."""

_RANGE = 2000 * math.log(2)
"""How far weights may lie apart, as a logarithm: from the least double to a billion of the largest products."""


@kernel("UniTuple(int64, 2)(r_i8, r_f8, int64, w_i8, w_i8, w_f8, int64)")
def _fill(times: Ints, loads: Floats, start: int, lows: Ints, highs: Ints, sums: Floats, size: int) -> tuple[int, int]:
    """Append rows from `start` on as buckets, one for each instant, while there is room; gives the next row."""
    for i in range(start, times.shape[0]):
        if loads[i] <= 0.0:
            continue
        at = times[i]
        if size > 0 and highs[size - 1] == at and lows[size - 1] == at:
            sums[size - 1] += loads[i]
            continue
        if size == lows.shape[0]:
            return i, size
        lows[size] = highs[size] = at
        sums[size] = loads[i]
        size += 1
    return times.shape[0], size


@kernel("int64(w_i8, w_i8, w_f8, int64, float64)")
def _join(lows: Ints, highs: Ints, sums: Floats, size: int, share: float) -> int:
    """Join neighbours, from the newest back, that weigh at most a share of all that is newer; gives how many stay."""
    newer, made, i = 0.0, size, size - 1
    while i >= 0:
        low, high, load = lows[i], highs[i], sums[i]
        i -= 1
        while i >= 0 and load + sums[i] <= share * newer:
            low = lows[i]
            load += sums[i]
            i -= 1
        made -= 1
        lows[made], highs[made], sums[made] = low, high, load
        newer += load
    for j in range(made, size):
        lows[j - made], highs[j - made], sums[j - made] = lows[j], highs[j], sums[j]
    return size - made


class _Ladder:
    """The buckets of one sum of weights."""

    def __init__(self, epsilon: float) -> None:
        self.share = 2 * epsilon
        self.size = 0
        self.lows, self.highs, self.sums = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)

    def add(self, times: Ints, loads: Floats) -> None:
        at = 0
        while True:
            at, self.size = _fill(times, loads, at, self.lows, self.highs, self.sums, self.size)
            if at == len(times):
                return
            self.join()
            self._grow(max(_LEAST, 2 * self.size))

    def join(self) -> None:
        self.size = _join(self.lows, self.highs, self.sums, self.size, self.share)

    def buckets(self) -> Buckets:
        return Buckets(self.lows[: self.size], self.highs[: self.size], self.sums[: self.size])

    def replace(self, buckets: Buckets) -> None:
        self.lows, self.highs, self.sums = buckets.lows.copy(), buckets.highs.copy(), buckets.loads.copy()
        self.size = len(self.lows)

    def _grow(self, room: int) -> None:
        if room > len(self.lows):
            more = np.empty(room - len(self.lows), np.int64)
            self.lows, self.highs = np.concatenate([self.lows, more]), np.concatenate([self.highs, more])
            self.sums = np.concatenate([self.sums, np.empty(len(more))])


class ExponentialHistogram(InOrder):
    """Counts and sums of a stream in order, over any window and under any decay, chosen when asked.

    :meth:`count` is right to `epsilon` of itself, :meth:`sum` to `epsilon` of the sum of magnitudes (of itself, where
    values have one sign). ``O(log(N epsilon) / epsilon)`` buckets of 24 bytes, for `N` the whole weight; about 15 ns a
    row in bulk, amortised. Any decay, backward or forward, a user's own too; a forward one counts items before its
    landmark as nothing.

    Rows come in the order of their times. An item older than one before it is refused, or with ``late="drop"`` left out
    and counted. A value that is not a number under 2.6e120 is dropped and counted. Merging takes half of each bucket as
    items at either end, and so adds errors: :attr:`error` says what a merged one is right to, ``2 epsilon`` and a bit
    after the first merge.

    Args:
        epsilon: The error allowed, relative to the answer.
        decay: The decay of questions that name none.
        landmark: The landmark of questions that name none.
        late: The policy for items out of order: ``"error"`` or ``"drop"``.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> h = ExponentialHistogram(0.1).update([4.0, 8.0, 3.0, 6.0, 4.0], times=[103, 104, 105, 107, 108])
    >>> h.count(window="4s", now=110), h.sum(window="6s", now=110)
    (2.0, 13.0)
    >>> round(h.count(decay="exp(half_life=2s)", now=110), 3), round(h.sum(decay="backward poly(1)", now=110), 3)
    (1.244, 4.976)
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
        self._weights, self._ups, self._downs = (_Ladder(self.epsilon) for _ in range(3))

    def sum(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> float:
        """The decayed sum `S` of the values."""
        self._settle()
        ups, downs = (
            self._decayed(ladder.buckets(), now, decay, window, landmark) for ladder in (self._ups, self._downs)
        )
        return ups - downs

    @property
    def buckets(self) -> int:
        """How many buckets there are."""
        self._settle()
        for ladder in self._ladders:
            ladder.join()
        return sum(ladder.size for ladder in self._ladders)

    @property
    def _ladders(self) -> tuple[_Ladder, _Ladder, _Ladder]:
        return self._weights, self._ups, self._downs

    def _counted(self) -> Buckets:
        self._settle()
        return self._weights.buckets()

    def _add_rows(self, values: Floats, batch: Batch) -> None:
        if not batch.size:
            return
        assert batch.times is not None
        times = nanoseconds(batch.times)
        loads = np.ones(batch.size) if batch.weights is None else batch.weights
        products = values * loads
        self._weights.add(times, loads)
        self._ups.add(times, products)
        if (products < 0).any():
            self._downs.add(times, -products)

    def _absorb(self, other: Self) -> None:
        exact = all(ladder.buckets().exact for one in (self, other) for ladder in one._ladders)
        for mine, theirs in zip(self._ladders, other._ladders, strict=True):
            if theirs.size and mine.size:
                times, loads = together(mine.buckets(), theirs.buckets())
                mine.size = 0
                mine.add(times, loads)
            elif theirs.size:
                mine.replace(theirs.buckets())
        if self.rows and other.rows:
            self._note_merge(other, exact)
        else:
            self._merged = max(self._merged, other._merged)

    def _write(self, writer: serde.Writer) -> None:
        writer.float(self._merged)
        for ladder in self._ladders:
            ladder.join()
            for column in ladder.buckets():
                writer.array(column)

    def _read(self, reader: serde.Reader) -> None:
        self._merged = reader.finite()
        if self._merged < 0:
            raise CorruptState(f"the state holds {self._merged!r} where the error of merging must be")
        for ladder in self._ladders:
            lows, highs, loads = reader.array(np.int64), reader.array(np.int64), reader.array(np.float64)
            if not len(lows) == len(highs) == len(loads) <= _most(self.epsilon):
                raise CorruptState(f"the state has {len(lows)} buckets, and at most {_most(self.epsilon)} fit")
            ordered = (lows <= highs).all() and (highs[:-1] <= lows[1:]).all()
            near = not len(lows) or (lows[0] > -FARTHEST and highs[-1] < FARTHEST and highs[-1] <= (self.newest or 0))
            if not (ordered and near and (loads > 0).all() and np.isfinite(loads.sum())):
                raise CorruptState("the buckets in the state are not in order, or have no weight")
            ladder.replace(Buckets(lows, highs, loads))


def _most(epsilon: float) -> int:
    """How many buckets there may be: each two add ``2 epsilon`` of what is newer to it."""
    return 8 + 2 * math.ceil(_RANGE / math.log1p(2 * epsilon))


SPEC = Spec(
    name="exphist",
    make=ExponentialHistogram,
    version=1,
    title="counts and sums over any window, in order, by exponential histogram",
    questions=("count", "sum"),
    timeless=(),
    guarantee="count to epsilon of itself, sum to epsilon of the sum of magnitudes, in every window, under every decay",
    space="O(log(N epsilon) / epsilon): buckets of 24 bytes",
    time="O(1) amortised, about 15 ns a row in bulk",
    paper="Datar, Gionis, Indyk and Motwani (SIAM J. Comput. 2002); Cohen and Strauss (PODS 2003) for any decay",
    equality=Equality.GUARANTEED,
    bounds=lambda p: {"count": p["epsilon"], "sum": p["epsilon"]},
    decays=frozenset({"backward", "forward"}),
    items="numbers",
    ordered=True,
    parameters=({"epsilon": 0.1},),
    absent=ABSENT,
    state_bytes=lambda p: 512 + 3 * 24 * _most(p["epsilon"]),
)
ExponentialHistogram.SPEC = SPEC
