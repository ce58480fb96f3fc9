"""Forward decays: none, landmark window, monomial, general polynomial, exponential (section III of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from wane.decay.base import (
    ZERO_EXPONENT,
    Backward,
    Floats,
    Forward,
    Frame,
    Ints,
    from_log2,
    number_text,
    split,
    unit_text,
)
from wane.decay.exp2 import raise_two, raise_two_ticks
from wane.errors import BadDecay, BadTime
from wane.times import PER_TICK, SECOND, Ticks, show_duration

_BLOCK = 256
"""Half-lives in a block; inside one, a double holds an exponential weight to 14 digits."""


@dataclass(frozen=True)
class NoDecay(Forward, Backward):
    """``g = 1``: every item weighs 1 for ever."""

    is_forward = True
    is_backward = True

    def __str__(self) -> str:
        return "none"

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """1 everywhere."""
        return np.ones(len(ages)), np.zeros(len(ages), np.int64)

    def scaled(self, ages: Floats) -> tuple[Floats, int]:
        """1 everywhere."""
        return np.ones(len(ages)), 0

    def point(self, age: float) -> tuple[float, int]:
        """1."""
        return 1.0, 0

    def of_age(self, ages: Floats) -> Floats:
        """1 everywhere."""
        return np.ones(len(ages))

    weight = Forward.weight


@dataclass(frozen=True)
class Landmark(Forward):
    """The landmark window: ``g(n) = 1`` for ``n > 0``, else 0 (section III.C)."""

    needs_landmark = True

    def __str__(self) -> str:
        return "landmark"

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """1 after the landmark, 0 at it."""
        return split((ages > 0).astype(np.float64))

    def scaled(self, ages: Floats) -> tuple[Floats, int]:
        """1 after the landmark, 0 at it."""
        return (ages > 0).astype(np.float64), 0

    def point(self, age: float) -> tuple[float, int]:
        """1 after the landmark, 0 at it."""
        return (1.0, 0) if age > 0 else (0.0, ZERO_EXPONENT)


@dataclass(frozen=True)
class Poly(Forward):
    """The monomial ``g(n) = n**beta``, which has the relative-decay property (Lemma 1).

    Half-way between landmark and now, an item weighs ``0.5**beta``, whenever it is asked.
    """

    beta: float

    needs_landmark = True

    def __post_init__(self) -> None:
        if not 0 < self.beta <= 1000:
            raise BadDecay(f"the exponent of poly must be above 0 and at most 1000, got {self.beta!r}; write poly(2)")

    def __str__(self) -> str:
        return f"poly({number_text(self.beta)})"

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """``m**beta * 2**(e beta)`` of ``n = m 2**e``: the power is taken of a number in [1, 2)."""
        mantissas, exponents = split(ages)
        zero = exponents == ZERO_EXPONENT
        turns = np.where(zero, 0, exponents) * self.beta
        whole = np.floor(turns)
        powers, extra = split(mantissas**self.beta * np.exp2(turns - whole))
        return powers, np.where(zero, ZERO_EXPONENT, extra + whole.astype(np.int64))

    def point(self, age: float) -> tuple[float, int]:
        """``m**beta * 2**(e beta)``."""
        if age <= 0:
            return 0.0, ZERO_EXPONENT
        mantissa, exponent = math.frexp(age)
        turns = (exponent - 1) * self.beta
        whole = math.floor(turns)
        return (2 * mantissa) ** self.beta * 2.0 ** (turns - whole), whole

    def scaled(self, ages: Floats) -> tuple[Floats, int]:
        """``(n / 2**j)**beta`` with `2**j` near the largest age."""
        top = float(ages.max(initial=0.0))
        if top <= 0:
            return np.zeros(len(ages)), 0
        j = math.frexp(top)[1]
        turns = j * self.beta
        shared = math.floor(turns)
        parts = ages * math.ldexp(1.0, -j)
        powers = parts * parts if self.beta == 2 else parts if self.beta == 1 else parts**self.beta
        return (powers if turns == shared else powers * 2.0 ** (turns - shared)), shared


@dataclass(frozen=True)
class Polynomial(Forward):
    """``g(n) = c0 + c1 n + c2 n**2 + ...`` (section III.B), `n` counted in `unit`.

    Coefficients are 0 or more, which makes `g` non-decreasing; they grow with age, not against it.
    """

    coefficients: tuple[float, ...]
    unit: int = SECOND

    needs_landmark = True

    def __post_init__(self) -> None:
        bad = [c for c in self.coefficients if not (math.isfinite(c) and c >= 0)]
        if bad:
            raise BadDecay(
                f"a coefficient of polynomial must be finite and 0 or more, got {bad[0]!r}; "
                "write polynomial(1, 0, 2) for 1 + 2 n^2"
            )
        if not any(self.coefficients):
            raise BadDecay("polynomial needs a coefficient above 0; write polynomial(1, 0, 2) for 1 + 2 n^2")

    def __str__(self) -> str:
        parts = [number_text(c) for c in self.coefficients]
        return f"polynomial({', '.join([*parts, unit_text(self.unit)]).removesuffix(', ')})"

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """Horner's rule on ``n / 2**e``, with the powers of two moved into the coefficients, so that nothing overflows."""
        mantissas, exponents = split(ages * (SECOND / self.unit))
        turns = np.where(exponents == ZERO_EXPONENT, 0, exponents)
        pairs = [math.frexp(c) for c in self.coefficients]
        scales = [e + turns * power for power, (_, e) in enumerate(pairs)]
        top = np.max([np.where(c == 0, ZERO_EXPONENT, s) for (c, _), s in zip(pairs, scales, strict=True)], axis=0)
        total = np.zeros(len(ages))
        for (c, _), s, power in zip(pairs, scales, range(len(pairs)), strict=True):
            total += np.ldexp(c * mantissas**power, np.clip(s - top, -2000, 0).astype(np.int32))
        powers, extra = split(total)
        return powers, np.where(total == 0, ZERO_EXPONENT, extra + top)


