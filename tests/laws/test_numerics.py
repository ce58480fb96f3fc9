"""Where doubles usually fail: a million half-lives, a million steps, nanoseconds in 2026, large offsets, underflow."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from wane import Extrema, Moments
from wane._jit import DISABLED
from wane.decay import parse
from wane.testing import ORACLES, START, Stream, rows
from wane.times import SECOND, Nanoseconds, Ticks

YEAR = 365 * 86400
MILLION_HALF_LIVES = 300_000_000


def stream(values: Any, seconds: Any, weights: Any = None) -> Stream:
    offsets = np.rint(np.asarray(seconds, np.float64) * SECOND).astype(np.int64)
    return Stream(np.asarray(values, np.float64), Ticks(START + offsets, "ns"), weights)


def fed(kind: Callable[..., Any], decay: str, given: Stream, landmark: Any = None) -> Any:
    return kind(decay, landmark).update(given.items, given.times, given.weights)


def off(question: str, answer: float, given: Stream, decay: str, now: int, landmark: int | None = None) -> float:
    """The error of an answer, relative to the exact value itself."""
    exact = ORACLES[question](rows(given, parse(decay), now, landmark)).value  # type: ignore[union-attr]
    return float(abs(Decimal(answer) - exact) / abs(exact))


@pytest.mark.parametrize("decay", ["exp(half_life=5m)", "exp(rate=0.0023)", "exp(half_life=1ms)"])
@pytest.mark.parametrize("order", ["in order", "reversed", "shuffled"])
def test_a_million_half_lives_lose_no_digit(decay: str, order: str) -> None:
    rng = np.random.default_rng(7)
    size = 200 if DISABLED else 2000
    # half of the items lie anywhere in the span, half where they still count
    seconds = np.concatenate(
        [rng.uniform(0, MILLION_HALF_LIVES, size), MILLION_HALF_LIVES - rng.exponential(600, size)]
    )
    given = stream(rng.uniform(1, 2, 2 * size), np.sort(seconds))
    if order != "in order":
        given = given.take(np.arange(2 * size)[::-1] if order == "reversed" else rng.permutation(2 * size))
    newest = given.newest
    assert newest is not None
    m = fed(Moments, decay, given)
    for question, answer in (
        ("count", m.count(now=newest)),
        ("sum", m.sum(now=newest)),
        ("mean", m.mean()),
        ("var", m.var() if "1ms" not in decay else None),  # only the newest item is left
    ):
        if answer is not None:
            assert off(question, answer, given, decay, newest) < 1e-12


@pytest.mark.parametrize("steps", [20_000 if not DISABLED else 2_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("decay", ["none", "exp(half_life=5m)", "exp(half_life=1y)", "poly(2)", "polynomial(1, 0, 2)"])
def test_step_by_step_stays_right(decay: str, steps: int) -> None:
    decay = decay.replace("1y", "365d")
    landmark = START if parse(decay).needs_landmark else None
    m = Moments(decay, landmark, sums={"energy": "v ** 2"})
    plain = Moments(decay, landmark)
    rng = np.random.default_rng(3)
    values = (0.1 + 0.001 * rng.standard_normal(steps)).tolist()
    at = START // SECOND
    for i, value in enumerate(values, 1):
        plain.update(value, at + i)
    for i in range(0, steps, 50):
        m.update(values[i : i + 50], np.arange(at + i + 1, at + 1 + min(i + 50, steps)))
    given = stream(values, np.arange(1, steps + 1))
    now = Nanoseconds((at + steps) * SECOND)
    counted = rows(given, parse(decay), now, landmark)
    for one in (plain, m):
        for question, answer in (
            ("count", one.count(now=now)),
            ("sum", one.sum(now=now)),
            ("mean", one.mean()),
            ("var", one.var()),
        ):
            assert ORACLES[question](counted).accepts(answer, 1e-12), question
    assert ORACLES["total"](counted, lambda v: v * v).accepts(m.total("energy", now=now), 1e-12)


def test_a_state_left_alone_for_a_year_still_knows_its_ratios() -> None:
    given = stream([1.0, 2.0, 6.0], [0, 300, 600])
    m = fed(Moments, "exp(half_life=1s)", given)
    later = Nanoseconds(START + (600 + YEAR) * SECOND)
    assert m.count(now=later) == 0.0
    assert m.sum(now=later) == 0.0
    assert m.mean() == pytest.approx(6.0, rel=1e-12)
    e = fed(Extrema, "exp(half_life=1s)", given)
    assert e.max(now=later) == 0.0
    assert e.argmax() == (6.0, START + 600 * SECOND)
    back = Moments.from_bytes(m.to_bytes())
    back.update([3.0], [later])
    assert back.mean() == 3.0


def test_nanoseconds_of_2026_keep_their_order() -> None:
    at = START + 12_345_678_901_234_567
    for decay in ("none", "exp(half_life=5m)", "poly(2)", "landmark"):
        e = Extrema(decay, START)
        e.update([5.0, 5.0, 5.0], Ticks(np.array([at, at + 1, at - 1]), "ns"))
        assert e.argmax() == (5.0, at + 1)
        for i in (1, -1, 0):
            e.update(5.0, Nanoseconds(at + 100 + i))
        assert e.argmax() == (5.0, at + 101)


def test_one_nanosecond_weighs_what_it_should() -> None:
    """Half-lives of a microsecond: items 1 ns apart differ in weight, and ties do not."""
    at = START + 123_456_789
    given = Stream(np.array([1.0, 0.0, 1.0]), Ticks(np.array([at, at + 1, at]), "ns"))
    m = fed(Moments, "exp(half_life=1us)", given)
    assert m.count(now=Nanoseconds(at + 1)) == pytest.approx(1 + 2 * 2 ** (-1 / 1000), rel=1e-14)
    assert m.mean() == pytest.approx(2 * 2 ** (-1 / 1000) / (1 + 2 * 2 ** (-1 / 1000)), rel=1e-14)


@pytest.mark.parametrize("decay", ["none", "exp(half_life=5m)", "poly(2)"])
@pytest.mark.parametrize("way", ["at once", "in batches", "one at a time", "merged"])
def test_variance_beside_a_large_offset(decay: str, way: str) -> None:
    rng = np.random.default_rng(11)
    size = 300 if DISABLED else 3000
    given = stream(1e9 + rng.standard_normal(size), rng.uniform(1, 3600, size))
    landmark = START if decay == "poly(2)" else None
    one = Moments(decay, landmark)
    cuts = {"at once": 1, "in batches": 37, "one at a time": size, "merged": 37}[way]
    for part in np.array_split(np.arange(size), cuts):
        piece = given.take(part)
        if way == "one at a time":
            one.update(float(piece.items[0]), Nanoseconds(piece.newest or 0))
        elif way == "merged":
            one.merge(fed(Moments, decay, piece, landmark))
        else:
            one.update(piece.items, piece.times)
    now = given.newest
    assert now is not None
    assert off("var", one.var(), given, decay, now, landmark) < 1e-7


def test_an_old_product_that_underflows_does_not_win() -> None:
    """Over a million half-lives 0 would beat every negative value, and every positive one lose to it."""
    old = [1e100, -1e100]
    for newest, least, most in ((-3.0, (-3.0, 1), (1e100, 0)), (3.0, (-1e100, 0), (3.0, 1))):
        given = stream([*old, newest], [0, 0, MILLION_HALF_LIVES])
        e = fed(Extrema, "exp(half_life=5m)", given)
        for extreme, (value, late) in ((e.argmin(), least), (e.argmax(), most)):
            assert extreme == (value, START + late * MILLION_HALF_LIVES * SECOND)
    negatives = fed(Extrema, "exp(half_life=5m)", stream([-1.0, -2.0, -3.0], [0, 300, MILLION_HALF_LIVES]))
    assert negatives.argmax() == (-1.0, START)  # of negative values the most faded is the largest
    assert negatives.argmin() == (-3.0, START + MILLION_HALF_LIVES * SECOND)
    assert negatives.min(now="latest") == -3.0
    assert negatives.max(now="latest") == 0.0


def test_a_tiny_new_value_beats_a_huge_faded_one() -> None:
    """Weights in bulk have a floor; the product of a huge value and the floor is no product."""
    e = fed(Extrema, "exp(half_life=5m)", stream([1e120, 1e-200], [0, MILLION_HALF_LIVES]))
    assert e.argmax() == (1e-200, START + MILLION_HALF_LIVES * SECOND)


def test_a_huge_faded_value_beats_a_tiny_new_one() -> None:
    """A weight of 2**-1030 is 0 among those in bulk, and yet 1e120 times it is more than 1e-200."""
    for side in (1, -1):
        e = fed(Extrema, "exp(half_life=5m)", stream([side * 1e120, side * 1e-200], [0, 1030 * 300]))
        assert (e.argmax() if side > 0 else e.argmin()) == (side * 1e120, START)


def test_what_counts_may_be_old() -> None:
    """The newest row may weigh nothing, or next to nothing; then an older one decides."""
    m = Moments("exp(half_life=5m)")
    times = Ticks(START + np.array([0, MILLION_HALF_LIVES - 10**6, MILLION_HALF_LIVES]) * SECOND, "ns")
    m.update([1.0, 2.0, 3.0], times, [1.0, 1.0, 0.0])
    assert m.mean() == 2.0
    assert m.count(now="latest") == 0.0
    m = Moments("exp(half_life=5m)").update([1.0, 2.0], times.take(np.array([True, False, True])), [1e100, 1e-300])
    assert m.mean() == 2.0
    assert m.count(now="latest") == pytest.approx(1e-300, rel=1e-12)


@pytest.mark.parametrize("decay", ["poly(1000)", "poly(300)", "polynomial(0, 0, 0, 1e300)"])
def test_steep_decay_one_at_a_time(decay: str) -> None:
    """The weight of one item may be far outside a double."""
    values, times = [1e100, 2e100, 3e100, -1e100], [1.5, 1.75, 1.999, 1.999]
    at_once = Moments(decay, 0).update(values, times)
    one = Moments(decay, 0)
    for value, time in zip(values, times, strict=True):
        one.update(value, time)
    for question in ("count", "sum"):
        assert getattr(one, question)(now=2.5) == pytest.approx(getattr(at_once, question)(now=2.5), rel=1e-12)
    assert one.mean() == pytest.approx(at_once.mean(), rel=1e-12)
    assert one.var() == pytest.approx(at_once.var(), rel=1e-12)
