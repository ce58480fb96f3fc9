"""Range sketches: right to epsilon in every window and under every decay, in any order of arrival, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exact_windows import LANDMARK, ORDERS, START, arrivals, asked_at, column, draw
from numpy.typing import NDArray

import wane
from wane import RangeSketch
from wane._jit import DISABLED
from wane.errors import BadParameter, CorruptState, Unsupported
from wane.summaries._ranges import heights

SEEDS = range(5) if DISABLED else range(20)
SIZE = 1200 if DISABLED else 8000
ROUNDING = 1e-9


def of_values(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Values: skewed ids, or continuous, or those that follow the time."""
    kind = rng.integers(3)
    if kind == 0:
        return np.minimum(rng.zipf(1.5, size), 2**31).astype(np.float64)
    return rng.uniform(0, 1000, size) if kind == 1 else np.arange(size) % 500 + rng.integers(0, 3, size).astype(float)


def fed(rng: np.random.Generator, times: Any, items: Any, **parameters: Any) -> RangeSketch:
    one = RangeSketch(**parameters)
    for part in np.array_split(np.arange(len(times)), int(rng.integers(1, 12))):
        one.update(items[part], column(times[part]))
    return one


def holds_its_shape(one: RangeSketch) -> None:
    """What the structures promise: a hard limit of ranges, limits of counts, a full range above each."""
    one._settle()
    assert max(one.ranges) <= 9 * one._top / one.epsilon
    for ranges in one._ranges:
        keys, counts = ranges.listed()
        levels = heights(keys)
        by_key = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        for key, level, count in zip(keys.tolist(), levels.tolist(), counts.tolist(), strict=True):
            assert count <= one._factor * ranges.limit or level == 0
            if ranges.limit and level < one._top:
                above = (2 * (key >> (level + 2)) + 1) << (level + 1)
                assert by_key[above] >= ranges.limit


def judge_counts(seed: int, order: str) -> None:
    rng = np.random.default_rng([seed, ORDERS.index(order)])
    epsilon = float(rng.choice([0.5, 0.3, 0.1]))
    times = arrivals(seed, order, SIZE)
    one = fed(rng, times, np.ones(SIZE), epsilon=epsilon, horizon="9h")
    holds_its_shape(one)
    now = asked_at(rng, times)
    lengths = now - rng.choice(times, 25) + rng.integers(0, 2, 25)
    for length in lengths[lengths > 0].tolist():
        right = int((now - times < length).sum())
        assert abs(one.count(window=length, now=now) - right) <= (epsilon + ROUNDING) * right
        low, high = one.interval(window=length, now=now)
        assert low - 1e-9 <= right <= high + 1e-9
        assert high - low <= 2 * (epsilon + ROUNDING) * right
    for _ in range(6):
        asked = draw(rng, now)
        right = asked.weights(now - times).sum()
        found = one.count(decay=asked.decay, landmark=LANDMARK, now=now)
        assert abs(found - right) <= (epsilon + ROUNDING) * right, asked


def judge_values(seed: int, order: str) -> None:
    rng = np.random.default_rng([seed, ORDERS.index(order), 5])
    epsilon = float(rng.choice([0.5, 0.3, 0.15]))
    times, values = arrivals(seed, order, SIZE), of_values(rng, SIZE)
    one = fed(rng, times, values, epsilon=epsilon, horizon="9h", values=(0, 2**32))
    if seed % 3 == 0:
        one = wane.from_bytes(one.to_bytes())  # type: ignore[assignment]
    now = asked_at(rng, times)
    for _ in range(6):
        asked = draw(rng, now)
        weights = asked.weights(now - times)
        asking = {"decay": asked.decay, "landmark": LANDMARK, "now": now}
        judge_question(one, values, weights, asking, epsilon, rng)


