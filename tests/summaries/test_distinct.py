"""Distinct: the error and the intervals that are promised, over many streams, and what the laws cannot see."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from wane import Distinct, from_bytes
from wane._jit import DISABLED
from wane.decay import forward
from wane.errors import BadInput, BadParameter, CorruptState, MergeRefused
from wane.summaries.distinct import size
from wane.testing import most_failures
from wane.times import Nanoseconds, Ticks

ROWS = 1_500 if DISABLED else 12_000
HOUR = 3600 * 10**9
EPSILON, DELTA = 0.15, 0.1

DECAYS = {
    "none": lambda age, _: np.ones(len(age)),
    "landmark": lambda _, since: (since > 0) * 1.0,
    "exp(half_life=5m)": lambda age, _: np.exp2(-age / 300),
    "exp(half_life=7s)": lambda age, _: np.exp2(-age / 7),
    "poly(2)": lambda age, since: (since / (since + age)) ** 2,
    "user": lambda age, since: (since * np.sqrt(since + 1)) / ((since + age) * np.sqrt(since + age + 1)),
    "polynomial(1, 0, 2)": lambda age, since: (1 + 2 * since**2) / (1 + 2 * (since + age) ** 2),
}
"""What a row weighs by its age and by the seconds since the landmark, written down a second time."""

USERS = forward(lambda n: n * math.sqrt(n + 1.0), name="tests steep too")
LANDMARK = Nanoseconds(1_700_000_000 * 10**9)
Shape = tuple[str, np.ndarray, np.ndarray, np.ndarray | None]


def shapes(seed: int) -> Iterator[Shape]:
    rng = np.random.default_rng(seed)
    anywhere = rng.integers(1, HOUR, ROWS)
    steady = np.linspace(1, HOUR, ROWS).astype(np.int64)
    for skew in (0.8, 1.2, 2.0):
        odds = np.arange(1, 8001) ** -skew
        yield f"zipf {skew}", rng.choice(8000, ROWS, p=odds / odds.sum()), anywhere, None
    yield "uniform", rng.integers(0, 4000, ROWS), anywhere, None
    yield "sorted", np.arange(ROWS) // 3, steady, None
    yield "reversed", np.arange(ROWS)[::-1] // 3, steady, None
    yield "one item", np.full(ROWS, 7), anywhere, None
    yield "each once, evenly spaced", np.arange(ROWS) * 2**40, steady, None
    yield "weights of all sizes", rng.integers(0, 5000, ROWS), anywhere, np.exp(rng.normal(0, 5, ROWS))
    yield "one item outweighs all", np.arange(ROWS), anywhere, np.where(np.arange(ROWS) == 5, 1e9, 1.0)
    yield "as many as are kept", rng.permutation(np.arange(ROWS) % (size(EPSILON, DELTA) + 2)), anywhere, None


def exact(items: np.ndarray, times: np.ndarray, weights: np.ndarray | None, decay: str) -> dict[int, float]:
    now = times.max()
    found: dict[int, float] = {}
    loads = DECAYS[decay]((now - times) / 1e9, times / 1e9) * (1.0 if weights is None else weights)
    for item, load in zip(items.tolist(), loads.tolist(), strict=True):
        found[item] = max(found.get(item, 0.0), load)
    return found


def judge(seeds: range) -> None:
    """Count the answers and intervals that are wrong; no more may be than chance allows."""
    trials = errors = outside = outside_part = 0
    for seed in seeds:
        every = list(shapes(seed))
        for place, decay in enumerate(DECAYS):
            _, items, times, weights = every[(seed + place) % len(every)]
            one = Distinct(EPSILON, USERS if decay == "user" else decay, LANDMARK, delta=DELTA, seed=seed)
            for part in np.array_split(np.random.default_rng(seed).permutation(ROWS), 3):
                one.update(items[part], Ticks(LANDMARK + times[part], "ns"), None if weights is None else weights[part])
            now = Nanoseconds(LANDMARK + times.max())
            true = exact(items, times, weights, decay)
            total = sum(true.values())
            part_true = sum(load for item, load in true.items() if item % 4 == 1)
            trials += 1
            errors += abs(one.distinct(now) - total) > EPSILON * total * (1 + 1e-9)
            low, high = one.interval(now)
            outside += not low * (1 - 1e-9) <= total <= high * (1 + 1e-9)
            low, high = one.interval(now, where=lambda item: item % 4 == 1)
            outside_part += not low * (1 - 1e-9) <= part_true <= high * (1 + 1e-9)
    allowed = most_failures(trials, DELTA)
    assert errors <= allowed, f"{errors} of {trials} answers are off by more than {EPSILON}"
    assert outside <= allowed, f"{outside} of {trials} intervals miss the truth"
    assert outside_part <= allowed, f"{outside_part} of {trials} intervals of a part miss the truth"


def test_errors_and_intervals_are_as_promised() -> None:
    judge(range(3 if DISABLED else 20))


@pytest.mark.slow
def test_errors_and_intervals_are_as_promised_over_many_streams() -> None:
    judge(range(1000, 1220))


def test_the_estimate_has_no_bias() -> None:
    """Over many hashes the estimates of a part average to the truth, within five standard errors."""
    items = np.arange(3000)
    weights = 1.0 / (1 + items % 50)
    truth = float(weights[items % 3 == 0].sum())
    found = []
    for seed in range(60 if DISABLED else 400):
        one = Distinct(0.3, delta=0.2, seed=seed).update(items, weights=weights)
        found.append(one.distinct(where=lambda item: item % 3 == 0))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 5 * error
    assert np.std(found) < 0.5 * truth  # else the line above says nothing


def test_few_items_are_counted_exactly() -> None:
    one = Distinct(0.1)
    one.update(["a", "b", "a", b"a", 1, 1.0, True, 2.5, None])
    assert one.distinct() == 5.0
    assert one.interval() == (5.0, 5.0)
    assert one.distinct(where=lambda item: isinstance(item, str)) == 2.0
    assert one.dropped == {"value": 1}


def test_equal_items_in_other_forms_give_the_same_bytes() -> None:
    """1, 1.0 and True are one item, 0.0 and -0.0 as well, whichever comes first."""
    forms = [[1, 0], [True, False], [1.0, 0.0], [1.0, -0.0], ["x"], [2.5]]
    states = set()
    for seed in range(20):
        one = Distinct(0.5, delta=0.3)
        for place in np.random.default_rng(seed).permutation(len(forms)):
            one.update(forms[place])
        states.add(one.to_bytes())
    assert len(states) == 1


def test_texts_come_back_in_any_column() -> None:
    words = [f"user-{i % 900}" for i in range(3000)]
    plain = Distinct(0.3).update(words)
    for column in (np.array(words), pa.array(words), pa.array(words).dictionary_encode()):
        assert Distinct(0.3).update(column).to_bytes() == plain.to_bytes()
    assert from_bytes(plain.to_bytes()).distinct(where=lambda word: word.endswith("7")) == pytest.approx(90, rel=0.9)


def test_a_part_that_was_not_found_may_be_there() -> None:
    one = Distinct(0.3, delta=0.1).update(np.arange(100_000))
    low, high = one.interval(where=lambda item: item == -1)
    assert (low, one.distinct(where=lambda item: item == -1)) == (0.0, 0.0)
    assert high > 100


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"epsilon": 0}, {"epsilon": 1}, {"delta": 0.0}, {"delta": "x"}, {"seed": -1}):
        with pytest.raises(BadParameter):
            Distinct(**wrong)
    with pytest.raises(MergeRefused, match="seed differs"):
        Distinct(seed=1).merge(Distinct(seed=2))
    with pytest.raises(BadInput, match="0 or more"):
        Distinct().update([1], weights=[-1.0])
    one = Distinct().update([1, 2, 3, 4], weights=[np.inf, np.nan, 1e300, 1.0])
    assert (one.distinct(), one.dropped) == (1.0, {"weight": 3})
    assert Distinct().update([1], weights=[0.0]).distinct() == 0.0
    with pytest.raises(CorruptState):
        Distinct.from_bytes(one.to_bytes()[:-1])


def test_the_size_is_what_is_said() -> None:
    for epsilon, items in ((0.05, 1616), (0.1, 425)):
        one = Distinct(epsilon).update(np.arange(20_000))
        assert size(epsilon, 0.05) == items
        assert len(one.to_bytes()) < 512 + 24 * (items + 1)


def test_stale_and_tiny_weights_count_for_what_they_are() -> None:
    one = Distinct(0.3, "exp(half_life=1s)").update([1, 2, 3], [0, 10**6, 10**6], [2.5e120, 1e-300, 0.0])
    assert one.distinct(now=10**6) == pytest.approx(1e-300)
    assert one.distinct(now=10**6, where=lambda item: item == 1) == 0.0
    assert one.update([4], [10**6], [1.0]).distinct(now=10**6) == pytest.approx(1.0)
