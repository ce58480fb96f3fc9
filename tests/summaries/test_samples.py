"""Samples: their distributions by chi-square, their estimates against exact weights, and what laws cannot see."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import wane
from wane import BiasedReservoir, PrioritySample, Reservoir, WeightedReservoir, WithReplacement
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter, CorruptState, MergeRefused, Unsupported
from wane.testing import ALARM, chi_square, most_failures
from wane.times import Nanoseconds, Ticks

BRIEF = DISABLED or os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
FEW = 250 if BRIEF else 1200
WEIGHTED = (PrioritySample, WeightedReservoir, WithReplacement)
EVERY = (*WEIGHTED, Reservoir)


def require_likely(found: Iterable[Any], odds: dict[Any, float]) -> None:
    """Require that what was found may come from a distribution; cells that are too small are joined."""
    counts = Counter(found)
    size = sum(counts.values())
    assert set(counts) <= set(odds)
    cells = sorted(odds, key=lambda cell: odds[cell])
    rest = [cell for cell in cells if odds[cell] * size < 5]
    cells = cells[len(rest) :]
    seen, expected = [counts[cell] for cell in cells], [odds[cell] * size for cell in cells]
    if rest and sum(odds[cell] for cell in rest) * size >= 5:
        seen.append(sum(counts[cell] for cell in rest))
        expected.append(sum(odds[cell] for cell in rest) * size)
    assert len(cells) > 1
    assert chi_square(seen, expected) > ALARM, list(zip(cells, seen, expected, strict=False))


def one_by_one(weights: Sequence[float], k: int) -> dict[tuple[int, ...], float]:
    """The odds of each order of `k` draws without replacement, as Efraimidis and Spirakis define them."""
    found = {}
    for order in itertools.permutations(range(len(weights)), k):
        odds, left = 1.0, sum(weights)
        for item in order:
            odds *= weights[item] / left
            left -= weights[item]
        found[order] = odds
    return found


# --- Distributions

TIMES = [0, 20, 30, 45, 60]
WEIGHTS = [1.0, 3.0, 0.5, 2.0, 1.0]
DECAYED = [w * 2 ** ((t - 60) / 30) for w, t in zip(WEIGHTS, TIMES, strict=True)]


def fed(make: Any, k: int, seed: int, parts: int) -> Any:
    """A sample of five rows, in one update, or merged from parts that have seeds of their own."""
    made = make(k, "exp(half_life=30s)", seed=seed * 10)
    for part in range(parts):
        rows = slice(part, None, parts)
        one = make(k, "exp(half_life=30s)", seed=seed * 10 + part + 1)
        made.merge(one.update(list(range(5))[rows], TIMES[rows], WEIGHTS[rows]))
    return made


@pytest.mark.parametrize("parts", [1, 2])
def test_a_weighted_reservoir_draws_one_by_one(parts: int) -> None:
    drawn = [tuple(fed(WeightedReservoir, 2, seed, parts).items()) for seed in range(FEW)]
    require_likely(drawn, one_by_one(DECAYED, 2))


@pytest.mark.parametrize("parts", [1, 3])
def test_draws_with_replacement_are_independent(parts: int) -> None:
    shares = [weight / sum(DECAYED) for weight in DECAYED]
    drawn = [tuple(fed(WithReplacement, 3, seed, parts).items()) for seed in range(FEW)]
    every = itertools.product(range(5), repeat=3)
    require_likely(drawn, {draws: math.prod(shares[i] for i in draws) for draws in every})


def test_priority_sampling_keeps_rows_with_the_odds_of_its_threshold() -> None:
    """With ``k = 1``, the row of the largest ``w / u`` of two: P(w1 / u1 > w2 / u2) for uniform numbers."""
    drawn = [PrioritySample(1, seed=seed).update(["a", "b"], weights=[1.0, 3.0]).items()[0] for seed in range(FEW)]
    require_likely(drawn, {"a": 1 / 6, "b": 5 / 6})


@pytest.mark.parametrize("way", ["at once", "in batches", "merged", "merged, and more"])
def test_every_set_is_as_likely_in_a_reservoir(way: str) -> None:
    def made(seed: int) -> Reservoir:
        one, other = Reservoir(3, seed=2 * seed), Reservoir(3, seed=2 * seed + 1)
        if way == "at once":
            return one.update(range(7))
        if way == "in batches":
            return one.update(range(4)).update([4]).update(range(5, 7))
        if way == "merged":
            return one.update(range(5)).merge(other.update(range(5, 7)))
        return one.update(range(2)).merge(other.update(range(2, 5))).update(range(5, 7))

    sets = dict.fromkeys(itertools.combinations(range(7), 3), 1 / 35)
    require_likely((tuple(sorted(made(seed).items())) for seed in range(FEW)), sets)


def test_skips_are_long_and_fair() -> None:
    """Where rows came from in a long stream: uniform over its tenths, also after the first reservoirs were full."""
    rows = 20_000 if DISABLED else 200_000
    drawn = [item * 10 // rows for seed in range(20) for item in Reservoir(100, seed=seed).update(range(rows)).items()]
    require_likely(drawn, dict.fromkeys(range(10), 0.1))


@pytest.mark.parametrize("rate", [None, 0.05])
def test_a_biased_reservoir_forgets_as_it_should(rate: float | None) -> None:
    """Once full, row `r` before the last is there with odds of ``k rate (1 - rate)**r``, and in one place if at all."""
    k, rows = 10, 400
    there: Counter[int] = Counter()
    trials = FEW // 2
    for seed in range(trials):
        items = BiasedReservoir(k, rate=rate, seed=seed).update(range(rows)).items()
        assert len(set(items)) == len(items)
        there.update(rows - 1 - item for item in items)
    per = rate or 1 / k
    for age in (1, 5, 10, 20):
        odds = k * per * (1 - per) ** age
        expected = [trials * odds, trials * (1 - odds)]
        assert chi_square([there[age], trials - there[age]], expected) > ALARM / 5, age


# --- Estimates

DECAYS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda age, _: np.ones(len(age)),
    "landmark": lambda _, since: (since > 0) * 1.0,
    "exp(half_life=5m)": lambda age, _: np.exp2(-age / 300),
    "exp(half_life=20s)": lambda age, _: np.exp2(-age / 20),
    "poly(2)": lambda age, since: (since / (since + age)) ** 2,
    "polynomial(1, 0, 2)": lambda age, since: (1 + 2 * since**2) / (1 + 2 * (since + age) ** 2),
}
"""What a row weighs by its age and by the seconds since the landmark, written down a second time."""

LANDMARK = Nanoseconds(1_700_000_000 * 10**9)
HOUR = 3600 * 10**9
ROWS = 500 if DISABLED else 3000


def shapes(seed: int) -> Iterator[tuple[Any, Any, Any]]:
    """Items, times and weights of streams that differ in skew, order and spread."""
    rng = np.random.default_rng(seed)
    anywhere, steady = rng.integers(1, HOUR, ROWS), np.linspace(1, HOUR, ROWS).astype(np.int64)
    for skew in (0.8, 1.2, 2.0):
        odds = np.arange(1, 501) ** -skew
        yield rng.choice(500, ROWS, p=odds / odds.sum()), anywhere, None
    yield rng.integers(0, 400, ROWS), anywhere, np.exp(rng.normal(0, 3, ROWS))
    yield np.arange(ROWS), steady, None
    yield np.arange(ROWS), steady[::-1].copy(), None
    yield np.full(ROWS, 8), anywhere, rng.pareto(1, ROWS)
    yield np.arange(ROWS), anywhere, np.where(np.arange(ROWS) == 4, 1e9, 1.0)


def part(item: int) -> bool:
    return item % 4 == 0


def judge(seeds: range) -> None:
    """Count intervals that miss the truth, of all rows and of a part; no more may be than chance allows."""
    trials, misses = Counter[Any](), Counter[Any]()
    for seed in seeds:
        every = list(shapes(seed))
        for place, (decay, weigh) in enumerate(DECAYS.items()):
            items, times, weights = every[(seed + place) % len(every)]
            age = (times.max() - times) / 1e9
            loads = weigh(age, times / 1e9) * (1.0 if weights is None else weights)
            now, truth = Nanoseconds(LANDMARK + times.max()), (loads.sum(), loads[items % 4 == 0].sum())
            for make in (PrioritySample, WeightedReservoir):
                merged = make(100, decay, LANDMARK, seed=9)
                for number, rows in enumerate(np.array_split(np.random.default_rng(seed).permutation(ROWS), 3)):
                    own = None if weights is None else weights[rows]
                    one = make(100, decay, LANDMARK, seed=seed * 3 + number + 10)
                    merged.merge(one.update(items[rows], Ticks(LANDMARK + times[rows], "ns"), own))
                for where, true in zip((None, part), truth, strict=True):
                    low, high = merged.interval(where, now, confidence=0.9)
                    assert low * (1 - 1e-9) <= merged.estimate(where, now) <= high * (1 + 1e-9)
                    trials[make, where] += 1
                    misses[make, where] += not low * (1 - 1e-9) <= true <= high * (1 + 1e-9)
            drawn = WithReplacement(100, decay, LANDMARK, seed=seed)
            drawn.update(items, Ticks(LANDMARK + times, "ns"), weights)
            share = truth[1] / truth[0]
            trials["share"] += 1  # by Hoeffding's inequality, further off than this with odds under 0.1
            misses["share"] += abs(drawn.share(part) - share) > math.sqrt(math.log(20) / 200)
            trials["count"] += 1
            misses["count"] += abs(drawn.count(now) / truth[0] - 1) > 0.2  # two standard deviations
    for what, count in misses.items():
        assert count <= most_failures(trials[what], 0.1), f"{what}: {count} of {trials[what]}"


def test_intervals_hold_the_truth() -> None:
    judge(range(1 if DISABLED else 20))


@pytest.mark.slow
def test_intervals_hold_the_truth_over_many_streams() -> None:
    judge(range(1000, 1220))


@pytest.mark.jit_only
@pytest.mark.parametrize("make", [PrioritySample, WeightedReservoir, WithReplacement])
@pytest.mark.parametrize("decay", ["none", "exp(half_life=5m)"])
def test_estimates_have_no_bias(make: Any, decay: str) -> None:
    """Over many seeds: the mean within five standard errors, and the variance that is told is that which is seen."""
    rng = np.random.default_rng(3)
    rows, k = 300, 30
    times = rng.integers(0, 1200, rows)
    weights = rng.pareto(1.5, rows) + 0.1
    loads = weights * (np.exp2((times - 1200) / 300) if decay != "none" else 1.0)
    truth = loads[np.arange(rows) % 4 == 0].sum()
    found, told = [], []
    for seed in range(FEW // 2):
        one = make(k, decay, seed=seed).update(np.arange(rows), times, weights)
        found.append(one.estimate(part, now=1200))
        told.append(one.variance(part, now=1200) if make is not WithReplacement else 0.0)
    spread = np.std(found)
    assert abs(np.mean(found) - truth) < 5 * spread / math.sqrt(len(found))
    assert spread < 0.6 * truth  # else the line above says nothing
    bound = loads.sum() * truth / (k - 1)
    if make is PrioritySample:
        assert spread**2 < bound * (1 + 5 * math.sqrt(2 / len(found)))
    if make is not WithReplacement:
        assert np.mean(told) == pytest.approx(spread**2, rel=8 * math.sqrt(2 / len(found)))


@pytest.mark.jit_only
def test_the_variance_of_equal_weights_is_the_theoretical_one() -> None:
    """Of a part of share `p` of `n` equal rows it is ``(n - k) n p / (k - 1)``, nearly, for small `p`."""
    n, k, p = 2000, 50, 0.05
    found = [PrioritySample(k, seed=s).update(np.arange(n)).estimate(lambda item: item < n * p) for s in range(FEW)]
    assert np.var(found) == pytest.approx((n - k) * n * p / (k - 1), rel=0.25)


def test_few_rows_are_known_exactly() -> None:
    for make in (PrioritySample, WeightedReservoir):
        one = make(10, "exp(half_life=1m)").update(["a", "b", "c"], [0, 60, 120], [1.0, 2.0, 4.0])
        assert one.estimate(now=120) == 5.25
        assert one.variance(now=120) == 0
        assert one.interval(now=120) == (5.25, 5.25)
        assert one.estimate(lambda item: item == "b", now=180) == 0.5
        assert {draw.item: draw.weight for draw in one.sample(now=120)} == {"a": 0.25, "b": 1.0, "c": 4.0}


# --- Rows that carry ids


@pytest.mark.parametrize("make", EVERY)
def test_with_ids_a_sample_is_a_function_of_the_rows(make: Any) -> None:
    rng = np.random.default_rng(1)
    size = 300 if DISABLED else 4000
    items, times, ids = rng.integers(0, 90, size), rng.integers(1, 900, size), np.array([f"r{i}" for i in range(size)])
    decay = "none" if make is Reservoir else "exp(half_life=1m)"
    whole = make(20, decay, seed=5).update(items, times, ids=ids)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        hands = rng.integers(0, 5, size)
        parts = [make(20, decay, seed=5) for _ in range(5)]
        for hand, one in enumerate(parts):
            for rows in np.array_split(rng.permutation(np.flatnonzero(hands == hand)), 1 + seed):
                one.update(items[rows], times[rows], ids=ids[rows])
        merged = make(20, decay, seed=5)
        for hand in [*rng.permutation(5), *rng.integers(0, 5, 3)]:  # some of them twice
            merged.merge(wane.from_bytes(parts[hand].to_bytes()))
        assert merged.items() == whole.items()
        assert merged.sample(now=900) == whole.sample(now=900)


@pytest.mark.parametrize("make", EVERY)
def test_seeds_agree_with_ids_and_differ_without(make: Any) -> None:
    plain, ided = make(3, seed=1).update(range(9)), make(3, seed=1).update(range(9), ids=range(9))
    with pytest.raises(
        MergeRefused, match=r"rows drawn by seed=1, .* give each part that is to merge a seed of its own"
    ):
        plain.merge(make(3, seed=1).update(range(3)))
    with pytest.raises(MergeRefused, match="rows drawn by seed=1"):
        plain.merge(make(3, seed=2).update(range(3)).merge(make(3, seed=1).update(range(3))))
    with pytest.raises(MergeRefused, match="seed differs: 1 here, 2 there"):
        ided.merge(make(3, seed=2).update(range(9), ids=range(9)))
    with pytest.raises(MergeRefused, match="rows of one sample have ids and those of the other have none"):
        ided.merge(make(3, seed=2).update(range(9)))
    for one, ids in ((plain, range(2)), (ided, None)):
        before = one.to_bytes()
        with pytest.raises(BadInput, match="give ids= always or never"):
            one.update([1, 2], ids=ids)
        assert one.to_bytes() == before
    with pytest.raises(BadInput, match="3 items came with 2 ids"):
        make(3).update([1, 2, 3], ids=[1, 2])
    # An empty one goes on where the other is: its next rows are not those that were drawn.
    follower = make(3, seed=1).merge(make(3, seed=1).update(range(9))).update(range(9, 50))
    assert follower.to_bytes() == make(3, seed=1).update(range(50)).to_bytes()


def test_a_missing_id_is_dropped_and_counted_and_one_by_one_is_a_column() -> None:
    one = PrioritySample(5).update(["a", "b", None], ids=[1, None, 3])
    assert (one.items(), one.dropped) == (["a"], {"value": 2})
    single = PrioritySample(5)
    for row in range(9):
        single.update(f"x{row}", ids=row)
    assert single.to_bytes() == PrioritySample(5).update([f"x{row}" for row in range(9)], ids=range(9)).to_bytes()


def test_many_seeds_are_remembered_up_to_a_bound() -> None:
    one = PrioritySample(2, seed=0)
    for seed in range(1, 400):
        one.merge(PrioritySample(2, seed=seed).update([seed]))
    assert len(one.to_bytes()) < PrioritySample.SPEC.state_bytes({"k": 2})
    with pytest.raises(MergeRefused, match="seed=7"):
        one.merge(PrioritySample(2, seed=7).update([1]))


# --- Traps


@pytest.mark.parametrize("make", WEIGHTED)
def test_weights_of_every_size_get_what_the_docs_say(make: Any) -> None:
    one = make(3).update(
        ["inf", "nan", "huge", "none", "tiny", "large"], weights=[np.inf, np.nan, 1e300, 0, 1e-300, 1e100]
    )
    assert one.dropped == {"weight": 3}
    assert set(one.items()) == ({"tiny", "large"} if make is not WithReplacement else {"large"})
    with pytest.raises(BadInput, match="a weight must be 0 or more"):
        make(3).update([1, 2], weights=[1.0, -1.0])
    assert make(3).update([1, 2], weights=[0.0, 0.0]).items() == []


@pytest.mark.parametrize("make", WEIGHTED)
def test_nothing_overflows_nothing_is_pinned_and_nothing_is_lost(make: Any) -> None:
    """A million half-lives on: new rows have taken the place of all old ones, and an idle sample is as it was."""
    for seed in range(30):
        idle = make(5, "exp(half_life=1s)", seed=seed).update(range(100), np.arange(100))
        assert idle.count(now=10**6) == 0.0
        assert idle.items() == wane.from_bytes(idle.to_bytes()).items()
        assert len(idle.items()) == 5
        idle.update(range(100, 110), np.full(10, 10**6))
        assert min(idle.items()) >= 100
        late = make(5, "exp(half_life=1s)", seed=seed).update(range(100, 110), np.full(10, 10**6))
        before = late.items()
        assert late.update(range(100), np.arange(100)).items() == before  # what is stale when it comes has no chance


def test_a_decay_that_weighs_is_refused_by_what_cannot() -> None:
    for make in (Reservoir, BiasedReservoir):
        with pytest.raises(Unsupported, match=r"needs a summary for forward decay .*WeightedReservoir"):
            make(5, "exp(half_life=1m)")
        with pytest.raises(Unsupported):
            make(5, wane.decay.pinned("backward poly(1)", now=100))
        windowed = make(50, wane.decay.pinned("window(30s)", now=100)).update(range(100), np.arange(100))
        since = make(50, "landmark", 0).update(range(9), np.arange(9) // 3)
        if make is Reservoir:
            assert sorted(windowed.items()) == list(range(71, 100))
            assert sorted(since.items()) == list(range(3, 9))
        else:
            assert {99} <= set(windowed.items()) <= set(range(71, 100))
            assert {8} <= set(since.items()) <= set(range(3, 9))


def test_biased_reservoirs_do_not_merge() -> None:
    one, other = BiasedReservoir(3, seed=1).update(range(9)), BiasedReservoir(3, seed=2).update(range(9))
    with pytest.raises(MergeRefused, match="their bias is by the order in which rows came"):
        one.merge(other)
    assert BiasedReservoir(3, seed=2).merge(other).items() == other.items()


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"k": 0}, {"k": 1.5}, {"k": 2**30}, {"seed": -1}, {"seed": 2**64}):
        for make in (*EVERY, BiasedReservoir):
            with pytest.raises(BadParameter):
                make(**wrong)
    for rate in (0, 0.5, "x", -1):
        with pytest.raises(BadParameter, match="rate must be"):
            BiasedReservoir(10, rate=rate)
    with pytest.raises(CorruptState):
        PrioritySample.from_bytes(PrioritySample(5).update([1]).to_bytes()[:-1])


def test_one_draw_has_no_estimate() -> None:
    one = WithReplacement(1, seed=4).update(["a"])
    assert one.items() == ["a"]
    assert math.isnan(one.count())
    assert math.isnan(WithReplacement(3).share(lambda _: True))
    assert WithReplacement(3).count() == 0.0
