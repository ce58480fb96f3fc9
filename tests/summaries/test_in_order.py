"""Exponential histograms and waves: right to epsilon in every window, under every decay, against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exact_windows import LANDMARK, START, arrivals, asked_at, column, draw

import wane
from wane import ExponentialHistogram, Wave
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter, QueryInPast, Unsupported
from wane.times import Nanoseconds

SEEDS = range(6) if DISABLED else range(20)
SIZE = 800 if DISABLED else 4000
ROUNDING = 1e-9

both = pytest.mark.parametrize("make", [ExponentialHistogram, Wave])


def judge(seed: int, make: Any) -> None:
    rng = np.random.default_rng([seed, 77])
    epsilon = float(rng.choice([0.3, 0.1, 0.02]))
    times = arrivals(seed, "in order", SIZE)
    values = rng.normal(20, 30, SIZE) if seed % 2 else rng.pareto(1.2, SIZE)
    loads = rng.pareto(1, SIZE) if make is ExponentialHistogram and seed % 4 == 1 else None
    one = make(epsilon)
    for part in np.array_split(np.arange(SIZE), int(rng.integers(1, 9))):
        one.update(values[part], column(times[part]), None if loads is None else loads[part])
    own = np.ones(SIZE) if loads is None else loads
    for _ in range(12):
        now = asked_at(rng, times)
        asked = draw(rng, now)
        weights = own * asked.weights(now - times)
        asking = {"decay": asked.decay, "landmark": LANDMARK, "now": now}
        right = weights.sum()
        found = one.count(**asking)
        assert abs(found - right) <= (epsilon + ROUNDING) * right, asked
        low, high = one.interval(**asking)
        edges = now - rng.choice(times, 30) + rng.integers(0, 2, 30)
        for length in edges[edges > 0].tolist():
            inside = own[now - times < length].sum()
            assert abs(one.count(window=length, now=now) - inside) <= (epsilon + ROUNDING) * inside, length
        assert low * (1 - ROUNDING) <= right <= high * (1 + ROUNDING), asked
        assert low <= found <= high
        if make is ExponentialHistogram:
            scale = (weights * abs(values)).sum()
            assert abs(one.sum(**asking) - weights @ values) <= (epsilon + ROUNDING) * scale, asked


@both
def test_every_window_and_every_decay_to_epsilon(make: Any) -> None:
    for seed in SEEDS:
        judge(seed, make)


@pytest.mark.slow
@both
def test_every_window_and_every_decay_to_epsilon_at_length(make: Any) -> None:
    for seed in range(1000, 1200):
        judge(seed, make)


@both
@pytest.mark.parametrize("parts", [2, 5])
def test_a_merged_one_is_right_to_its_error(make: Any, parts: int) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng([seed, parts])
        times = arrivals(seed, "in order", SIZE)
        hands = rng.integers(0, parts, SIZE)
        one = make(0.1)
        assert one.error == pytest.approx(0.1)
        for hand in range(parts):
            mine = times[hands == hand]
            one.merge(make(0.1).update(np.ones(len(mine)), column(mine)))
        assert 0.1 < one.error < 1.1**parts
        again = wane.from_bytes(one.to_bytes())
        assert again.error == one.error  # type: ignore[attr-defined]
        for _ in range(8):
            now = asked_at(rng, times)
            asked = draw(rng, now)
            right = asked.weights(now - times).sum()
            found = one.count(decay=asked.decay, landmark=LANDMARK, now=now)
            assert abs(found - right) <= (one.error + ROUNDING) * right, asked


@both
def test_states_of_single_instants_merge_exactly(make: Any) -> None:
    a, b = (make(0.1).update([1.0, 1.0], times) for times in ([10, 30], [20, 40]))
    assert a.merge(b).error == pytest.approx(0.1)
    assert [a.count(window=w, now=41) for w in (1, 2, 12, 22, 32)] == [0, 1, 2, 3, 4]


@both
def test_space_is_logarithmic(make: Any) -> None:
    size = 20_000
    times = np.arange(size)
    sizes = []
    for epsilon in (0.1, 0.05, 0.025):
        one = make(epsilon).update(np.ones(size), column(START + times))
        sizes.append(one.kept if make is Wave else one.buckets / 2)
        assert sizes[-1] <= (np.log2(size) + 2) * (1 / epsilon + 2)
    assert 1.3 < sizes[1] / sizes[0] < 2.1
    assert 1.3 < sizes[2] / sizes[1] < 2.1


def test_a_wave_keeps_a_few_times_of_each_level() -> None:
    wave = Wave(0.25).update(np.ones(100), times=np.arange(100.0))
    assert wave.kept == 1 + sum(min((100 + (1 << level)) >> (level + 1), 4) for level in range(7))


@both
def test_an_item_out_of_order_has_a_policy(make: Any) -> None:
    one = make(0.1).update([1.0, 1.0], times=[10, 20])
    for times in ([30, 25], [19]):
        with pytest.raises(BadInput, match=r"older than one before them.*RangeSketch"):
            one.update([1.0] * len(times), times=times)
        assert one.rows == 2
    with pytest.raises(BadInput, match="1 of 1 items are older"):
        one.update(1.0, 19)
    dropping = make(0.1, late="drop").update([1.0] * 4, times=[10, 20, 15, 20]).update(1.0, 12).update(1.0, 21)
    assert (dropping.rows, dropping.dropped) == (4, {"late": 2})
    assert dropping.count(now=21) == 4
    with pytest.raises(BadParameter, match="late must be one of error, drop, got 'maybe'"):
        make(late="maybe")


@both
def test_what_waits_comes_before_a_column(make: Any) -> None:
    one = make(0.1).update(1.0, 10).update(1.0, 12)
    one.update([1.0], times=[12]).update([1.0], times=[14])
    with pytest.raises(BadInput, match="older"):
        one.update([1.0], times=[13])
    assert [one.count(window=w, now=14) for w in (1, 3, 5)] == [1, 3, 4]


@both
def test_a_window_holds_ages_under_its_length(make: Any) -> None:
    at = START * 10**9 + 123_456_789
    one = make(0.1)
    for i in range(4):
        one.update(1.0, Nanoseconds(at + i))
    now = Nanoseconds(at + 3)
    assert [one.count(window=Nanoseconds(w), now=now) for w in (1, 2, 3, 4)] == [1, 2, 3, 4]


@both
def test_questions_are_checked(make: Any) -> None:
    one = make(0.1, "exp(half_life=10)").update([1.0, 1.0], times=[10, 20])
    with pytest.raises(QueryInPast, match=r"before the newest item.*cannot be taken out again"):
        one.count(now=19)
    with pytest.raises(QueryInPast, match="depends on when it is asked"):
        one.count()
    with pytest.raises(BadParameter, match="a decay or a window, got decay='none' and window='1m'"):
        one.count(decay="none", window="1m", now=20)
    with pytest.raises(BadParameter, match="add landmark= to the question"):
        one.count(decay="poly(2)", now=20)
    assert one.count(now="latest") == 1.5
    assert one.count(decay="none") == 2
    assert one.count(decay="poly(1)", landmark=0, now=20) == 1.5
    assert one.count(decay="poly(1)", landmark=15, now=20) == 1  # what is before a landmark weighs nothing
    assert one.count(decay="window(5s) at 22s") == 1


def test_a_wave_has_no_weights() -> None:
    with pytest.raises(Unsupported, match="use ExponentialHistogram"):
        Wave().update([1.0], [1], [2.0])
