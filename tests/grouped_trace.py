"""A trace with groups, the questions that are asked of it, and what their answers must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wane import fn
from wane._jit import DISABLED

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


def close(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, dict):
        return mine.keys() == theirs.keys() and all(close(mine[k], theirs[k]) for k in mine)
    if isinstance(mine, float):
        return mine == pytest.approx(theirs, rel=1e-12, abs=1e-9) or (np.isnan(mine) and np.isnan(theirs))
    return bool(mine == theirs)


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


HOLISTIC = (
    fn.quantiles("len", [0.1, 0.5, 0.99], epsilon=0.05, decay=EXP).alias("lengths"),
    fn.distinct("host", epsilon=0.3, decay="poly(2)").alias("names"),
    fn.distinct("ip", epsilon=0.3).alias("ids"),
)


def check_quantiles(table: pa.Table, found: pa.Table) -> None:
    """Judge the quantiles of :data:`HOLISTIC` by epoch and port against sorted weights."""
    groups: dict[Any, list[tuple[float, float]]] = {}
    for row in table.select(["time", "port", "len"]).to_pylist():
        epoch, into = divmod(_micros(row["time"]) - START * 10**6, 60 * 10**6)
        groups.setdefault((epoch, row["port"]), []).append((row["len"], 2.0 ** ((into / 1e6 - 60) / 10)))
    assert len(found) == len(groups)
    for row in found.to_pylist():
        weighed = sorted(groups[(_micros(row["epoch"]) - START * 10**6) // (60 * 10**6), row["port"]])
        total = sum(weight for _, weight in weighed)
        for phi, value in zip((0.1, 0.5, 0.99), row["lengths"], strict=True):
            below = sum(weight for other, weight in weighed if other < value)
            upto = sum(weight for other, weight in weighed if other <= value)
            assert below - 0.05 * total - 1e-9 <= phi * total <= upto + 0.05 * total + 1e-9
