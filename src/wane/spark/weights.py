"""Decays as Spark columns: the weight of a row from its age, by Spark's own functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- its name everywhere

from wane.decay import (
    BackwardPoly,
    Decay,
    Exponential,
    Forward,
    Landmark,
    NoDecay,
    Pinned,
    Poly,
    Polynomial,
    SlidingWindow,
    SubPoly,
    SuperExponential,
)
from wane.decay.base import ZERO_EXPONENT, Backward
from wane.times import SECOND


@dataclass(frozen=True)
class Age:
    """A length of time for each row: `ticks` of `per` nanoseconds, and `more` nanoseconds, the same for all."""

    ticks: Column
    per: int
    more: int = 0

    @property
    def seconds(self) -> Column:
        """As doubles."""
        found = self.ticks.cast("double") * (self.per / SECOND)
        return found + self.more / SECOND if self.more else found

    def under(self, length: int) -> Column:
        """Whether it is shorter than some nanoseconds, exactly."""
        return self.ticks < -((self.more - length) // self.per)


def weight(decay: Decay, age: Age) -> Column | None:
    """``g`` or ``f`` of an age; None for a function that only Python knows."""
    seconds = age.seconds
    match decay:
        case Pinned():
            return weight(decay.decay, age)
        case NoDecay():
            return F.lit(1.0)
        case Landmark():
            return F.when(seconds > 0, 1.0).otherwise(0.0)
        case Poly():
            return _power(seconds, decay.beta)
        case Polynomial():
            n, total = seconds * (SECOND / decay.unit), F.lit(0.0)
            for coefficient in reversed(decay.coefficients):
                total = total * n + coefficient
            return total
        case Exponential():
            return F.exp(seconds * -decay.alpha)
        case SlidingWindow():
            return F.when(age.under(decay.length), 1.0).otherwise(0.0)
        case BackwardPoly():
            return F.pow(seconds * (SECOND / decay.unit) + 1.0, F.lit(-decay.alpha))
        case SuperExponential():
            return F.exp(seconds * seconds * -decay.lam)
        case SubPoly():
            return 1.0 / (1.0 + F.log1p(seconds * (SECOND / decay.unit)))
    return None


def exponents(decay: Decay, least: float, most: float) -> tuple[int, int]:
    """The powers of two of the smallest weight above 0 and of the largest one, over ages in seconds."""
    inner = decay.decay if isinstance(decay, Pinned) else decay
    ages = np.array([least, most])
    if isinstance(inner, Backward):
        _, found = inner.wide_of_age(ages)
    else:
        assert isinstance(inner, Forward)
        _, found = inner.wide(ages)
    there = found[found != ZERO_EXPONENT]
    return (int(there.min(initial=0)), int(there.max(initial=0)) + 1)


def _power(base: Column, exponent: float) -> Column:
    if exponent == 1:
        return base
    return base * base if exponent == 2 else F.pow(base, F.lit(exponent))
