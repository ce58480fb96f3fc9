"""Backward decays: sliding window, polynomial, super-exponential, sub-polynomial (section II.A of the paper).

No decay and exponential decay are backward too; they stand in `forward_decays.py`, since they are forward as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wane.decay.base import Backward, Floats, number_text, unit_text
from wane.errors import BadDecay
from wane.times import SECOND, show_duration


@dataclass(frozen=True)
class SlidingWindow(Backward):
    """``f(a) = 1`` for ages under `length`, else 0."""

    length: int

    def __str__(self) -> str:
        return f"window({show_duration(self.length)})"

    def of_age(self, ages: Floats) -> Floats:
        """1 inside the window, 0 from its edge on."""
        return (np.rint(ages * SECOND) < self.length).astype(np.float64)


@dataclass(frozen=True)
class BackwardPoly(Backward):
    """``f(a) = (a + 1)**-alpha``, `a` counted in `unit`."""

    alpha: float
    unit: int = SECOND

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise BadDecay(f"the exponent of backward poly must be above 0, got {self.alpha!r}; write backward poly(1.5)")

    def __str__(self) -> str:
        return f"backward poly({', '.join([number_text(self.alpha), unit_text(self.unit)]).removesuffix(', ')})"

    def of_age(self, ages: Floats) -> Floats:
        """``(a + 1)**-alpha``, by logarithms, so that small ages keep their digits."""
        return np.exp(-self.alpha * np.log1p(ages * (SECOND / self.unit)))


@dataclass(frozen=True)
class SuperExponential(Backward):
    """``f(a) = exp(-lambda a**2)``, given by `rate` (lambda, per second squared) or by its `half_life`."""

    half_life: int | None = None
    rate: float | None = None

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

    def of_age(self, ages: Floats) -> Floats:
        """``exp(-lambda a**2)``."""
        with np.errstate(over="ignore"):
            return np.exp(-self.lam * ages * ages)


@dataclass(frozen=True)
class SubPoly(Backward):
    """``f(a) = 1 / (1 + ln(1 + a))``, `a` counted in `unit`."""

    unit: int = SECOND

    def __str__(self) -> str:
        return f"subpoly({unit_text(self.unit)})" if self.unit != SECOND else "subpoly"

    def of_age(self, ages: Floats) -> Floats:
        """``1 / (1 + ln(1 + a))``."""
        return 1 / (1 + np.log1p(ages * (SECOND / self.unit)))
