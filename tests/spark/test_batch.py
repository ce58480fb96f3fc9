"""Queries of DataFrames answer as the local engine does, however the rows are spread."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grouped_trace import HEAVY, HOLISTIC, SIMPLE, check_heavy, check_quantiles, close, trace
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import wane.spark as ws
from wane import fn, local
from wane.errors import BadInput, BadParameter, Unsupported

EVERY = ("time", "1 minute")


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(trace(1)).cache()


def sorted_rows(table: pa.Table, *keys: str) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: [(row[key] is None, row[key]) for key in keys])


def require_alike(mine: pa.Table, theirs: pa.Table, *keys: str) -> None:
    one, two = sorted_rows(mine, *keys), sorted_rows(theirs, *keys)
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert close(a, b), (a, b)


@pytest.mark.parametrize("partitions", [1, 2, 7, 64])
def test_answers_are_those_of_the_local_engine(rows: DataFrame, partitions: int) -> None:
    found = ws.group(rows.repartition(partitions), "port", every=EVERY).agg(*SIMPLE).toArrow()
    require_alike(found, local.group(rows.toArrow(), "port", every=EVERY).agg(*SIMPLE), "epoch", "port")


def test_heavy_hitters_keep_their_guarantee(rows: DataFrame) -> None:
    found = ws.group(rows.repartition(5), "port", every=EVERY, budget=20_000).agg(*HEAVY)
    kinds = dict(found.dtypes)
    assert kinds["ips"] == "array<struct<item:bigint,weight:double,error:double>>"
    assert kinds["hosts"] == "array<struct<item:string,weight:double,error:double>>"
    check_heavy(rows.toArrow(), found.toArrow())


def test_summaries_without_a_pool_keep_their_guarantee(rows: DataFrame) -> None:
    found = ws.group(rows.repartition(3), "port", every=EVERY).agg(*HOLISTIC)
    assert dict(found.dtypes)["lengths"] == "array<double>"
    check_quantiles(rows.toArrow(), found.toArrow())
    distinct = ["epoch", "port", "names", "ids"]
    one = local.group(rows.toArrow(), "port", every=EVERY).agg(*HOLISTIC).select(distinct)
    require_alike(found.toArrow().select(distinct), one, "epoch", "port")


def test_samples_are_those_of_the_rows_or_have_streams_of_their_own(rows: DataFrame) -> None:
    """With ids however rows are spread; without, partitions of equal rows draw apart, and the same way each time."""
    asked = fn.sample("ip", 4, ids="len", decay="exp(half_life=10s)").alias("drawn")
    found = ws.group(rows.repartition(5), "port", every=EVERY, budget=20_000).agg(asked).toArrow()
    require_alike(found, local.group(rows.toArrow(), "port", every=EVERY).agg(asked), "epoch", "port")
    alike = rows.sparkSession.range(0, 4000, 1, 4).selectExpr("1 as v")
    estimates = set()
    for seed in range(6):
        query = ws.group(alike).agg(fn.sample("v", 50, seed=seed).alias("drawn"))
        one, again = ([draw.stands_for for draw in query.collect()[0].drawn] for _ in range(2))
        assert one == again
        assert sum(one) == pytest.approx(4000, rel=0.75)  # five standard deviations
        estimates.add(sum(one))
    assert len(estimates) == 6


def test_without_epochs_now_is_the_newest_time_of_the_whole_input(rows: DataFrame) -> None:
    asked = (fn.count(decay="exp(half_life=10s)"), fn.sum("len", decay="poly(2)", landmark="2026-01-01"))
    latest = ws.group(rows.repartition(3), "port", time="time").agg(*asked).toArrow()
    require_alike(latest, local.group(rows.toArrow(), "port", time="time").agg(*asked), "port")
    later = ws.group(rows, "port", time="time").agg(*asked, now="2026-01-01 00:05").toArrow()
    require_alike(later, local.group(rows.toArrow(), "port", time="time").agg(*asked, now="2026-01-01 00:05"), "port")


def test_rows_before_a_landmark_are_as_the_policy_says(rows: DataFrame) -> None:
    late = {"decay": "polynomial(1, 0, 1)", "landmark": "2026-01-01 00:02:30"}
    asked = (fn.count(**late), fn.var("len", **late), fn.argmax("len", **late))
    counts = {}
    for before in ("drop", "clamp"):
        found = ws.group(rows.repartition(3), "port", time="time", before=before).agg(*asked).toArrow()
        require_alike(found, local.group(rows.toArrow(), "port", time="time", before=before).agg(*asked), "port")
        counts[before] = sum(found["count"].to_pylist())
    assert counts["drop"] < counts["clamp"]
    with pytest.raises(PythonException, match="rows are before the landmark 2026-01-01T00:02:30Z"):
        ws.group(rows, "port", time="time").agg(*asked).toArrow()


def test_now_is_given_to_the_nanosecond(spark: SparkSession) -> None:
    one = spark.createDataFrame(pa.table({"t": pa.array([1_767_225_600_000_000], pa.timestamp("us", "UTC"))}))
    now = np.datetime64("2026-01-01T00:00:00.000000001")
    found = ws.group(one, time="t").agg(fn.count(decay="exp(half_life=1ns)"), now=now).collect()
    assert found == [(0.5,)]


def test_a_query_without_groups_has_one_row(rows: DataFrame) -> None:
    assert ws.group(rows).agg(fn.count()).collect() == [(float(rows.count()),)]
    empty = ws.group(rows.where("len < -1e9")).agg(fn.count(), fn.top("ip")).collect()
    assert empty == [(0.0, [])]
    assert ws.group(rows.where("len < -1e9"), "port").agg(fn.count()).collect() == []


def test_rows_are_filtered(rows: DataFrame) -> None:
    found = ws.group(rows, "port", where="len > 500").agg(fn.count())
    wanted = {row["port"]: float(row["count"]) for row in rows.where("len > 500").groupBy("port").count().collect()}
    assert {row["port"]: row["count"] for row in found.collect()} == wanted


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        (lambda df: ws.group(df, "prot").agg(fn.count()), BadInput, "no column 'prot'; the columns are time, port"),
        (lambda df: ws.group(df, "port").agg(fn.sum("host")), BadInput, "column 'host' must hold numbers"),
        (lambda df: ws.group(df).agg(fn.count(decay="window(5m)")), Unsupported, "needs the time of the question"),
        (lambda df: ws.group(df).agg(fn.top("ip", 0.5)), BadParameter, "k must be a whole number"),
        (lambda df: ws.group(df).agg(fn.heavy("ip", 1e-4)), BadParameter, "phi must be a number above 0.001"),
        (lambda df: ws.group(df, 3).agg(fn.count()), BadParameter, "a key is a column's name"),
    ],
)
def test_what_is_wrong_is_said_when_the_query_is_built(rows: DataFrame, asked: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        asked(rows)


def test_an_untuned_session_is_told_once(spark: SparkSession, rows: DataFrame) -> None:
    key = "spark.sql.execution.arrow.maxBytesPerBatch"
    spark.conf.set(key, str(64 << 20))
    try:
        with pytest.warns(RuntimeWarning, match="not tuned for wane"):
            ws.group(rows).agg(fn.count())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ws.group(rows).agg(fn.count())
    finally:
        ws.tune(spark)
    assert int(spark.conf.get(key) or 0) == 2**31 - 1
