"""The event times of a grouped query: which epoch a row is in, and what it weighs there.

A forward decay measures from the epoch's start, unless the query names a landmark; now is the epoch's end. Since now
is known ahead, a backward decay is a fixed weight for every row as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wane._jit import kernel
from wane.decay import Backward, Decay, Forward, Pinned
from wane.decay.base import Floats, Ints
from wane.decay.weigh import CHUNK, Weighed, weigh
from wane.errors import BadTime
from wane.grouped.query import Every, State
from wane.times import SECOND, Ticks, show

Shared: TypeAlias = frozenset[tuple[Decay, int | None]]

_SMALL = math.ldexp(1.0, -500)


@kernel("void(r_i8, int64, int64, w_i8, w_i8)")
def _divide(times: Ints, offset: int, step: int, epochs: Ints, into: Ints) -> None:
    """The newest epoch of each time, and the ticks since its start; times mostly stay in one for a while."""
    epoch = np.int64(0)
    start = np.int64(0)
    for i in range(times.shape[0]):
        passed = times[i] - offset - start
        if passed < 0 or passed >= step:
            epoch = (times[i] - offset) // step
            start = epoch * step
            passed = times[i] - offset - start
        epochs[i] = epoch
        into[i] = passed


class Rows(NamedTuple):
    """A chunk of rows whose weights are ``weights * 2**exponents``, each with a power of two of its own."""

    rows: slice
    weights: Floats
    exponents: Ints


class Clock:
    """The times of one batch.

    Args:
        times: The time of every row, none missing.
        every: The epochs, or None.
        hop: Where epochs overlap, which of those that a row is in is meant: 0 is the newest, 1 the one before it.
        shared: Decays with landmarks whose weights are wanted more than once, and kept.
    """

    def __init__(self, times: Ticks, every: Every | None, hop: int = 0, shared: Shared = frozenset()) -> None:
        self.times = times
        self.every = every
        self._hop = hop
        self._shared_weights: dict[Any, list[Rows] | None] = dict.fromkeys(shared)
        self.span = times.span() if len(times) else (0, 0)
        if every is not None:
            self._check(every)
            step, offset = every.step // times.per_tick, every.offset // times.per_tick
            size = len(times)
            self.epochs, self._into = np.empty(size, np.int64), np.empty(size, np.int64)
            _divide(times.values, offset, step, self.epochs, self._into)
            self._length = every.length // times.per_tick
            if hop:
                self.epochs -= hop
                self._into += hop * step

    def _check(self, every: Every) -> None:
        """Refuse times whose distance from the offset, or whose epoch's start, is no tick of 64 bits."""
        oldest, newest = self.span
        start = every.start((oldest - every.offset) // every.step - self._hop)
        ends = (oldest - every.offset, newest - every.offset, start)
        if any(not -(2**63) <= end // self.times.per_tick < 2**63 for end in ends):
            raise BadTime(
                f"times from {show(oldest)} to {show(newest)} cannot be cut into epochs {every} in 64 bits of "
                f"{self.times.unit}; cast the column to a coarser unit"
            )

    def take(self, keep: NDArray[np.bool_]) -> Clock:
        """Some of the rows."""
        return Clock(self.times.take(keep), self.every, self._hop)

    def at(self, times: Ticks) -> Clock:
        """The same rows at other times."""
        return Clock(times, self.every, self._hop)

    def epoch(self, row: int) -> int | None:
        """The epoch of a row, or None where there are no epochs."""
        return None if self.every is None else int(self.epochs[row])

    def sums(self, state: State) -> Iterator[Rows]:
        """The weights of all rows, for sums: right to rounding."""
        key = (state.decay, state.landmark)
        if key not in self._shared_weights:
            return self._sums(state)
        kept = self._shared_weights[key]
        if kept is None:
            kept = [Rows(rows, weights.copy(), powers.copy()) for rows, weights, powers in self._sums(state)]
            self._shared_weights[key] = kept
        return iter(kept)

    def _sums(self, state: State) -> Iterator[Rows]:
        size = len(self.times)
        exponents = np.empty(min(size, CHUNK), np.int64)
        for rows, weights, exponent in self._shared(state, size):
            if weights.min() < _SMALL:  # too far apart for one power of two: some group may be all old
                yield self._own(state, rows)
            else:
                exponents[: len(weights)] = exponent
                yield Rows(rows, weights, exponents[: len(weights)])

    def keys(self, state: State) -> Iterator[Rows]:
        """The weights of all rows, each computed from the row alone: for comparisons."""
        for rows in _chunks(len(self.times)):
            yield self._own(state, rows)

    def _shared(self, state: State, size: int) -> Iterator[Weighed]:
        """The weights of all rows, with one power of two for each chunk."""
        decay = state.decay
        if not measured_in_epoch(state, self.every):
            assert isinstance(decay, Forward)
            yield from weigh(decay, state.landmark, size, self.times, self.span)
            return
        for rows in _chunks(size):
            if isinstance(decay, Forward):
                yield Weighed(rows, *decay.scaled(self._since_start(rows)))
            else:
                assert isinstance(decay, Backward)
                yield Weighed(rows, decay.of_age(self._until_end(rows)), 0)

    def _own(self, state: State, rows: slice) -> Rows:
        """The weights of some rows, each with its own power of two."""
        decay = state.decay
        if measured_in_epoch(state, self.every):
            if isinstance(decay, Forward):
                return Rows(rows, *decay.wide(self._since_start(rows)))
            assert isinstance(decay, Backward)
            return Rows(rows, *decay.wide_of_age(self._until_end(rows)))
        assert isinstance(decay, Forward)
        return Rows(rows, *decay.locate(Ticks(self.times.values[rows], self.times.unit), state.landmark))

    def _since_start(self, rows: slice) -> Floats:
        return self._seconds(self._into[rows])

    def _until_end(self, rows: slice) -> Floats:
        return self._seconds(self._length - self._into[rows])

    def _seconds(self, ticks: Ints) -> Floats:
        return ticks.astype(np.float64) * (self.times.per_tick / SECOND)


def measured_in_epoch(state: State, every: Every | None) -> bool:
    """Whether rows are weighed by their place in the epoch, and not by a landmark common to all of them."""
    if every is None:
        return False
    if isinstance(state.decay, Forward):
        return state.decay.needs_landmark and state.landmark is None
    return True


class Asked(NamedTuple):
    """When the groups of a query are asked.

    Attributes:
        times: The distinct instants, or none where no answer depends on one.
        place: Which of them each group is asked at.
        weights: ``g(now - L)`` for each group, which its answers are divided by: ``weights * 2**exponents``.
        exponents: The powers of two.
    """

    times: list[int]
    place: Ints
    weights: Floats
    exponents: Ints


def asked(state: State, every: Every | None, epochs: Ints, now: int | None) -> Asked:
    """When a state is asked: at the end of each group's epoch or, without epochs, at `now`.

    Args:
        state: The state.
        every: The epochs, or None.
        epochs: The epoch of each group; only their number matters where there are no epochs.
        now: The time of the question, where there are no epochs.
    """
    decay, size = state.decay, len(epochs)
    place = np.zeros(size, np.int64)
    times = [] if now is None else [now]
    if every is not None:
        distinct, place = np.unique(epochs, return_inverse=True)
        times = [every.end(epoch) for epoch in distinct.tolist()]
    if not times or not isinstance(decay, Forward) or isinstance(decay, Pinned):
        return Asked(times, place, np.ones(size), np.zeros(size, np.int64))
    if measured_in_epoch(state, every):
        assert every is not None
        wide = [decay.point(every.length / SECOND)] * len(times)
    else:
        # An epoch that ends before the landmark holds nothing: what it is divided by does not matter.
        wide = [
            decay.at(time if state.landmark is None else max(time, state.landmark), state.landmark) for time in times
        ]
    weights = np.array([weight for weight, _ in wide])
    return Asked(times, place, weights[place], np.array([power for _, power in wide], np.int64)[place])


def _chunks(size: int) -> Iterator[slice]:
    for start in range(0, size, CHUNK):
        yield slice(start, min(start + CHUNK, size))
