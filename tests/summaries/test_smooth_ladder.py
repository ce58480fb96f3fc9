"""Smooth ladders: the same panes whatever the order, weights right to epsilon, faster decays refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exact_windows import ORDERS, START, arrivals, asked_at, column

import wane
from wane import Distinct, ExponentialHistogram, Moments, QDigest, SmoothLadder, SpaceSaving
from wane._jit import DISABLED
from wane.decay import backward
from wane.errors import BadParameter, CorruptState, MergeRefused, UnknownName, Unsupported

SEEDS = range(3) if DISABLED else range(20)
SIZE = 300 if DISABLED else 1200
ROUNDING = 1e-9

SLOW = backward(lambda a: (1.0 + a / 30.0) ** -0.75, name="tests slow")


def fed(rng: np.random.Generator, ladder: Any, times: Any, values: Any) -> Any:
    for part in np.array_split(np.arange(len(times)), int(rng.integers(1, 5))):
        ladder.update(values[part], column(times[part]))
    return ladder


def judge(seed: int, order: str) -> None:
    rng = np.random.default_rng([seed, ORDERS.index(order)])
    epsilon, alpha = float(rng.choice([0.5, 0.2, 0.1])), float(rng.uniform(0.8, 3))
    times, values = arrivals(seed, order, SIZE), np.minimum(rng.zipf(1.4, SIZE), 1000).astype(np.float64)
    now = asked_at(rng, times)
    ages = now - times
    asked: list[tuple[Any, Any]] = [
        (None, (ages + 1.0) ** -alpha),
        (f"backward poly({alpha / 2!r})", (ages + 1.0) ** (-alpha / 2)),
        (f"backward poly({alpha!r}, unit=1m)", (ages / 60 + 1.0) ** -alpha),
        (SLOW, (1 + ages / 30.0) ** -0.75),
        ("none", np.ones(SIZE)),
    ]
    made = fed(rng, SmoothLadder("moments", epsilon, f"backward poly({alpha!r})"), times, values)
    for decay, weights in asked:
        total, scale = weights.sum(), (weights * values).sum()
        assert abs(made.count(now=now, decay=decay) - total) <= (epsilon / 2 + ROUNDING) * total
        assert abs(made.sum(now=now, decay=decay) - scale) <= (epsilon / 2 + ROUNDING) * scale
        assert abs(made.mean(now=now, decay=decay) - scale / total) <= (epsilon + ROUNDING) * scale / total
    judge_holistic(rng, f"backward poly({alpha!r})", epsilon, times, values, now, asked[:2])


def judge_holistic(rng: Any, decay: str, epsilon: float, times: Any, values: Any, now: int, asked: Any) -> None:
    digest = fed(rng, SmoothLadder(QDigest(0.02, bits=10), epsilon, decay), times, values)
    heavy = fed(rng, SmoothLadder(SpaceSaving(0.02), epsilon, decay), times, values)
    for slower, weights in asked:
        total = weights.sum()
        slack = (0.02 + epsilon + ROUNDING) * total
        for phi in (0.1, 0.5, 0.9):
            found = digest.quantile(phi, now=now, decay=slower)
            assert weights[values < found].sum() - slack <= phi * total <= weights[values <= found].sum() + slack
        each = np.bincount(values.astype(int), weights)
        hits = {hit.item: hit for hit in heavy.top(5, now=now, decay=slower)}
        for hit in hits.values():
            assert abs(each[int(hit.item)] - hit.weight) <= 0.02 * (1 + epsilon) * total + epsilon * each[int(hit.item)]
        first = int(np.argmax(each))
        if each[first] * (1 - epsilon) > np.sort(each)[-6] * (1 + epsilon) + 0.05 * total:
            assert first in hits


@pytest.mark.parametrize("order", ORDERS)
def test_answers_are_right_to_epsilon_under_every_slower_decay(order: str) -> None:
    for seed in SEEDS[:3]:
        judge(seed, order)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_answers_are_right_to_epsilon_at_length(order: str) -> None:
    for seed in range(1000, 1200):
        judge(seed, order)


def shape(ladder: SmoothLadder) -> list[tuple[int, int, int]]:
    ladder._settle()
    return [(pane.low, pane.high, pane.summary.rows) for pane in ladder._panes]


@pytest.mark.parametrize("decay", ["backward poly(2)", "subpoly", SLOW])
def test_panes_do_not_depend_on_order_or_merging(decay: Any) -> None:
    for seed in SEEDS[:5]:
        rng = np.random.default_rng(seed)
        times = arrivals(seed, "in order", SIZE)
        items = rng.integers(0, 300, SIZE)
        whole = SmoothLadder(Distinct(0.5), 0.2, decay).update(items, column(times))
        order = rng.permutation(SIZE)
        again = fed(rng, SmoothLadder(Distinct(0.5), 0.2, decay), times[order], items[order])
        assert shape(again) == shape(whole)
        assert again.to_bytes() == whole.to_bytes()  # for what is inside is identical, too
        merged = SmoothLadder(Distinct(0.5), 0.2, decay)
        for hand in rng.permutation(4):
            part = np.arange(SIZE) % 4 == hand
            merged.merge(SmoothLadder(Distinct(0.5), 0.2, decay).update(items[part], column(times[part])))
        assert merged.to_bytes() == whole.to_bytes()


def test_distinct_counts_the_newest_of_each() -> None:
    ladder = SmoothLadder(Distinct(0.05), 0.1, "backward poly(1)")
    ladder.update(["a", "b", "a"], times=[0, 90, 99])
    assert ladder.distinct(now=99) == pytest.approx(1 + 1 / 10)
    assert ladder.distinct(now=99, where=lambda item: item == "b") == pytest.approx(1 / 10)


def test_there_are_as_many_panes_as_the_exponent_wants() -> None:
    size = 20_000
    times = START + np.linspace(0, 10**6, size).astype(np.int64)
    counts = [
        SmoothLadder("moments", epsilon, f"backward poly({alpha})").update(np.ones(size), column(times)).panes
        for epsilon, alpha in ((0.2, 1), (0.2, 2), (0.2, 4), (0.1, 2))
    ]
    needed = np.log(10**6) / np.log1p(0.2)  # regions, for the exponent 1
    assert needed / 2 <= counts[0] <= 3 * needed  # the finest hold nothing
    assert 1.6 < counts[1] / counts[0] < 2.4
    assert 1.5 < counts[2] / counts[1] < 2.4
    assert 1.5 < counts[3] / counts[1] < 2.4


@pytest.mark.parametrize(
    "faster",
    ["window(1h)", "backward poly(1.1)", "superexp(half_life=1d)", "exp(half_life=1d)", "backward poly(1, unit=1ms)"],
)
def test_a_faster_decay_is_refused(faster: str) -> None:
    ladder = SmoothLadder("moments", 0.1, "backward poly(1)").update([1.0, 2.0], times=[10, 20])
    with pytest.raises(Unsupported, match=r"falls faster than backward poly.1., .*RangeSketch"):
        ladder.count(now=20, decay=faster)


def test_a_forward_decay_is_judged_by_what_is_there() -> None:
    ladder = SmoothLadder("moments", 0.1, "backward poly(1)").update([1.0, 2.0], times=[10, 20])
    assert ladder.count(now=20, decay="poly(1)", landmark=0) == pytest.approx(1.5)
    ladder.update(np.ones(100), times=np.arange(1000.0, 1100.0)).update(1.0, 10_000)
    with pytest.raises(Unsupported, match=r"varies by more than 1.1 between .* one pane"):
        ladder.count(now=10_000, decay="poly(2)", landmark=999)


def test_what_a_ladder_is_made_of_is_checked() -> None:
    for decay, words in (
        ("window(5m)", "does not fall ever more slowly; use DuplicateInsensitive or ExponentialHistogram"),
        ("superexp(half_life=5m)", "does not fall ever more slowly"),
        ("exp(half_life=5m)", "give it to the summary itself"),
        (backward(lambda a: 1 / (1 + a * a), name="tests round"), "does not fall ever more slowly"),
    ):
        with pytest.raises(Unsupported, match=words):
            SmoothLadder("moments", 0.1, decay)
    with pytest.raises(BadParameter, match="without rows, without decay"):
        SmoothLadder(Moments().update(1.0))
    with pytest.raises(BadParameter, match="no ladder of 'exphist': the weights in a ExponentialHistogram"):
        SmoothLadder(ExponentialHistogram)
    with pytest.raises(UnknownName, match=r"answers count, sum, mean, var.* asked 'quantile'"):
        SmoothLadder(Moments).ask("quantile", 0.5, now=0)
    with pytest.raises(AttributeError, match="no attribute 'quantile'"):
        SmoothLadder(Moments).quantile  # noqa: B018
    assert SmoothLadder(QDigest, parameters={"epsilon": 0.3})._inside.epsilon == 0.3
    with pytest.raises(MergeRefused, match="of differs: 'moments' here, 'qdigest' there"):
        SmoothLadder(Moments).merge(SmoothLadder(QDigest))


def test_panes_that_are_not_those_of_the_newest_time_are_refused() -> None:
    ladder = SmoothLadder("moments", 0.5).update(np.ones(50), times=np.arange(50.0))
    ladder._settle()
    first, second, *rest = ladder._panes
    first.summary.merge(second.summary)
    first.high = rest[3].low - 1
    ladder._panes = [first, *rest[3:]]
    ladder.rows = sum(pane.summary.rows for pane in ladder._panes)
    with pytest.raises(CorruptState, match="not those of its newest time"):
        wane.from_bytes(ladder.to_bytes())