@dataclass(frozen=True)
class Exponential(Forward, Backward):
    """``g(n) = exp(alpha n)``, which is ``f(a) = exp(-alpha a)`` as well (section III.A).

    Any landmark gives the same weights, so this one keeps its own: powers of two at whole half-lives. Distances
    from there are small, and a stream of a million half-lives loses no digit.

    Attributes:
        half_life: Nanoseconds in which a weight halves, or None where a rate was given.
        rate: `alpha` per second, or None where a half-life was given.
    """

    half_life: int | None = None
    rate: float | None = None

    is_forward = True
    is_backward = True

    def __str__(self) -> str:
        if self.half_life is not None:
            return f"exp(half_life={show_duration(self.half_life)})"
        assert self.rate is not None
        return f"exp(rate={number_text(self.rate)})"

    @cached_property
    def alpha(self) -> float:
        """The rate per second."""
        return self.rate if self.rate is not None else math.log(2) * SECOND / float(self._half_life)

    @cached_property
    def _half_life(self) -> Fraction:
        """Nanoseconds in which a weight halves, exactly as the parameter says."""
        if self.half_life is not None:
            return Fraction(self.half_life)
        assert self.rate is not None
        return Fraction(math.log(2) / self.rate) * SECOND

    @cached_property
    def _turns_per_second(self) -> float:
        return SECOND / float(self._half_life)

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """``2**(n / half_life)``."""
        return from_log2(ages * self._turns_per_second)

    def scaled(self, ages: Floats) -> tuple[Floats, int]:
        """``2**(n / half_life)`` of ages within reach of the frame; a far future must be met by a new frame first."""
        raise_two(ages, self._turns_per_second, 0.0, ages)
        return ages, 0

    def fill(self, values: Ints, base: int, seconds: float, lag: float, out: Floats) -> tuple[Floats, int]:
        """Subtraction, scaling and power in one pass."""
        raise_two_ticks(values, base, seconds * self._turns_per_second, lag * self._turns_per_second, out)
        return out, 0

    def of_age(self, ages: Floats) -> Floats:
        """``exp(-alpha a)``."""
        return np.exp(ages * -self.alpha)

    def point(self, age: float) -> tuple[float, int]:
        """``exp(alpha n)`` of an age within reach of its frame."""
        return math.exp(age * self.alpha), 0

    @property
    def reach(self) -> float:
        """The weight a frame can hold without crowding out a double: 64 half-lives."""
        return 64 * float(self._half_life) / SECOND

    def frame(self, near: int, landmark: int | None) -> Frame:
        """The last whole half-life (since 1970) at or before `near`."""
        half_life = self._half_life
        turns = near * half_life.denominator // half_life.numerator
        origin, rest = divmod(turns * half_life.numerator, half_life.denominator)
        return Frame(origin, rest / half_life.denominator / SECOND, turns)

    def locate(self, times: Ticks, landmark: int | None) -> tuple[Floats, Ints]:
        """Blocks of whole half-lives since 1970 by integers, the rest of each time by a power of two."""
        if not len(times):
            return np.empty(0), np.empty(0, np.int64)
        block = _BLOCK * self._half_life
        values, per = times.values, times.per_tick
        lo, hi = times.span()
        while per > 1 and (block / per < 1024 or (block / per).denominator != 1):
            per //= 1000
            if max(abs(lo), abs(hi)) // per >= 2**63:
                raise BadTime(f"times from {lo} to {hi} ns do not fit 64 bits at the resolution {self} needs")
            values = values * 1000
        whole, rest = divmod(block / per, 1)
        turns = np.floor(values / float(block / per)).astype(np.int64)
        left = (values - turns * np.int64(int(whole))) - turns * float(rest)
        mantissas, exponents = from_log2(left * (per / float(self._half_life)))
        return mantissas, exponents + turns * _BLOCK

    weight = Forward.weight


