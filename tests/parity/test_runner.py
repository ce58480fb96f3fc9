"""The local runner: threads, levels, several queries at once, files of text, bounds, and what it says of a run."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from grouped_trace import EXP, HEAVY, HOLISTIC, SIMPLE, check_heavy, check_quantiles, close, trace

from wane import fn, local, plan, states
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter, CorruptState
from wane.grouped.pool import ObjectPool

EVERY = ("time", "1 minute")
PHIS = (0.0, 0.1, 0.5, 0.99, 1.0)


def alike(mine: pa.Table, theirs: pa.Table) -> None:
    assert mine.schema.remove_metadata() == theirs.schema.remove_metadata()
    one, two = mine.to_pylist(), theirs.to_pylist()
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert close(a, b), (a, b)


HOWS = [
    {"threads": 2},
    {"threads": 3, "levels": 2, "budget": 900_000},
    {"threads": 2, "budget": 600_000},
    {"levels": 2},
    {"levels": 3, "cache": "lru", "slots": 4},
    {"levels": 1},
]


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_the_way_it_is_run_does_not_change_the_answers(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_DEALT", 211)
    table = trace(40)
    query = local.group(table, "port", every=EVERY, **how)
    alike(query.agg(*SIMPLE), local.group(table, "port", every=EVERY).agg(*SIMPLE))
    found = query.agg(*HEAVY, *HOLISTIC)
    check_heavy(table, found)
    check_quantiles(table, found)
    assert query.agg(*SIMPLE, *HEAVY, *HOLISTIC[:1]).equals(query.agg(*SIMPLE, *HEAVY, *HOLISTIC[:1]))  # every time
    assert len(query.states(*SIMPLE)) >= len(found)


def test_what_goes_wrong_in_a_thread_is_told() -> None:
    table = pa.table({"t": [10, 5], "v": [1, 2]})
    with pytest.raises(BadParameter, match="no option"):
        local.several(table, local.group(table).plan(fn.count()), thread=2)
    with pytest.raises(Exception, match="before the landmark"):
        local.group(table, time="t", threads=2).agg(fn.count(decay="poly(1)", landmark=7))


def test_several_queries_share_one_pass() -> None:
    table = trace(41)
    by_port = local.group(table, "port", every=EVERY)
    plans = [
        by_port.plan(fn.count(decay=EXP), fn.mean("len")),
        by_port.plan(fn.var("len").alias("count"), fn.count(decay=EXP).alias("hits")),
        local.group(table, "host").plan(fn.sum("len")),
        local.group(table, "port", every=EVERY, where="len > 500").plan(fn.count()),
    ]
    joined = plan.together(plans)
    assert [places for places, _ in joined] == [[0, 1], [2], [3]]
    assert len(joined[0][1].plan.states) == 2
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=700))  # it reads once only
    for how in ({}, {"threads": 2}):
        source = table if how else reader
        found = local.several(source, *plans, **how)
        asked = [
            by_port.agg(fn.count(decay=EXP), fn.mean("len")),
            by_port.agg(fn.var("len").alias("count"), fn.count(decay=EXP).alias("hits")),
            local.group(table, "host").agg(fn.sum("len")),
            local.group(table, "port", every=EVERY, where="len > 500").agg(fn.count()),
        ]
        for mine, theirs in zip(found, asked, strict=True):
            alike(mine, theirs)
    with pytest.raises(BadParameter, match="nothing to run"):
        local.several(table)


def test_counts_follow_a_column_until_a_value_is_missing() -> None:
    values = pa.array([1.0, 2.0, None, 4.0, None, 6.0])
    table = pa.table({"k": ["a", "b", "a", "a", "b", "b"], "v": values, "t": [1, 2, 3, 4, 5, 6]})
    fns = [
        fn.count(),
        fn.sum("v"),
        fn.count("v").alias("there"),
        fn.count(decay=EXP).alias("d"),
        fn.sum("v", decay=EXP),
    ]
    fns[-1] = fns[-1].alias("ds")
    wanted = [
        {"k": "a", "count": 3.0, "sum_v": 5.0, "there": 2.0},
        {"k": "b", "count": 3.0, "sum_v": 8.0, "there": 2.0},
    ]
    for size in (1, 2, 6):
        for how in ({}, {"levels": 2}, {"cache": "direct", "slots": 1}):
            source = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))
            local_batch, local.BATCH = local.BATCH, size  # so that small batches stay small
            try:
                rows = local.group(source, "k", time="t", **how).agg(*fns).to_pylist()
            finally:
                local.BATCH = local_batch
            for row, true in zip(rows, wanted, strict=True):
                assert {name: row[name] for name in true} == true
            ages = {"a": [5, 3, 2], "b": [4, 1, 0]}
            for row in rows:
                assert row["d"] == pytest.approx(sum(2 ** (-age / 10) for age in ages[row["k"]]), rel=1e-14)
            assert rows[0]["ds"] == pytest.approx(2**-0.5 + 4 * 2**-0.2, rel=1e-14)


def test_a_column_may_be_items_and_numbers_at_once() -> None:
    table = trace(42)
    asked = (fn.top("ip", 3), fn.sum("ip"), fn.quantiles("ip", [0.5]), fn.max("ip"), fn.distinct("ip", epsilon=0.3))
    both = local.group(table, "port").agg(*asked)
    for one in asked:
        assert both[one.name].equals(local.group(table, "port").agg(one)[one.name])


def test_bounds_say_which_groups_are_exact() -> None:
    random = np.random.default_rng(43)
    rows = 3000
    table = pa.table(
        {
            "k": np.where(np.arange(rows) < rows - 6, 0, 1),
            "v": random.normal(size=rows),
            "i": random.integers(0, 500, rows),
        }
    )
    query = local.group(table, "k")
    fns = (
        fn.count(),
        fn.max("v"),
        fn.top("i", 2, epsilon=0.02),
        fn.quantiles("v", [0.5], epsilon=0.2),
        fn.distinct("i", epsilon=0.3),
    )
    many, few = query.agg(*fns, bounds=True).to_pylist()
    exact = {"error": 0.0, "exact": True}
    assert few["count_bounds"] == few["max_v_bounds"] == few["top_i_bounds"] == few["quantiles_v_bounds"] == exact
    assert many["count_bounds"] == many["max_v_bounds"] == exact
    assert many["top_i_bounds"] == {"error": 0.02, "exact": False}
    assert many["quantiles_v_bounds"] == {"error": 0.2, "exact": False}
    assert many["distinct_i_bounds"]["exact"] is False
    true = sorted(table["v"].to_pylist()[-6:])
    assert few["quantiles_v"] == [true[2]]
    plain = query.agg(*fns)
    assert [name for name in query.agg(*fns, bounds=True).schema.names if not name.endswith("_bounds")] == (
        plain.schema.names
    )
    with pytest.raises(BadParameter, match="there is one; give it another name"):
        query.agg(fn.count(), fn.sum("v").alias("count_bounds"), bounds=True)


@pytest.mark.parametrize("form", ["one", "glob", "list", "folder", "packed"])
def test_files_of_text_are_read(form: str, tmp_path: Path) -> None:
    table = pa.table({"t": [1, 61, 2, 62], "k": ["a", "b", "a", None], "v": [1.5, 2.5, 3.5, 4.5]})
    halves = [table] if form == "one" else [table.slice(0, 2), table.slice(2)]
    paths = [tmp_path / f"{i}.csv" for i in range(len(halves))]
    for path, half in zip(paths, halves, strict=True):
        pa.csv.write_csv(half, path)
        if form == "packed":
            path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    source: Any = {
        "one": paths[0],
        "glob": str(tmp_path / "*.csv"),
        "list": paths,
        "folder": tmp_path,
        "packed": str(tmp_path / "*.csv.gz"),
    }[form]
    found = local.group(source, "k", every=("t", 60)).agg(fn.sum("v").alias("s")).to_pylist()
    # In a file of text what is empty is an empty text, unless it says otherwise.
    assert (found[0]["epoch"], found[0]["s"]) == (0, 5.0)
    assert sum(row["s"] for row in found) == 12.0


def test_files_of_text_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\na,1\nb\n")
    found = local.group(tmp_path / "a.csv", "k").agg(fn.sum("v"))
    assert local.dropped(found) == {"row of another length": 1}
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="of several kinds, csv, parquet"):
        local.group([tmp_path / "a.csv", tmp_path / "b.parquet"], "k").agg(fn.sum("v"))


def test_frames_with_threads() -> None:
    table = trace(44).select(["port", "len"])
    wanted = local.group(table, "port").agg(fn.sum("len"))
    for frame in (pl.from_arrow(table), pd.DataFrame({"port": table["port"].to_pandas(types_mapper=None)})):
        if isinstance(frame, pl.DataFrame):
            alike(local.group(frame, "port", threads=2).agg(fn.sum("len")), wanted)
        else:
            assert len(local.group(frame, "port", threads=2).agg(fn.count())) == len(wanted)


def test_explain_says_how_and_why() -> None:
    table = trace(45)
    fns = (fn.count(), fn.sum("len"), fn.top("ip", 3), fn.quantiles("len", [0.5]), fn.distinct("host"))
    said = local.group(table, "port", every=EVERY).explain(*fns)
    assert str(local.group(table, "port", every=EVERY).plan(*fns)) in said
    assert "levels: 1, since one process and no budget" in said
    assert f"sample: {len(table):,} rows" in said
    assert "state 0 for count: moments: none of its own" in said
    assert "state 1 for sum_len: moments: sums in one line" in said
    assert "state 2 for top_ip: spacesaving: buffer and hash: exact up to 1000 items" in said
    assert "exact up to 100 values, a q-digest of more" in said
    assert "one object for each group: there is no native pool" in said
    assert "bytes a group" in said
    assert "measured" not in said
    ran = local.group(table, "port", every=EVERY, budget=100_000, threads=2).explain(*fns, run=True)
    assert "levels: 3, since each thread's partials are merged" in ran
    assert f"measured: {len(table):,} rows in, " in ran
    assert "time: low level" in ran
    assert f"dropped: value of host {table['host'].null_count:,}" in ran
    cached = local.group(table.to_reader(), "port", cache="lru", slots=3, shed=0.5).explain(fn.count(), run=True)
    assert "low level: a cache of 3 groups, lru (any slot" in cached
    assert "shed: 50.0% of the groups" in cached
    assert "sample" not in cached
    tight = local.group(table, "len", budget=30_000).explain(fn.count())
    assert "groups are kept on trial, else rows go up as they are" in tight
    hopping = local.group(table, every=EVERY, slide="20s")
    assert "panes of 20s, 3 to an epoch" in hopping.explain(fn.count())
    assert "each row goes into its 3 epochs by itself" in hopping.explain(fn.count(decay="poly(2)"))


def test_a_run_is_measured() -> None:
    table = trace(46)
    found = local.group(table, "port", cache="direct", slots=2).agg(fn.count())
    said = local.measured(found)
    assert said["rows"] == len(table)
    assert said["ejections"] > 0
    assert said["partials"] >= said["ejections"]
    assert said["peak bytes"] > 0
    assert local.measured(local.group(table).agg(fn.count()))["partials"] == 0


def test_pools_answer_as_one_object_for_each_group(monkeypatch: pytest.MonkeyPatch) -> None:
    table = trace(47)
    plain = ("hits", "sum_len", "mean_len", "var_len", "min_len", "names", "ids")
    pooled = local.group(table, "port", every=EVERY).agg(*SIMPLE, *HEAVY, *HOLISTIC)
    exact = local.group(table, "host", every=EVERY).agg(fn.quantiles("len", PHIS))
    with monkeypatch.context() as patch:
        patch.setattr("wane.grouped.states.make_pool", lambda *args: ObjectPool(*args))
        objects = local.group(table, "port", every=EVERY).agg(*SIMPLE[:5], *HOLISTIC)
        theirs = local.group(table, "host", every=EVERY).agg(fn.quantiles("len", PHIS))
    for row, other in zip(pooled.select(plain).to_pylist(), objects.select(plain).to_pylist(), strict=True):
        assert close(row, other), (row, other)
    check_heavy(table, pooled)
    check_quantiles(table, pooled)
    check_quantiles(table, objects)
    for row, other in zip(exact.to_pylist(), theirs.to_pylist(), strict=True):
        assert row["quantiles_len"] == other["quantiles_len"]  # so few values are kept as they are


def test_quantiles_of_many_groups_keep_their_guarantee() -> None:
    """Groups of one row and of thousands, of doubles that hardly repeat and of a few numbers, at every level."""
    random = np.random.default_rng(48)
    rows = 1500 if DISABLED else 120_000
    keys = np.minimum(random.zipf(1.5, rows), 40)
    times = np.sort(random.integers(0, 60, rows))
    values = np.where(keys % 2 == 0, random.normal(0, 1e3, rows), random.integers(-20, 20, rows))
    table = pa.table({"t": times, "k": keys, "v": values})
    epsilon = 0.05
    for decay, weights in (("none", np.ones(rows)), (EXP, 2.0 ** ((times - 60) / 10)), ("poly(2)", (times / 60) ** 2)):
        asked = fn.quantiles("v", PHIS, epsilon=epsilon, decay=decay).alias("q")
        for how in ({}, {"threads": 2}, {"budget": 400_000}, {"cache": "direct", "slots": 5}):
            found = local.group(table, "k", every=("t", 60), **how).agg(asked, bounds=True)
            assert len(found) == len(np.unique(keys))
            for row in found.to_pylist():
                mine = keys == row["k"]
                column, weighed = values[mine], weights[mine]
                total = weighed.sum()
                allowed = row["q_bounds"]["error"] + 1e-9
                for phi, value in zip(PHIS, row["q"], strict=True):
                    if not total:
                        assert np.isnan(value)
                        continue
                    below = weighed[column < value].sum() / total
                    upto = weighed[column <= value].sum() / total
                    assert below - allowed <= phi <= upto + allowed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"s0_levels": [100, 0]}, "not in order"),
        ({"s0_highs": [9, 3]}, "not in order"),
        ({"s0_loads": [1.0, -1.0]}, "do not fit its count"),
        ({"s0_loads": [1.0, float("nan")]}, "do not fit its count"),
        ({"s0_loads": [1.0]}, "differ in length"),
        ({"s0_levels": [0, 3]}, "do not fit its count"),
        ({"s0_highs": [-3, -1]}, "not where its values are"),
    ],
)
def test_forged_nodes_are_refused(change: dict[str, list[Any]], words: str) -> None:
    kept = local.group(pa.table({"v": [1.0, 2.0]})).states(fn.quantiles("v", [0.5], epsilon=0.1))
    for name, value in change.items():
        at = kept.schema.get_field_index(name)
        kept = kept.set_column(at, kept.schema.field(at), pa.array([value], kept.schema.field(at).type))
    with pytest.raises(CorruptState, match=words):
        states.merge(kept).answer()