def judge_question(one: RangeSketch, values: Any, weights: Any, asking: Any, epsilon: float, rng: Any) -> None:
    total = weights.sum()
    slack = (epsilon + ROUNDING) * total
    if not total:
        return
    for value in rng.choice(values, 3).tolist():
        assert abs(one.rank(value, **asking) - weights[values <= value].sum()) <= slack, asking
        high = value + float(rng.integers(0, 50))
        inside = weights[(values >= value) & (values <= high)].sum()
        assert abs(one.count(values=(value, high), **asking) - inside) <= slack, asking
    for phi in (0.1, 0.5, 0.99):
        found = one.quantile(phi, **asking)
        assert weights[values < found].sum() - slack <= phi * total <= weights[values <= found].sum() + slack, asking
    every, which = np.unique(values, return_inverse=True)
    each = np.bincount(which, weights)
    hits = one.heavy(0.1, **asking)
    named = {hit.item for hit in hits}
    assert set(every[each >= 0.1 * total * (1 + ROUNDING)].tolist()) <= named, asking
    for hit in hits:
        true = each[every == hit.item].sum()
        assert true >= (0.1 - 3 * epsilon - ROUNDING) * total
        assert hit.weight - hit.error - ROUNDING * total <= true <= hit.weight + ROUNDING * total
        assert hit.error <= 2 * slack


@pytest.mark.parametrize("order", ORDERS)
def test_counts_in_every_window_and_under_every_decay(order: str) -> None:
    for seed in SEEDS:
        judge_counts(seed, order)


