"""A driver of its own for a query on a cluster or over Spark Connect: ``elsewhere.py URL ROWS ANSWERS [PAUSE]``.

It reads the rows from one Parquet file, asks the same as the tests do, by both paths, and writes the answers to others.
With a pause, each task first sleeps for so many seconds, so that there is time to end the process that runs it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from grouped_trace import HEAVY, HOLISTIC, SIMPLE
from pyspark.sql import DataFrame, SparkSession

import wane.spark as ws
from wane import fn

EVERY = ("time", "1 minute")
NATIVE = (fn.count(decay="exp(half_life=10s)"), fn.max("len", decay="poly(2)"))


def slowed(df: DataFrame, seconds: float) -> DataFrame:
    """The same rows, later."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(seconds)
        yield from batches

    return df.mapInArrow(wait, df.schema) if seconds else df


def main(url: str, rows: str, answers: str, pause: float = 0.0) -> None:
    """Ask, and write down what comes."""
    if url.startswith("sc://"):
        spark = SparkSession.builder.remote(url).getOrCreate()
        ws.tune(spark)
    else:
        spark = ws.session(url, spark__ui__enabled="false", spark__sql__shuffle__partitions="4")
    df = slowed(spark.createDataFrame(pq.read_table(rows)).repartition(6), pause)
    out = Path(answers)
    grouped = ws.group(df, "port", every=EVERY)
    pq.write_table(grouped.agg(*SIMPLE, *HEAVY, *HOLISTIC).toArrow(), out / "both.parquet")
    pq.write_table(grouped.agg(*NATIVE).toArrow(), out / "native.parquet")
    pq.write_table(ws.group(ws.scan(spark, rows), "port", every=EVERY).agg(*SIMPLE).toArrow(), out / "scan.parquet")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(float, sys.argv[4:]))
