"""The worked examples of "Forward Decay" (ICDE 2009), with the figures that the paper prints."""

from __future__ import annotations

import math

import pytest

from wane.decay import parse
from wane.summaries.extrema import Extrema
from wane.summaries.moments import Moments

STREAM = [(105, 4), (107, 8), (103, 3), (108, 6), (104, 4)]
TIMES, VALUES = map(list, zip(*STREAM, strict=True))
LANDMARK, NOW = 100, 110
WEIGHTS = [0.25, 0.49, 0.09, 0.64, 0.16]


@pytest.fixture(params=["all at once", "one by one", "merged"])
def moments(request: pytest.FixtureRequest) -> Moments:
    made = Moments("poly(2)", landmark=LANDMARK)
    if request.param == "all at once":
        return made.update(VALUES, TIMES)
    for time, value in STREAM:
        if request.param == "merged":
            made.merge(Moments("poly(2)", landmark=LANDMARK).update(value, time))
        else:
            made.update(value, time)
    return made


def test_example_1_the_decayed_weights() -> None:
    decay = parse("poly(2)")
    assert decay.weight(TIMES, now=NOW, landmark=LANDMARK).tolist() == pytest.approx(WEIGHTS, rel=1e-15)
    assert [decay.weight(t, now=NOW, landmark=LANDMARK) for t in TIMES] == pytest.approx(WEIGHTS, rel=1e-15)


def test_example_1_a_general_polynomial_and_a_function_give_the_same() -> None:
    from wane.decay import forward

    for decay in (parse("polynomial(0, 0, 1)"), forward(lambda n: n * n, name="square of example 1")):
        assert decay.weight(TIMES, now=NOW, landmark=LANDMARK).tolist() == pytest.approx(WEIGHTS, rel=1e-15)


def test_example_2_count_sum_and_average(moments: Moments) -> None:
    assert moments.count(now=NOW) == pytest.approx(1.63, rel=1e-14)
    assert moments.sum(now=NOW) == pytest.approx(9.67, rel=1e-14)
    assert round(moments.mean(), 2) == 5.93


def test_example_2_the_average_does_not_depend_on_when_it_is_asked(moments: Moments) -> None:
    for now in (110, 111, 1000, 10**9):
        scale = 100 / (now - LANDMARK) ** 2
        assert moments.count(now=now) == pytest.approx(1.63 * scale, rel=1e-14)
        assert moments.sum(now=now) / moments.count(now=now) == pytest.approx(moments.mean(), rel=1e-14)


def test_section_4_variance_is_of_the_weights_as_probabilities(moments: Moments) -> None:
    squares = sum(w * v * v for w, v in zip(WEIGHTS, VALUES, strict=True)) / 1.63
    assert moments.var() == pytest.approx(squares - (9.67 / 1.63) ** 2, rel=1e-13)


def test_definition_6_min_and_max() -> None:
    extrema = Extrema("poly(2)", landmark=LANDMARK).update(VALUES, TIMES)
    products = [w * v for w, v in zip(WEIGHTS, VALUES, strict=True)]
    assert extrema.min(now=NOW) == pytest.approx(min(products), rel=1e-14)
    assert extrema.max(now=NOW) == pytest.approx(max(products), rel=1e-14)


def test_example_3_heavy_hitters() -> None:
    counts: dict[int, Moments] = {}
    for time, value in STREAM:
        counts.setdefault(value, Moments("poly(2)", landmark=LANDMARK)).update(1.0, time)
    decayed = {value: count.count(now=NOW) for value, count in sorted(counts.items())}
    assert decayed == pytest.approx({3: 0.09, 4: 0.41, 6: 0.64, 8: 0.49}, rel=1e-14)
    total = math.fsum(decayed.values())
    assert total == pytest.approx(1.63, rel=1e-14)
    assert 0.2 * total == pytest.approx(0.326, rel=1e-14)
    assert [value for value, count in decayed.items() if count >= 0.2 * total] == [4, 6, 8]


def test_example_3_from_the_weights_alone() -> None:
    weights = parse("poly(2)").weight(TIMES, now=NOW, landmark=LANDMARK)
    decayed = {v: math.fsum(w for w, u in zip(weights, VALUES, strict=True) if u == v) for v in set(VALUES)}
    assert {v for v, d in decayed.items() if d >= 0.2 * math.fsum(weights)} == {4, 6, 8}


def test_figure_1_relative_decay() -> None:
    decay = parse("poly(2)")
    for now in (102, 110, 200, 10**6, 10**9):
        assert decay.weight((LANDMARK + now) / 2, now=now, landmark=LANDMARK) == 0.25


def test_section_4_the_query_over_a_minute() -> None:
    # sum(len * (time % 60)^2) / 3600 group by time/60: the landmark is the minute's start, now its end
    rows = [(time, 40 + time % 7) for time in range(600, 660)]
    expected = sum(length * (time % 60) ** 2 for time, length in rows) / 3600
    minute = Moments("poly(2)", landmark=600).update([length for _, length in rows], [time for time, _ in rows])
    assert minute.sum(now=660) == pytest.approx(expected, rel=1e-14)
