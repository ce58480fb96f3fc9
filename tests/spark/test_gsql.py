"""GSQL on Spark: the same answers as in one process, over a capture, DataFrames and a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import udafs
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import wane.spark as ws
from wane import local
from wane.errors import BadInput, BadParameter, GsqlError, Unsupported
from wane.gsql import compile
from wane.sources import Traffic, write
from wane.sources.pcap import SCHEMA

SPLIT = """
int UDAF char(36) [low_approx_med, high_approx_med]
    approx_median(int)
vstring UDAF char(2800) low_approx_med(int)
int UDAF char(36) high_approx_med(vstring)
int EXTR percentile_fcn approx_quantile percentile(int; int)
"""
EXACT = {
    "count": "select tb, destIP, destPort, count(*) from TCP group by time/60 as tb, destIP, destPort",
    "sum": "select tb, destIP, destPort, sum(len*(time % 60)*(time % 60))/3600 from TCP "
    "group by time/60 as tb, destIP, destPort",
    "all of it": "select tb, net, avg(len) decay exp(half_life=10s) as m, count(*)*2 + tb as n from TCP "
    "where destPort in (443, 80) and srcIP <> '172.16.0.1' group by time/60 as tb, srcIP/65536 as net "
    "having count(*) > 5",
    "chosen": "select srcIP as who, len*8 as bits from TCP where len > 1400",
    "view": "create view s as select t, destPort, count(*) as c from TCP group by time as t, destPort; "
    "select tb, destPort, sum(c) decay poly(1) as s from s group by t/60 as tb, destPort",
}
QUANTILES = {
    "median": "SELECT tb, sourceIP, median(length) FROM UDP GROUP BY time/60 as tb, sourceIP",
    "declared": SPLIT + "select tb, sourceIP, approx_median(len) from UDP group by time/60 as tb, sourceIP",
    "extracted": SPLIT
    + "select tb, percentile(len, 95) as a, percentile(len, 99) as b from UDP group by time/60 as tb",
}


@pytest.fixture(scope="module", autouse=True)
def source(spark: SparkSession) -> None:
    ws.register(spark)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("gsql") / "traffic.pcap"
    # Whole microseconds, which is what Spark's times are.
    traffic = Traffic(rows=20_000, rate=100, sources=20, destinations=30).table()
    times = traffic["time"].cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.timestamp("ns", "UTC"))
    write(path, traffic.set_column(0, "time", times).to_batches())
    return str(path)


def in_order(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("name", EXACT)
def test_answers_are_those_of_one_process(spark: SparkSession, capture: str, name: str) -> None:
    found = ws.gsql(spark, EXACT[name], {"TCP": capture}).toArrow()
    mine = local.gsql(EXACT[name], {"TCP": capture})
    assert found.schema.names == mine.schema.names
    one, two = in_order(found), in_order(mine)
    assert len(one) == len(two) > 0
    for row, other in zip(one, two, strict=True):
        assert row == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles_keep_their_guarantee(spark: SparkSession, capture: str, name: str) -> None:
    from wane.sources import Pcap

    groups: dict[Any, list[int]] = {}
    for row in pa.Table.from_batches(Pcap(capture, "UDP").batches(["time", "srcIP", "len"])).to_pylist():
        minute = int(row["time"].timestamp()) // 60
        groups.setdefault((minute, row["srcIP"]) if name != "extracted" else (minute,), []).append(row["len"])
    phis = (0.95, 0.99) if name == "extracted" else (0.5,)
    rows = ws.gsql(spark, QUANTILES[name], {"UDP": capture}).collect()
    assert {tuple(row)[: -len(phis)] for row in rows} == groups.keys()
    for row in rows:
        lengths = groups[tuple(row)[: -len(phis)]]
        for phi, found in zip(phis, tuple(row)[-len(phis) :], strict=True):
            slack = 0.01 * len(lengths) + 1
            assert sum(length < found for length in lengths) - slack <= phi * len(lengths)
            assert sum(length <= found for length in lengths) + slack >= phi * len(lengths)


def test_classes_of_a_users_own_run_at_both_levels(spark: SparkSession, capture: str) -> None:
    cloudpickle.register_pickle_by_value(udafs)  # which workers cannot import
    bindings = {"low_approx_med": udafs.LowMedian, "high_approx_med": udafs.HighMedian}
    text = SPLIT + "select tb, srcIP, approx_median(len) as m from UDP where len > 50 group by time/60 as tb, srcIP"
    df = spark.read.format("wane-pcap").option("table", "UDP").load(capture).repartition(3)
    found = ws.gsql(spark, text, {"UDP": df}, bindings=bindings).toArrow()
    mine = local.gsql(text, {"UDP": capture}, bindings=bindings)
    assert in_order(found) == in_order(mine)
    assert mine.num_rows > 10


def test_a_stream_ends_with_the_answers_of_the_batch(spark: SparkSession, capture: str, tmp_path: Path) -> None:
    rows = spark.read.format("wane-pcap").load(capture).drop("srcIP6", "destIP6").toArrow()
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(rows, folder / "0.parquet")
    text = EXACT["sum"].replace("TCP", "T")
    stream = spark.readStream.schema(spark.createDataFrame(rows.slice(0, 1)).schema).parquet(str(folder))
    answers = ws.gsql(spark, text, {"T": stream}, lateness="0s")
    assert answers.isStreaming
    out = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = out.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None
    found = in_order(spark.read.parquet(str(tmp_path / "out")).toArrow())
    mine = local.gsql(text, {"T": rows}).to_pylist()
    last = max(row["tb"] for row in mine)  # which nothing came to close
    closed = sorted(tuple(row.values()) for row in mine if row["tb"] != last)
    assert len(found) == len(closed) > 0
    for one, two in zip(found, closed, strict=True):
        assert one == pytest.approx(two, rel=1e-9)


def test_what_is_wrong_is_said_when_the_query_is_built(spark: SparkSession, capture: str) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(GsqlError, match="nothing would ever close a group"):
        ws.gsql(spark, "select value, count(*) from T group by value", {"T": stream})
    text = "create view v as select tb, count(*) as c from T group by timestamp/60 as tb; "
    with pytest.raises(Unsupported, match="over the groups of a stream"):
        ws.gsql(spark, text + "select tb, sum(c) from v group by tb", {"T": stream}, lateness="1s")
    with pytest.raises(GsqlError, match="did you mean 'len'"):
        ws.gsql(spark, "select lenn from TCP", {"TCP": capture})
    with pytest.raises(BadParameter, match="has 2 queries"):
        ws.gsql(spark, "select len from TCP; select len from TCP", {"TCP": capture})
    with pytest.raises(BadInput, match="must be a DataFrame"):
        ws.gsql(spark, "select len from TCP", {"TCP": 5})


@pytest.mark.parametrize("name", EXACT)
def test_plain_sql_gives_the_same(spark: SparkSession, capture: str, name: str) -> None:
    text = EXACT[name].replace("top(", "max(")
    df = spark.read.format("wane-pcap").option("table", "TCP").load(capture)
    df.createOrReplaceTempView("TCP")
    schemas = {"TCP": df.limit(1).toArrow().schema}
    sql = compile(text, schemas).to_spark_sql()
    found = spark.sql(sql).toArrow()
    mine = local.gsql(text, {"TCP": capture})
    assert found.schema.names == mine.schema.names
    one, two = in_order(found), in_order(mine)
    assert len(one) == len(two) > 0
    for row, other in zip(one, two, strict=True):
        assert row == pytest.approx(other, rel=1e-9)


def test_texts_and_nulls_in_plain_sql(spark: SparkSession) -> None:
    table = pa.table(
        {
            "time": [0, 1, 2, 3, 61],
            "host": ["a", "it's", None, "a\\", "c"],
            "v": [1.0, None, 3.0, float("nan"), 5.0],
        }
    )
    spark.createDataFrame(table).createOrReplaceTempView("T")
    for where in ("host = 'it''s'", "not host = 'a'", "v is null", "v <> 3 or v is null", "host in ('a\\', 'c')"):
        text = f"select tb, count(*) as n, sum(v)/(count(*) - 1) as r from T where {where} group by time/60 as tb"
        found = spark.sql(compile(text, {"T": table.schema}).to_spark_sql())
        assert in_order(found.toArrow()) == in_order(local.gsql(text, {"T": table})), where


def test_what_is_not_algebraic_has_no_plain_sql() -> None:
    for asked in ("top(len, 3)", "median(len)", "var(len) decay poly(2)", "count(*) decay backward poly(2)"):
        program = compile(f"select tb, {asked} from TCP group by time/60 as tb", {"TCP": SCHEMA})
        with pytest.raises(Unsupported, match="run it with ws"):
            program.to_spark_sql()
