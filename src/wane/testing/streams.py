"""Streams to test summaries with: hypothesis strategies, hand-made edge cases, and seeded named shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wane.errors import BadInput, MissingExtra
from wane.times import PER_TICK, SECOND, Nanoseconds, Ticks

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

START = Nanoseconds(1_767_225_600 * SECOND)
"""The start of 2026, which streams begin at unless told otherwise."""

SPAN = 400_000_000 * SECOND
"""The longest stretch of time that streams cover: over a million half-lives of five minutes."""

_SMALL = (5e-324, -5e-324, 1e-300, 1e-200, -1e-200)
_LARGE = (1e9 + 0.25, 1e100, -1e100, 2.5e120, -2.5e120)
NASTY = (0.0, -0.0, 1.0, -1.0, 0.1, *_SMALL, *_LARGE)
UNUSABLE = (1e300, -1e300, math.inf, -math.inf, math.nan)
WEIGHTS = (1.0, 2.0, 0.0, 0.5, 3.0, 1e-300, 5e-324, 1e100, 2.5e120)
UNUSABLE_WEIGHTS = (1e300, math.inf, math.nan)


@dataclass(frozen=True, eq=False)
class Stream:
    """Items with their times and perhaps weights.

    Attributes:
        items: The items.
        times: Their times, or None where the decay needs none.
        weights: Their weights, or None for 1 each.
        ids: What tells rows apart, where a summary takes it; their numbers, if not given.
    """

    items: NDArray[Any]
    times: Ticks | None = None
    weights: NDArray[np.float64] | None = None
    ids: Any = None

    def __post_init__(self) -> None:
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self.items)))
        for what in (self.times, self.weights, self.ids):
            if what is not None and len(what) != len(self.items):
                raise BadInput(f"{len(self.items)} items came with {len(what)} times or weights; give one for each")

    def __len__(self) -> int:
        """The number of rows, unusable ones included."""
        return len(self.items)

    def take(self, index: Any) -> Stream:
        """The rows of a slice, a mask or a list of row numbers, in its order."""
        times = self.times
        if times is not None:
            valid = None if times.valid is None else times.valid[index]
            times = Ticks(times.values[index], times.unit, valid)
        weights = None if self.weights is None else self.weights[index]
        return Stream(self.items[index], times, weights, self.ids[index])

    def concat(self, other: Stream) -> Stream:
        """The rows of both, `other`'s last."""
        if (self.times is None) != (other.times is None):
            raise BadInput("one stream has times and the other has none; give times to both")
        weights = None
        if self.weights is not None or other.weights is not None:
            weights = np.concatenate([_loads(self), _loads(other)])
        times = None if self.times is None or other.times is None else _joined(self.times, other.times)
        ids = np.concatenate([self.ids, other.ids])
        return Stream(np.concatenate([self.items, other.items]), times, weights, ids)

    def moved(self, by: int) -> Stream:
        """The same stream, `by` nanoseconds later (a whole number of its ticks)."""
        if self.times is None:
            return self
        ticks, rest = divmod(by, self.times.per_tick)
        if rest:
            raise BadInput(f"{by} ns is no whole number of {self.times.unit}; move by whole ticks")
        times = Ticks(self.times.values + ticks, self.times.unit, self.times.valid)
        return Stream(self.items, times, self.weights, self.ids)

    @property
    def newest(self) -> Nanoseconds | None:
        """The newest time there is."""
        known = self.instants
        return max((time for time in known if time is not None), default=None)

    @property
    def instants(self) -> list[Nanoseconds | None]:
        """Each row's time, None where it is missing."""
        if self.times is None:
            return [None] * len(self)
        per = self.times.per_tick
        valid = np.ones(len(self), np.bool_) if self.times.valid is None else self.times.valid
        return [
            Nanoseconds(tick * per) if good else None
            for tick, good in zip(self.times.values.tolist(), valid.tolist(), strict=True)
        ]


