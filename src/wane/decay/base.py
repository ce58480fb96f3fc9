"""What a decay is: Definitions 1 to 3 of the forward-decay paper, as contracts.

A weight may be far outside what a double holds (after about 1000 half-lives it is), so weights come *wide*: a
double and a power of two. Sums scale by powers of two, which is exact, and nothing here overflows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wane.errors import BadDecay, BadTime, BeforeLandmark, QueryInPast
from wane.times import (
    SECOND,
    Nanoseconds,
    Ticks,
    duration,
    instant,
    measure,
    show,
    show_duration,
    ticks,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LOG2_E = 1 / Fraction(Decimal(2).ln(Context(prec=50)))
ONE_SECOND = Nanoseconds(SECOND)
ZERO_EXPONENT = -(2**62)
"""The exponent of a wide number that is 0: below every other."""
LARGEST_EXPONENT = 2**61
"""The powers of two of wide numbers are under this, so that their sums and differences fit 64 bits."""

_LOG2_E = float(LOG2_E), float(LOG2_E - Fraction(float(LOG2_E)))
_ROUNDING = 1e-12  # how far rounding may carry a weight past 1


@dataclass(frozen=True, slots=True)
class Frame:
    """A place to measure ages from: an item at age `n` from it weighs ``g(n) * 2**exponent``.

    Attributes:
        origin: An instant.
        lag: Seconds, under a nanosecond, from `origin` to the true place.
        exponent: The power of two that weights measured from here have lost.
    """

    origin: int
    lag: float = 0.0
    exponent: int = 0

    def ages(self, times: Ticks) -> Floats:
        """Seconds from the frame to each time."""
        ages = times.seconds_since(self.origin)
        return ages - self.lag if self.lag else ages

    def age(self, time: int) -> float:
        """Seconds from the frame to one instant."""
        return (time - self.origin) / SECOND - self.lag


@dataclass(frozen=True)
class Decay(ABC):
    """How weight depends on time: a frozen value, comparable, printable, parsed back from its text.

    Attributes:
        is_forward: Weights are ``g(t_i - L) / g(t - L)``: any summary takes it at no cost.
        is_backward: Weights are ``f(t - t_i) / f(0)``: where `now` is still open, only some summaries can.
        needs_landmark: Nothing can be weighed until the landmark `L` is known.
    """

    is_forward: ClassVar[bool] = False
    is_backward: ClassVar[bool] = False
    needs_landmark: ClassVar[bool] = False

    @property
    def behaviour(self) -> str:
        """What tells it from another decay of the same text: nothing, but for a user's function."""
        return ""

    @abstractmethod
    def __str__(self) -> str:
        """The text form, which :func:`wane.decay.parse` reads back to an equal value."""

    @abstractmethod
    def weight(self, times: Any, now: Any, landmark: Any = None) -> Any:
        """The weight that Definition 1 gives each item: 1 at `now`, falling to 0 with age.

        Args:
            times: One time or a column of them, none after `now`.
            now: The time of the question.
            landmark: Where a forward decay measures from.

        Returns:
            One float, or an array of them, with NaN where the time is missing. Weights under 1e-308 are 0.
        """

    def _weights(self, times: Any, now: Any, weigh: Callable[[Ticks, int], Floats]) -> Any:
        """Read the arguments of :meth:`weight`, weigh the times that are there, and give the answer in their form."""
        at = instant(now, "now")
        single = isinstance(times, str) or not hasattr(times, "__len__")
        column = ticks([times] if single else times)
        there = column if column.valid is None else column.take(column.valid)
        if len(there) and there.span()[1] > at:
            raise QueryInPast(f"an item of {show(there.span()[1])} is newer than now={show(at)}; ask at or after it")
        weights = weigh(there, at) if len(there) else np.empty(0)
        if column.valid is not None:
            everywhere = np.full(len(column), np.nan)
            everywhere[column.valid] = weights
            weights = everywhere
        return float(weights[0]) if single else weights


