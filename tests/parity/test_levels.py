"""Two levels answer as one: whatever the budget, the batches, the split of the rows and the order of the partials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wane import fn, plan
from wane._jit import DISABLED
from wane.grouped import HighLevel, LowLevel

ROWS = 300 if DISABLED else 4000
START = 1_767_225_600


def trace(seed: int, rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(seed)
    items = np.minimum(random.zipf(1.4, rows), 200)
    names = np.array([f"host{i}" for i in range(201)], object)[items]
    micros = (START * 10**6 + random.integers(0, 180 * 10**6, rows)).astype("datetime64[us]")
    return pa.table(
        {
            "time": pa.array(micros),
            "port": pa.array(random.integers(0, 4, rows), mask=random.random(rows) < 0.1),
            "ip": pa.array(items),
            "host": pa.array(names, mask=random.random(rows) < 0.05),
            "len": random.normal(500, 200, rows),
        }
    )


EXP = "exp(half_life=10s)"
SIMPLE = (
    fn.count(decay=EXP).alias("hits"),
    fn.sum("len", decay="poly(2)"),
    fn.mean("len"),
    fn.var("len", decay=EXP),
    fn.min("len", decay="poly(1)"),
    fn.argmax("len", decay="backward poly(1.5)"),
)
HEAVY = (
    fn.top("ip", 3, epsilon=0.02, decay=EXP).alias("ips"),
    fn.top("host", 3, epsilon=0.02, decay="poly(2)").alias("hosts"),
    fn.heavy("ip", 0.1, epsilon=0.02).alias("heavy"),
)


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


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, dict):
        return mine.keys() == theirs.keys() and all(close(mine[k], theirs[k]) for k in mine)
    if isinstance(mine, float):
        return mine == pytest.approx(theirs, rel=1e-12, abs=1e-9) or (np.isnan(mine) and np.isnan(theirs))
    return bool(mine == theirs)


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


def check_heavy(table: pa.Table, found: pa.Table) -> None:
    """Judge :data:`HEAVY` by epoch and port against weights added up one by one."""
    exact: dict[Any, dict[str, dict[Any, float]]] = {}
    for row in table.to_pylist():
        micros = round(row["time"].timestamp() * 10**6) if row["time"].tzinfo else _micros(row["time"])
        epoch, into = divmod(micros - START * 10**6, 60 * 10**6)
        age = into / 1e6
        group = exact.setdefault((epoch, row["port"]), {"ips": {}, "hosts": {}, "heavy": {}})
        for name, item, weight in (
            ("ips", row["ip"], 2.0 ** ((age - 60) / 10)),
            ("hosts", row["host"], (age / 60) ** 2),
            ("heavy", row["ip"], 1.0),
        ):
            if item is not None:
                group[name][item] = group[name].get(item, 0.0) + weight
    assert len(found) == len(exact)
    for row in found.to_pylist():
        epoch = (_micros(row["epoch"]) - START * 10**6) // (60 * 10**6)
        group = exact[epoch, row["port"]]
        for name in ("ips", "hosts", "heavy"):
            judge(row[name], group[name], None if name == "heavy" else 3, 0.1)


def judge(
    hits: list[dict[str, Any]], weights: dict[Any, float], k: int | None, phi: float, epsilon: float = 0.02
) -> None:
    total = sum(weights.values())
    slack = 1e-9 * total
    named = {hit["item"] for hit in hits}
    assert len(named) == len(hits)
    assert [hit["weight"] for hit in hits] == sorted((hit["weight"] for hit in hits), reverse=True)
    for hit in hits:
        true = weights.get(hit["item"], 0.0)
        assert hit["weight"] - hit["error"] - slack <= true <= hit["weight"] + slack
        assert hit["error"] <= epsilon * total + slack
    others = [weight for item, weight in weights.items() if item not in named]
    if k is None:
        assert all(weights.get(item, 0.0) >= (phi - epsilon) * total - slack for item in named)
        assert all(weight < phi * total + slack for weight in others)
    else:
        assert len(hits) == min(k, len(hits))
        least = min((hit["weight"] for hit in hits), default=0.0) if len(hits) == k else epsilon * total
        assert all(weight <= least + slack for weight in others)


def _micros(time: Any) -> int:
    return int(np.datetime64(time.replace(tzinfo=None), "us").astype(np.int64))


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
