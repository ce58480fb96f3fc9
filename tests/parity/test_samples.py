"""Samples of groups: with ids they are those of the rows however these are spread, without ids they are fair."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grouped_trace import EXP, trace

from wane import PrioritySample, fn, local, plan, states
from wane.errors import BadInput, BadParameter, MergeRefused, UnknownName, Unsupported
from wane.grouped import HighLevel, LowLevel
from wane.testing import ALARM, chi_square
from wane.times import Nanoseconds

METHODS = ("priority", "weighted", "with_replacement", "uniform")


def table(seed: int) -> pa.Table:
    rows = trace(seed)
    return rows.append_column("id", pa.array([f"row {i}" for i in range(len(rows))]))


def asked(method: str, **named: Any) -> fn.Fn:
    return fn.sample("host", 4, method=method, decay="none" if method == "uniform" else EXP, **named).alias("drawn")


def two_levels(made: plan.Plan, rows: pa.Table, seed: int, budget: int = 1) -> pa.Table:
    """The answers of several low levels of a small budget, their partials in a random order."""
    random = np.random.default_rng(seed)
    hands = random.permutation(np.arange(len(rows)) % 3)
    partials = []
    for hand in range(3):
        low = LowLevel(made, rows.schema, budget=budget, part=str(hand))
        for batch in rows.filter(pa.array(hands == hand)).combine_chunks().to_batches(max_chunksize=200):
            partials += low.update(batch)
        partials += low.flush()
    high = HighLevel(made, rows.schema)
    for i in random.permutation(len(partials)):
        high.update(partials[i])
    return high.answers()


@pytest.mark.parametrize("method", METHODS)
def test_with_ids_answers_are_those_of_the_rows(method: str) -> None:
    rows = table(1)
    made = plan.build([asked(method, ids="id")], ("port",), every=("time", "1 minute"))
    whole = local.group(rows, "port", every=("time", "1 minute")).agg(asked(method, ids="id"))
    assert two_levels(made, rows, 2).to_pylist() == whole.to_pylist()
    kept = local.group(rows, "port", every=("time", "1 minute"))
    assert states.merge(kept.states(asked(method, ids="id"))).answer().to_pylist() == whole.to_pylist()


def test_a_group_has_the_sample_that_its_rows_have() -> None:
    rows = table(2).filter(pa.compute.field("host").is_valid())
    found = local.group(rows, "port", time="time").agg(asked("priority", ids="id", seed=3)).to_pylist()
    now = Nanoseconds(int(np.max(rows["time"].to_numpy().astype("datetime64[ns]").astype(np.int64))))
    for row in found:
        own = rows.filter(pa.array([port == row["port"] for port in rows["port"].to_pylist()]))
        one = PrioritySample(4, EXP, seed=3).update(own["host"], own["time"], ids=own["id"])
        assert [draw._asdict() for draw in one.sample(now)] == row["drawn"]


@pytest.mark.jit_only
@pytest.mark.parametrize("method", METHODS)
def test_without_ids_every_row_is_as_likely(method: str) -> None:
    """Equal rows in every part, and no times: only the parts and the flushes tell their random streams apart."""
    made = plan.build([fn.sample("v", 6, method=method).alias("drawn")])
    counts: Counter[int] = Counter()
    trials = 300
    for seed in range(trials):
        rows = pa.table({"v": np.resize(np.random.default_rng(seed).permutation(10), 60)})
        (answer,) = two_levels(made, rows, seed)["drawn"].to_pylist()
        assert len(answer) == 6
        counts.update(draw["item"] for draw in answer)
    assert chi_square([counts[i] for i in range(10)], [6 * trials / 10] * 10) > ALARM


@pytest.mark.jit_only
@pytest.mark.parametrize("method", METHODS)
def test_the_weight_of_a_group_is_estimated_over_two_levels(method: str) -> None:
    """The mean over many streams of what the draws stand for is the number of rows, though all rows are alike."""
    rows = pa.table({"v": np.zeros(99, np.int64)})
    found = []
    for seed in range(200):
        made = plan.build([fn.sample("v", 8, method=method, seed=seed).alias("drawn")])
        found.append(sum(draw["stands_for"] for draw in two_levels(made, rows, 5)["drawn"].to_pylist()[0]))
    assert abs(np.mean(found) - 99) < 5 * np.std(found) / np.sqrt(len(found))
    assert np.std(found) == pytest.approx(99 / np.sqrt(7), rel=0.35)  # independent parts: no more, no less


def test_the_same_rows_give_the_same_answer_again() -> None:
    rows = table(3)
    made = plan.build([asked("priority")], ("port",), every=("time", "1 minute"))
    one, again = (two_levels(made, rows, 4, budget=20_000).to_pylist() for _ in range(2))
    assert one == again


def test_states_of_other_files_merge_and_roll_up_and_those_of_one_file_do_not_merge_twice() -> None:
    rows = table(4)
    files = [rows.slice(0, 2000), rows.slice(2000)]
    kept = [local.group(part, "port", every=("time", "20s")).states(asked("weighted"), fn.count()) for part in files]
    for row in states.merge(*kept).over("1 minute").answer().to_pylist():
        assert len(row["drawn"]) == 4
    with pytest.raises(MergeRefused, match="give each part"):
        states.merge(kept[0], kept[0]).answer()


def test_rows_without_an_id_are_dropped_and_counted() -> None:
    rows = pa.table({"v": [1, 2, 3, None], "id": ["a", None, "c", "d"]})
    found = local.group(rows).agg(fn.sample("v", 5, ids="id"), fn.count())
    assert {draw["item"] for draw in found["sample_v"].to_pylist()[0]} == {1, 3}
    assert local.dropped(found) == {"value of v": 1, "ids of id": 1}
    assert found["count"].to_pylist() == [4.0]
    numbers = pa.table({"v": [1, 2, 3], "id": [1.0, np.nan, 3.0]})
    assert len(local.group(numbers).agg(fn.sample("v", 5, ids=fn.expr("id * 2")))["sample_v"].to_pylist()[0]) == 2


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda: fn.sample("v", method="best"), BadParameter, "method must be one of priority, weighted"),
        (lambda: fn.sample("v", 0), BadParameter, "k must be a whole number"),
        (lambda: fn.sample("v", ids=3), BadParameter, "ids= is a column's name"),
        (lambda: fn.ask("sample", "v", summary="moments"), UnknownName, "'moments' does not answer 'sample'"),
        (lambda: one(fn.sample("v", method="uniform", decay=EXP)), Unsupported, "reservoir cannot be kept under exp"),
        (lambda: one(fn.sample("v", method="uniform", decay="backward poly(1)")), Unsupported, "cannot be kept under"),
        (lambda: one(fn.sample("v", ids="nowhere")), BadInput, "no column 'nowhere'"),
        (lambda: one(fn.sample("v", ids="list")), BadInput, "rows cannot be told apart by"),
    ],
)
def test_what_is_wrong_is_said_when_the_query_is_built(ask: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        ask()


def one(what: fn.Fn) -> pa.Table:
    return local.group(pa.table({"t": [1], "v": [1], "list": [[1]]}), every=("t", "1m")).agg(what)


def test_a_uniform_sample_takes_windows_of_zero_or_one() -> None:
    rows = pa.table({"t": np.arange(60), "v": np.arange(60)})
    sampled = fn.sample("v", 50, method="uniform", decay="window(20s)")
    (drawn,) = local.group(rows, every=("t", "1m")).agg(sampled)["sample_v"].to_pylist()
    assert sorted(draw["item"] for draw in drawn) == list(range(41, 60))


def test_a_description_says_what_it_asks() -> None:
    assert str(fn.sample("v", ids="id", decay=EXP)) == "sample(v, ids=id) decay exp(half_life=10s) as sample_v"
