"""Files that are opened in the workers: the answers of a DataFrame of the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grouped_trace import EXP, HEAVY, SIMPLE, check_heavy, close, trace
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import wane.spark as ws
from wane import fn, local
from wane.errors import BadInput, BadParameter

EVERY = ("time", "1 minute")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    made = trace(4)
    stamps = made.column("time").cast(pa.timestamp("ns", "UTC"))
    kinds = {"port": pa.uint16(), "ip": pa.uint32()}
    for name, kind in kinds.items():
        made = made.set_column(made.schema.get_field_index(name), name, made.column(name).cast(kind))
    return made.set_column(0, "time", stamps).append_column("seen", stamps).sort_by("time")


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of a few row groups each, and one that has none."""
    made = tmp_path_factory.mktemp("scan")
    third = -(-len(table) // 3)
    for i in range(3):
        pq.write_table(table.slice(i * third, third), made / f"part-{i}.parquet", row_group_size=-(-third // 4))
    pq.write_table(table.slice(0, 0), made / "part-9.parquet")
    (made / "_SUCCESS").write_text("")
    return made


def require_alike(mine: pa.Table, theirs: pa.Table, *keys: str) -> None:
    order = [(name, "ascending") for name in keys]
    one, two = mine.sort_by(order).to_pylist(), theirs.sort_by(order).to_pylist()
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert close(a, b), f"{a}\n{b}"


def test_a_scan_answers_as_the_local_engine_does(spark: SparkSession, table: pa.Table, folder: Path) -> None:
    for path in (str(folder), f"{folder}/*.parquet", f"{folder}/part-?.parquet", folder.as_uri()):
        scan = ws.scan(spark, path)
        assert scan.rows == len(table)
        found = ws.group(scan, "port", every=EVERY).agg(*SIMPLE, *HEAVY)
        wanted = local.group(table, "port", every=EVERY).agg(*SIMPLE)
        answers = found.toArrow()
        mine = answers.select(wanted.schema.names).sort_by([("epoch", "ascending"), ("port", "ascending")])
        for a, b in zip(mine.to_pylist(), wanted.to_pylist(), strict=True):
            a["argmax_len"]["time"] = b["argmax_len"]["time"] = None  # Spark's times have no nanoseconds
            a["epoch"] = b["epoch"] = None
            assert close(a, b), f"{a}\n{b}"
    check_heavy(trace(4), answers)
    assert dict(found.dtypes)["ips"] == "array<struct<item:bigint,weight:double,error:double>>"


def test_now_is_the_newest_time_of_all_files(spark: SparkSession, table: pa.Table, folder: Path) -> None:
    asked = (fn.count(decay=EXP), fn.var("len", decay="poly(2)", landmark="2026-01-01"))
    for where in (None, "ip < 3"):
        found = ws.group(ws.scan(spark, str(folder)), "port", time="time", where=where).agg(*asked).toArrow()
        require_alike(found, local.group(table, "port", time="time", where=where).agg(*asked), "port")


def test_row_groups_that_a_filter_cannot_meet_are_not_read(spark: SparkSession, folder: Path, table: pa.Table) -> None:
    late = float(np.quantile(table.column("ip").to_numpy(), 0.5))
    whole = ws.scan(spark, str(folder))
    none = ws.scan(spark, str(folder), where="ip > 1000")
    assert not none.splits
    assert none.to_df().count() == 0
    assert ws.group(none).agg(fn.count()).collect() == [(0.0,)]
    some = ws.scan(spark, str(folder), where=f"ip > {late}")
    assert len(some.splits) <= len(whole.splits)
    found = ws.group(some, "port", where="len > 500").agg(fn.count(), fn.var("len"))
    wanted = local.group(table.filter(pa.compute.greater(table["ip"], late)), "port", where="len > 500")
    require_alike(found.toArrow(), wanted.agg(fn.count(), fn.var("len")), "port")
    assert some.to_df().count() == sum(ip > late for ip in table["ip"].to_pylist())


def test_times_of_the_day_prune_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": range(1000), "v": [1.0] * 1000}), tmp_path / "a.parquet", row_group_size=100)
    for where, groups, rows in (("t < 150", 2, 150), ("t >= 900", 1, 100), ("t == 500", 1, 1), ("t != 3", 10, 999)):
        scan = ws.scan(spark, str(tmp_path), where=where)
        assert len(scan.splits) == groups, where
        assert ws.group(scan).agg(fn.count()).collect() == [(float(rows),)]


def test_times_as_keys(spark: SparkSession, folder: Path, table: pa.Table) -> None:
    found = ws.group(ws.scan(spark, str(folder)), "seen", "host").agg(fn.count())
    assert found.count() == len(table.group_by(["seen", "host"]).aggregate([]))


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_files_that_are_no_parquet_or_have_other_columns(
    spark: SparkSession, folder: Path, table: pa.Table, tmp_path: Path, on_error: str
) -> None:
    for file in folder.glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "part-3.parquet").write_bytes(b"PAR1 and then nonsense PAR1")
    pq.write_table(pa.table({"time": [1]}), tmp_path / "part-4.parquet")
    if on_error == "fail":
        with pytest.raises(BadInput, match=r"part-3.parquet' cannot be scanned: .*on_error='skip'"):
            ws.scan(spark, str(tmp_path))
        return
    scan = ws.scan(spark, str(tmp_path), on_error="skip")
    assert sorted(Path(name).name for name in scan.skipped) == ["part-3.parquet", "part-4.parquet"]
    assert "its columns are time int64" in scan.skipped[str(tmp_path / "part-4.parquet")]
    assert ws.group(scan).agg(fn.count()).collect() == [(float(len(table)),)]


def test_a_file_that_breaks_while_it_is_read_fails_the_job(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"v": np.random.default_rng(1).random(10_000)}), path, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    query = ws.group(ws.scan(spark, str(path), on_error="skip")).agg(fn.var("v"))
    with pytest.raises(PySparkException, match=r"part.parquet' cannot be read"):
        query.collect()


@pytest.mark.parametrize(
    ("path", "options", "kind", "words"),
    [
        ("/nowhere/at/all", {}, BadInput, "there is no file or folder"),
        ("{folder}/*.csv", {}, BadInput, "names no file"),
        ("", {}, BadParameter, "a path is a text"),
        ("{folder}", {"on_error": "ignore"}, BadParameter, "on_error must be fail or skip"),
    ],
)
def test_wrong_paths(spark: SparkSession, folder: Path, path: str, options: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        ws.scan(spark, path.format(folder=folder), **options)


def test_columns_are_checked_when_the_query_is_built(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(BadInput, match="no column 'prot'"):
        ws.group(ws.scan(spark, str(folder)), "prot").agg(fn.count())
    with pytest.raises(BadInput, match="no column 'prot'"):
        ws.group(ws.scan(spark, str(folder), where="prot > 3")).agg(fn.count())
