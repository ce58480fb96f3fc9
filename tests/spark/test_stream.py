"""A stream ends with the answers that the batch query gives over the same rows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grouped_trace import HEAVY, SIMPLE, check_heavy, close, trace
from pyspark.sql import SparkSession

import wane.spark as ws
from wane import fn, local
from wane.errors import BadParameter

EVERY = ("time", "1 minute")


def shuffled(table: pa.Table, seconds: float, seed: int) -> pa.Table:
    """The rows in an order in which none comes more than `seconds` after a newer one."""
    times = table.column("time").to_numpy().astype("datetime64[us]").astype(np.int64)
    jitter = np.random.default_rng(seed).uniform(0, seconds * 1e6, len(table))
    return table.take(pa.array(np.argsort(times + jitter)))


def write_files(folder: Path, table: pa.Table, files: int) -> None:
    """One file for each trigger, in the order of their names."""
    folder.mkdir()
    size = -(-len(table) // files)
    for i in range(files):
        write_file(folder, i, table.slice(i * size, size))


def write_file(folder: Path, number: int, table: pa.Table) -> None:
    """Spark takes files by the milliseconds of their times: two that share one would come in any order."""
    path = folder / f"{number:03}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_767_225_600 + number,) * 2)


def run(spark: SparkSession, folder: Path, table: pa.Table) -> pa.Table:
    write_files(folder / "in", table, 6)
    # The rows of one minute later close the last epoch of the rest.
    far = table.slice(0, 1).set_column(0, "time", pa.array([np.datetime64("2026-01-01T01:00", "us")]))
    for i in (7, 8):
        write_file(folder / "in", i, far)
    source = spark.readStream.schema(spark.createDataFrame(table.slice(0, 1)).schema)
    stream = source.option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    answers = ws.group(stream, "port", every=EVERY, lateness="10s", budget=50_000).agg(*SIMPLE, *HEAVY)
    writer = answers.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None
    return spark.read.parquet(str(folder / "out")).toArrow()


def test_a_stream_by_epoch_ends_as_the_batch_does(spark: SparkSession, tmp_path: Path) -> None:
    table = shuffled(trace(2), 9.0, 3)
    found = run(spark, tmp_path, table)
    batch = local.group(spark.createDataFrame(table).toArrow(), "port", every=EVERY).agg(*SIMPLE)
    one = sorted(found.select(batch.schema.names).to_pylist(), key=lambda r: (r["epoch"], r["port"] is None, r["port"]))
    assert len(one) == batch.num_rows
    for mine, theirs in zip(one, batch.to_pylist(), strict=True):
        assert close(mine, theirs), (mine, theirs)
    check_heavy(table, found)


def test_wrong_use_says_what_to_change(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(BadParameter, match="lateness='30s'"):
        ws.group(stream, every=("timestamp", "1 minute")).agg(fn.count())
    with pytest.raises(BadParameter, match="give every="):
        ws.group(stream).agg(fn.count())


def test_offsets_longer_than_an_epoch(spark: SparkSession, tmp_path: Path) -> None:
    times = [np.datetime64("2026-01-01T00:00:15"), np.datetime64("2026-01-01T00:00:45")]
    table = pa.table({"time": pa.array(times).cast(pa.timestamp("us", "UTC"))})
    far = pa.table({"time": pa.array([np.datetime64("2026-01-01T01:00", "us")]).cast(pa.timestamp("us", "UTC"))})
    (tmp_path / "in").mkdir()
    for i, rows in enumerate((table, far, far)):
        write_file(tmp_path / "in", i, rows)
    stream = spark.readStream.schema("time timestamp").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    for offset in ("90s", "-30s"):
        answers = ws.group(stream, every=("time", "1 minute", offset), lateness="1s").agg(fn.count(decay="poly(1)"))
        out = str(tmp_path / offset)
        writer = answers.writeStream.format("parquet").option("path", out)
        query = writer.option("checkpointLocation", f"{out}.checkpoint").trigger(availableNow=True).start()
        query.awaitTermination(120)
        found = spark.read.parquet(out).toArrow().sort_by("epoch")
        wanted = local.group(table, every=("time", "1 minute", offset)).agg(fn.count(decay="poly(1)"))
        for a, b in zip(found.to_pylist(), wanted.to_pylist(), strict=True):
            assert close(a, b), f"{a}\n{b}"