class Forward(Decay):
    """A decay by a non-decreasing `g` of the seconds since a landmark (Definition 3)."""

    is_forward = True

    @property
    def flat(self) -> bool:
        """Whether every weight is 0 or 1, so that what cannot weigh rows can take it."""
        return False

    @property
    def reach(self) -> float:
        """Seconds after a frame at which a new one must be taken."""
        return math.inf

    @abstractmethod
    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """``g`` of ages of 0 or more seconds, as `m` in [1, 2) (or 0) and `e` with ``g = m * 2**e``.

        Each result depends on its own age alone, so that keys made from it do not depend on batches.
        """

    def scaled(self, ages: Floats) -> tuple[Floats, int]:
        """``g`` of ages measured from one frame, as doubles that share one power of two; may use up the array `ages`.

        The largest is about 1; what is smaller than it by more than a double can tell becomes 0.
        """
        return share(*self.wide(ages))

    def fill(self, values: Ints, base: int, seconds: float, lag: float, out: Floats) -> tuple[Floats, int]:
        """:meth:`scaled` of ticks: ages are ``(values - base) * seconds - lag``; `out` is memory that may be used."""
        measure(values, base, seconds, out)
        if lag:
            out -= lag
        return self.scaled(out)

    def point(self, age: float) -> tuple[float, int]:
        """``g`` of one age measured from a frame, as a double and a power of two."""
        mantissas, exponents = self.wide(np.array([age]))
        return float(mantissas[0]), int(exponents[0])

    def at(self, time: int, landmark: int | None) -> tuple[float, int]:
        """``g`` at one instant, as a double and a power of two."""
        frame = self.frame(time, landmark)
        value, exponent = self.point(frame.age(time))
        return value, exponent + frame.exponent

    def frame(self, near: int, landmark: int | None) -> Frame:
        """A frame that measures ages around the instant `near` without losing digits."""
        return Frame(self._origin(landmark))

    def locate(self, times: Ticks, landmark: int | None) -> tuple[Floats, Ints]:
        """The wide weight of each item; it depends on the item's own time and the landmark alone."""
        return self.wide(times.seconds_since(self._origin(landmark)))

    def weight(self, times: Any, now: Any, landmark: Any = None) -> Any:
        """``g(t_i - L) / g(t - L)``."""
        start = None if landmark is None else instant(landmark, "landmark")
        if start is None and self.needs_landmark:
            raise BadDecay(f"{self} measures from a landmark; give landmark= (a time at or before the first item)")
        return self._weights(times, now, lambda column, at: self._relative(column, at, start))

    def _relative(self, column: Ticks, now: int, landmark: int | None) -> Floats:
        """Weights relative to that of `now`, which is taken in the same way, so that it is 1 exactly."""
        if self.needs_landmark and landmark is not None and column.span()[0] < landmark:
            raise BeforeLandmark(
                f"an item of {show(column.span()[0])} is before the landmark {show(landmark)}, from which {self} "
                "measures; choose an earlier landmark"
            )
        (top,), (top_exponent,) = self.locate(ticks([Nanoseconds(now)]), landmark)
        if top == 0:
            raise QueryInPast(f"{self} gives weight 0 to now={show(now)} itself; ask after the landmark")
        mantissas, exponents = self.locate(column, landmark)
        weights = np.ldexp(mantissas / top, np.clip(exponents - top_exponent, -3000, 3000).astype(np.int32))
        if weights.max() > 1 + _ROUNDING:
            worst = int(np.argmax(weights))
            time = show(int(column.values[worst]) * column.per_tick)
            raise BadDecay(
                f"{self} gives weight {weights[worst]!r} to an item of {time} at {show(now)}; Definition 1 wants "
                "weights from 0 to 1, so its g must never fall"
            )
        at_most: Floats = np.minimum(weights, 1.0)
        return at_most

    def _origin(self, landmark: int | None) -> int:
        return 0 if landmark is None else landmark


class Backward(Decay):
    """A decay by a non-increasing `f` of age, the seconds before now (Definition 2)."""

    is_backward = True

    @abstractmethod
    def of_age(self, ages: Floats) -> Floats:
        """``f(age) / f(0)`` for ages of 0 or more seconds, in [0, 1]."""

    def of_times(self, times: Ticks, now: int) -> Floats:
        """:meth:`of_age` of times at or before `now`; to the nanosecond, where floats of seconds would not be."""
        return self.of_age(-times.seconds_since(now))

    def wide_of_age(self, ages: Floats) -> tuple[Floats, Ints]:
        """:meth:`of_age` as wide numbers (:meth:`Forward.wide`), which hold what would be 0 as a double."""
        return split(self.of_age(ages))

    def weight(self, times: Any, now: Any, landmark: Any = None) -> Any:
        """``f(t - t_i) / f(0)``."""
        return self._weights(times, now, self.of_times)


def split(numbers: Floats) -> tuple[Floats, Ints]:
    """Write doubles of 0 or more as wide numbers: `m` in [1, 2) and `e`; 0 becomes ``(0, ZERO_EXPONENT)``."""
    mantissas, exponents = np.frexp(numbers)
    return mantissas * 2, np.where(numbers == 0, ZERO_EXPONENT, exponents.astype(np.int64) - 1)


