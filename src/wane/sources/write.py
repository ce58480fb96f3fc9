"""Rows of packets written to files: pcap, Parquet or CSV."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.errors import BadInput, BadParameter
from wane.times import SECOND

SNAP = 96
"""Bytes that are kept of a packet in a capture."""

ENDINGS = (".pcap", ".parquet", ".csv")

_TCP, _UDP = 6, 17
_RECORD = np.dtype(
    [
        ("second", "<u4"),
        ("nano", "<u4"),
        ("taken", "<u4"),
        ("wire", "<u4"),
        ("to", "u1", 6),
        ("from", "u1", 6),
        ("ether", ">u2"),
        ("version", "u1"),
        ("service", "u1"),
        ("len", ">u2"),
        ("id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("src", ">u4"),
        ("dest", ">u4"),
        ("srcPort", ">u2"),
        ("destPort", ">u2"),
        ("rest", "u1", SNAP - 38),
    ]
)
_HEAD = 16  # bytes of a record before its packet
_IP = 14  # bytes of a packet before its IP header
_FLAGS = 9  # where flags are in the rest of TCP
_ACK = 16


def write(path: str | os.PathLike[str], batches: Iterable[pa.RecordBatch]) -> int:
    """Write rows to a file, by the ending of its name; gives how many there were.

    A ``.pcap`` has packets on Ethernet, cut to 96 bytes, to the nanosecond, with right checksums of IP; it takes rows
    with the columns of :func:`generate`. ``.parquet`` and ``.csv`` take any. The file is there when all is written.
    """
    name = os.fspath(path)
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending is None:
        raise BadParameter(f"a file's name must end in one of {', '.join(ENDINGS)}, got {name!r}; rename it")
    rows = 0
    taken = iter(batches)
    first = next(taken, None)
    if first is None:
        raise BadInput(f"there are no rows to write to {name!r}; not even their columns are known")
    with _whole(name) as part, _opened(ending, part, first.schema) as add:
        for batch in _after(first, taken):
            add(batch)
            rows += batch.num_rows
    return rows


def _after(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


@contextmanager
def _whole(name: str) -> Iterator[str]:
    """A name to write to, which becomes the file when all went well."""
    part = f"{name}.part"
    try:
        yield part
        os.replace(part, name)
    finally:
        if os.path.exists(part):
            os.remove(part)


@contextmanager
def _opened(ending: str, part: str, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], Any]]:
    if ending == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(part, schema) as writer:
            yield writer.write_batch
    elif ending == ".csv":
        from pyarrow import csv

        with csv.CSVWriter(part, schema) as table:
            yield table.write_batch
    else:
        with open(part, "wb") as file:
            file.write(HEADER)
            yield lambda batch: file.write(packets(batch))


HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP, 1)
"""What a capture with nanoseconds on Ethernet begins with."""


def packets(batch: pa.RecordBatch) -> bytes:
    """The records of a capture for rows of packets."""
    lacking = [name for name in _NEEDED if name not in batch.schema.names]
    if lacking:
        raise BadInput(
            f"packets need the columns {', '.join(_NEEDED)}, and there is no {lacking[0]!r}; write the rows as .parquet"
        )
    made = np.zeros(batch.num_rows, _RECORD)
    time = batch.column("time").cast(pa.timestamp("ns", tz="UTC")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    made["second"], made["nano"] = time // SECOND, time % SECOND
    protocol, length = _numbers(batch, "protocol"), _numbers(batch, "len")
    # A packet is never shorter than its headers.
    length = np.maximum(length, np.where(protocol == _TCP, 40, 28))
    made["wire"] = length + _IP
    made["taken"] = np.minimum(made["wire"], SNAP)
    made["to"], made["from"] = (2, 0, 0, 0, 0, 2), (2, 0, 0, 0, 0, 1)
    made["ether"], made["version"], made["ttl"], made["fragment"] = 0x0800, 0x45, 64, 0x4000
    made["len"], made["protocol"] = length, protocol
    made["id"] = np.arange(batch.num_rows) & 0xFFFF
    for field, name in (("src", "srcIP"), ("dest", "destIP"), ("srcPort", "srcPort"), ("destPort", "destPort")):
        made[field] = _numbers(batch, name)
    bytes_ = made.view(np.uint8).reshape(len(made), _RECORD.itemsize)
    _finish(made, bytes_, protocol, length)
    keep = np.arange(_RECORD.itemsize) < (made["taken"] + _HEAD)[:, None]
    return bytes_[keep].tobytes()


_NEEDED = ("time", "srcIP", "destIP", "srcPort", "destPort", "len", "protocol")


def _numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    values = batch.column(name)
    if values.null_count:
        raise BadInput(f"packets of IPv4 need a {name!r}, and it is null in {values.null_count} rows; leave them out")
    return np.asarray(values.cast(pa.int64()).to_numpy())


def _finish(
    made: NDArray[Any], bytes_: NDArray[np.uint8], protocol: NDArray[np.int64], length: NDArray[np.int64]
) -> None:
    """The headers of TCP and UDP, and the checksum of IP."""
    tcp, udp = protocol == _TCP, protocol == _UDP
    rest = made["rest"]
    rest[tcp, 8], rest[tcp, _FLAGS] = 5 << 4, _ACK
    rest[udp, 0], rest[udp, 1] = (length[udp] - 20) >> 8, (length[udp] - 20) & 255
    begin = _HEAD + _IP
    words = bytes_[:, begin : begin + 20].astype(np.int64)
    total = (words[:, 0::2] << 8 | words[:, 1::2]).sum(axis=1)
    total = (total & 0xFFFF) + (total >> 16)
    made["checksum"] = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
