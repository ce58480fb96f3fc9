"""Every decay against its formula in exact or decimal arithmetic, Definition 1, and the ways a summary asks for it."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import random
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wane.decay import (
    Backward,
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
    backward,
    parse,
    pinned,
)
from wane.decay.base import ZERO_EXPONENT, Frame, from_log2, split
from wane.decay.forward_decays import _turn
from wane.decay.weigh import CHUNK, weigh
from wane.errors import BadDecay, BadInput, BadTime, BeforeLandmark, QueryInPast
from wane.summaries.moments import Moments
from wane.times import PER_TICK, SECOND, Nanoseconds, Ticks

checked = settings(max_examples=25)

NEW_YEAR = 1_767_225_600 * SECOND  # 2026-01-01
DAY = 86400 * SECOND
YEAR = 365 * DAY

Exact = Callable[[Decimal], Decimal]  # of seconds


def seconds(ns: int) -> Decimal:
    return Decimal(ns) / SECOND


def power_of_two(x: Decimal) -> Decimal:
    return (x * Decimal(2).ln()).exp()


FORWARD: dict[str, Exact] = {
    "none": lambda n: n**0 if n else Decimal(1),
    "landmark": lambda n: Decimal(int(n > 0)),
    "poly(2)": lambda n: n**2,
    "poly(1)": lambda n: n,
    "poly(0.5)": lambda n: n ** Decimal("0.5"),
    "poly(0.001)": lambda n: n ** Decimal.from_float(0.001),
    "poly(2.7)": lambda n: n ** Decimal.from_float(2.7),
    "poly(1000)": lambda n: n**1000,
    "poly(999.7)": lambda n: n ** Decimal.from_float(999.7),
    "polynomial(1, 0, 2)": lambda n: 1 + 2 * n**2,
    "polynomial(0, 1e-300, 0, 1e+300)": lambda n: Decimal.from_float(1e-300) * n + Decimal.from_float(1e300) * n**3,
    "polynomial(3, 1, unit=1h)": lambda n: 3 + n / 3600,
}
EXPONENTIAL: dict[str, Exact] = {
    "exp(half_life=5m)": lambda a: power_of_two(-a / 300),
    "exp(half_life=90d)": lambda a: power_of_two(-a / (90 * 86400)),
    "exp(rate=0.1)": lambda a: (-a * Decimal.from_float(0.1)).exp(),
    "exp(rate=3e-05)": lambda a: (-a * Decimal.from_float(3e-05)).exp(),
}
BACKWARD: dict[str, Exact] = {
    "window(5m)": lambda a: Decimal(int(a < 300)),
    "backward poly(1.5)": lambda a: (1 + a) ** Decimal("-1.5"),
    "backward poly(0.01, unit=1h)": lambda a: (1 + a / 3600) ** Decimal.from_float(-0.01),
    "backward poly(80)": lambda a: (1 + a) ** -80,
    "superexp(half_life=5m)": lambda a: power_of_two(-((a / 300) ** 2)),
    "superexp(rate=0.001)": lambda a: (-Decimal.from_float(0.001) * a * a).exp(),
    "subpoly": lambda a: 1 / (1 + (1 + a).ln()),
    "subpoly(unit=1d)": lambda a: 1 / (1 + (1 + a / 86400).ln()),
}
FORWARDS = [*FORWARD, *EXPONENTIAL]
EVERY = [*FORWARDS, *BACKWARD]


def true_weight(text: str, time: int, now: int, landmark: int) -> Decimal:
    if text in FORWARD:
        g = FORWARD[text]
        return g(seconds(time - landmark)) / g(seconds(now - landmark))
    return {**EXPONENTIAL, **BACKWARD}[text](seconds(now - time))


def wide_value(mantissa: float, exponent: int, beside: int = 0) -> Fraction:
    """A wide number as a multiple of ``2**beside``; what is nothing beside that is 0."""
    power = int(exponent) - int(beside)
    if mantissa == 0 or power < -3000:
        return Fraction(0)
    assert power < 10_000
    return Fraction(mantissa) * Fraction(2) ** power


def close(found: float, true: Decimal, tolerance: float) -> bool:
    """To a relative tolerance; what is under the smallest normal double may be anything as small."""
    return abs(Decimal(found) - true) <= Decimal(tolerance) * abs(true) + Decimal.from_float(2.3e-308)


def landmark_of(decay: Decay, landmark: int) -> Nanoseconds | None:
    return Nanoseconds(landmark) if decay.needs_landmark else None


# Steep decays turn the rounding of an age into more: the tolerance is that of the age times the exponent.
TOLERANCE = {"poly(1000)": 3e-12, "poly(999.7)": 3e-12, "backward poly(80)": 1e-13}

# --- weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EVERY)
@checked
@given(
    st.sampled_from([10**3, 10**9, 10**12, 86400 * 10**9, YEAR]).flatmap(
        lambda span: st.tuples(st.lists(st.integers(0, span), min_size=1, max_size=4), st.integers(1, span))
    ),
    st.sampled_from([0, NEW_YEAR, NEW_YEAR + 123_456_789, -5 * YEAR]),
)
def test_weights_are_those_of_the_formula(text: str, ages: tuple[list[int], int], landmark: int) -> None:
    decay = parse(text)
    now = landmark + max(ages[0]) + ages[1]
    times = [landmark + n for n in ages[0]]
    found = decay.weight(Ticks(times, "ns"), Nanoseconds(now), landmark_of(decay, landmark))
    with localcontext() as context:
        context.prec = 50
        for time, weight in zip(times, found.tolist(), strict=True):
            true = true_weight(text, time, now, landmark)
            # the exponent of exp and superexp, an age times a rate, is rounded too
            steep = 1e-15 * float(-true.ln()) if text.startswith(("exp", "superexp")) and true > 0 else 0
            assert close(weight, true, TOLERANCE.get(text, 2e-14) + steep), (time, weight, true)


@pytest.mark.parametrize("text", EVERY)
@checked
@given(st.lists(st.integers(1, 10**13), min_size=3, max_size=30), st.integers(0, 10**13))
def test_definition_1_holds(text: str, offsets: list[int], wait: int) -> None:
    decay = parse(text)
    offsets = sorted(offsets)
    landmark = landmark_of(decay, NEW_YEAR)
    times = Ticks([NEW_YEAR + n for n in offsets], "ns")
    newest = NEW_YEAR + offsets[-1]
    at_once = decay.weight(times, Nanoseconds(newest), landmark)
    assert at_once[-1] == 1.0  # condition 1, exactly
    assert ((at_once >= 0) & (at_once <= 1)).all()
    assert (np.diff(at_once) >= -1e-12 * at_once[1:]).all()  # newer weighs no less, but for rounding
    later = decay.weight(times, Nanoseconds(newest + wait), landmark)
    assert ((later >= 0) & (later <= at_once * (1 + 1e-12))).all()  # condition 2


@checked
@given(
    st.floats(0.001, 50),
    st.integers(0, 1000),
    st.integers(-(10**18), 10**18),
    st.lists(st.integers(1, 10**12), min_size=2),
)
def test_lemma_1_monomials_have_the_relative_decay_property(
    beta: float, part: int, landmark: int, spans: list[int]
) -> None:
    gamma = Fraction(part, 1000)
    weights = []
    for span in spans:  # the item falls at the same place between landmark and now
        time, now = landmark + part * span, landmark + 1000 * span
        weights.append(Poly(beta).weight(Nanoseconds(time), Nanoseconds(now), Nanoseconds(landmark)))
    expected = float(gamma) ** beta
    assert weights == pytest.approx([expected] * len(spans), rel=1e-13)


def test_relative_decay_is_special_to_monomials() -> None:
    for text in ("polynomial(1, 1)", "exp(half_life=5m)"):
        half = [parse(text).weight(now / 2, now=now, landmark=0) for now in (100, 1000)]
        assert abs(half[0] - half[1]) > 0.004


@checked
@given(
    st.floats(1e-6, 10) | st.integers(1, YEAR),
    st.lists(st.integers(0, 10**15), min_size=1, max_size=10),
    st.integers(-(10**18), 10**18),
)
def test_forward_and_backward_are_the_same_for_exponential_decay(
    parameter: float | int, ages: list[int], landmark: int
) -> None:
    decay = Exponential(rate=parameter) if isinstance(parameter, float) else Exponential(Nanoseconds(parameter))
    assert isinstance(decay, Forward)
    assert isinstance(decay, Backward)
    assert decay.is_forward
    assert decay.is_backward
    now = NEW_YEAR + max(ages)
    times = Ticks([now - age for age in ages], "ns")
    forward = Forward.weight(decay, times, Nanoseconds(now), Nanoseconds(landmark))
    assert (forward == Forward.weight(decay, times, Nanoseconds(now))).all()  # any landmark gives the same
    backward = Backward.weight(decay, times, Nanoseconds(now))
    steep = np.array([decay.alpha * age / SECOND for age in ages])
    assert (np.abs(forward - backward) <= (1e-15 + 1e-15 * steep) * backward + 1e-307).all()


def test_other_decays_are_one_or_the_other() -> None:
    assert parse("none").is_forward
    assert parse("none").is_backward
    for text in FORWARDS:
        assert parse(text).is_forward
        assert parse(text).is_backward == (text == "none" or text.startswith("exp"))
        assert parse(text).needs_landmark == (not parse(text).is_backward)
    for text in BACKWARD:
        assert (parse(text).is_forward, parse(text).is_backward) == (False, True)


def test_times_come_in_every_form() -> None:
    decay = parse("exp(half_life=1h)")
    now = "2026-01-01T02:00:00Z"
    for time in ("2026-01-01T01:00:00Z", np.datetime64("2026-01-01T01", "h"), 1_767_229_200, 1_767_229_200.0):
        assert decay.weight(time, now) == 0.5
        assert type(decay.weight(time, now)) is float
        assert decay.weight([time, time], now).tolist() == [0.5, 0.5]
    assert decay.weight(np.array(["2026-01-01T01", "NaT", "2026-01-01T02"], "M8[h]"), now)[[0, 2]].tolist() == [
        0.5,
        1.0,
    ]
    assert len(decay.weight([], now)) == 0


@pytest.mark.parametrize("text", EVERY)
def test_a_missing_time_has_no_weight(text: str) -> None:
    found = parse(text).weight([None, 5.0, math.nan], now=10, landmark=1)
    assert np.isnan(found).tolist() == [True, False, True]
    assert np.isnan(parse(text).weight([None], now=10, landmark=1)).all()


def test_what_breaks_the_order_of_times_is_refused() -> None:
    for text in EVERY:
        with pytest.raises(QueryInPast, match=r"an item of 11 is newer than now=10; ask at or after it"):
            parse(text).weight([5, 11], now=10, landmark=1)
    for text in ("poly(2)", "landmark", "polynomial(1, 2)"):
        with pytest.raises(BeforeLandmark, match=r"an item of 4.5 is before the landmark 5.*choose an earlier"):
            parse(text).weight([4.5, 6], now=10, landmark=5)
        with pytest.raises(BadDecay, match=r"measures from a landmark; give landmark="):
            parse(text).weight(6, now=10)
    for text in ("poly(2)", "landmark"):  # which weigh the landmark itself 0
        with pytest.raises(QueryInPast, match=r"gives weight 0 to now=5 itself; ask after the landmark"):
            parse(text).weight(5, now=5, landmark=5)
    assert parse("polynomial(1, 2)").weight(5, now=5, landmark=5) == 1.0


def test_an_item_at_the_landmark_weighs_g_of_0() -> None:
    found = {
        text: parse(text).weight(5, now=6, landmark=5) for text in ("poly(2)", "landmark", "polynomial(1, 1)", "none")
    }
    assert found == {"poly(2)": 0.0, "landmark": 0.0, "polynomial(1, 1)": 0.5, "none": 1.0}


def test_nanoseconds_of_2026_are_told_apart_and_ties_kept() -> None:
    decay = parse("exp(half_life=1us)")
    times = Ticks([NEW_YEAR + n for n in (0, 1, 1, 2)], "ns")
    weights = decay.weight(times, Nanoseconds(NEW_YEAR + 2))
    assert weights.tolist() == pytest.approx([2**-0.002, 2**-0.001, 2**-0.001, 1.0], rel=1e-15)
    assert weights[1] == weights[2]
    assert (np.diff(parse("poly(2)").weight(times, Nanoseconds(NEW_YEAR + 3), Nanoseconds(NEW_YEAR - 1))) >= 0).all()


# --- wide numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", FORWARDS)
@checked
@given(st.lists(st.integers(0, YEAR), min_size=1, max_size=6), st.integers(-(10**9), 10**9))
def test_all_ways_to_ask_for_a_weight_agree(text: str, offsets: list[int], shift: int) -> None:
    decay = parse(text)
    assert isinstance(decay, Forward)
    landmark = NEW_YEAR + shift
    times = Ticks([landmark + n for n in offsets], "ns")
    mantissas, exponents = decay.locate(times, landmark)
    assert ((mantissas == 0) == (exponents == ZERO_EXPONENT)).all()
    assert ((mantissas == 0) | ((mantissas >= 1) & (mantissas < 2))).all()
    beside = int(exponents.max())
    located = [wide_value(m, e, beside) for m, e in zip(mantissas, exponents, strict=True)]
    tolerance = Fraction(TOLERANCE.get(text, 2e-14))

    newest = max(located)
    lo, hi = times.span()
    frame = decay.frame(hi, landmark)
    assert isinstance(frame, Frame)
    values, base, per = times.since(frame.origin, lo, hi)
    filled, power = decay.fill(values, base, per / SECOND, frame.lag, np.empty(len(values)))
    scaled, same = decay.scaled(frame.ages(times))
    assert filled.max(initial=0.0) <= 2.0**65
    for i, true in enumerate(located):
        # sums: right beside the newest
        for shared, exponent in ((filled, power), (scaled, same)):
            found = wide_value(shared[i], exponent + frame.exponent, beside)
            assert abs(found - true) <= tolerance * true + newest / 2**100
        # one at a time
        instant, beside_own = landmark + offsets[i], int(exponents[i])
        true = wide_value(mantissas[i], beside_own, beside_own)
        assert abs(wide_value(*decay.at(instant, landmark), beside_own) - true) <= tolerance * true
        own = decay.frame(instant, landmark)
        point, exponent = decay.point(own.age(instant))
        assert point == 0 or 2.0**-1 <= point <= 2.0**65
        assert abs(wide_value(point, exponent + own.exponent, beside_own) - true) <= tolerance * true


@pytest.mark.parametrize("text", FORWARDS)
@checked
@given(st.lists(st.integers(0, 7 * 10**9), min_size=2, max_size=8), st.integers(-(10**9), 10**9))
def test_a_located_weight_depends_on_its_instant_alone(text: str, offsets: list[int], landmark: int) -> None:
    decay = parse(text)
    assert isinstance(decay, Forward)
    first = landmark * SECOND
    whole: list[tuple[list[float], list[int]]] = []
    for unit, per in PER_TICK.items():  # the unit of the column does not show, nor what else is in it
        values = np.array([(landmark + n) * SECOND // per for n in offsets])
        located = decay.locate(Ticks(values, unit), first)
        whole.append((located[0].tolist(), located[1].tolist()))
        alone = [decay.locate(Ticks(values[i : i + 1], unit), first) for i in range(len(values))]
        assert [float(m[0]) for m, _ in alone] == whole[0][0]
        assert [int(e[0]) for _, e in alone] == whole[0][1]
    assert all(located == whole[0] for located in whole)


def exact_turns(decay: Exponential, ns: int) -> Decimal:
    if decay.half_life is not None:
        return Decimal(ns) / Decimal(decay.half_life)
    assert decay.rate is not None
    return Decimal(ns) * Decimal(decay.rate) / Decimal(2).ln() / SECOND


@settings(max_examples=300)
@given(
    st.floats(0, 17.5).map(lambda e: Exponential(Nanoseconds(int(10**e))))
    | st.floats(-8.4, 8.84).map(lambda e: Exponential(rate=10**e)),
    st.sampled_from(list(PER_TICK)),
    st.randoms(use_true_random=False),
)
def test_exponential_weights_are_exact_for_any_half_life_unit_and_time(
    decay: Exponential, unit: str, rng: random.Random
) -> None:
    per = PER_TICK[unit]
    furthest = min(2**63 - 1, int(2**60.9 * float(decay._half_life)) // per)
    values = [rng.randrange(-furthest, furthest) for _ in range(4)] + [furthest, -furthest, 0]
    values += [min(furthest, (NEW_YEAR + rng.randrange(YEAR)) // per) for _ in range(4)]
    mantissas, exponents = decay.locate(Ticks(values, unit), None)
    with localcontext() as context:
        context.prec = 60
        for value, mantissa, exponent in zip(values, mantissas.tolist(), exponents.tolist(), strict=True):
            assert 1 <= mantissa < 2
            # by the half-life that is used, to two units in the last place
            rest = Fraction(value * per) / decay._half_life - exponent
            true = power_of_two(Decimal(rest.numerator) / Decimal(rest.denominator))
            assert abs(Decimal(mantissa) / true - 1) <= Decimal(2) ** -51
        # which is the one that was given, or within half a unit in the last place of it
        per_turn = (
            exact_turns(decay, 10**9) * Decimal(decay._half_life.numerator) / Decimal(decay._half_life.denominator)
        )
        assert abs(per_turn / 10**9 - 1) <= (Decimal(2) ** -150 if decay.half_life is not None else Decimal(2) ** -53)


def test_a_half_life_is_exactly_one_power_of_two() -> None:
    for half_life in (1, 2, 3, 7, 999, 10**9, 300 * SECOND, 7 * DAY + 1, YEAR, 10 * YEAR, 2**53 + 1, 2**60 + 1, 2**62):
        decay = Exponential(Nanoseconds(half_life))
        start = NEW_YEAR - NEW_YEAR % half_life
        turns = [n for n in (-1000, -3, -1, 0, 1, 2, 1000) if abs(start + n * half_life) < 2**63]
        found = decay.locate(Ticks([start + n * half_life for n in turns], "ns"), None)
        assert found[0].tolist() == [1.0] * len(turns)
        assert found[1].tolist() == [start // half_life + n for n in turns]
        # and a nanosecond before it nearly is, however a quotient is rounded
        before = decay.locate(Ticks([start + n * half_life - 1 for n in turns], "ns"), None)
        assert ((before[0] >= 1) & (before[0] < 2)).all()
        for n, mantissa, exponent in zip(turns, *before, strict=True):
            exact = 2.0 ** (-1 / half_life) if half_life > 1 else 0.5
            assert float(wide_value(mantissa, exponent, start // half_life + n)) == pytest.approx(exact, rel=2**-51)
        for n in turns[:3]:
            at = start + n * half_life
            assert decay.frame(at, None) == Frame(at, 0.0, at // half_life)
            assert decay.frame(at - 1, None).exponent == at // half_life - 1


@pytest.mark.jit_only
def test_the_bits_of_an_exponential_weight_are_the_same_on_every_machine() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(NEW_YEAR - YEAR, NEW_YEAR + YEAR, 2000)
    for decay in (Exponential(300), Exponential(rate=0.1), Exponential("7d")):
        grid, shift = decay._grid
        found, plain = ((np.empty(2000), np.empty(2000, np.int64)) for _ in range(2))
        _turn(values, 1, grid, shift, 2.0**shift / grid, *found)
        with np.errstate(over="ignore"):
            _turn.py_func(values, 1, grid, shift, 2.0**shift / grid, *plain)
        assert (found[0] == plain[0]).all()  # plain Python fuses nothing
        assert (found[1] == plain[1]).all()


def test_half_lives_beyond_64_bits_of_nanoseconds() -> None:
    decay = Exponential(half_life="1000000d")  # 2738 years
    dates = [dt.date(1000, 1, 1), dt.date(2026, 1, 1), dt.date(9999, 12, 31)]
    found = decay.weight(dates, now=dates[-1])
    days = [(dates[-1] - date).days for date in dates]
    assert found.tolist() == pytest.approx([0.5 ** (d / 1e6) for d in days], rel=1e-14)
    assert Exponential(rate=1e-200).weight(0, now=NEW_YEAR / SECOND) == 1.0


def test_times_too_far_for_a_half_life_are_refused() -> None:
    times = Ticks([2**62], "s")
    with pytest.raises(BadTime, match=r"2\*\*61 half-lives of exp\(half_life=1us\).*choose a longer"):
        Exponential("1us").weight(times, now=Nanoseconds(2**62 * SECOND))
    assert Exponential("1ns").weight(Nanoseconds(NEW_YEAR - 1), now=Nanoseconds(NEW_YEAR)) == 0.5  # our age is fine


def test_extremes_do_not_overflow() -> None:
    huge = Ticks([0, 1, 10**6, 2**62, 2**63 - 1], "s")
    for text in FORWARD:
        decay = parse(text)
        assert isinstance(decay, Forward)
        mantissas, exponents = decay.locate(huge, 0)
        assert np.isfinite(mantissas).all()
        logs = [math.log2(m) + e if m else -math.inf for m, e in zip(mantissas, exponents, strict=True)]
        assert logs == sorted(logs)
        filled, power = decay.fill(huge.values, 0, 1.0, 0.0, np.empty(5))
        assert np.isfinite(filled).all()
        assert 2.0**-66 < filled[-1] <= 4
        assert math.log2(filled[-1]) + power == pytest.approx(logs[-1], abs=1e-10)
    for text in BACKWARD:
        weights = parse(text).weight(huge, now=Nanoseconds((2**63 - 1) * SECOND))
        assert weights[-1] == 1
        assert ((weights >= 0) & (weights <= 1)).all()
    steepest = BackwardPoly(1e300)
    assert steepest.weight([0, 10], now=10).tolist() == [0.0, 1.0]
    assert SuperExponential(rate=1e300).weight([0, 10], now=10).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("beta", [1000, 999.5, 300])
def test_a_point_leaves_room_for_a_value(beta: float) -> None:
    for age in (1e-9, 0.9, 1.0, 1.999, 2.0, 1e9, 1.9e9, 8e9):
        point, _ = Poly(beta).point(age)
        assert point <= 2.0**64
        moments = Moments(Poly(beta), landmark=0).update(1e100, age)
        assert moments.mean() == 1e100


@checked
@given(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=6).filter(any),
    st.lists(st.integers(0, 10**18), min_size=1, max_size=5),
)
def test_polynomials_are_exact_to_rounding(coefficients: list[float], ages: list[int]) -> None:
    decay = Polynomial(tuple(coefficients))
    mantissas, exponents = decay.locate(Ticks(ages, "ns"), 0)
    for age, mantissa, exponent in zip(ages, mantissas, exponents, strict=True):
        n = Fraction(age, SECOND)
        true = sum(Fraction(c) * n**power for power, c in enumerate(coefficients))
        if true == 0:
            assert mantissa == 0
        else:
            assert abs(wide_value(mantissa, exponent) / true - 1) < 1e-14


def test_a_polynomial_at_its_landmark_is_its_first_coefficient() -> None:
    for coefficients in ((1e-38, 2e285), (3, 0, 1), (0, 1)):
        mantissas, exponents = Polynomial(coefficients).locate(Ticks([0], "s"), 0)
        assert wide_value(mantissas[0], exponents[0]) == Fraction(coefficients[0])


def test_a_lag_is_taken_from_the_ages() -> None:
    for text in ("poly(2)", "polynomial(1, 1)", "exp(half_life=5m)"):
        decay = parse(text)
        assert isinstance(decay, Forward)
        filled, power = decay.fill(np.array([3, 5]), 1, 1.0, 0.25, np.empty(2))
        scaled, same = decay.scaled(np.array([1.75, 3.75]))
        assert (filled * 2.0**power).tolist() == pytest.approx((scaled * 2.0**same).tolist(), rel=1e-15)


def test_wide_numbers_of_logarithms() -> None:
    mantissas, exponents = from_log2(np.array([0.0, 1.0, -1.0, -1e-20, 1 - 2**-53, 1e15 + 0.5, -math.inf, -1e300]))
    assert ((mantissas[:6] >= 1) & (mantissas[:6] < 2)).all()
    assert mantissas[:4].tolist() == [1, 1, 1, 1]
    assert exponents[:4].tolist() == [0, 1, -1, 0]
    assert exponents[5] == 10**15
    assert (mantissas[6:].tolist(), exponents[6:].tolist()) == ([0, 0], [ZERO_EXPONENT] * 2)
    with pytest.raises(BadDecay, match="beyond all bounds"):
        from_log2(np.array([1e30]))
    numbers = np.array([0.0, 5e-324, 1.0, 1.5, 3.0, 1.7e308])
    mantissas, exponents = split(numbers)
    assert np.ldexp(mantissas[1:], exponents[1:].astype(np.int32)).tolist() == numbers[1:].tolist()
    assert exponents[0] == ZERO_EXPONENT


# --- a column at a time ----------------------------------------------------------------------------------------


def weighed(decay: Forward, landmark: int | None, times: Ticks, loads: Any = None, beside: int = 0) -> list[Fraction]:
    found: list[Fraction] = []
    for rows, weights, exponent in weigh(decay, landmark, len(times), times, times.span(), loads):
        assert rows.start == len(found)
        found += [wide_value(w, exponent, beside) for w in weights]
    return found


@pytest.mark.parametrize("text", FORWARDS)
@pytest.mark.parametrize("span", [10**4, 10**12, 3 * YEAR])
def test_weighed_columns_agree_with_located_weights(text: str, span: int) -> None:
    decay = parse(text)
    assert isinstance(decay, Forward)
    rng = random.Random(text)
    times = Ticks([NEW_YEAR + rng.randrange(span) for _ in range(300)], "ns")
    loads = np.array([rng.choice([0.0, 1.0, 1e-3, 1e100, rng.random()]) for _ in range(300)])
    mantissas, exponents = decay.locate(times, NEW_YEAR)
    beside = int(exponents.max())
    true = [wide_value(m, e, beside) for m, e in zip(mantissas, exponents, strict=True)]
    for own in (None, loads):
        expected = true if own is None else [t * Fraction(w) for t, w in zip(true, own, strict=True)]
        largest = max(expected)
        tolerance = Fraction(TOLERANCE.get(text, 3e-14))
        for found, wanted in zip(weighed(decay, NEW_YEAR, times, own, beside), expected, strict=True):
            assert abs(found - wanted) <= tolerance * wanted + largest / 2**100


@pytest.mark.parametrize("text", ["exp(half_life=1s)", "poly(1000)", "superexp(half_life=1s) at 20000s", "landmark"])
def test_newest_rows_without_weight_of_their_own_leave_the_old_ones_as_they_are(text: str) -> None:
    decay = parse(text)
    assert isinstance(decay, Forward)
    times = Ticks([10, 11, 20_000], "s")
    for newest in (0.0, 1e-320, 1e-100):
        own = np.array([3.0, 1.0, newest])
        mantissas, exponents = decay.locate(times, 0)
        beside = int(exponents[1])
        old = [wide_value(m * w, e, beside) for m, e, w in zip(mantissas[:2], exponents, own, strict=False)]
        if newest == 0:
            assert [float(w) for w in weighed(decay, 0, times, own, beside)] == [*map(float, old), 0.0]
            moments = Moments(decay, landmark=0).update([1.0, 5.0, 7.0], times, own)
            assert moments.mean() == pytest.approx(float((old[0] + 5 * old[1]) / (old[0] + old[1])), rel=1e-12)
    assert [float(w) for w in weighed(decay, 0, times, np.zeros(3))] == [0, 0, 0]


def test_chunks_have_powers_of_two_of_their_own() -> None:
    decay = parse("exp(half_life=1s)")
    assert isinstance(decay, Forward)
    size = CHUNK + 10
    old = np.full(CHUNK, NEW_YEAR)  # so old that beside the last ones it is nothing
    times = Ticks(np.concatenate([old, np.full(10, NEW_YEAR + DAY)]), "ns")
    chunks = [(rows, float(w[0]), e) for rows, w, e in weigh(decay, None, size, times, times.span())]
    assert [rows for rows, _, _ in chunks] == [slice(0, CHUNK), slice(CHUNK, size)]
    assert chunks[1][2] - chunks[0][2] == 86400
    assert list(weigh(decay, None, 0, Ticks([], "ns"), (0, 0))) == []


# --- windows ---------------------------------------------------------------------------------------------------

LENGTHS = [1, 999, SECOND, 300 * SECOND, 26 * DAY, 104 * DAY + 1, 365 * DAY, 3650 * DAY + 7, 2**62]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("now", [0, NEW_YEAR, NEW_YEAR + 123_456_789])
def test_a_window_holds_ages_under_its_length_to_the_nanosecond(length: int, now: int) -> None:
    window = SlidingWindow(Nanoseconds(length))
    ages = [age for age in (0, 1, length - 2, length - 1, length, length + 1, length + 2) if age >= 0]
    inside = [float(age < length) for age in ages]
    times = Ticks([now - age for age in ages], "ns")
    assert window.weight(times, Nanoseconds(now)).tolist() == inside
    fixed = Pinned(window, now)
    assert fixed.weight(times).tolist() == inside
    assert fixed.locate(times, None)[0].tolist() == inside
    assert [float(w) for w in weighed(fixed, None, times)] == inside
    for age, weight in zip(ages, inside, strict=True):
        alone = Ticks([now - age], "ns")
        assert window.weight(alone, Nanoseconds(now)).tolist() == [weight]
        frame = fixed.frame(now - age, None)
        assert fixed.point(frame.age(now - age))[0] == weight
        assert Moments(fixed).update([5.0], alone).count() == weight


@checked
@given(st.integers(1, 2**62), st.integers(-(2**62), 2**62), st.lists(st.integers(0, 2**62), min_size=1, max_size=5))
def test_a_window_is_exact_anywhere(length: int, now: int, ages: list[int]) -> None:
    column = [now - age for age in ages if now - age > -(2**63)]
    if column and abs(now - length) < 2**63 - 2**62:
        found = SlidingWindow(Nanoseconds(length)).weight(Ticks(column, "ns"), Nanoseconds(now))
        assert found.tolist() == [float(now - time < length) for time in column]


def test_float_ages_are_judged_to_half_a_nanosecond() -> None:
    window = SlidingWindow(300)
    sloppy = np.array([299_999_999_999, 300_000_000_000]) * 1e-9  # the second is above 300
    assert window.of_age(sloppy).tolist() == [1, 0]
    assert window.of_age(np.array([np.nextafter(300, 0), 299.9999999999])).tolist() == [0, 0]
    assert window.of_age(np.array([299.999999999, 0.0])).tolist() == [1, 1]


# --- a fixed time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*BACKWARD, "none", "exp(half_life=5m)"])
def test_a_pinned_decay_weighs_like_the_backward_one(text: str) -> None:
    decay = parse(text)
    assert isinstance(decay, Backward)
    now = NEW_YEAR + 5
    fixed = Pinned(decay, now)
    rng = random.Random(text)
    times = Ticks([now - rng.randrange(10 ** rng.randrange(1, 15)) for _ in range(50)] + [now], "ns")
    expected = Backward.weight(decay, times, Nanoseconds(now))
    assert np.allclose(fixed.weight(times), expected, rtol=1e-12, atol=1e-307)
    assert np.allclose([float(w) for w in weighed(fixed, None, times)], expected, rtol=1e-12, atol=1e-307)
    assert fixed.at(now, None) == (1.0, 0)
    assert parse(str(fixed)) == fixed


def test_a_pinned_decay_is_asked_at_its_time_alone() -> None:
    fixed = pinned("backward poly(2)", now=100)
    assert fixed == Pinned(BackwardPoly(2), 100 * SECOND)
    assert fixed.weight([99.0], now=100).tolist() == [0.25]
    for other in (99.5, 101):
        with pytest.raises(QueryInPast, match=rf"was fixed for 100, and now={other} is another time; pin it anew"):
            fixed.weight([99.0], now=other)
    with pytest.raises(QueryInPast, match=r"an item of 101 is newer"):
        fixed.weight([101.0])
    assert pinned("poly(2)", now=5) == Poly(2)
    with pytest.raises(BadDecay, match=r"poly\(2\) is forward, and needs no fixed time"):
        Pinned(Poly(2), 5)
    with pytest.raises(BadDecay, match="needs no fixed time"):
        Pinned(fixed, 5)


@pytest.mark.parametrize("text", ["window(365d)", "window(5m)", "subpoly"])
def test_an_item_a_nanosecond_newer_than_the_fixed_time_is_refused(text: str) -> None:
    fixed = pinned(text, now=Nanoseconds(NEW_YEAR))
    assert isinstance(fixed, Pinned)
    for times in (Ticks([NEW_YEAR + 1], "ns"), Ticks([NEW_YEAR - DAY, NEW_YEAR + 1], "ns")):
        with pytest.raises(QueryInPast, match=r"00:00:00.000000001Z is newer than the fixed time.*pin it later"):
            fixed.locate(times, None)
        with pytest.raises(QueryInPast, match="newer than the fixed time"):
            weighed(fixed, None, times)
        with pytest.raises(QueryInPast, match="newer than the fixed time"):
            Moments(fixed).update([1.0] * len(times), times)
    with pytest.raises(QueryInPast, match="newer than the fixed time"):
        fixed.point(fixed.frame(NEW_YEAR, None).age(NEW_YEAR + 100))


def test_what_underflows_as_a_double_keeps_its_size_when_pinned() -> None:
    for text in ("superexp(half_life=1s)", "exp(half_life=1s)", "backward poly(1000)"):
        fixed = Pinned(parse(text), NEW_YEAR)
        times = Ticks([NEW_YEAR - age * SECOND for age in (3000, 2000)], "ns")
        mantissas, exponents = fixed.locate(times, None)
        assert (mantissas >= 1).all()
        assert exponents[0] < exponents[1] < -1100


# --- values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*EVERY, "window(5m) at 1h", "exp(half_life=5m) at 3s"])
def test_decays_are_frozen_comparable_and_pickle(text: str) -> None:
    decay = parse(text)
    assert decay == parse(text)
    assert hash(decay) == hash(parse(text))
    assert len({decay, *(parse(other) for other in EVERY)}) == len(EVERY) + (text not in EVERY)
    _ = (
        decay.weight(5, now=3600 if " at 1h" in text else 3 if " at 3s" in text else 6, landmark=1)
        if " at 3s" not in text
        else 0
    )
    again = pickle.loads(pickle.dumps(decay))
    assert again == decay
    assert str(again) == text
    with pytest.raises(AttributeError):
        decay.anything = 1  # type: ignore[attr-defined]


def test_constructors_take_lengths_of_time_like_every_other_place() -> None:
    assert Exponential(300) == Exponential("5m") == Exponential(half_life=Nanoseconds(300 * SECOND))
    assert Exponential(half_life=np.timedelta64(5, "m")) == parse("exp(half_life=300)")
    assert SlidingWindow(0.5) == parse("window(500ms)")
    assert BackwardPoly(2, "1h") == parse("backward poly(2, unit=3600)")
    assert SubPoly(unit=60) == parse("subpoly(unit=1m)")
    assert SuperExponential("5m") == parse("superexp(half_life=5m)")
    assert Polynomial([np.float32(1), 2], unit="1d") == parse("polynomial(1, 2, unit=1d)")
    assert str(Poly(np.float64(2.5))) == "poly(2.5)"
    assert type(Poly(2).beta) is float
    assert repr(SlidingWindow(1)) == "SlidingWindow(length=1000000000)"
    assert (NoDecay(), Landmark()) == (parse("none"), parse("landmark"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Exponential(), "takes a half_life or a rate, got neither; write exp"),
        (lambda: Exponential(5, 6), "got half_life=5 and rate=6"),
        (lambda: SuperExponential(), "superexp takes a half_life or a rate, got neither"),
        (lambda: Exponential("-5m"), r"half_life must be a positive duration, got '-5m'; write exp\(half_life=5m\)"),
        (lambda: Exponential(0), "positive duration, got 0"),
        (lambda: Exponential("5 parsecs"), "got '5 parsecs'"),
        (lambda: Exponential(rate=0), r"rate must be a positive number, got 0; write exp\(rate=0.1\)"),
        (lambda: Exponential(rate="fast"), "got 'fast'"),
        (lambda: Exponential(rate=math.nan), "got nan"),
        (lambda: Exponential(rate=1e9), "half-life of 1 ns.*got 1000000000.0"),
        (lambda: Exponential(rate=1e-300), "1e-200"),
        (lambda: SuperExponential(rate=-1), "got -1"),
        (lambda: Poly(0), "the exponent of poly must be a positive number, got 0"),
        (lambda: Poly(1001), "at most 1000, got 1001"),
        (lambda: Poly(math.inf), "got inf"),
        (lambda: Poly("2"), "got '2'"),
        (lambda: Poly(True), "got True"),
        (lambda: Polynomial(()), "needs a coefficient above 0"),
        (lambda: Polynomial((0, 0)), "needs a coefficient above 0"),
        (lambda: Polynomial((1, -2)), "0 or more, got -2.0"),
        (lambda: Polynomial((1, math.nan)), "got nan"),
        (lambda: Polynomial((1,) * 1002), "powers up to 1000"),
        (lambda: Polynomial(5), "must be numbers, got 5"),
        (lambda: Polynomial((1, 2), unit=0), "unit must be a positive duration"),
        (lambda: BackwardPoly(-1), "got -1; write backward poly"),
        (lambda: BackwardPoly(1, unit="x"), "unit"),
        (lambda: SlidingWindow(0), r"length must be a positive duration, got 0; write window\(5m\)"),
        (lambda: SlidingWindow(None), "length"),
        (lambda: SubPoly(-1), "unit must be a positive duration, got -1"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_with_a_remedy(make: Callable[[], Decay], said: str) -> None:
    with pytest.raises(BadDecay, match=said):
        make()


def test_a_bad_column_is_the_callers_mistake() -> None:
    with pytest.raises(BadInput):
        parse("poly(2)").weight(np.zeros((2, 2)), now=5, landmark=0)
    with pytest.raises(BadTime, match="now must be"):
        parse("poly(2)").weight(5, now="soon", landmark=0)
    with pytest.raises(BadTime, match="landmark must be"):
        parse("poly(2)").weight(5, now=6, landmark="first")


def test_weights_of_one_frame_are_monotone_where_the_formula_is() -> None:
    ages = np.linspace(0, 1000, 5000)
    for text in FORWARDS:
        decay = parse(text)
        assert isinstance(decay, Forward)
        logs = [math.log2(m) + e for m, e in zip(*decay.wide(ages[1:]), strict=True)]
        assert all(b >= a - 1e-9 for a, b in pairwise(logs))


@pytest.mark.parametrize(
    ("text", "halvings"),
    [
        ("superexp(half_life=1m)", lambda a: (a / 60) ** 2),
        ("superexp(rate=0.5)", lambda a: Decimal("0.5") * a * a / Decimal(2).ln()),
        ("exp(half_life=7ms)", lambda a: a * 1000 / 7),
        ("backward user('a log of many digits')", lambda a: Decimal(float(a) ** 2) / Decimal(2).ln()),
    ],
)
def test_what_is_far_under_a_double_keeps_its_digits(text: str, halvings: Callable[[Decimal], Decimal]) -> None:
    """A day is two million halvings here: a double has but ten digits after the point of such a logarithm."""
    backward(lambda a: -a * a, name="a log of many digits", log=True)
    ages = [Decimal(age) for age in ("86399.123456789", "86400", "3600.000000001", "0.25", "0", "700000.5")]
    mantissas, exponents = parse(text).wide_of_age(np.array([float(age) for age in ages]))
    with localcontext() as context:
        context.prec = 60
        for mantissa, exponent, age in zip(mantissas.tolist(), exponents.tolist(), ages, strict=True):
            exact = Decimal(2) ** (-halvings(age) - exponent)
            assert abs(Decimal(mantissa) / exact - 1) < Decimal("1e-14"), age
