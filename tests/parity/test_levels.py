"""Two levels answer as one: whatever the budget, the batches, the split of the rows and the order of the partials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grouped_trace import HEAVY, HOLISTIC, ROWS, SIMPLE, check_heavy, check_quantiles, close, trace

from wane import fn, plan
from wane.grouped import HighLevel, LowLevel


def planned(*fns: fn.Fn, every: Any = ("time", "1 minute")) -> plan.Plan:
    return plan.build(fns, ("port",), every=every)


def run(made: plan.Plan, table: pa.Table, *, size: int, parts: int, budget: int, seed: int) -> HighLevel:
    """The answers of several low levels, each over its part of the rows, their partials in a random order."""
    random = np.random.default_rng(seed)
    hands = random.integers(0, parts, len(table))
    partials = []
    for part in range(parts):
        low = LowLevel(made, table.schema, budget=budget)
        rows = table.filter(pa.array(hands == part)).combine_chunks()
        for batch in rows.to_batches(max_chunksize=size):
            partials += low.update(batch)
        partials += low.flush()
    high = HighLevel(made, table.schema)
    for i in random.permutation(len(partials)):
        high.update(partials[i])
    return high


@pytest.mark.parametrize(("size", "parts", "budget"), [(1, 1, 1), (7, 3, 2_000), (1000, 2, 10**9), (10**6, 7, 1)])
def test_two_levels_are_one(size: int, parts: int, budget: int) -> None:
    table = trace(1, 200 if size == 1 else ROWS)
    made = planned(*SIMPLE)
    whole = LowLevel(made, table.schema, budget=None)
    list(whole.update(table.combine_chunks().to_batches()[0]))
    one = whole.answers().to_pylist()
    two = run(made, table, size=size, parts=parts, budget=budget, seed=2).answers().to_pylist()
    assert len(one) == len(two)
    for mine, theirs in zip(one, two, strict=True):
        assert close(mine, theirs), (mine, theirs)


@pytest.mark.parametrize(("size", "parts", "budget"), [(50, 1, 1), (100, 3, 20_000), (10**6, 7, 10**9)])
def test_heavy_hitters_keep_their_guarantee_over_two_levels(size: int, parts: int, budget: int) -> None:
    table = trace(3)
    made = planned(*HEAVY)
    found = run(made, table, size=size, parts=parts, budget=budget, seed=4).answers()
    check_heavy(table, found)


def test_the_same_partials_give_the_same_bytes_in_any_order() -> None:
    table = trace(5)
    made = planned(*SIMPLE, *HEAVY)
    serialised = set()
    for seed in range(3):
        low = LowLevel(made, table.schema, budget=1)
        partials = [p for batch in table.to_batches(max_chunksize=333) for p in low.update(batch)]
        high = HighLevel(made, table.schema)
        for i in np.random.default_rng(seed).permutation(len(partials)):
            high.update(partials[i])
        answers = high.answers()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, answers.schema) as writer:
            writer.write_table(answers)
        serialised.add(sink.getvalue().to_pybytes())
    assert len(serialised) == 1


def test_partials_count_rows_and_know_their_newest_time() -> None:
    table = trace(6)
    made = planned(*SIMPLE)
    high = run(made, table, size=100, parts=2, budget=1, seed=7)
    merged = high.merged().to_pylist()
    assert sum(row["rows"] for row in merged) == len(table)
    times = table.column("time").to_numpy().astype("datetime64[us]").astype(np.int64)
    assert max(row["newest"] for row in merged) == times.max()


@pytest.mark.parametrize(("size", "parts", "budget"), [(700, 1, 1), (10**6, 3, 10**9)])
def test_summaries_without_a_pool_travel_as_bytes(size: int, parts: int, budget: int) -> None:
    table = trace(8)
    made = planned(*HOLISTIC)
    found = run(made, table, size=size, parts=parts, budget=budget, seed=9).answers()
    check_quantiles(table, found)
    whole = LowLevel(made, table.schema, budget=None)
    list(whole.update(table.combine_chunks().to_batches()[0]))
    names = ["epoch", "port", "names", "ids"]  # distinct counts are a function of the set of rows
    for mine, theirs in zip(found.select(names).to_pylist(), whole.answers().select(names).to_pylist(), strict=True):
        assert close(mine, theirs), (mine, theirs)


@pytest.mark.parametrize(("size", "parts", "budget"), [(700, 2, 1), (10**6, 3, 10**9)])
def test_prefixes_are_the_same_over_two_levels(size: int, parts: int, budget: int) -> None:
    """Whole counts are, and so are weights of so few ids that they are kept apart."""
    table = trace(10)
    made = planned(fn.prefixes("ip", 0.1, exact=0), fn.hierarchical("ip", 0.1, decay="exp(half_life=10s)", exact=256))
    found = run(made, table, size=size, parts=parts, budget=budget, seed=11).answers().to_pylist()
    whole = LowLevel(made, table.schema, budget=None)
    list(whole.update(table.combine_chunks().to_batches()[0]))
    for mine, theirs in zip(found, whole.answers().to_pylist(), strict=True):
        assert mine["prefixes_ip"] == theirs["prefixes_ip"]
        assert len(mine["prefixes_ip"]) > 3
        assert mine["hierarchical_ip"] == [pytest.approx(prefix, rel=1e-12) for prefix in theirs["hierarchical_ip"]]


def test_a_plan_with_levels_is_the_same_as_text() -> None:
    made = planned(fn.prefixes("ip", 0.1, levels=(16, 32)), fn.quantiles("len", [0.5], method="gk"))
    assert plan.Plan.from_json(made.to_json()) == made
