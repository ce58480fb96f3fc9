"""Files that are opened in the workers: the answers of a DataFrame of the same files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
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
from wane.expr import Expr
from wane.spark.scan import _may_have

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
    none = ws.scan(spark, str(folder), where="ip > 1000")
    assert not none.splits
    assert none.to_df().count() == 0
    assert ws.group(none).agg(fn.count()).collect() == [(0.0,)]
    some = ws.scan(spark, str(folder), where=f"ip > {late}")
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


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files at several depths, and what an unfinished job and a log of versions leave behind."""
    made = tmp_path_factory.mktemp("a folder")
    names = ["a.parquet", "b c.parquet", "deep/d.parquet", "deep/er/e.parquet"]
    hidden = ["_temporary/0/f.parquet", "_log/g.parquet", ".trash/h.parquet", "deep/_i.parquet", "deep/.j.parquet"]
    for i, name in enumerate([*names, *hidden]):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"v": [i]}), made / name)
    return made


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("", [0, 1, 2, 3]),
        ("/", [0, 1, 2, 3]),
        ("/*", [0, 1, 2, 3]),
        ("/*.parquet", [0, 1]),
        ("/b c.parquet", [1]),
        ("/*/*.parquet", [2]),
        ("/d*", [2, 3]),
        ("/deep/*", [2, 3]),
        ("/_log/*", [5]),
        ("/_log", [5]),
        ("/?.parquet", [0]),
        ("/[ab]*.parquet", [0, 1]),
    ],
)
def test_which_files_a_path_names(spark: SparkSession, nested: Path, path: str, wanted: list[int]) -> None:
    for given in (f"{nested}{path}", f"{nested.as_uri()}{path.replace(' ', '%20')}"):
        found = ws.scan(spark, given)
        assert [pq.read_table(file)["v"][0].as_py() for file in found.files] == wanted, given


def test_addresses_and_relative_paths(spark: SparkSession, nested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = nested.as_uri().replace("file://", "file:")
    monkeypatch.chdir(nested)
    for path in (short, "*.parquet", "./*.parquet", "deep/../a.parquet", f"../{nested.name}/*.parquet"):
        scan = ws.scan(spark, path)
        wanted = float(len(scan.files))
        assert ws.group(scan).agg(fn.count()).collect() == [(wanted,)], path  # the workers run elsewhere
        assert scan.to_df().count() == wanted
    with pytest.raises(BadInput, match="write %20 for a space"):
        ws.scan(spark, f"file://{nested}")


def test_files_whose_names_are_globs_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": [1]}), tmp_path / "{x,y}.parquet")
    assert ws.scan(spark, str(tmp_path)).to_df().collect() == [(1,)]


def test_filters_round_as_rows_do(spark: SparkSession, tmp_path: Path) -> None:
    """Rows are doubles to a filter; so are what the footers tell."""
    pq.write_table(pa.table({"v": [2**53 + 1]}), tmp_path / "a.parquet")
    for where in (f"v == {2**53}", f"v <= {2**53}"):
        assert ws.group(ws.scan(spark, str(tmp_path), where=where)).agg(fn.count()).collect() == [(1.0,)]


def test_a_field_is_not_the_column_of_its_path(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [{"b": 1}], "a.b": [10]}), tmp_path / "a.parquet")
    assert ws.group(ws.scan(spark, str(tmp_path), where="`a.b` > 5")).agg(fn.count("a.b")).collect() == [(1.0,)]


@pytest.mark.parametrize("least", [float("nan"), b"\x00", None])
def test_footers_that_tell_nothing(least: Any) -> None:
    statistics = SimpleNamespace(min=least, max=least, has_min_max=least is not None)
    column = SimpleNamespace(path_in_schema="v", is_stats_set=True, statistics=statistics)
    group: Any = SimpleNamespace(num_columns=1, column=lambda _: column)
    assert _may_have(group, Expr.parse("v > 1"))


def test_types_that_spark_does_not_have(spark: SparkSession, tmp_path: Path) -> None:
    words = pa.array(["x", "y", "x"]).dictionary_encode()
    for kind in (pa.uint8(), pa.uint32(), pa.uint64(), pa.timestamp("ns")):
        table = pa.table({"t": pa.array([1, 2, 70], kind), "word": words, "v": [1.0, 2.0, 4.0]})
        pq.write_table(table, tmp_path / "a.parquet")
        scan = ws.scan(spark, str(tmp_path))
        by_time = ws.group(scan, "word", every=("t", "1m")).agg(fn.var("v"), fn.argmax("v"))
        assert {(row.word, row.argmax_v.value) for row in by_time.collect()} >= {("y", 2.0), ("x", 4.0)}
        found = ws.group(scan, "t", "word", time="t").agg(fn.count(decay="exp(half_life=1s)"), fn.var("v"))
        assert sum(1 for row in found.collect() if row.word == "x") == (1 if kind == pa.timestamp("ns") else 2)
    pq.write_table(pa.table({"t": pa.array([2**63 + 5], pa.uint64())}), tmp_path / "a.parquet")
    with pytest.raises(PySparkException, match=r"a.parquet' cannot be read"):
        ws.group(ws.scan(spark, str(tmp_path)), every=("t", "1m")).agg(fn.count()).collect()


def test_a_filter_is_checked_when_files_are_scanned(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(BadInput, match="no column 'prot'"):
        ws.scan(spark, str(folder), where="prot > 3")
    with pytest.raises(BadInput, match="must hold numbers"):
        ws.scan(spark, str(folder), where="host > 3")
    with pytest.raises(BadParameter, match="where is an expression, got 3"):
        ws.scan(spark, str(folder), where=3)  # type: ignore[arg-type]


def test_the_file_that_others_must_be_like(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"nonsense")
    pq.write_table(pa.table({"v": [1]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"w": [1]}), tmp_path / "c.parquet")
    skipped = ws.scan(spark, str(tmp_path), on_error="skip").skipped
    assert "b.parquet' v int64" in skipped[str(tmp_path / "c.parquet")]
