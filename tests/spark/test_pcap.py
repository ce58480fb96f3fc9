"""Captures are a source of Spark's."""

from __future__ import annotations

from pathlib import Path

import captures
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import wane.spark as ws
from wane import fn, local
from wane.errors import WaneError
from wane.sources import Pcap
from wane.spark.pcap import register


def test_packets_are_read_where_the_tasks_are(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    for i in range(3):
        made = captures.packets(i, 400)
        (tmp_path / f"{i}.pcap").write_bytes(captures.pcap(made) if i else captures.pcapng(made))
    paths = str(tmp_path / "*.pcap")
    df = spark.read.format("wane-pcap").option("table", "TCP").load(paths)
    mine = pa.Table.from_batches(Pcap(paths, "TCP").batches())
    found = df.toArrow()
    assert sorted(found.column_names) == sorted(mine.column_names)
    for name in mine.column_names:
        column = mine[name].cast(pa.timestamp("us", "UTC"), safe=False) if name == "time" else mine[name]
        assert sorted(map(str, found[name].to_pylist())) == sorted(map(str, column.to_pylist())), name
    every = ("time", "1 minute")
    asked = ws.group(df, "protocol", every=every).agg(fn.count(), fn.sum("len")).toArrow().to_pylist()
    assert len(asked) == 1
    one = local.group(mine, "protocol", every=every).agg(fn.count(), fn.sum("len")).to_pylist()
    assert [list(row.values())[1:] for row in asked] == [list(row.values())[1:] for row in one]


def test_what_is_wrong_is_said_when_the_query_is_built(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    with pytest.raises(Exception, match="there is no file"):
        spark.read.format("wane-pcap").load(str(tmp_path / "none.pcap")).count()
    assert issubclass(WaneError, Exception)
