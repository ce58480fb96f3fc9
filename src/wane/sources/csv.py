"""CSV files: plain ones, and flow records as nfdump writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wane.errors import BadInput
from wane.sources.base import FileByFile

PROTOCOLS = {"ICMP": 1, "IGMP": 2, "TCP": 6, "UDP": 17, "GRE": 47, "ESP": 50, "ICMP6": 58, "OSPF": 89, "SCTP": 132}
"""Protocols by the names that exporters write."""

_FLAGS = "FSRPAUEC"  # a letter for each flag of TCP, from the lowest bit


class Csv(FileByFile):
    """Rows of CSV files with a line of names; a ``.gz`` is unpacked, a ``.tsv`` is separated by tabs.

    Types are those that all values of the first megabyte have; a value that does not fit later is an error that names
    its line. A row with too few or too many values is left out and counted.

    Files of flows, which have the columns ``ts``, ``sa`` and ``da`` of ``nfdump -o csv``, become packets' columns:
    ``time`` (the flow's start), ``duration``, ``srcIP``, ``destIP``, ``srcIP6``, ``destIP6``, ``srcPort``,
    ``destPort``, ``protocol``, ``flags``, ``packets`` and ``len``, the bytes. The summary that nfdump writes after
    them is left out.

    Args:
        paths: A path, a glob, or a list of them.
    """

    kind = "CSV"

    def __init__(self, paths: Any) -> None:
        super().__init__(paths)
        try:
            with self._opened(self.paths[0]) as reader:
                self._plain: pa.Schema = reader.schema
        except (pa.ArrowException, OSError) as why:
            raise BadInput(f"{self.paths[0]!r} cannot be read as CSV: {why}") from why
        self._flows = _is_flows(self._plain)
        self.schema = _FLOW_SCHEMA if self._flows else self._plain

    def _opened(self, path: str, schema: pa.Schema | None = None) -> Any:
        from pyarrow import csv

        def skip(_: Any) -> str:
            self.dropped["row of another length"] += schema is not None
            return "skip"

        kinds = {} if schema is None else {field.name: field.type for field in schema}
        if schema is not None and _is_flows(schema):
            kinds |= dict.fromkeys(_FLOW_TEXTS, pa.string())
        return csv.open_csv(
            path,
            parse_options=csv.ParseOptions(
                delimiter="\t" if path.removesuffix(".gz").endswith(".tsv") else ",", invalid_row_handler=skip
            ),
            convert_options=csv.ConvertOptions(column_types=kinds),
        )

    def _read(self, path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._opened(path, self._plain) as reader:
            if reader.schema.names != self._plain.names:
                raise BadInput(
                    f"{path!r} has the columns {', '.join(reader.schema.names)}, and {self.paths[0]!r} has "
                    f"{', '.join(self._plain.names)}; read them one by one"
                )
            for batch in reader:
                self.position += batch.nbytes  # about as much as its text
                if self._flows:
                    batch = _real(batch)
                    columns = [_FLOW[name](batch) for name in names]
                else:
                    columns = [batch.column(name) for name in names]
                if batch.num_rows:
                    yield self._batch(columns, names, batch.num_rows)


# --- Flows


def _is_flows(schema: pa.Schema) -> bool:
    return {"ts", "sa", "da"} <= set(schema.names)


def _real(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without the lines of a summary, whose first value is no time."""
    return batch.filter(pc.match_substring_regex(batch.column("ts"), r"^\d{4}-\d\d-\d\d"))


def _mapped(column: pa.Array, read: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    """Read every different text of a column once."""
    coded = column.dictionary_encode()
    values = pa.array([None if text is None else read(text.strip()) for text in coded.dictionary.to_pylist()], kind)
    return pc.take(values, coded.indices)


def _address(name: str, version: int, kind: pa.DataType) -> Callable[[pa.RecordBatch], pa.Array]:
    def read(text: str) -> Any:
        try:
            address = ip_address(text)
        except ValueError:
            return None
        if address.version != version:
            return None
        return int(address) if version == 4 else address.packed

    return lambda batch: _mapped(batch.column(name), read, kind)


def _protocol(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) < 256 else PROTOCOLS.get(text.upper())


def _flags(text: str) -> int | None:
    if text.lower().startswith("0x"):
        try:
            return int(text, 16) & 255
        except ValueError:
            return None
    return sum(1 << bit for bit, letter in enumerate(_FLAGS) if letter in text) if set(text) <= {*_FLAGS, "."} else None


def _number(name: str, kind: pa.DataType) -> Callable[[pa.RecordBatch], pa.Array]:
    def make(batch: pa.RecordBatch) -> pa.Array:
        if name not in batch.schema.names:
            return pa.nulls(batch.num_rows, kind)
        return _mapped(batch.column(name), _float if pa.types.is_floating(kind) else _whole, kind)

    return make


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    value = _float(text)
    return int(value) if value is not None and value.is_integer() and abs(value) < 2**53 else None


def _optional(name: str, read: Callable[[str], Any]) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda batch: (
        _mapped(batch.column(name), read, pa.int16())
        if name in batch.schema.names
        else pa.nulls(batch.num_rows, pa.int16())
    )


_STAMP = pa.timestamp("ms", tz="UTC")


def _start(batch: pa.RecordBatch) -> pa.Array:
    return pc.cast(batch.column("ts"), pa.timestamp("ms")).cast(_STAMP)


_FLOW: dict[str, Callable[[pa.RecordBatch], pa.Array]] = {
    "time": _start,
    "duration": _number("td", pa.float64()),
    "srcIP": _address("sa", 4, pa.int64()),
    "destIP": _address("da", 4, pa.int64()),
    "srcPort": _number("sp", pa.int32()),
    "destPort": _number("dp", pa.int32()),
    "len": _number("ibyt", pa.int64()),
    "protocol": _optional("pr", _protocol),
    "flags": _optional("flg", _flags),
    "packets": _number("ipkt", pa.int64()),
    "srcIP6": _address("sa", 6, pa.binary(16)),
    "destIP6": _address("da", 6, pa.binary(16)),
}
_FLOW_SCHEMA = pa.schema(
    [
        ("time", _STAMP),
        ("srcIP", pa.int64()),
        ("destIP", pa.int64()),
        ("srcPort", pa.int32()),
        ("destPort", pa.int32()),
        ("len", pa.int64()),
        ("protocol", pa.int16()),
        ("flags", pa.int16()),
        ("duration", pa.float64()),
        ("packets", pa.int64()),
        ("srcIP6", pa.binary(16)),
        ("destIP6", pa.binary(16)),
    ]
)
_FLOW_TEXTS = ("ts", "sa", "da", "td", "sp", "dp", "pr", "flg", "ipkt", "ibyt")