def streams(
    *,
    items: str = "numbers",
    start: int = START,
    until: int | None = None,
    timed: bool | None = True,
    weighted: bool | None = None,
    early: bool = False,
    unusable: bool = True,
    longest: int = 24,
) -> SearchStrategy[Stream]:
    """A hypothesis strategy of streams that look for trouble.

    Ties, skew, late and far-future items, items exactly at the start, all four units, extremes of the double's range,
    negative values, and (unless `unusable` is false) what summaries must drop and count: NaN, infinities, values and
    weights too large, missing times.

    Args:
        items: ``"numbers"``, ``"any"`` or ``"vectors"``, as in :attr:`wane.registry.Spec.items`.
        start: The instant at or after which items come, such as the landmark.
        until: The instant at or before which they come; by default, `SPAN` after the start.
        timed: Whether there are times; None for both.
        weighted: Whether there are weights; None for both.
        early: Whether some items come before the start.
        unusable: Whether some rows cannot be used.
        longest: The largest number of rows.
    """
    st = _strategies()
    room = (until if until is not None else start + SPAN) - start
    if items != "any":
        item = st.sampled_from(NASTY) | st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6) | st.floats(-1e120, 1e120)
        item = item | st.sampled_from(UNUSABLE) if unusable else item
        item = st.tuples(item, item) if items == "vectors" else item
    else:
        item = st.integers(0, 3) | st.integers(-(2**63), 2**63 - 1)
    weight = st.sampled_from(WEIGHTS) | st.floats(0, 10)
    if unusable:
        weight = weight | st.sampled_from(UNUSABLE_WEIGHTS)
    near = st.integers(0, min(10 * SECOND, room))
    offset = st.just(0) | near.map(lambda ns: ns // SECOND * SECOND) | near | st.integers(0, room) | st.just(room)
    if early:
        offset = offset | st.integers(-10 * SECOND, -1)
    row = st.tuples(item, offset, weight, st.booleans() if unusable else st.just(True))

    def made(draw: Callable[[Any], Any]) -> Stream:
        rows = draw(st.lists(row, max_size=longest))
        values = np.array([r[0] for r in rows], np.int64 if items == "any" else np.float64)
        values = values.reshape(-1, 2) if items == "vectors" else values
        with_times = draw(st.booleans()) if timed is None else timed
        with_weights = draw(st.booleans()) if weighted is None else weighted
        times = None
        if with_times:
            unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
            per = PER_TICK[unit]
            first = -(-start // per)  # a start between two ticks counts from the later one
            last = (start + room) // per
            numbers = np.array([min(first + r[1] // per, last) for r in rows], np.int64)
            missing = unusable and draw(st.integers(0, 3)) == 0
            times = Ticks(numbers, unit, np.array([r[3] for r in rows], np.bool_) if missing else None)
        return Stream(values, times, np.array([r[2] for r in rows], np.float64) if with_weights else None)

    found: SearchStrategy[Stream] = st.composite(made)()
    return found


def edges(
    *,
    items: str = "numbers",
    start: int = START,
    until: int | None = None,
    weighted: bool = True,
    early: bool = False,
) -> Mapping[str, Stream]:
    """Hand-made streams, by name, that have broken summaries before; the arguments are those of :func:`streams`."""
    end = until if until is not None else start + SPAN
    room = end - start

    def stream(values: Any, times: Any, weights: Any = None, unit: str = "ns", valid: Any = None) -> Stream:
        column = np.array(values, np.float64)
        if items == "vectors":
            column = np.stack([column, column[::-1]], axis=1)
        if items == "any":
            column = np.nan_to_num(column, posinf=7.0, neginf=-7.0).clip(-9, 9).astype(np.int64)
        ticks = Ticks(np.minimum(times, end // PER_TICK[unit]).astype(np.int64), unit, valid)
        return Stream(column, ticks, np.array(weights) if weights is not None and weighted else None)

    tick = SECOND // 1000
    first = -(-start // tick)
    every = np.arange(len(NASTY) + len(UNUSABLE)) * min(SECOND, room // 32)
    before = {"early": stream([1.0, 2.0, -3.0], [start - 1, start + room // 2, start - SECOND])} if early else {}
    return before | {
        "empty": stream([], []),
        "one": stream([3.5], [start + min(SECOND, room)]),
        "at the landmark": stream([3.5, -1.0], [start, start]),
        "landmark and after": stream([4.0, 8.0, 3.0], [start, start + min(7, room), start]),
        "ties": stream([2.0, 2.0, -2.0, 5.0, 2.0], [start + room // 2] * 5),
        "milliseconds": stream([7.0, 7.1, 7.2, -7.3, 7.4], first + np.array([3, 9, 17, 103, 1007]), None, "ms"),
        "neighbours": stream([1.0, 1.0, -1.0, -1.0], start + room // 2 + np.array([1, 0, 1, 0])),
        "signs of zero": stream([-0.0, 0.0, 0.0, -0.0], start + room // 2 + np.array([1, 1, 0, 1])),
        "nasty": stream(NASTY + UNUSABLE, start + every),
        "late": stream([1.0, 2.0, 3.0, 4.0], [end, start, start + room // 3, start + 1]),
        "far apart": stream([1e100, -1e100, -1e-200, 1e-200], [start, start + 1, end - 1, end]),
        "old and negative": stream([5.0, -5.0, -3.0, -4.0], [start + room // 1000, start + 2, end, end - SECOND]),
        "offset": stream(1e9 + np.array([0.25, 0.5, 0.125, 0.75]), start + room // 2 + SECOND * np.arange(4)),
        "constant": stream([0.1] * 24, start + min(SECOND, room // 24) * np.arange(24)),
        "missing times": stream([1.0, 2.0, 3.0], [first, 0, first + 1], None, "ms", np.array([True, False, True])),
        "weights": stream([1.0, -2.0, 3.0, 4.0] * 3, start + np.arange(12), WEIGHTS + UNUSABLE_WEIGHTS),
        "newest weighs nothing": stream([1.0, 2.0, 3.0], [start + 1, start + room * 9 // 10, end], [1.0, 2.0, 0.0]),
        "newest weighs little": stream([1.0, 2.0], [start + 1, end], [1e100, 1e-300]),
        "no weight at all": stream([1.0, -2.0], [start + 1, start + 2], [0.0, 0.0]),
    }


def shapes(
    seed: int, *, items: str = "numbers", size: int = 300, start: int = START, until: int | None = None
) -> Mapping[str, Stream]:
    """Seeded streams of named shapes, for loops over many seeds.

    Args:
        seed: Chooses the random numbers; the same seed gives the same streams everywhere.
        items: ``"numbers"``, ``"any"`` or ``"vectors"``.
        size: The number of rows.
        start: The instant at or after which items come.
        until: The instant at or before which they come; by default an hour after the start, but for the wide shape.
    """
    rng = np.random.default_rng([seed, size])
    whole = (until if until is not None else start + SPAN) - start
    hour = min(whole, 3600 * SECOND)

    def at(offsets: NDArray[Any]) -> Ticks:
        return Ticks(start + offsets.astype(np.int64), "ns")

    steady = np.linspace(0, hour, size)
    anywhere = rng.uniform(0, hour, size)
    bursts = (rng.integers(0, 8, size) * (hour // 8) + rng.exponential(hour / 2000, size)).clip(0, hour)
    found = {
        "uniform": Stream(rng.uniform(-100, 100, size), at(anywhere)),
        "zipf": Stream(np.minimum(rng.zipf(1.3, size), 10**9).astype(np.float64), at(anywhere)),
        "sorted": Stream(np.sort(rng.normal(50, 20, size)), at(steady)),
        "reversed": Stream(np.sort(rng.normal(50, 20, size)), at(steady[::-1])),
        "constant": Stream(np.full(size, rng.normal()), at(anywhere)),
        "bursts": Stream(rng.lognormal(3, 2, size), at(bursts)),
        "alternating": Stream(rng.uniform(1, 2, size) * np.resize([1, -1], size), at(steady)),
        "ties": Stream(rng.integers(-3, 4, size).astype(np.float64), at(rng.integers(0, 5, size) * (hour // 5))),
        "wide": Stream(rng.normal(0, 1, size), at(rng.uniform(0, 1, size) ** 8 * whole)),
        "weighted": Stream(rng.normal(1e6, 1, size), at(anywhere), rng.pareto(1, size)),
    }
    if items == "numbers":
        return found
    columns = {
        name: np.stack([s.items, rng.permutation(s.items)], axis=1) if items == "vectors" else s.items.astype(np.int64)
        for name, s in found.items()
    }
    return {name: Stream(columns[name], stream.times, stream.weights) for name, stream in found.items()}


def _strategies() -> Any:
    try:
        from hypothesis import strategies
    except ImportError:
        raise MissingExtra(
            "wane.testing makes its streams with hypothesis, which is not installed; pip install hypothesis"
        ) from None
    return strategies


def _loads(stream: Stream) -> NDArray[np.float64]:
    return np.ones(len(stream)) if stream.weights is None else stream.weights


def _joined(mine: Ticks, theirs: Ticks) -> Ticks:
    unit = min(mine.unit, theirs.unit, key=PER_TICK.__getitem__)
    values = np.concatenate([column.values * (column.per_tick // PER_TICK[unit]) for column in (mine, theirs)])
    if mine.valid is None and theirs.valid is None:
        return Ticks(values, unit)
    known = [np.ones(len(c), np.bool_) if c.valid is None else c.valid for c in (mine, theirs)]
    return Ticks(values, unit, np.concatenate(known))