@pytest.mark.parametrize("order", ORDERS)
def test_values_in_every_window_and_under_every_decay(order: str) -> None:
    for seed in SEEDS[: len(SEEDS) // 2]:
        judge_values(seed, order)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_it_all_at_length(order: str) -> None:
    for seed in range(1000, 1200):
        judge_counts(seed, order)
        judge_values(seed, order)


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_a_merged_one_is_right_to_its_error(order: str, parts: int) -> None:
    for seed in SEEDS[: len(SEEDS) // 2]:
        rng = np.random.default_rng([seed, parts])
        times, values = arrivals(seed, order, SIZE), of_values(rng, SIZE)
        hands = rng.integers(0, parts, SIZE)
        for given in ({}, {"values": (0, 2**32)}):
            one = RangeSketch(0.2, horizon="9h", **given)
            for hand in range(parts):
                one.merge(fed(rng, times[hands == hand], values[hands == hand], epsilon=0.2, horizon="9h", **given))
            holds_its_shape(one)
            assert one.error == pytest.approx(0.2 * max(1, one._factor * (1 if given else 0.5)))
            assert 1 <= one._factor <= parts
            now = asked_at(rng, times)
            for _ in range(4):
                asked = draw(rng, now)
                weights = asked.weights(now - times)
                asking = {"decay": asked.decay, "landmark": LANDMARK, "now": now}
                assert abs(one.count(**asking) - weights.sum()) <= (one.error + ROUNDING) * weights.sum(), asked
                if given:
                    judge_question(one, values, weights, asking, one.error, rng)


def test_small_ones_merge_exactly() -> None:
    a, b = (RangeSketch(0.1, values=(0, 9)).update([1, 2], times) for times in ([30, 10], [40, 20]))
    assert a.merge(b).error == 0.1
    assert [a.count(window=w, now=41) for w in (1, 2, 12, 22, 32)] == [0, 1, 2, 3, 4]
    assert a.quantile([0.5, 0.6], window="1h", now=41).tolist() == [1, 2]


def test_the_heavy_hitters_of_the_slides_change_while_nothing_comes() -> None:
    """In the manner of the example: weights 1/(1 + a), phi = 1/2; what is heavy at time 3 is not at time 4."""
    one = RangeSketch(0.1, "backward poly(1)", values=(0, 9)).update([1, 2, 2, 1, 3], times=[1, 1, 1, 3, 3])
    # At 3 the ones weigh 1 + 1/3 of 3 in all; a two weighs 1/3.
    assert [hit.item for hit in one.heavy(0.44, now=3)] == [1]
    one = RangeSketch(0.1, "backward poly(1)", values=(0, 9)).update([1, 2, 2, 2], times=[3, 1, 1, 1])
    assert [(hit.item, hit.error) for hit in one.heavy(0.5, now=3)] == [(1, 0), (2, 0)]  # 1 and 3/3, of 2
    assert [(hit.item, round(hit.weight, 12)) for hit in one.heavy(0.5, now=4)] == [(2, 0.75)]  # 1/2 and 3/4, of 5/4


def test_what_comes_later_than_the_horizon_is_counted_as_dropped() -> None:
    one = RangeSketch(0.1, horizon="1m", resolution="1s").update([1.0] * 3, times=[100, 41, 40])
    assert (one.rows, one.dropped) == (2, {"horizon": 1})
    one.update(1.0, 39).update(1.0, 42).update(1.0, 110)
    assert (one.rows, one.dropped) == (4, {"horizon": 2})
    assert one.count(now=110) == 1 + 1  # of 41, 42, 100 and 110 the last minute
    assert one.count(now=100 + 60 + 9) == 1
    assert one.count(decay="exp(half_life=1d)", now=10_000) == 0
    with pytest.raises(BadParameter, match="a window of 61s is longer than the horizon, 1m"):
        one.count(window=61, now=110)


def test_times_are_kept_to_the_resolution_rounded_down() -> None:
    one = RangeSketch(0.1, horizon="1h", resolution="1m").update([1.0, 1.0, 1.0], times=[59.9, 60, 119])
    assert [one.count(window=w, now=120) for w in (60, 61, 120, 121)] == [0, 2, 2, 3]


def test_parameters_and_questions_are_checked() -> None:
    for wrong, words in (
        ({"epsilon": 0.6}, "at most 0.5"),
        ({"horizon": "1s", "resolution": "1s"}, "2 resolutions or more"),
        ({"horizon": "90000d"}, "under 73 years"),
        ({"values": (3, 3)}, "two finite numbers in order"),
        ({"values": 7}, "the least and the largest one"),
    ):
        with pytest.raises(BadParameter, match=words):
            RangeSketch(**wrong)  # type: ignore[arg-type]
    one = RangeSketch(values=(0, 10)).update([1, 11, -1, 10], times=[1, 1, 1, 1])
    assert (one.rows, one.dropped) == (2, {"value": 2})
    with pytest.raises(Unsupported, match="only counts; make it with values="):
        RangeSketch().quantile(0.5, now=1)
    with pytest.raises(Unsupported, match="takes no weights"):
        one.update([1], [1], [2.0])
    with pytest.raises(BadParameter, match="phi must be a number from 0 to 1"):
        one.quantile(2, now=1)
    with pytest.raises(BadParameter, match="values must be in order"):
        one.count(values=(2, 1), now=1)


def test_ratios_outlive_their_weights() -> None:
    """A year of half-lives of five minutes: the count is 0.0, and the median is what it was, or is to become."""
    one = RangeSketch(0.1, horizon="1000d", values=(0, 100)).update([1, 2, 50], times=[0, 100, 200])
    for decay, median in (("exp(half_life=5m)", 2.0), ("superexp(half_life=1h)", 50.0)):
        asking = {"decay": decay, "now": 300 * 100_000}
        assert (one.count(**asking), one.quantile(0.5, **asking)) == (0.0, median)


def test_a_state_with_ranges_that_nothing_leads_to_is_refused() -> None:
    one = RangeSketch(0.5, horizon="9h").update(np.ones(SIZE), column(arrivals(0, "shuffled", SIZE)))
    one._settle()
    keys, counts = one._ranges[-1].listed()
    at = int(np.argmax(counts == one._ranges[-1].limit))
    for change in (np.delete(keys, at), keys):
        broken = wane.from_bytes(one.to_bytes())
        assert isinstance(broken, RangeSketch)
        fewer = np.delete(counts, at) if len(change) < len(keys) else np.where(np.arange(len(counts)) == at, 1, counts)
        broken._ranges[-1].replace(change, fewer)
        with pytest.raises(CorruptState, match="no tree, or count what they may not"):
            wane.from_bytes(broken.to_bytes())


@pytest.mark.slow
def test_a_week_of_seconds_and_ten_million_items_fit_nine_tenths_of_a_megabyte() -> None:
    rng = np.random.default_rng(3)
    times = START + rng.integers(0, 7 * 86400, 10_000_000)
    one = RangeSketch(0.05, horizon="7d").update(np.ones(len(times)), column(times))
    holds_its_shape(one)
    assert sum(ranges._keys.nbytes + ranges._counts.nbytes for ranges in one._ranges) <= 900_000
    assert len(one.to_bytes()) <= 900_000
    now = int(times.max())
    for length in (1, 60, 3600, 86400, 7 * 86400):
        right = int((now - times < length).sum())
        assert abs(one.count(window=length, now=now) - right) <= 0.05 * right
