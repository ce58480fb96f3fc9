"""Counts, quantiles and heavy hitters of any window, in any order of arrival, and under any decay chosen when asked.

The structures Q_0, Q_1, ... (:mod:`wane.summaries._ranges`) count the same items in ranges of time, ever more coarsely
and over an ever longer past. Of a window, the finest one that reaches back to its edge is asked: it counts the ranges
inside, and half of those over the edge. Those are at most `L`, the height of the tree, with at most ``2**j`` items
each; and the next finer structure, which does not reach back so far, has ``4 L / epsilon`` ranges inside the window, of
which half are full with ``2**(j - 1)`` items. So half of what is over the edge is at most half of `epsilon` of the
window. A structure of twice the coarseness is added when the last would have to discard what a question may still be
about (Cormode, Korn and Tirthapura, Time-decaying aggregates in out-of-order streams, PODS 2008).

With `values`, each range also has the ranks of its values (:mod:`wane.summaries._ranks`), whose errors add up to the
rest of `epsilon`. By steps of the weight, what holds for windows holds for every decay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import serde
from wane.decay import Decay
from wane.decay.base import Floats, Ints, positive_duration
from wane.errors import BadParameter, BadTime, CorruptState, Unsupported
from wane.registry import Equality, Spec
from wane.summaries import _ranks
from wane.summaries._any_decay import AnyDecay, Between, Question, nanoseconds
from wane.summaries._ranges import EARLIEST, Pieces, Ranges, ends, heights
from wane.summaries._ranks import Ranks
from wane.summaries._tally import scaled
from wane.summaries._varints import pack, unpack
from wane.summaries.base import Batch, fraction, ldexp
from wane.summaries.space_saving import Hit
from wane.times import Ticks, show, show_duration

_TOGETHER = 1 << 17
"""Rows that are sorted and added together."""

_STRUCTURES = 50
"""Structures there may be: the last counts up to ``2**50`` items in a range."""

_ROUNDING = 1e-12


class Spread(NamedTuple):
    """The values that questions are about, with their decayed weights.

    Attributes:
        values: In order, no two alike.
        upto: The decayed count of values up to each.
        total: The decayed count of all.
        edge: What the edges of windows leave in doubt, on either side, of any count.
        error: What the ranks leave in doubt, on either side, of the count of values up to one.
    """

    values: Floats
    upto: Floats
    total: float
    edge: float
    error: float


class RangeSketch(AnyDecay):
    """Counts, quantiles and heavy hitters over any window and under any decay, for items in any order.

    :meth:`count` is right to `epsilon` of itself, for every window up to the horizon and every decay, backward or
    forward, a user's own too. With `values`, so is the count of values in a range, and each rank, to `epsilon` of the
    count of all. Deterministic, whatever the order of arrival.

    What is older than the horizon has no weight, under any decay; an item that comes so late is dropped and counted.
    Times are kept to the resolution, rounded down: a window is right for the times as they are kept. With `L` the bits
    of ``horizon / resolution``, each of ``log(epsilon N / L)`` structures has at most ``9 L / epsilon`` ranges of 16
    bytes; about 100 ns a row in bulk without values, and 500 to 800 with them. These take up to some ``16 / epsilon``
    entries of 32 bytes a range more.

    Merging two sketches adds the errors that the structures allow: :attr:`error` says what a merged one is right to;
    without values two make no difference, since half of `epsilon` is kept for that.

    Args:
        epsilon: The error allowed, relative to the count; at most 0.5.
        decay: The decay of questions that name none.
        landmark: The landmark of questions that name none.
        horizon: The longest window.
        resolution: What times are kept to.
        values: The least and the largest value, for questions about values; others are dropped and counted.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> c = RangeSketch(0.05, horizon="7d", values=(0, 2**32))
    >>> c.update([4, 8, 3, 6, 4], times=[105, 107, 103, 108, 104]).count(window="5s", now=110)
    2.0
    >>> c.quantile(0.5, decay="backward poly(1.5)", now=110), c.count(decay="poly(2)", landmark=100, now=110)
    (6.0, 1.63)
    >>> c.heavy(0.4, window="8s", now=110)
    [Hit(item=4.0, weight=2.0, error=0.0)]
    """

    def __init__(
        self,
        epsilon: float = 0.05,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        horizon: Any = "7d",
        resolution: Any = "1s",
        values: tuple[float, float] | None = None,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-6)
        if self.epsilon > 0.5:
            raise BadParameter(f"epsilon must be at most 0.5, got {epsilon!r}; the structures need some room")
        self.horizon = positive_duration(horizon, "horizon", "horizon='7d'")
        self.resolution = positive_duration(resolution, "resolution", "resolution='1s'")
        ticks = -(-self.horizon // self.resolution)
        if self.horizon >= 2**61 or ticks < 2:
            raise BadParameter(
                f"the horizon must be under 73 years and 2 resolutions or more, got {show_duration(self.horizon)} and "
                f"{show_duration(self.resolution)}"
            )
        self.values = _interval(values)
        self._horizon = ticks
        self._top = max((ticks - 1).bit_length(), 8)
        self._least, self._room = _sizes(self.epsilon, self._top)
        self._factor = 1  # how many times its limit a range may count, after merging
        self._ranges = [self._empty(0)]
        self._ranks = [_ranks.none()]
        self._oldest = 2**62  # the first tick that was counted
        self._pending: list[tuple[Ints, Floats]] = []
        self._rows_pending = 0

    @property
    def error(self) -> float:
        """What a count is right to, relatively: at most `epsilon`, unless sketches were merged that are not exact."""
        return max(self.epsilon, self._factor * self.epsilon * (0.5 if self.values is None else 1.0))

    @property
    def ranges(self) -> list[int]:
        """How many ranges there are in each structure."""
        self._settle()
        return [one.used for one in self._ranges]

    @property
    def entries(self) -> int:
        """How many values are kept."""
        self._settle()
        return sum(len(ranks.places) for ranks in self._ranks)

    def count(
        self,
        now: Any = None,
        *,
        decay: Any = None,
        window: Any = None,
        landmark: Any = None,
        values: tuple[float, float] | None = None,
    ) -> float:
        """The decayed count; with `values`, of those from the first to the second, both included."""
        question = self._asked(now, decay, window, landmark)
        if values is not None:
            low, high = _bounds(values)
            spread = self._spread(question)
            upto = np.append(0.0, spread.upto)
            at = np.searchsorted(spread.values, high, "right"), np.searchsorted(spread.values, low, "left")
            return ldexp(float(max(upto[at[0]] - upto[at[1]], 0.0)), self._power(question))
        return ldexp(float(sum(counts @ inside for counts, inside, _ in self._shares(question))), self._power(question))

    def interval(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> Between:
        """Where the decayed count of all lies, for certain."""
        question = self._asked(now, decay, window, landmark)
        parts = [(counts @ inside, counts @ edge) for counts, inside, edge in self._shares(question)]
        power = self._power(question)
        low, high = (float(sum(a + side * b for a, b in parts)) for side in (-1, 1))
        return Between(ldexp(low, power), ldexp(high, power))

    def quantile(
        self, phi: Any, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> Any:
        """The value whose rank is `phi` of the decayed count, to `epsilon` of it; NaN of nothing.

        Args:
            phi: A number from 0 to 1, which gives a number, or a list of them, which gives an array.
            now: When.
            decay: A decay or its text form.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        wanted = np.array([_share(one) for one in (phi if hasattr(phi, "__len__") else [phi])], np.float64)
        spread = self._spread(self._asked(now, decay, window, landmark))
        found = np.full(len(wanted), math.nan)
        if spread.total > 0:
            at = np.searchsorted(spread.upto, wanted * (spread.upto[-1] * (1 - 1e-15)), "left")
            found = spread.values[np.minimum(at, len(spread.values) - 1)]
        return found if hasattr(phi, "__len__") else float(found[0])

    def rank(
        self, value: float, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> float:
        """The decayed count of values up to one, to `epsilon` of the count of all."""
        question = self._asked(now, decay, window, landmark)
        spread = self._spread(question)
        _, high = _bounds((-math.inf, value))
        found = float(np.append(0.0, spread.upto)[np.searchsorted(spread.values, high, "right")])
        return ldexp(found, self._power(question))

    def heavy(
        self, phi: float, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> list[Hit]:
        """Every value that weighs ``phi C`` or more, and none that weighs less than ``(phi - 3 epsilon) C``.

        The heaviest first, each with a weight that is not too low and the most by which it may be too high.
        """
        share = fraction(phi, "phi", 0.0, "everything weighs a share above 0")
        question = self._asked(now, decay, window, landmark)
        spread, power = self._spread(question), self._power(question)
        each = np.diff(np.append(0.0, spread.upto))
        doubt = spread.edge + 2 * spread.error
        least = share * max(spread.total - spread.edge, 0.0) * (1 - _ROUNDING)
        chosen = np.flatnonzero((each + doubt >= least) & (each + doubt > 0))
        chosen = chosen[np.lexsort((spread.values[chosen], -each[chosen]))]
        return [
            Hit(float(spread.values[i]), ldexp(float(each[i]) + doubt, power), ldexp(2 * doubt, power)) for i in chosen
        ]

    def update(self, items: Any, times: Any = None, weights: Any = None) -> Self:
        """Add items: one, or a column of them, with their times; gives the summary itself."""
        if weights is not None:
            raise Unsupported("a RangeSketch counts items, and takes no weights; use ExponentialHistogram or a ladder")
        return super().update(items, times)

    # --- Questions

    def _asked(self, now: Any, decay: Any, window: Any, landmark: Any) -> Question:
        self._settle()
        question = self._question(now, decay, window, landmark)
        if question.window is not None and question.window > self.horizon:
            raise BadParameter(
                f"a window of {show_duration(question.window)} is longer than the horizon, "
                f"{show_duration(self.horizon)}; make the sketch with a longer horizon="
            )
        return question

    def _power(self, question: Question) -> int:
        """The power of two of the weight of the newest item, which others are relative to while an answer is made."""
        return 0 if self.newest is None else question.scaled(np.array([self.newest]))[1]

    def _weights(self, question: Question, ticks: Ints) -> Floats:
        """The weights of ticks up to the newest, relative to their power; those beyond the horizon have none."""
        first = question.now // self.resolution - self._horizon
        latest = 0 if self.newest is None else self.newest // self.resolution
        weights, power = question.scaled(np.minimum(np.maximum(ticks, first), latest) * self.resolution)
        return np.where(ticks <= first, 0.0, scaled(weights, power - self._power(question)))

    def _parts(self, question: Question) -> Iterator[tuple[int, Ints, Ints, Floats, Floats]]:
        """For each structure that is asked: its number, its ranges, what they count, and the shares of those counts.

        A structure answers for the edges of windows from its own reach up to that of the next finer one; the steps
        that the weight makes in between are what it contributes. The last two are the share of a count that is
        counted, and by how much that may be wrong, on either side.
        """
        if self.newest is None:
            return
        upper = self.newest // self.resolution
        first = min(question.now // self.resolution - self._horizon, upper)
        for number, one in enumerate(self._ranges):
            final = number + 1 == len(self._ranges)
            lower = first if final else min(max(one.since - 1, first), upper)
            bottom, top = self._weights(question, np.array([lower, upper]))
            if one.used and top > bottom:
                keys, counts = one.listed()
                lows, highs = ends(keys)
                lows = np.maximum(lows, self._oldest)  # before it there is nothing
                begins = self._weights(question, np.clip(lows, lower, upper)) - bottom
                finishes = self._weights(question, np.clip(highs, lower, upper)) - bottom
                yield number, keys, counts, (begins + finishes) / 2, (finishes - begins) / 2
            upper = lower

    def _shares(self, question: Question) -> Iterator[tuple[Floats, Floats, Floats]]:
        for _, _, counts, inside, edge in self._parts(question):
            yield counts.astype(np.float64), inside, edge

    def _spread(self, question: Question) -> Spread:
        """The decayed weights of all values."""
        if self.values is None:
            raise Unsupported("this RangeSketch only counts; make it with values=(least, largest) to ask about values")
        values, loads = [np.empty(0)], [np.empty(0)]
        total = edge = error = 0.0
        for number, keys, counts, inside, doubt in self._parts(question):
            ranks = self._ranks[number]
            used = inside > 0
            total += float(counts @ inside)
            edge += float(counts @ doubt)
            starts, totals = _ranks.counted(ranks)
            at = np.searchsorted(ranks.places[starts], keys[used])
            shares = np.zeros(len(starts))
            shares[at] = inside[used]
            steps, doubts = _masses(ranks, starts, totals)
            error += float(shares @ doubts)
            weights = steps * np.repeat(shares, np.diff(np.append(starts, len(ranks.places))))
            some = weights > 0
            values.append(ranks.values[some])
            loads.append(weights[some])
        every, weighing = np.concatenate(values), np.concatenate(loads)
        found, which = np.unique(every, return_inverse=True)
        return Spread(found, np.cumsum(np.bincount(which, weighing, len(found))), total, edge, error)

    # --- Rows

    def _column(self, given: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        column, good = super()._column(given)
        if self.values is None:
            return column, good
        low, high = self.values
        inside = (column >= low) & (column <= high)
        if inside.all():
            return column, good
        return column, inside if good is None else inside & good

    def _plain(self, item: Any) -> bool:
        return super()._plain(item) and (self.values is None or self.values[0] <= item <= self.values[1])

    def _too_late(self, at: int) -> bool:
        newest = self.newest
        return newest is not None and at // self.resolution <= newest // self.resolution - self._horizon

    def _weighable(self, column: Ticks, oldest: int, newest: int) -> None:
        super()._weighable(column, oldest, newest)
        for end in (oldest, newest):
            if abs(end // self.resolution) >= 2**62:
                raise BadTime(f"{show(end)} is too far from 1970 for a resolution of {show_duration(self.resolution)}")

    def _admit(
        self, column: Ticks, keep: NDArray[np.bool_] | None, size: int, dropped: dict[str, int]
    ) -> tuple[Ticks, NDArray[np.bool_] | None]:
        """Leave out, and count, what comes later than the horizon."""
        oldest, newest = column.span()
        latest = newest if self.newest is None else max(newest, self.newest)
        first = (latest // self.resolution - self._horizon + 1) * self.resolution
        if oldest >= first:
            return column, keep
        good = column.values >= -(-first // column.per_tick)
        dropped["horizon"] = int((~good).sum())
        keep = np.ones(size, np.bool_) if keep is None else keep
        keep[np.flatnonzero(keep)[~good]] = False
        return column.take(good), keep

    def _add_rows(self, values: Floats, batch: Batch) -> None:
        if not batch.size:
            return
        assert batch.times is not None
        ticks = nanoseconds(batch.times)
        ticks = ticks.copy() if self.resolution == 1 else ticks // self.resolution
        for start in range(0, batch.size, _TOGETHER):
            part = slice(start, start + _TOGETHER)
            self._pending.append((ticks[part], values[part].copy() if self.values is not None else values[:0]))
            self._rows_pending += len(ticks[part])
            if self._rows_pending >= _TOGETHER:
                self._flush()

    def _settle(self) -> None:
        super()._settle()
        self._flush()

    def _flush(self) -> None:
        """Sort what is pending, and add it: the newest first, after which fine structures need no old ones."""
        if not self._pending:
            return
        pending, self._pending, self._rows_pending = self._pending, [], 0
        ticks = np.concatenate([ticks for ticks, _ in pending])
        self._oldest = min(self._oldest, int(ticks.min()))
        if self.values is None:
            ticks, loads = (column[::-1].copy() for column in np.unique(ticks, return_counts=True))
            self._enter(0, ticks, np.zeros(len(ticks), np.int64), loads, None)
            return
        values = np.concatenate([values for _, values in pending])
        order = np.argsort(ticks, kind="stable")[::-1]
        ticks = ticks[order]
        self._enter(0, ticks, np.zeros(len(ticks), np.int64), np.ones(len(ticks), np.int64), values[order])

    def _enter(self, first: int, ticks: Ints, stops: Ints, loads: Ints, given: Floats | Ranks | None) -> None:
        """Add counts, the newest tick or the highest range first, to the structures from one on.

        Args:
            first: The number of the structure.
            ticks: The ticks, or the first ones of ranges.
            stops: The level that each may go down to.
            loads: How many items each has.
            given: The value of each, or the entries of ranges, or None.
        """
        for number in range(first, len(self._ranges)):
            self._enter_one(number, ticks, stops, loads, given)

    def _enter_one(self, number: int, ticks: Ints, stops: Ints, loads: Ints, given: Floats | Ranks | None) -> None:
        one = self._ranges[number]
        keys = ((2 * (ticks >> stops)) + 1) << stops
        known = ends(keys)[1] >= one.since
        at = 0
        if not known.all():
            ticks, stops, loads, keys = ticks[known], stops[known], loads[known], keys[known]
            if isinstance(given, np.ndarray):
                given = given[known]
        while at < len(ticks):
            before = at
            at, pieces = one.add(ticks, stops, loads, at, given is not None)
            if pieces is not None and given is not None and at > before:
                self._note(number, keys, pieces, given)
            if at < len(ticks) or one.full:
                if self._relieve(number):
                    self._enter(number + 1, ticks[at:], stops[at:], loads[at:], _rest(given, at))
                still = ends(keys)[1] >= one.since
                still[:at] = True
                if not still.all():
                    rest = np.flatnonzero(still)
                    ticks, stops, loads, keys = ticks[rest], stops[rest], loads[rest], keys[rest]
                    if isinstance(given, np.ndarray):
                        given = given[rest]

    def _relieve(self, number: int) -> bool:
        """Discard the oldest ranges of a structure; gives whether a coarser one was made of it first."""
        one = self._ranges[number]
        before = len(self._ranges)
        assert self.newest is not None
        expired = self.newest // self.resolution - self._horizon
        if number + 1 == len(self._ranges):
            keys, counts = one.listed()
            stay = ends(keys)[1] > expired
            if int(stay.sum()) > self._least:
                self._coarser(keys[stay], counts[stay])
        one.prune(self._least, expired)
        ranks = self._ranks[number]
        if len(ranks.places):
            stay = ends(ranks.places)[1] >= one.since
            self._ranks[number] = ranks.take(stay)
        return len(self._ranks) > before

    def _coarser(self, keys: Ints, counts: Ints) -> None:
        """Add a structure of twice the coarseness, made of the ranges of the last."""
        number = len(self._ranges)
        self._ranges.append(self._empty(number))
        self._ranges[number].since = self._ranges[number - 1].since
        self._ranks.append(_ranks.none())
        ranks = self._ranks[number - 1]
        self._from_ranges(number, keys, counts, ranks if self.values is not None else None)

    def _from_ranges(self, number: int, keys: Ints, counts: Ints, ranks: Ranks | None) -> None:
        """Add ranges of another structure, from the root down, so that one never goes below where it was."""
        levels = heights(keys)
        order = np.lexsort((keys, -levels))
        self._enter_one(number, ends(keys[order])[0], levels[order], counts[order], ranks)

    def _note(self, number: int, keys: Ints, pieces: Pieces, given: Floats | Ranks) -> None:
        """Add the values of what went to ranges to their ranks."""
        if isinstance(given, np.ndarray):
            more = _ranks.of_rows(pieces.targets, given[pieces.sources])
        else:
            more = _ranks.deal(given, keys, pieces.sources, pieces.targets, pieces.counts)
        merged = _ranks.merge(self._ranks[number], more)
        self._ranks[number] = _ranks.thin(merged, self.epsilon / 8, self._ranges[number].limit)

    def _empty(self, number: int) -> Ranges:
        if number >= _STRUCTURES:
            raise BadParameter("a RangeSketch counts up to 2**50 items in a range; start a new one")
        return Ranges(1 << number if number else 0, self._top, self._room)

    # --- States

    @property
    def _exact(self) -> bool:
        """Whether every tick is counted by itself."""
        return len(self._ranges) == 1

    def _absorb(self, other: Self) -> None:
        if not other.rows:
            return
        if other.newest is not None:
            self.newest = other.newest if self.newest is None else max(self.newest, other.newest)
        self._factor = (
            self._factor + other._factor if not (self._exact or other._exact) else max(self._factor, other._factor)
        )
        self._oldest = min(self._oldest, other._oldest)
        theirs = [(one.since, *one.listed(), ranks) for one, ranks in zip(other._ranges, other._ranks, strict=True)]
        if other is self:
            theirs = [(since, keys.copy(), counts.copy(), ranks) for since, keys, counts, ranks in theirs]
        if other._exact:
            since, keys, counts, ranks = theirs[0]
            ticks, given = keys >> 1, (ranks if self.values is not None else None)
            self._enter(0, ticks, np.zeros(len(ticks), np.int64), counts, given)
            return
        while len(self._ranges) < len(theirs):
            self._coarser(*self._ranges[-1].listed())
        for number in range(len(self._ranges)):
            since, keys, counts, ranks = theirs[min(number, len(theirs) - 1)]
            one = self._ranges[number]
            one.since = max(one.since, since)
            self._from_ranges(number, keys, counts, ranks if self.values is not None else None)

    def _parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "horizon": show_duration(self.horizon),
            "resolution": show_duration(self.resolution),
            "values": None if self.values is None else list(self.values),
        }

    def _write(self, writer: serde.Writer) -> None:
        writer.uint(self._factor).int(self._oldest).uint(len(self._ranges))
        for one, ranks in zip(self._ranges, self._ranks, strict=True):
            writer.int(one.since)
            for column in one.listed():
                writer.array(column)
            if self.values is not None:  # places follow from what the ranges count
                writer.array(ranks.values)
                writer.blob(pack(ranks.steps.astype(np.uint64))).blob(pack(ranks.slacks.astype(np.uint64)))

    def _read(self, reader: serde.Reader) -> None:
        self._factor, self._oldest = reader.uint(), reader.int()
        count = reader.uint()
        if not (1 <= count <= _STRUCTURES and 1 <= self._factor < 2**40):
            raise CorruptState(f"the state promises {count!r:.40} structures, and has 1 to {_STRUCTURES}")
        self._ranges = [self._empty(number) for number in range(count)]
        self._ranks = []
        latest = EARLIEST if self.newest is None else self.newest // self.resolution
        if not EARLIEST < self._oldest <= (2**62 if self.newest is None else latest):
            raise CorruptState("the oldest tick in the state is newer than its newest")
        since = None
        for one in self._ranges:
            one.since = reader.int()
            keys, counts = reader.array(np.int64), reader.array(np.int64)
            if not EARLIEST <= one.since <= (2**62 if since is None else since):
                raise CorruptState("the structures in the state do not reach ever further back")
            since = one.since
            if not len(keys) == len(counts) <= self._room:
                raise CorruptState(f"the state has {len(keys)} ranges in a structure, and {self._room} fit")
            if not ((keys[1:] > keys[:-1]).all() and (keys != 0).all() and (counts > 0).all()):
                raise CorruptState("the ranges in the state are not in order, or count nothing")
            if len(keys) and (heights(keys).max() > self._top or counts.max() > 2**50):
                raise CorruptState("the ranges in the state are larger than the horizon")
            lows, highs = ends(keys)
            if len(keys) and not (lows.max() <= latest and highs.min() >= one.since and lows.min() > EARLIEST):
                raise CorruptState("the ranges in the state are not where its items are")
            one.replace(keys, counts)
            one.check(self._factor)
            self._ranks.append(self._read_ranks(reader, keys, counts))

    def _read_ranks(self, reader: serde.Reader, keys: Ints, counts: Ints) -> Ranks:
        if self.values is None:
            return _ranks.none()
        values = reader.array(np.float64)
        steps, slacks = (unpack(reader.blob(), len(values)).astype(np.int64) for _ in range(2))
        if len(values) and not (steps.min() > 0 and slacks.min() >= 0 and max(steps.max(), slacks.max()) < 2**50):
            raise CorruptState("the values in the state stand for too many items, or none")
        upto = np.cumsum(steps)
        at = np.searchsorted(np.cumsum(counts), upto)
        if not (upto[-1:] == counts.sum() if len(values) else not len(keys)) or (at >= len(keys)).any():
            raise CorruptState("the values in the state do not fit its ranges")
        places = keys[at]
        found = Ranks(places, values, steps, slacks)
        ordered = (places[1:] > places[:-1]) | ((places[1:] == places[:-1]) & (values[1:] >= values[:-1]))
        low, high = self.values
        if not (ordered.all() and ((values >= low) & (values <= high)).all()):
            raise CorruptState("the values in the state are not in order, or not where its values are")
        starts, totals = _ranks.counted(found)
        if not (np.array_equal(places[starts], keys) and np.array_equal(totals, counts)):
            raise CorruptState("the values in the state do not fit its ranges")
        return found


def _rest(given: Floats | Ranks | None, at: int) -> Floats | Ranks | None:
    """What belongs to those that are left: values go by row, entries by their places."""
    return given[at:] if isinstance(given, np.ndarray) else given


def _sizes(epsilon: float, top: int) -> tuple[int, int]:
    """How many ranges a structure needs, and how many it may have: never more than ``9 L / epsilon``."""
    least = math.ceil(4 * top / epsilon) + 3 * top + 5
    return least, min(math.floor(9 * top / epsilon), least + max(least // 4, 2 * top + 4))


def _masses(ranks: Ranks, starts: Ints, totals: Ints) -> tuple[Floats, Floats]:
    """What each entry adds to the middle of where ranks may be; and by place, how far that may be wrong."""
    size = len(ranks.places)
    if not size:
        return np.empty(0), np.empty(0)
    lengths = np.diff(np.append(starts, size))
    first, last = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    first[starts], last[starts + lengths - 1] = True, True
    upto = np.cumsum(ranks.steps)
    upto = upto - np.repeat(upto[starts] - ranks.steps[starts], lengths)  # within the place
    widths = np.maximum(ranks.steps + ranks.slacks - 1, 0).astype(np.float64)  # from an entry down to the one before
    ahead = np.where(last, 0.0, np.append(widths[1:], 0.0))
    whole = np.repeat(totals, lengths)
    ahead = np.minimum(ahead, whole - upto)
    middles = upto + ahead / 2
    steps = middles - np.where(first, 0.0, np.append(0.0, middles[:-1]))
    doubts = np.maximum.reduceat(ahead / 2, starts)
    return steps, np.maximum(doubts, widths[starts])


def _interval(values: Any) -> tuple[float, float] | None:
    if values is None:
        return None
    try:
        low, high = (float(one) for one in values)
    except (TypeError, ValueError):
        raise BadParameter(
            f"values are the least and the largest one, got {values!r}; write values=(0, 2**32)"
        ) from None
    if not -math.inf < low < high < math.inf:
        raise BadParameter(f"values must be two finite numbers in order, got {values!r}; write values=(0, 2**32)")
    return low, high


def _bounds(values: Any) -> tuple[float, float]:
    try:
        low, high = (float(one) for one in values)
    except (TypeError, ValueError):
        raise BadParameter(f"values are two numbers, got {values!r}; write values=(10, 20)") from None
    if not low <= high:
        raise BadParameter(f"values must be in order, got {values!r}; write values=(10, 20)")
    return low, high


def _share(phi: Any) -> float:
    if not (isinstance(phi, (int, float, np.integer, np.floating)) and not isinstance(phi, bool) and 0 <= phi <= 1):
        raise BadParameter(f"phi must be a number from 0 to 1, got {phi!r}; the median is 0.5")
    return float(phi)


def _most_bytes(parameters: Any) -> int:
    """Ranges of all structures, and with values, the entries of each (Greenwald and Khanna, Theorem 1)."""
    sketch = RangeSketch(**parameters)
    ranges = _STRUCTURES * sketch._room
    if sketch.values is None:
        return 1024 + 64 * _STRUCTURES + 16 * ranges
    epsilon = sketch.epsilon / 16
    return (
        1024 + 128 * _STRUCTURES + (16 + 32 * math.ceil(11 / (2 * epsilon) * math.log2(2 + epsilon * 2**50))) * ranges
    )


SPEC = Spec(
    name="rangesketch",
    make=RangeSketch,
    version=1,
    title="counts, quantiles and heavy hitters over any window, in any order",
    questions=("count", "quantile", "rank", "heavy"),
    timeless=(),
    arguments={"quantile": {"phi": 0.5}, "rank": {"value": 1.0}, "heavy": {"phi": 0.3}},
    guarantee="count to epsilon of itself, counts of ranges of values to epsilon of that, in every window and decay",
    space="O(log W / epsilon log(epsilon N / log W)): at most 9 log W / epsilon ranges of 16 bytes in each structure",
    time="O(log(epsilon N) log log W) at most, about 100 ns a row in bulk; 500 to 800 with values",
    paper="Cormode, Korn and Tirthapura (PODS 2008); ranks inside ranges by Greenwald and Khanna (SIGMOD 2001)",
    equality=Equality.GUARANTEED,
    bounds=lambda p: {"count": p["epsilon"], "quantile": p["epsilon"], "rank": p["epsilon"], "heavy": 3 * p["epsilon"]},
    decays=frozenset({"backward", "forward"}),
    items="numbers",
    weighted=False,
    parameters=({"epsilon": 0.1, "horizon": "10000d", "resolution": "1ns", "values": (-1e121, 1e121)},),
    state_bytes=_most_bytes,
)
RangeSketch.SPEC = SPEC
