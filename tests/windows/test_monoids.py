"""Every monoid keeps the laws of monoids; users' own are checked before they are used."""

from __future__ import annotations

import math
import statistics
import warnings

import numpy as np
import pytest

import wane
from wane import registry
from wane.errors import BadDecay, BadInput, BadParameter, UnknownName
from wane.monoids.base import monoid_of
from wane.testing.windows import MONOID_LAWS, ORACLES, items_for
from wane.times import duration


def decayed(decay, answer="sum"):
    """Exactly as defined: weights as of the newest item, from the oldest one's time where there is a landmark."""

    def right(items):
        if not items:
            return math.nan if answer == "mean" else 0.0
        now, start = max(t for _, t in items), min(t for _, t in items)
        if decay.startswith("exp"):
            weights = [2.0 ** (-(now - t) / 300) for _, t in items]
        elif now == start:
            weights = [0.0] * len(items)
        else:
            weights = [((t - start) / (now - start)) ** 2 for _, t in items]
        total, count = math.fsum(w * v for w, (v, _) in zip(weights, items, strict=True)), math.fsum(weights)
        if answer == "mean":
            return total / count if count else math.nan
        return total if answer == "sum" else count

    return right


def cases():
    for name, spec in registry.monoids().items():
        for parameters in spec.parameters:
            if name == "bloom":
                yield name, spec.make(**parameters), None
            elif name == "decayed":
                yield f"{name} {parameters['decay']}", spec.make(**parameters), decayed(**parameters)
            else:
                yield name, spec.make(**parameters), ORACLES[name]
    yield "product", wane.monoids.Product("max", "mean"), lambda items: (ORACLES["max"](items), ORACLES["mean"](items))
    yield (
        "distinct",
        wane.monoids.Mergeable(lambda: wane.Distinct(epsilon=0.2), lambda s: s.distinct()),
        lambda i: len(set(i)),
    )


CASES = {name: (monoid, answer) for name, monoid, answer in cases()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("law", MONOID_LAWS.values(), ids=MONOID_LAWS)
def test_law(law, name):
    monoid, answer = CASES[name]
    if answer is None and law.__name__ == "answers_are_right":
        pytest.skip("a filter is judged by its false positives, below")
    few = name == "distinct"
    if few and law.__name__ == "flags_are_true":
        pytest.skip("two summaries of one item merge to its rows counted twice")
    law(monoid, items_for(monoid.items, 8 if few else 60, seed=5), answer)


def test_every_monoid_has_laws():
    names = {name.partition(" ")[0] for name in CASES}
    assert set(registry.monoids()) - names == {"mergeable"}  # tried as `distinct`


def test_a_law_finds_what_is_wrong():
    halves = wane.monoids.base.Custom(float, lambda a, b: (a + b) / 2, float, 0.0, None, frozenset(), "halves")
    for law in ("identity_changes_nothing", "combine_is_associative", "flags_are_true", "answers_are_right"):
        with pytest.raises(AssertionError):
            MONOID_LAWS[law](halves, [1.0, 2.0, 4.0], ORACLES["mean"])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["min", "max"])
def test_what_is_no_number_is_there_until_it_leaves(name, value):
    for window in (wane.DABA(name), wane.TwoStacks(name), wane.Reactive(name)):
        for v in (1.0, value, 2.0):
            window.insert(v)
        expected = value if math.isnan(value) else (min if name == "min" else max)(1.0, value, 2.0)
        assert window.query() == pytest.approx(expected, nan_ok=True)
        window.evict()
        window.evict()
        assert window.query() == 2.0


def test_the_standard_deviation_does_not_cancel():
    values = [1e9 + v for v in (4, 7, 13, 16)]
    window = wane.DABA("stddev")
    for value in values:
        window.insert(value)
    assert window.query() == pytest.approx(statistics.stdev(values), rel=1e-12)


def test_a_filter_has_no_false_negatives_and_few_false_positives():
    window = wane.DABALite(wane.monoids.Bloom(bits=4096, hashes=4), rows=200)
    for i in range(500):
        window.insert(f"item {i}")
    answer = window.query()
    assert all(f"item {i}" in answer for i in range(300, 500))
    odds = (1 - math.exp(-4 * 200 / 4096)) ** 4
    assert answer.false_positives == pytest.approx(odds, rel=0.5)
    from wane.testing import most_failures

    wrong = sum(f"other {i}" in answer for i in range(2000))
    assert wrong <= most_failures(2000, 2 * odds)


