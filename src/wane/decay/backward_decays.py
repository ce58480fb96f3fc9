"""Backward decays: sliding window, polynomial, super-exponential, sub-polynomial (section II.A of the paper).

No decay and exponential decay are backward too; they stand in `forward_decays.py`, since they are forward as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from wane.decay.base import (
    LOG2_E,
    ONE_SECOND,
    Backward,
    Floats,
    Ints,
    from_log,
    from_log2,
    multiply,
    number_text,
    one_of,
    positive,
    positive_duration,
    product,
    twofold,
    unit_text,
)
from wane.times import SECOND, Ticks, show_duration


@dataclass(frozen=True)
class SlidingWindow(Backward):
    """``f(a) = 1`` for ages under `length`, else 0: an item leaves the window when it is exactly `length` old."""

    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", positive_duration(self.length, "length", "window(5m)"))

    def __str__(self) -> str:
        return f"window({show_duration(self.length)})"

    def of_age(self, ages: Floats) -> Floats:
        """1 inside the window, 0 from its edge on; floats tell nanoseconds apart up to 26 days."""
        return (ages < (self.length - 0.5) / SECOND).astype(np.float64)

    def of_times(self, times: Ticks, now: int) -> Floats:
        """1 inside the window, 0 from its edge on, measured from there: the sign of a difference is always exact."""
        return (times.seconds_since(now - self.length) > 0).astype(np.float64)


@dataclass(frozen=True)
class BackwardPoly(Backward):
    """``f(a) = (a + 1)**-alpha``, `a` counted in `unit`."""

    alpha: float
    unit: int = ONE_SECOND

    def __post_init__(self) -> None:
        alpha = positive(self.alpha, "the exponent of backward poly", "backward poly(1.5)")
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "unit", positive_duration(self.unit, "unit", "unit='1m'"))

    def __str__(self) -> str:
        return f"backward poly({', '.join([number_text(self.alpha), unit_text(self.unit)]).removesuffix(', ')})"

    def of_age(self, ages: Floats) -> Floats:
        """``(a + 1)**-alpha``, by logarithms, so that small ages keep their digits."""
        return np.exp(self._logs(ages))

    def wide_of_age(self, ages: Floats) -> tuple[Floats, Ints]:
        """By logarithms to the end."""
        return from_log(self._logs(ages))

    def _logs(self, ages: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return -self.alpha * np.log1p(ages * (SECOND / self.unit))


@dataclass(frozen=True)
class SuperExponential(Backward):
    """``f(a) = exp(-lambda a**2)``, given by `rate` (lambda, per second squared) or by its `half_life`."""

    half_life: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        one_of(self, "superexp", "rate=0.001")

    def __str__(self) -> str:
        if self.half_life is not None:
            return f"superexp(half_life={show_duration(self.half_life)})"
        assert self.rate is not None
        return f"superexp(rate={number_text(self.rate)})"

    @cached_property
    def lam(self) -> float:
        """The paper's lambda."""
        if self.rate is not None:
            return self.rate
        assert self.half_life is not None
        return math.log(2) / (self.half_life / SECOND) ** 2

    @cached_property
    def _turns(self) -> tuple[float, float]:
        """Halvings for each squared nanosecond, to twice the digits of a double."""
        half_life = self.half_life
        rate = 1 / Fraction(half_life) ** 2 if half_life is not None else Fraction(self.lam) * LOG2_E / SECOND**2
        return twofold(rate)

    def of_age(self, ages: Floats) -> Floats:
        """``exp(-lambda a**2)``."""
        with np.errstate(over="ignore"):
            return np.exp(-self.lam * ages * ages)

    def wide_of_age(self, ages: Floats) -> tuple[Floats, Ints]:
        """From whole nanoseconds, by logarithms of twice the digits, of which the squares of large ages leave few."""
        passed = np.rint(ages * SECOND)
        turns, lost = multiply(product(passed, passed), self._turns)
        return from_log2(-turns, -lost)


@dataclass(frozen=True)
class SubPoly(Backward):
    """``f(a) = 1 / (1 + ln(1 + a))``, `a` counted in `unit`."""

    unit: int = ONE_SECOND

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", positive_duration(self.unit, "unit", "unit='1m'"))

    def __str__(self) -> str:
        return f"subpoly({unit_text(self.unit)})" if self.unit != SECOND else "subpoly"

    def of_age(self, ages: Floats) -> Floats:
        """``1 / (1 + ln(1 + a))``."""
        return 1 / (1 + np.log1p(ages * (SECOND / self.unit)))