def share(mantissas: Floats, exponents: Ints) -> tuple[Floats, int]:
    """Write wide numbers as doubles that share one power of two, that of the largest."""
    shared = int(exponents.max(initial=ZERO_EXPONENT, where=mantissas != 0))
    if shared == ZERO_EXPONENT:
        return np.zeros(len(mantissas)), 0
    return np.ldexp(mantissas, np.clip(exponents - shared, -2000, 0).astype(np.int32)), shared


def product(a: Any, b: Any) -> tuple[Any, Any]:
    """A product and the error of its rounding (Dekker); the factors are under 2**900."""
    rounded = a * b
    c = 134217729.0 * a
    high_a = c - (c - a)
    c = 134217729.0 * b
    high_b = c - (c - b)
    low_a, low_b = a - high_a, b - high_b
    return rounded, ((high_a * high_b - rounded) + high_a * low_b + low_a * high_b) + low_a * low_b


def twofold(number: Fraction) -> tuple[float, float]:
    """A number as a double and what that has lost."""
    rounded = float(number)
    return rounded, float(number - Fraction(rounded))


def multiply(a: tuple[Any, Any], b: tuple[float, float]) -> tuple[Floats, Floats]:
    """The product of numbers that came with what they have lost (:func:`twofold`)."""
    with np.errstate(all="ignore"):
        rounded, lost = product(a[0], b[0])
        lost = lost + (a[0] * b[1] + a[1] * b[0])
    return rounded, np.where(np.isfinite(lost), lost, 0.0)


def from_log(logs: Floats) -> tuple[Floats, Ints]:
    """Write ``e**logs`` as wide numbers, as :func:`from_log2` does."""
    return from_log2(*multiply((logs, 0.0), _LOG2_E))


def from_log2(logs: Floats, lost: Floats | float = 0.0) -> tuple[Floats, Ints]:
    """Write ``2**(logs + lost)`` as wide numbers; what is under ``2**-LARGEST_EXPONENT`` becomes 0.

    `lost` is what rounding has taken from `logs`: a log of a million has but ten digits after the point.
    """
    if logs.max(initial=0.0) >= LARGEST_EXPONENT:
        raise BadDecay(f"a weight of 2**{logs.max():.3g} is beyond all bounds; choose a slower decay")
    nothing = logs <= -LARGEST_EXPONENT
    known = np.where(nothing, 0.0, logs)
    whole = np.floor(known)
    mantissas, extra = split(np.exp2((known - whole) + np.where(nothing, 0.0, lost)))  # which may round up to 2
    return np.where(nothing, 0.0, mantissas), np.where(nothing, ZERO_EXPONENT, whole.astype(np.int64) + extra)


def positive(value: Any, what: str, example: str) -> float:
    """Check a parameter that must be a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise BadDecay(f"{what} must be a positive number, got {value!r}; write {example}")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise BadDecay(f"{what} must be a positive number, got {value!r}; write {example}")
    return number


def positive_duration(value: Any, what: str, example: str) -> Nanoseconds:
    """Check a parameter that must be a positive length of time."""
    try:
        length = duration(value, what)
    except BadTime as why:
        raise BadDecay(f"{why}; write {example}") from None
    if length <= 0:
        raise BadDecay(f"{what} must be a positive duration, got {value!r}; write {example}")
    return Nanoseconds(length)


def one_of(decay: Any, name: str, rate: str) -> None:
    """Check and normalise the fields of a decay that takes a `half_life` or a `rate`, and not both."""
    if (decay.half_life is None) == (decay.rate is None):
        given = "neither" if decay.rate is None else f"half_life={decay.half_life!r} and rate={decay.rate!r}"
        raise BadDecay(f"{name} takes a half_life or a rate, got {given}; write {name}(half_life=5m) or {name}({rate})")
    if decay.rate is None:
        length = positive_duration(decay.half_life, "half_life", f"{name}(half_life=5m)")
        object.__setattr__(decay, "half_life", length)
    else:
        object.__setattr__(decay, "rate", positive(decay.rate, "rate", f"{name}({rate})"))


def unit_text(unit: int) -> str:
    """The text of a `unit=` parameter; seconds are not written."""
    return "" if unit == SECOND else f"unit={show_duration(unit)}"


def number_text(number: float) -> str:
    """The shortest text of a float that parses back to it, without a bare ``.0``."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