def test_a_sliding_top_k_needs_no_subtraction():
    top = wane.monoids.Mergeable(lambda: wane.SpaceSaving(epsilon=0.05), lambda s: s.top(1)[0].item)
    window = wane.DABALite(top, rows=3)
    for batch in (["a"] * 9, ["b"] * 2, ["b"] * 2, ["b", "c"]):
        window.insert(batch)
    assert window.query() == "b"


def test_times_are_measured_exactly_far_from_1970():
    monoid = wane.monoids.Decayed("exp(half_life=1us)")
    window = wane.DABA(monoid)
    start = np.datetime64("2026-01-01T00:00:00.000000000")
    for i in range(2):
        window.insert((4.0, start + np.timedelta64(1000 * i, "ns")))
    assert window.query() == pytest.approx(6.0, rel=1e-12)


def test_a_polynomial_measures_from_the_start_of_its_window():
    for degree in range(9):
        monoid = wane.monoids.Decayed(f"poly({degree})" if degree else "polynomial(1)", window="10s")
        window = wane.DABA(monoid)
        for value, time in ((3.0, 101), (4.0, 104), (5.0, 107)):
            window.insert((value, time))
        assert window.query() == pytest.approx(
            sum(v * ((t - 97) / 10) ** degree for v, t in ((3.0, 101), (4.0, 104), (5.0, 107))), rel=1e-12
        )
    mixed = wane.DABA(wane.monoids.Decayed("polynomial(1, 0, 2, unit=2s)", "mean", window="10s"))
    weights = [1 + 2 * ((t - 97) / 2) ** 2 for t in (101, 107)]
    for value, time in ((3.0, 101), (5.0, 107)):
        mixed.insert((value, time))
    assert mixed.query() == pytest.approx((3 * weights[0] + 5 * weights[1]) / sum(weights), rel=1e-12)


@pytest.mark.parametrize(
    "decay", ["poly(1.5)", "subpoly", "landmark", "backward poly(1.5)", "superexp(half_life=5m)", "poly(9)"]
)
def test_decays_without_a_constant_state_are_refused(decay):
    with pytest.raises(BadDecay, match=r"constant state|at most"):
        wane.monoids.Decayed(decay)


# --- Users' own


def custom(**changes):
    given = {"lift": float, "combine": lambda a, b: a + b, "lower": float, "identity": 0.0}
    return wane.monoid(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"identity": 1.0}, "identity must change nothing, and custom combines 1.0 with 1.0 to 2.0"),
        ({"combine": max, "identity": 2.0}, "identity must change nothing"),
        ({"combine": lambda a, b: (a + b) / 2 if a and b else a + b}, "combine must be associative"),
        ({"combine": lambda a, b: b if b else a, "commutative": True}, "said to be commutative"),
        ({"idempotent": True}, "said to be idempotent"),
        ({"inverse": lambda a: a}, "inverse must leave"),
        ({"lift": 3}, "lift must be a function, got 3"),
        ({"inverse": 3}, "inverse must be a function, got 3"),
        ({"samples": [5.0, 6.0, 7.0], "combine": lambda a, b: a + b if a + b < 12 else 0.0}, "associative"),
    ],
)
def test_a_monoid_that_is_none_is_refused_when_it_is_made(changes, words):
    with pytest.raises(BadParameter, match=words):
        custom(**changes)


@pytest.mark.parametrize(
    "window", [lambda m: wane.DABA(m), lambda m: wane.DABA(m, rows=5), lambda m: wane.FingerTree(m)]
)
def test_where_no_sample_can_be_lifted_the_first_item_is_tried(window):
    wrong = custom(lift=lambda text: len(text.strip()), identity=1)
    right = custom(lift=lambda text: len(text.strip()))
    time = [7] if isinstance(window(right), wane.FingerTree) else []
    with pytest.raises(BadParameter, match="identity must change nothing"):
        window(wrong).insert("abc", *time)
    made = window(right)
    for _ in range(9):
        made.insert("abc", *time)
    assert made.query() == (15 if made.__len__() == 5 else 27)
    with pytest.raises(BadParameter, match="identity must change nothing"):
        wane.roll(["abc", "de"], rows=2, agg=custom(lift=lambda text: len(text.strip()), identity=1, name="text"))


