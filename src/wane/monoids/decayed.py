"""Decayed sums inside a window, in constant state: exponential decay, and polynomials of whole degree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane.decay import Decay, Exponential, NoDecay, Poly, Polynomial, parse
from wane.errors import BadDecay, BadParameter
from wane.monoids.base import Monoid
from wane.registry import MonoidSpec
from wane.times import SECOND, duration, instant, show_duration

Row = NDArray[np.float64]
Fading = tuple[float, float, float]

ANSWERS = ("sum", "count", "mean")
_NEVER = -1e300
"""The time of nothing: before all others, and finite, so that no difference is NaN."""

MOST = 8
"""The highest degree taken: beyond it the powers of ages leave no digits."""


class Decayed(Monoid):
    """A decayed sum, count or mean of what is in the window, weighed as of its newest item.

    Under exponential decay an aggregate is two sums and a time. Under a polynomial of whole degree `k` the landmark is
    the window's start, which moves: the aggregate is the sums of powers 0 to `k` of the times since its oldest item,
    from which those since any earlier landmark follow by the binomial theorem, without a subtraction. Another `g` has
    no state of constant size that a moving landmark leaves usable, and is refused.

    Items are pairs of a value and a time; :func:`wane.roll` takes `values` and `times`.

    Args:
        decay: ``exp(...)``, ``poly(k)`` or ``polynomial(...)``, with `k` a whole number up to 8, or ``none``.
        answer: ``"sum"``, ``"count"`` or ``"mean"``.
        window: Under a polynomial, how long before the newest item the landmark lies; without it the landmark is the
            oldest item's time. :func:`wane.roll` with a duration gives its own.

    >>> import wane
    >>> w = wane.DABA(wane.monoids.Decayed("exp(half_life=10s)"))
    >>> w.insert((4.0, 100))
    >>> w.insert((3.0, 110))
    >>> w.query()
    5.0
    >>> wane.monoids.Decayed("subpoly")
    Traceback (most recent call last):
    wane.errors.BadDecay: a window cannot decay by 'subpoly' in constant state: only under exp(...) and polynomials of \
whole degree do weights from a landmark that moves follow from a few sums; use one of them, or the summary of a window
    """

    def __init__(self, decay: str | Decay, answer: str = "sum", *, window: Any = None) -> None:
        self.decay = parse(decay)
        if answer not in ANSWERS:
            raise BadParameter(f"answer must be one of {', '.join(ANSWERS)}, got {answer!r}")
        self.answer = answer
        self.window = None if window is None else duration(window, "window")
        if self.window is not None and self.window <= 0:
            raise BadParameter(f"window must be longer than nothing, got {show_duration(self.window)}")
        self._origin: int | None = None
        coefficients = _coefficients(self.decay)
        if coefficients is None:
            rate = 0.0 if isinstance(self.decay, NoDecay) else _rate(self.decay)
            self.identity: Any = (0.0, 0.0, _NEVER)
            functions = _fade(rate, answer)
        else:
            self.identity = np.zeros(2 + 2 * len(coefficients))
            length = math.nan if self.window is None else self.window / SECOND
            functions = _powers(coefficients, length, answer)
        self._lift_seconds, self.combine, self.lower = functions
        self.compiled_lift = self._lift_seconds
        self.lift = self._lift

    def _lift(self, item: tuple[float, Any]) -> Any:
        """An aggregate of a value and a time: seconds from the first one that this monoid met."""
        value, time = item
        at = instant(time)
        if self._origin is None:
            self._origin = at
        return self._lift_seconds((float(value), (at - self._origin) / SECOND))

    def over(self, window: int) -> Decayed:
        """The same with the landmark this many nanoseconds before the newest item, unless it was given."""
        return self if self.window is not None else Decayed(self.decay, self.answer, window=_nanoseconds(window))

    @property
    def label(self) -> str:
        """Its answer under its decay."""
        return f"{self.answer} under {self.decay}"


def _nanoseconds(length: int) -> str:
    return f"{length}ns"


def _rate(decay: Decay) -> float:
    if not isinstance(decay, Exponential):
        raise BadDecay(
            f"a window cannot decay by {str(decay)!r} in constant state: only under exp(...) and polynomials of whole "
            "degree do weights from a landmark that moves follow from a few sums; use one of them, or the summary of a "
            "window"
        )
    if decay.rate is not None:
        return decay.rate
    assert decay.half_life is not None
    return math.log(2) / (decay.half_life / SECOND)


def _coefficients(decay: Decay) -> tuple[float, ...] | None:
    """Those of the powers of an age in seconds, or None where this is no polynomial of whole degree."""
    if isinstance(decay, Polynomial):
        found = tuple(c * (SECOND / decay.unit) ** j for j, c in enumerate(decay.coefficients))
    elif isinstance(decay, Poly) and decay.beta == int(decay.beta):
        found = (0.0,) * int(decay.beta) + (1.0,)
    else:
        return None
    if len(found) - 1 > MOST:
        raise BadDecay(
            f"a window takes polynomials of degree {MOST} at most, got {decay}; higher powers lose all digits"
        )
    return found


def _fade(rate: float, answer: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Exponential decay: weights and weighted values as of the newest time."""
    which = ANSWERS.index(answer)

    def lift(item: tuple[float, float]) -> Fading:
        return item[0], 1.0, item[1]

    def combine(a: Fading, b: Fading) -> Fading:
        if a[2] == b[2]:
            return a[0] + b[0], a[1] + b[1], b[2]
        if a[2] < b[2]:
            kept = math.exp(rate * (a[2] - b[2]))
            return a[0] * kept + b[0], a[1] * kept + b[1], b[2]
        kept = math.exp(rate * (b[2] - a[2]))
        return a[0] + b[0] * kept, a[1] + b[1] * kept, a[2]

    def lower(a: Fading) -> float:
        if which == 0:
            return a[0]
        if which == 1:
            return a[1]
        return a[0] / a[1] if a[1] > 0.0 else math.nan

    return lift, combine, lower


