"""The judges judged: oracles against the paper and plain arithmetic, streams against what they promise."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from wane import Extrema, Moments
from wane.decay import backward, parse, pinned
from wane.errors import BadInput, MissingExtra
from wane.testing import LAWS, ORACLES, SPAN, START, Case, Exact, Stream, edges, rows, sample_decays, shapes, streams
from wane.times import SECOND, Nanoseconds, Ticks

L = 100 * SECOND
PAPER = Stream(np.array([4.0, 8.0, 3.0, 6.0, 4.0]), Ticks(np.array([105, 107, 103, 108, 104]), "s"))


def exact(question: str, stream: Stream, decay: Any, now: int, landmark: int | None = None, **given: Any) -> float:
    answer = ORACLES[question](rows(stream, parse(decay), now, landmark, **given))
    assert isinstance(answer, Exact)
    return float(answer.value)


def test_examples_1_and_2_of_the_paper() -> None:
    found = rows(PAPER, parse("poly(2)"), 110 * SECOND, L)
    assert [float(row.weight) for row in found] == [0.25, 0.49, 0.09, 0.64, 0.16]
    answers = {question: exact(question, PAPER, "poly(2)", 110 * SECOND, L) for question in ("count", "sum", "mean")}
    assert answers == {"count": 1.63, "sum": 9.67, "mean": pytest.approx(5.93, abs=0.005)}
    assert exact("var", PAPER, "poly(2)", 110 * SECOND, L) == pytest.approx(
        (0.25 * 16 + 0.49 * 64 + 0.09 * 9 + 0.64 * 36 + 0.16 * 16) / 1.63 - (9.67 / 1.63) ** 2, rel=1e-12
    )
    assert ORACLES["argmax"](found).accepts((8.0, 107 * SECOND), 0)
    assert not ORACLES["argmax"](found).accepts((6.0, 108 * SECOND), 0)
    assert (exact("min", PAPER, "poly(2)", 110 * SECOND, L), exact("max", PAPER, "poly(2)", 110 * SECOND, L)) == (
        0.27,
        3.92,
    )


@pytest.mark.parametrize(
    ("decay", "weight"),
    [
        ("none", lambda _: 1),
        ("landmark", lambda t: t > 100),
        ("poly(2)", lambda t: (t - 100) ** 2 / 100),
        ("poly(0.5)", lambda t: math.sqrt((t - 100) / 10)),
        ("polynomial(1, 0, 2)", lambda t: (1 + 2 * (t - 100) ** 2) / 201),
        ("polynomial(1, 3, unit=2s)", lambda t: (1 + 3 * (t - 100) / 2) / 16),
        ("exp(rate=0.5)", lambda t: math.exp(-0.5 * (110 - t))),
        ("exp(half_life=3s)", lambda t: 2 ** (-(110 - t) / 3)),
        ("window(5s) at 110s", lambda t: 110 - t < 5),
        ("backward poly(1.5) at 110s", lambda t: (111 - t) ** -1.5),
        ("superexp(half_life=5s) at 110s", lambda t: 2 ** (-((110 - t) ** 2) / 25)),
        ("superexp(rate=0.01) at 110s", lambda t: math.exp(-0.01 * (110 - t) ** 2)),
        ("subpoly at 110s", lambda t: 1 / (1 + math.log(111 - t))),
        ("subpoly", lambda t: 1 / (1 + math.log(111 - t))),
    ],
)
def test_weights_are_those_of_the_definitions(decay: str, weight: Any) -> None:
    found = rows(PAPER, parse(decay), 110 * SECOND, L)
    assert [float(row.weight) for row in found] == pytest.approx(
        [float(weight(t)) for t in (105, 107, 103, 108, 104)], rel=1e-14
    )


def test_a_users_function_is_its_own_definition() -> None:
    halving = pinned(backward(lambda a: 1 / (1 + a), name="testing halving"), now=110)
    assert float(rows(PAPER, halving, 110 * SECOND)[0].weight) == pytest.approx(1 / 6, rel=1e-15)


def test_rows_that_must_be_dropped_are() -> None:
    stream = Stream(
        np.array([1.0, math.nan, 1e300, 4.0, 5.0, 6.0]),
        Ticks(np.array([101, 102, 103, 104, 105, 99]), "s", np.array([True, True, True, False, True, True])),
        np.array([1.0, 1.0, 1.0, 1.0, math.inf, 2.0]),
    )
    kept = [(row.value, row.time, row.own) for row in rows(stream, parse("none"), None, L, before="drop")]
    assert kept == [(1.0, 101 * SECOND, 1.0)]
    clamped = rows(stream, parse("none"), None, L, before="clamp")
    assert [(row.value, row.time, row.own) for row in clamped] == [*kept, (6.0, L, 2.0)]
    with pytest.raises(ValueError, match="before the landmark"):
        rows(stream, parse("none"), None, L)


def test_of_ties_the_newest_then_the_largest_is_right() -> None:
    stream = Stream(np.array([2.0, 2.0, 1.0, -1.0]), Ticks(np.array([101, 102, 103, 103]), "s"))
    argmax, argmin = (ORACLES[q](rows(stream, parse("none"))) for q in ("argmax", "argmin"))
    assert argmax.accepts((2.0, 102 * SECOND), 0)
    assert not argmax.accepts((2.0, 101 * SECOND), 0)
    assert argmin.accepts((-1.0, 103 * SECOND), 0)
    weightless = rows(stream, parse("landmark"), 200 * SECOND, 150 * SECOND, before="clamp")
    assert ORACLES["argmin"](weightless).accepts((2.0, 150 * SECOND), 0)


def test_an_answer_is_judged_by_its_scale() -> None:
    right = Exact(Decimal(1), Decimal(1000))
    assert right.accepts(1 + 9e-10, 1e-12)
    assert not right.accepts(1 + 2e-9, 1e-12)
    assert not right.accepts(math.nan, 1)
    assert not right.accepts(math.inf, 1e-12)
    assert Exact(Decimal("NaN")).accepts(math.nan, 0)
    assert not Exact(Decimal("NaN")).accepts(0.0, 1)
    assert Exact(Decimal("1e400")).accepts(math.inf, 0)
    assert not Exact(Decimal("1e400")).accepts(-math.inf, 0)
    assert right.near(1.0, 1 + 9e-10, 1e-12)
    assert not right.near(1.0, math.inf, 1e-12)


def test_a_stream_is_taken_joined_and_moved() -> None:
    late = PAPER.moved(SECOND)
    both = PAPER.concat(late)
    assert len(both) == 10
    assert (PAPER.newest, both.newest) == (108 * SECOND, 109 * SECOND)
    assert both.take(slice(5, None)).instants == late.instants
    weighted = PAPER.concat(Stream(np.array([1.0]), Ticks(np.array([7]), "ns"), np.array([2.0])))
    assert weighted.weights is not None
    assert weighted.weights.tolist() == [1.0] * 5 + [2.0]
    assert weighted.instants == [*PAPER.instants, 7]
    with pytest.raises(BadInput, match="whole ticks"):
        PAPER.moved(1)
    with pytest.raises(BadInput, match="one for each"):
        Stream(PAPER.items, PAPER.times, np.ones(4))
    with pytest.raises(BadInput, match="times to both"):
        PAPER.concat(Stream(PAPER.items))


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_streams_stay_where_they_are_told(data: st.DataObject) -> None:
    start = Nanoseconds(START + data.draw(st.sampled_from([0, 1, 999_999_999])))
    until = data.draw(st.sampled_from([None, start + 2 * SECOND, start + 86400 * SECOND]))
    stream = data.draw(streams(start=start, until=until))
    known = [time for time in stream.instants if time is not None]
    assert all(start <= time <= (until or start + SPAN) for time in known)
    for made in (*edges(start=start, until=until).values(), *shapes(3, start=start, until=until).values()):
        assert all(start <= time <= (until or start + SPAN) for time in made.instants if time is not None)


def test_streams_look_for_trouble() -> None:
    seen: list[Stream] = []

    @settings(max_examples=200, suppress_health_check=list(HealthCheck))
    @given(streams(early=True))
    def collect(stream: Stream) -> None:
        seen.append(stream)

    collect()
    for sought in (
        lambda s: len(s) == 0,
        lambda s: len(s) == 1,
        lambda s: s.times.unit == "s" and len(s) > 1,
        lambda s: s.times.unit == "ns" and len(set(s.instants)) < len(s),
        lambda s: s.times.valid is not None and not s.times.valid.all(),
        lambda s: any(t is not None and t < START for t in s.instants),
        lambda s: START in s.instants,
        lambda s: (s.newest or 0) > START + SPAN // 2,
        lambda s: np.isnan(s.items).any(),
        lambda s: (s.items < 0).any(),
        lambda s: (abs(s.items) > 1e100).any(),
        lambda s: s.weights is not None and (s.weights == 0).any(),
    ):
        assert sum(bool(sought(stream)) for stream in seen) >= 3, sought  # type: ignore[no-untyped-call]


def test_shapes_are_the_same_for_a_seed() -> None:
    one, again, other = shapes(5), shapes(5), shapes(6)
    assert one.keys() == other.keys()
    for name, stream in one.items():
        assert stream.items.tobytes() == again[name].items.tobytes()
        assert len(stream) == 300
        assert stream.items.tobytes() != other[name].items.tobytes()
    keys = shapes(5, items="any")["zipf"].items
    assert keys.dtype == np.int64


def test_streams_of_keys() -> None:
    for stream in (*edges(items="any").values(), find(streams(items="any"), lambda s: len(s) > 0)):
        assert stream.items.dtype == np.int64


def test_without_hypothesis_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingExtra, match="pip install hypothesis"):
        streams()
    with pytest.raises(MissingExtra, match="pip install hypothesis"):
        LAWS["size_is_bounded"].verify(Case(Moments.SPEC, parse("none")))


def test_importing_it_loads_neither_hypothesis_nor_numba() -> None:
    code = "import sys, wane.testing; print({'hypothesis', 'numba', 'pandas', 'pytest'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_failing_law_names_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Extrema, "argmax", lambda _: None)
    with pytest.raises(AssertionError) as caught:
        LAWS["answers_are_right"].verify(Case(Extrema.SPEC, sample_decays()["none"]))
    assert "hand-made stream 'one'" in "".join(caught.value.__notes__)
