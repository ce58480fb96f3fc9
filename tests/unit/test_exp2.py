"""Powers of two: against decimal arithmetic, at the edges, and the compiled against the plain body."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from wane._jit import kernel
from wane.decay import exp2 as module
from wane.decay.exp2 import exp2, raise_two, raise_two_ticks

Floats = NDArray[np.float64]
ULP = 2.0**-52


def raised(x: Floats) -> Floats:
    out = np.empty(len(x))
    raise_two(x, 1.0, 0.0, out)
    return out


def worst_error(x: Floats, found: Floats) -> float:
    """The largest error in units in the last place of the true power."""
    worst = 0.0
    with localcontext() as context:
        context.prec = 40
        ln2 = Decimal(2).ln()
        for argument, power in zip(x.tolist(), found.tolist(), strict=True):
            true = (Decimal(argument) * ln2).exp()
            unit = Decimal(math.ulp(float(true)))
            worst = max(worst, float(abs(Decimal(power) - true) / unit))
    return worst


def dense(size: int) -> Floats:
    """Arguments of every size, many about the halves, where the nearest int changes."""
    rng = np.random.default_rng(7)
    near_half = rng.integers(-60, 60, size // 4) + 0.5 + rng.normal(0, 1e-9, size // 4)
    tiny = rng.normal(0, 1, size // 8) * 10.0 ** rng.uniform(-300, -1, size // 8)
    spread = [(-1, 1, size // 4), (-70, 2, size // 4), (-1021, 1023, size // 8)]
    return np.concatenate([*(rng.uniform(lo, hi, n) for lo, hi, n in spread), near_half, tiny])


def test_it_is_right_to_one_and_a_half_units_in_the_last_place() -> None:
    x = dense(6000)
    assert worst_error(x, raised(x)) < 1.5
    x = x[::4]
    assert worst_error(x, np.array([exp2(argument) for argument in x])) < 1.5


def test_the_sample_would_show_a_missing_term(monkeypatch: pytest.MonkeyPatch) -> None:
    x = dense(400)
    monkeypatch.setattr(module, "_C", (*module._C[:13], 0.0))
    cut = np.array([exp2(argument) for argument in x])
    assert worst_error(x, cut) > 1.5


def test_whole_numbers_are_exact() -> None:
    x = np.arange(-1021.0, 1024.0)
    assert raised(x).tolist() == [math.ldexp(1.0, int(n)) for n in x]
    assert raised(np.array([-0.0])).tolist() == [1.0]


def test_the_edges_of_the_range() -> None:
    top = np.array([1022.5, 1023.0, 1023.4, np.nextafter(1023.5, 0), 1023.9])
    assert worst_error(top, raised(top)) < 1.5
    lowest = np.array([-1020.5, -1020.75, -1021.0])
    assert worst_error(lowest, raised(lowest)) < 1.5


def test_below_the_range_it_is_0_and_never_garbage() -> None:
    below = [
        -1021.25,
        -1021.5,
        -1022.0,
        -1022.5,
        -1074.0,
        -1075.0,
        -2000.0,
        -1e6,
        -(2.0**51),
        -(2.0**53),
        -1e18,
        -1e300,
    ]
    x = np.array([*below, -math.inf, np.nextafter(-1021, -2000)])
    assert raised(x).tolist() == [0.0] * len(x)
    rng = random.Random(3)
    x = np.array([-(10 ** rng.uniform(3.1, 308)) for _ in range(2000)])
    assert set(raised(x).tolist()) == {0.0}
    assert exp2(-1021.5) == 0.0


def test_it_never_falls_by_more_than_rounding() -> None:
    x = np.sort(dense(4000))
    powers = raised(x)
    assert (powers[1:] >= powers[:-1] * (1 - 2 * ULP)).all()


def test_the_plain_body_gives_the_same_to_rounding() -> None:
    x = dense(2000)
    compiled = raised(x)
    plain = np.array([exp2(argument) for argument in x])
    assert (np.abs(compiled - plain) <= ULP * plain).all()


def test_without_fused_instructions_the_plain_body_gives_the_same_bits() -> None:
    x = dense(2000)
    out = np.empty(len(x))
    _unfused(x, out)
    assert out.tolist() == [exp2(argument) for argument in x]


@kernel("void(r_f8, w_f8)", fuse=False)
def _unfused(x: Floats, out: Floats) -> None:
    for i in range(x.shape[0]):
        out[i] = exp2(x[i])


def test_scale_lag_and_work_in_place() -> None:
    ages = np.array([0.0, 1.5, -3.25, 10.0])
    expected = [2.0 ** (age * 0.5 - 0.25) for age in ages]
    out = np.empty(4)
    raise_two(ages, 0.5, 0.25, out)
    assert np.allclose(out, expected, rtol=1e-15, atol=0)
    raise_two(ages, 0.5, 0.25, ages)
    assert ages.tolist() == out.tolist()


def test_ticks_are_subtracted_as_integers() -> None:
    base = 1_767_225_600 * 10**9
    values = np.array([base, base - 1, base + 300 * 10**9, base - 10**18])
    out = np.empty(4)
    raise_two_ticks(values, base, 1 / (300 * 10**9), 0.0, out)
    assert out[0] == 1.0
    assert 0 < 1 - out[1] < 1e-11  # one nanosecond of 1.7e18
    assert math.isclose(out[2], 2.0, rel_tol=1e-15)
    assert out[3] == 0.0
    raise_two_ticks(values[:1], base, 1.0, 0.5, out[:1])
    assert math.isclose(out[0], math.sqrt(0.5), rel_tol=1e-15)


def test_no_rows() -> None:
    assert len(raised(np.empty(0))) == 0