def _powers(
    coefficients: tuple[float, ...], window: float, answer: str
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Polynomials: oldest and newest time, then sums of powers of the times since the oldest, alone and by values."""
    which = ANSWERS.index(answer)
    size = len(coefficients)
    choose = np.array([[float(math.comb(j, i)) for i in range(size)] for j in range(size)])
    factors = np.array(coefficients)

    def lift(item: tuple[float, float]) -> Row:
        row = np.zeros(2 + 2 * size)
        row[0] = row[1] = item[1]
        row[2] = 1.0
        row[2 + size] = item[0]
        return row

    def combine(a: Row, b: Row) -> Row:
        if a[2] == 0.0:
            return b
        if b[2] == 0.0:
            return a
        row = np.zeros(2 + 2 * size)
        row[0], row[1] = min(a[0], b[0]), max(a[1], b[1])
        for j in range(size):
            of_a = of_b = 1.0
            for i in range(j, -1, -1):
                row[2 + j] += choose[j, i] * (of_a * a[2 + i] + of_b * b[2 + i])
                row[2 + size + j] += choose[j, i] * (of_a * a[2 + size + i] + of_b * b[2 + size + i])
                of_a *= a[0] - row[0]
                of_b *= b[0] - row[0]
        return row

    def lower(a: Row) -> float:
        if a[2] == 0.0:
            return math.nan if which == 2 else 0.0
        start = a[0] if window != window else a[1] - window
        back, age = a[0] - start, a[1] - start
        weights = total = most = 0.0
        for j in range(size):
            power = 1.0
            most += factors[j] * age**j
            for i in range(j, -1, -1):
                weights += factors[j] * choose[j, i] * power * a[2 + i]
                total += factors[j] * choose[j, i] * power * a[2 + size + i]
                power *= back
        if which == 2:
            return total / weights if weights > 0.0 else math.nan
        # At the landmark itself there are only items of weight 0: 0 of anything.
        return (total if which == 0 else weights) / most if most > 0.0 else 0.0

    return lift, combine, lower


Decayed.SPEC = MonoidSpec(
    name="decayed",
    make=Decayed,
    title="a decayed sum, count or mean inside the window",
    guarantee="exact, but for rounding; no cancellation",
    space="3 numbers under exponential decay, 2k + 4 under degree k",
    time="one exponential, or O(k^2)",
    paper="Forward Decay (ICDE 2009), Section III and Definition 5; a moving landmark by the binomial theorem",
    has=frozenset({"commutative"}),
    items="timed",
    parameters=({"decay": "exp(half_life=5m)"}, {"decay": "poly(2)", "answer": "mean"}),
    bits=False,
)
