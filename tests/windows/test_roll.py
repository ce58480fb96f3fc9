"""Whole columns: every aggregate at every row against plain NumPy, in every form, over several lengths at once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import wane
from wane import registry
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter, BadTime, UnknownName, Unsupported
from wane.monoids import Decayed
from wane.testing.windows import ORACLES
from wane.windows import _roll

ROWS = 120 if DISABLED else 600
RNG = np.random.default_rng(8)
VALUES = np.where(RNG.random(ROWS) < 0.5, RNG.integers(1, 9, ROWS).astype(float), RNG.exponential(5, ROWS))
TIMES = np.cumsum(RNG.choice([0, 1, 2, 50], ROWS, p=[0.3, 0.3, 0.38, 0.02]))
NUMBERS = [
    name
    for name, spec in registry.monoids().items()
    if spec.native and spec.items in ("numbers", "pairs") and spec.parameters
]


def expected(name, windows, values=VALUES):
    """The answer over each window, a range of rows, by plain Python."""
    found = []
    for start, end in windows:
        rows = [i for i in range(start, end) if values[i] == values[i]]
        items = [(values[i], i) for i in rows] if name.startswith("arg") else [float(values[i]) for i in rows]
        found.append(ORACLES[name](items))
    return found


def by_rows(length, count=ROWS):
    return [(max(i + 1 - length, 0), i + 1) for i in range(count)]


def by_time(length, times=TIMES):
    return [(next(j for j in range(i + 1) if times[i] - times[j] < length), i + 1) for i in range(len(times))]


def same(got, right):
    got = got.tolist() if isinstance(got, np.ndarray) else got
    assert len(got) == len(right)
    for i, (a, b) in enumerate(zip(got, right, strict=True)):
        mine, theirs = (a, b) if isinstance(b, tuple) else ((a,), (b,))
        assert mine == pytest.approx(theirs, rel=1e-11, nan_ok=True), i


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("length", [1, 7, 5000])
def test_the_last_rows(name, length):
    same(wane.roll(VALUES, rows=length, agg=name), expected(name, by_rows(length)))


@pytest.mark.parametrize("name", NUMBERS)
def test_the_young_rows(name):
    same(wane.roll(VALUES, times=TIMES, duration="20s", agg=name), expected(name, by_time(20)))


@pytest.mark.parametrize("name", ["max", "count", "mean", "argmax"])
def test_missing_values_bring_nothing(name):
    values = VALUES.copy()
    values[::5] = math.nan
    values[40:60] = math.nan
    same(wane.roll(values, rows=6, agg=name), expected(name, by_rows(6), values))
    nulls = pa.array([None if v != v else v for v in values])
    same(wane.roll(nulls, rows=6, agg=name), expected(name, by_rows(6), values))
    same(wane.roll([1.0, math.inf, 2.0], rows=2, agg="max"), [1.0, 1.0, 2.0])


@pytest.mark.parametrize("name", ["daba_lite", "two_stacks_lite", "aba", "two_stacks", "subtract_on_evict"])
def test_other_algorithms_give_the_same(name):
    """One for each number of rings; that every algorithm compiles to what it is, test_windows shows."""
    values, length = VALUES, 50
    right = expected("sum", by_rows(length, len(values)), values)
    same(wane.roll(values, rows=length, agg="sum", algorithm=name), right)
    same(wane.roll(values, rows=length, agg="sum", algorithm=registry.windows()[name].make), right)


def test_blocks_go_on_where_the_last_one_ended(monkeypatch):
    monkeypatch.setattr(_roll, "BLOCK", 7)
    same(wane.roll(VALUES, times=TIMES, duration="20s", agg="max"), expected("max", by_time(20)))
    same(wane.roll(VALUES, rows=50, agg="sum", algorithm="daba_lite"), expected("sum", by_rows(50)))
    same(wane.roll(VALUES, rows=50, agg="mean"), expected("mean", by_rows(50)))


def test_several_lengths_and_aggregates_at_once():
    lengths, aggs = ["1m", "20s", "1h"], ["max", "stddev", "argmax"]
    found = wane.roll(VALUES, times=TIMES, duration=lengths, agg=aggs)
    assert list(found) == [(length, agg) for length in lengths for agg in aggs]
    for (length, agg), got in found.items():
        same(got, expected(agg, by_time({"1m": 60, "20s": 20, "1h": 3600}[length])))
    assert list(wane.roll(VALUES, rows=[3, 9], agg="sum")) == [3, 9]
    assert list(wane.roll(VALUES, rows=3, agg=["sum", wane.monoids.Max()])) == ["sum", "max"]
    same(wane.roll(VALUES, rows=3, agg=wane.monoids.Product("sum", "max"))["max"], expected("max", by_rows(3)))


def test_answers_of_several_parts_are_fields():
    found = wane.roll(VALUES, rows=5, agg="mincount")
    if not DISABLED:
        assert found.dtype.names == ("f0", "f1")
    same(found, expected("mincount", by_rows(5)))


def test_counts_and_positions_are_whole_numbers():
    for name in ("count", "argmax"):
        assert wane.roll(VALUES, rows=5, agg=name).dtype == np.int64


def test_items_of_any_kind():
    assert wane.roll(list("abc"), rows=2, agg="collect").tolist() == [["a"], ["a", "b"], ["b", "c"]]
    assert wane.roll(pa.array(["a", "b", "c"]), rows=2, agg="collect").tolist()[-1] == ["b", "c"]
    filters = wane.roll(["a", "b", "c"], rows=2, agg="bloom")
    assert [("a" in f, "b" in f) for f in filters] == [(True, False), (True, True), (False, True)]
    distinct = wane.monoids.Mergeable(lambda: wane.Distinct(epsilon=0.2), lambda s: s.distinct())
    assert wane.roll([1, 1, 2, 3, 3, 3], rows=3, agg=distinct).tolist() == [1, 1, 2, 3, 2, 1]


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        (lambda t: t, "s"),
        (lambda t: t.astype("datetime64[s]"), "s"),
        (lambda t: (t * 1000).astype("datetime64[ms]"), "ms"),
        (lambda t: pa.array(t * 10**9, pa.timestamp("ns")), "ns"),
        (lambda t: t.tolist(), "s"),
    ],
)
def test_times_of_every_form(form, unit):
    same(wane.roll(VALUES, times=form(TIMES), duration="20s", agg="max"), expected("max", by_time(20)))
    # What lies between two ticks of whole seconds is their next one: ages are under 19.5 s where they are 19 s or less.
    same(wane.roll(VALUES, times=form(TIMES), duration="19.5s", agg="max"), expected("max", by_time(19.5)))


@pytest.mark.parametrize(
    ("decay", "weight", "answers", "algorithm"),
    [
        ("exp(half_life=10s)", lambda age, _: 2.0 ** (-age / 10), ("sum", "count", "mean"), None),
        ("exp(half_life=10s)", lambda age, _: 2.0 ** (-age / 10), ("sum",), "daba_lite"),
        ("poly(2)", lambda age, length: ((length - age) / length) ** 2, ("mean",), None),
        ("none", lambda _age, _: 1.0, ("count",), None),
    ],
)
def test_decayed_inside_a_window(decay, weight, answers, algorithm):
    count = 60 if DISABLED else 300
    for answer in answers:
        got = wane.roll(
            VALUES[:count], times=TIMES[:count], duration="20s", agg=Decayed(decay, answer), algorithm=algorithm
        )
        right = []
        for start, end in by_time(20, TIMES[:count]):
            weights = [Fraction(weight(float(TIMES[end - 1] - TIMES[i]), 20.0)) for i in range(start, end)]
            total = sum(w * Fraction(v) for w, v in zip(weights, VALUES[start:end], strict=True))
            right.append(float({"sum": total, "count": sum(weights), "mean": total / sum(weights)}[answer]))
        same(got, right)


def test_under_rows_the_landmark_is_the_oldest_one():
    window, answers = wane.DABA(Decayed("poly(1)"), rows=3), []
    for item in ((1.0, 0), (2.0, 10), (4.0, 30)):
        window.insert(item)
        answers.append(window.query())
    assert answers == pytest.approx([0.0, 2.0, 4 + 2 / 3])


def test_nothing_gives_nothing():
    for agg, dtype in (("sum", np.float64), ("count", np.int64)):
        found = wane.roll([], rows=5, agg=agg)
        assert found.shape == (0,)
        assert DISABLED or found.dtype == dtype
    assert wane.roll(np.array([]), times=[], duration="5s", agg="max").shape == (0,)
    assert wane.roll([3.0], rows=10**12, agg="max").tolist() == [3.0]


def test_answers_are_independent_of_one_another():
    first = wane.roll([1.0, 2.0], rows=2, agg="sum")
    wane.roll([5.0, 7.0], rows=2, agg="sum")
    assert first.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({}, BadParameter, "give rows= or duration="),
        ({"rows": 3, "duration": "1s"}, BadParameter, "give rows= or duration="),
        ({"rows": 0}, BadParameter, "rows must be a whole number of 1 or more, got 0"),
        ({"rows": [3, True]}, BadParameter, "rows must be"),
        ({"rows": []}, BadParameter, "no length was given"),
        ({"duration": "0s", "times": [1, 2, 3]}, BadParameter, "longer than nothing"),
        ({"duration": "1s"}, BadTime, "a duration is measured in times, and none were given"),
        ({"duration": "1s", "times": [1, 2]}, BadInput, "3 values came with 2 times"),
        ({"duration": "1s", "times": [1, 3, 2]}, BadTime, "row 2 is at 2, before 3 of the row above"),
        ({"duration": "1s", "times": [1, None, 2]}, BadTime, "row 1 has no time"),
        ({"rows": 2, "agg": []}, BadParameter, "names no monoid"),
        ({"rows": 2, "agg": "maxx"}, UnknownName, "did you mean 'max'"),
        ({"rows": 2, "agg": [wane.monoids.Sum(), "sum"]}, BadParameter, "two aggregates have one name"),
        ({"rows": 2, "agg": Decayed("exp(rate=1)")}, BadTime, "depends on times, and none were given"),
        ({"rows": 2, "agg": "max", "algorithm": "subtract_on_evict"}, Unsupported, "needs a monoid that is invertible"),
        ({"rows": 2, "algorithm": "finger_tree"}, Unsupported, "a first-in-first-out window is asked for"),
        ({"rows": 2, "algorithm": "dabba"}, Unsupported, "a first-in-first-out window is asked for, got 'dabba'"),
        ({"rows": 2, "values": ["a", "b", "c"]}, BadInput, "values must be numbers"),
        ({"rows": 2, "values": "abc"}, BadInput, "values must be a column"),
        ({"rows": 2, "values": 3.0}, BadInput, "values must be a column"),
        ({"rows": 2, "values": np.ones((2, 2))}, BadInput, "one dimension"),
    ],
)
def test_bad_input_is_refused_at_once(arguments, kind, words):
    given = {"values": [1.0, 2.0, 3.0], "agg": "max", **arguments}
    with pytest.raises(kind, match=words):
        wane.roll(given.pop("values"), **given)


def test_times_further_apart_than_64_bits_hold_are_refused():
    from wane.times import Ticks

    with pytest.raises(BadTime, match="further apart than 64 bits"):
        wane.roll([1.0, 2.0], times=Ticks(np.array([-(2**63) + 1, 2**63 - 1]), "s"), duration="1s", agg="max")
