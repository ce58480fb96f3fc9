"""Captured packets as a data source of Spark's: ``spark.read.format("wane-pcap").load("traffic/*.pcap")``.

The files are opened where the tasks run, one task a file, and decoded to Arrow batches there. The option ``table``
says which packets: ``TCP``, ``UDP``, ``ICMP`` or ``IP``, all of them. Times are cut to the microsecond, as Spark has
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from wane.errors import BadInput
from wane.sources.base import expand
from wane.sources.pcap import SCHEMA, Pcap

NAME = "wane-pcap"

_ARROW = pa.schema(
    [
        field.with_type(
            pa.timestamp("us", tz="UTC")
            if pa.types.is_timestamp(field.type)
            else pa.binary()
            if pa.types.is_fixed_size_binary(field.type)
            else field.type
        )
        for field in SCHEMA
    ]
)


class PcapSource(DataSource):
    """Captures for Spark; made known to a session by :func:`register`."""

    @classmethod
    def name(cls) -> str:
        """What queries call it."""
        return NAME

    def schema(self) -> StructType:
        """The columns of packets."""
        return from_arrow_schema(_ARROW)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What plans and reads it."""
        path = self.options.get("path")
        if path is None:
            raise BadInput("no file is named; write .load('traffic.pcap')")
        return PcapReader(expand(path, "pcap"), self.options.get("table", "IP"), schema.fieldNames())


class PcapFile(InputPartition):
    """One file, the work of a task."""


class PcapReader(DataSourceReader):
    """Reads each file in a task of its own."""

    def __init__(self, paths: list[str], table: str, names: Sequence[str]) -> None:
        Pcap(paths, table)  # to refuse a table that is none while the query is built
        self.paths = paths
        self.table = table
        self.names = list(names)

    def partitions(self) -> Sequence[InputPartition]:
        """A task for each file."""
        return [PcapFile(path) for path in self.paths]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The packets of a file."""
        kinds = pa.schema([_ARROW.field(name) for name in self.names])
        for batch in Pcap(partition.value, self.table).batches(self.names):
            # Spark's times are to the microsecond: what is finer is cut off.
            columns = [pc.cast(column, kind.type, safe=False) for column, kind in zip(batch, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=kinds)


def register(spark: SparkSession) -> SparkSession:
    """Make the source known to a session; gives the session."""
    spark.dataSource.register(PcapSource)
    return spark
