"""Forward decays: none, landmark window, monomial, general polynomial, exponential (section III of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from wane._jit import kernel
from wane.decay.base import (
    LARGEST_EXPONENT,
    ONE_SECOND,
    ZERO_EXPONENT,
    Backward,
    Floats,
    Forward,
    Frame,
    Ints,
    from_log2,
    multiply,
    number_text,
    one_of,
    positive,
    positive_duration,
    split,
    twofold,
    unit_text,
)
from wane.decay.exp2 import exp2, raise_two, raise_two_ticks
from wane.errors import BadDecay, BadTime
from wane.times import SECOND, Ticks, show, show_duration

_STEEPEST = 1000
"""The largest power of a polynomial: ``2**1000`` still is a double."""
_MILD = 64
"""Up to this power, a number from 1/2 to 1 stays far from what a double cannot hold."""
_LARGE = 2.0**64
_FLATTEST = 1e-200
"""The smallest rate: its half-life in nanoseconds still is a double."""


@dataclass(frozen=True)
class NoDecay(Forward, Backward):
    """``g = 1``: every item weighs 1 for ever."""

    is_forward = True
    is_backward = True

    @property
    def flat(self) -> bool:
        """Every row weighs 1."""
        return True

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

    @property
    def flat(self) -> bool:
        """After the landmark a row weighs 1, at it 0."""
        return True

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
        beta = positive(self.beta, "the exponent of poly", "poly(2)")
        if beta > _STEEPEST:
            raise BadDecay(f"the exponent of poly must be at most {_STEEPEST}, got {self.beta!r}; write poly(2)")
        object.__setattr__(self, "beta", beta)

    @cached_property
    def _parts(self) -> tuple[int, float]:
        """The whole part of beta and the rest: products with them are exact, or nearly, where one with beta is not."""
        whole = math.floor(self.beta)
        return whole, self.beta - whole

    def __str__(self) -> str:
        return f"poly({number_text(self.beta)})"

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """``m**beta * 2**(e beta)`` of ``n = m 2**e``: the power is taken of a number in [1, 2)."""
        mantissas, exponents = split(ages)
        zero = exponents == ZERO_EXPONENT
        turns = np.where(zero, 0, exponents)
        whole, rest = self._parts
        part = turns * rest
        down = np.floor(part)
        powers, extra = split(mantissas**self.beta * np.exp2(part - down))
        return powers, np.where(zero, ZERO_EXPONENT, extra + turns * whole + down.astype(np.int64))

    def point(self, age: float) -> tuple[float, int]:
        """``m**beta * 2**(e beta)``."""
        if age <= 0:
            return 0.0, ZERO_EXPONENT
        mantissa, exponent = math.frexp(age)
        whole, rest = self._parts
        power = (2 * mantissa) ** self.beta
        shared = (exponent - 1) * whole
        if rest:
            extra, factor = self._power_of_two(exponent - 1, rest)
            power, shared = power * factor, shared + extra
        if power > _LARGE:  # callers multiply it with values, which are large themselves
            power, extra = math.frexp(power)
            shared += extra
        return power, shared

    def scaled(self, ages: Floats) -> tuple[Floats, int]:
        """``(n / 2**j)**beta`` with `2**j` near the largest age."""
        top = float(ages.max(initial=0.0))
        if top <= 0:
            return np.zeros(len(ages)), 0
        if self.beta > _MILD:  # a power of two near the largest age is not near enough
            power, shared = self.point(top)
            power, extra = math.frexp(power)
            return (ages / top) ** self.beta * power, shared + extra
        j = math.frexp(top)[1]
        whole, rest = self._parts
        extra, factor = self._power_of_two(j, rest)
        parts = ages * math.ldexp(1.0, -j)
        powers = parts * parts if self.beta == 2 else parts if self.beta == 1 else parts**self.beta
        return (powers if factor == 1 else powers * factor), j * whole + extra

    @staticmethod
    def _power_of_two(exponent: int, rest: float) -> tuple[int, float]:
        """``2**(exponent * rest)`` as a power of two and a factor from 1 to 2."""
        part = exponent * rest
        down = math.floor(part)
        return down, 2.0 ** (part - down)


@dataclass(frozen=True)
class Polynomial(Forward):
    """``g(n) = c0 + c1 n + c2 n**2 + ...`` (section III.B), `n` counted in `unit`.

    Coefficients are 0 or more, which makes `g` non-decreasing.
    """

    coefficients: tuple[float, ...]
    unit: int = ONE_SECOND

    needs_landmark = True

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "coefficients", tuple(float(c) for c in self.coefficients))
        except (TypeError, ValueError):
            raise BadDecay(
                f"the coefficients of polynomial must be numbers, got {self.coefficients!r}; write polynomial(1, 0, 2)"
            ) from None
        object.__setattr__(self, "unit", positive_duration(self.unit, "unit", "unit='1m'"))
        if len(self.coefficients) > _STEEPEST + 1:
            raise BadDecay(f"polynomial takes powers up to {_STEEPEST}, got {len(self.coefficients)} coefficients")
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
        """The terms of ``n / 2**e``, with the powers of two moved into the coefficients, so that nothing overflows."""
        mantissas, exponents = split(ages * (SECOND / self.unit))
        nothing = exponents == ZERO_EXPONENT
        turns = np.where(nothing, 0, exponents)
        pairs = [math.frexp(c) for c in self.coefficients]
        scales = [e + turns * power for power, (_, e) in enumerate(pairs)]
        present = [np.where(nothing, power == 0, True) & (c != 0) for power, (c, _) in enumerate(pairs)]
        top = np.max([np.where(p, s, ZERO_EXPONENT) for p, s in zip(present, scales, strict=True)], axis=0)
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
        half_life: The time in which a weight halves (kept as nanoseconds), or None where a rate was given.
        rate: `alpha` per second, or None where a half-life was given.
    """

    half_life: int | None = None
    rate: float | None = None

    is_forward = True
    is_backward = True

    def __post_init__(self) -> None:
        one_of(self, "exp", "rate=0.1")
        if self.rate is not None and not _FLATTEST <= self.rate <= math.log(2) * SECOND:
            raise BadDecay(
                f"the rate of exp must be from {_FLATTEST} to {math.log(2) * SECOND:.3g} a second (a half-life of "
                f"1 ns), got {self.rate!r}; write exp(rate=0.1)"
            )

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
    def _grid(self) -> tuple[int, int]:
        """Nanoseconds in ``2**shift`` half-lives, at least 2**53 of them, and `shift`.

        Exact for a half-life, within half a unit in the last place of a double for a rate.
        """
        if self.half_life is not None:
            half_life = Fraction(self.half_life)
        else:
            assert self.rate is not None
            half_life = Fraction(math.log(2)) / Fraction(self.rate) * SECOND
        shift = max(0, 54 - int(half_life).bit_length())
        return round(half_life * 2**shift), shift

    @cached_property
    def _half_life(self) -> Fraction:
        """Nanoseconds in which a weight halves."""
        grid, shift = self._grid
        return Fraction(grid, 2**shift)

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

    def wide_of_age(self, ages: Floats) -> tuple[Floats, Ints]:
        """``2**(-a / half_life)``, from whole nanoseconds."""
        turns, lost = multiply((np.rint(ages * SECOND), 0.0), twofold(1 / self._half_life))
        return from_log2(-turns, -lost)

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
        """Whole half-lives since 1970 by integers, the rest of each time by a power of two: exact to rounding."""
        mantissas, exponents = np.empty(len(times)), np.empty(len(times), np.int64)
        if not len(times):
            return mantissas, exponents
        lo, hi = times.span()
        if max(abs(lo), abs(hi)) >= LARGEST_EXPONENT * self._half_life:
            raise BadTime(
                f"times from {show(lo)} to {show(hi)} are more than 2**61 half-lives of {self} from 1970; "
                "choose a longer one"
            )
        grid, shift = self._grid
        if grid >= 2**62:  # a few half-lives cover all of time: doubles do
            return from_log2(times.values.astype(np.float64) * (times.per_tick / grid))
        _turn(times.values, times.per_tick, grid, shift, 2.0**shift / grid, mantissas, exponents)
        return mantissas, exponents

    weight = Forward.weight


@kernel("void(r_i8, int64, int64, int64, float64, w_f8, w_i8)", fuse=False)
def _turn(values: Ints, per: int, grid: int, shift: int, turns_per: float, mantissas: Floats, exponents: Ints) -> None:
    """``2**(time / half_life)`` of times of `values` times `per` ns, where ``2**shift`` half-lives last `grid` ns.

    Quotients are guessed by doubles. What they leave is a small number, so that 64 bits which wrap around give it
    exactly, however large the products; a guess that is off by a few leaves a few half-lives more.
    """
    for i in range(values.shape[0]):
        grids = np.int64(np.floor(values[i] * (per / grid)))
        passed = values[i] * per - grids * grid  # nanoseconds, from -grid to 2 grid
        turns = np.int64(np.floor(passed * turns_per))
        rest = ((passed << shift) - turns * grid) / grid  # half-lives, a few
        down = np.floor(rest)
        mantissa = exp2(rest - down)
        exponent = (grids << shift) + turns + np.int64(down)
        if mantissa >= 2.0:
            mantissa *= 0.5
            exponent += 1
        mantissas[i] = mantissa
        exponents[i] = exponent