@pytest.mark.jit_only
def test_a_users_monoid_compiles_or_warns_and_gives_the_same():
    values = np.random.default_rng(3).exponential(5, 500)
    functions = {"combine": lambda a, b: (a[0] + b[0], a[1] + b[1]), "identity": (0.0, 0)}
    lower = {"lower": lambda a: math.exp(a[0] / a[1])}
    fast = wane.monoid(lift=lambda v: (math.log(v), 1), **functions, **lower)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = wane.roll(values, rows=9, agg=fast)
    slow = wane.monoid(lift=lambda v: (statistics.fmean([math.log(v)]), 1), name="slow", **functions, **lower)
    with pytest.warns(RuntimeWarning, match="the monoid slow does not compile, so it runs as plain Python"):
        interpreted = wane.roll(values, rows=9, agg=slow)
    exact = [statistics.geometric_mean(values[max(i - 8, 0) : i + 1]) for i in range(500)]
    assert compiled.tolist() == pytest.approx(exact, rel=1e-12)
    assert interpreted.tolist() == pytest.approx(exact, rel=1e-12)
    builtin = wane.monoid(lift=abs, combine=max, lower=float, identity=0.0)
    assert wane.roll([-3.0, 1.0, -2.0], rows=2, agg=builtin).tolist() == [3.0, 3.0, 2.0]


@pytest.mark.jit_only
def test_an_identity_of_ints_does_not_cut_what_is_lifted():
    mean = wane.monoid(
        lift=lambda v: (v, 1),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lower=lambda a: a[0] / a[1],
        identity=(0, 0),
    )
    assert wane.roll([0.5, 0.25], rows=2, agg=mean).tolist() == [0.5, 0.375]


# --- Names


def test_a_monoid_is_found_by_its_name():
    assert isinstance(monoid_of("max"), wane.monoids.Max)
    assert monoid_of("max") is monoid_of("max")
    assert monoid_of("std").label == "stddev"
    assert monoid_of(wane.monoids.Sum).label == "sum"
    assert monoid_of(["sum", "max"]).label == "(sum, max)"
    with pytest.raises(UnknownName, match=r"there is no monoid 'maxx'; did you mean 'max'\?"):
        monoid_of("maxx")
    with pytest.raises(BadParameter, match=r"'decayed' needs arguments; write wane.monoids.Decayed\(decay\)"):
        monoid_of("decayed")
    with pytest.raises(BadParameter, match="a monoid is its name"):
        monoid_of(7)


def test_products_have_what_all_parts_have():
    assert wane.monoids.Product("sum", "count").has == {"commutative", "invertible"}
    assert wane.monoids.Product("sum", "max").has == {"commutative"}
    window = wane.SubtractOnEvict(["sum", "count"])
    window.insert(3)
    window.insert(4)
    window.evict()
    assert window.query() == (4, 1)
    with pytest.raises(BadParameter, match="max takes numbers and argmax takes pairs"):
        wane.monoids.Product("max", "argmax")
    with pytest.raises(BadParameter, match="at least one part"):
        wane.monoids.Product()


@pytest.mark.parametrize("arguments", [{"bits": 100}, {"bits": 0}, {"hashes": 0}, {"hashes": 65}])
def test_a_filter_has_a_size_that_fits_words(arguments):
    with pytest.raises(BadParameter, match="must be"):
        wane.monoids.Bloom(**arguments)


def test_what_does_not_merge_is_no_summary():
    with pytest.raises(BadParameter, match=r"has update\(\), and a list has not"):
        wane.monoids.Mergeable(list)
    with pytest.raises(BadParameter, match="make must make"):
        wane.monoids.Mergeable(3)


def test_decayed_says_what_it_takes():
    with pytest.raises(BadParameter, match="answer must be one of sum, count, mean, got 'median'"):
        wane.monoids.Decayed("exp(rate=1)", "median")
    with pytest.raises(BadParameter, match="longer than nothing"):
        wane.monoids.Decayed("poly(2)", window=0)
    assert wane.monoids.Decayed("poly(2)").over(duration("5m")).window == duration("5m")


def test_nothing_takes_an_infinity_out_again():
    for name, value in (("sum", math.inf), ("sum", math.nan), ("gmean", 0.0)):
        with pytest.raises(BadInput, match="nothing takes"):
            wane.SubtractOnEvict(name).insert(value)
