"""Captured packets, in pcap and pcapng files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.errors import BadInput, BadParameter
from wane.sources import _packets as p
from wane.sources.base import Bytes, FileByFile

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("ns", tz="UTC")),
        ("srcIP", pa.int64()),
        ("destIP", pa.int64()),
        ("srcPort", pa.int32()),
        ("destPort", pa.int32()),
        ("len", pa.int32()),
        ("protocol", pa.int16()),
        ("flags", pa.int16()),
        ("ttl", pa.int16()),
        ("srcIP6", pa.binary(16)),
        ("destIP6", pa.binary(16)),
    ]
)

TABLES = {"TCP": 6, "UDP": 17, "ICMP": 1, "IP": -1}
"""The tables of a capture, and the protocol of each; IP has all packets."""

_CHUNK = 4 << 20
_FRAMES = 16_384
_MAGIC = {  # the first four bytes: whether numbers are big-endian, and ticks per second
    b"\xa1\xb2\xc3\xd4": (1, 10**6),
    b"\xd4\xc3\xb2\xa1": (0, 10**6),
    b"\xa1\xb2\x3c\x4d": (1, 10**9),
    b"\x4d\x3c\xb2\xa1": (0, 10**9),
}
_NG = b"\x0a\x0d\x0d\x0a"
MAGIC = (*_MAGIC, _NG)
"""What a capture begins with."""

_PLAIN = {
    "srcPort": (p.SRC_PORT, np.int32),
    "destPort": (p.DEST_PORT, np.int32),
    "len": (p.LENGTH, np.int32),
    "protocol": (p.PROTOCOL, np.int16),
    "flags": (p.FLAGS, np.int16),
    "ttl": (p.TTL, np.int16),
    "srcIP": (p.SRC, np.int64),
    "destIP": (p.DEST, np.int64),
}
_REASONS = {p.NOT_IP: "not IP", p.CUT: "cut before the IP header's end", p.MALFORMED: "malformed IP header"}

_Ints = NDArray[np.int64]


class Pcap(FileByFile):
    """The IP packets of captures: pcap and pcapng, either byte order, plain or as gz.

    Links may be Ethernet (with VLAN tags), Linux cooked (v1 and v2) or raw IP. ``time`` is to the nanosecond;
    ``srcIP`` and ``destIP`` are IPv4 addresses as numbers, null for IPv6, whose addresses are the 16 bytes of
    ``srcIP6`` and ``destIP6``, null for IPv4. ``len`` is the length of the IP packet, headers and all, however much of
    it was captured. Ports are null for protocols without them, for later fragments, and where the capture was cut
    before them; so are the ``flags`` of TCP. Packets without a row are counted in ``dropped`` by reason, and so are
    broken records, after which reading goes on at the next good one.

    Args:
        paths: A path, a glob, or a list of them.
        table: Which packets: ``"TCP"``, ``"UDP"``, ``"ICMP"`` or ``"IP"``, which is all.
    """

    kind = "pcap"
    schema = SCHEMA

    def __init__(self, paths: Any, table: str = "IP") -> None:
        super().__init__(paths)
        if table not in TABLES:
            raise BadParameter(f"the tables of a capture are {', '.join(TABLES)}, got {table!r}; choose one of them")
        self._wanted = TABLES[table]

    def _read(self, path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        done = self.position
        with Bytes(path) as file:
            reader = _Reader(file, path)
            for frames, found in reader.frames():
                counts = np.zeros(4, np.int64)
                rows = np.empty(found * p.ROW, np.int64)
                made = p.decode(reader.buffer, reader.held, frames, found, self._wanted, rows, counts)
                for reason, name in _REASONS.items():
                    if counts[reason]:
                        self.dropped[name] += int(counts[reason])
                self.position = done + file.tell()
                if made:
                    fields = rows[: made * p.ROW].reshape(made, p.ROW)
                    yield self._batch([_column(name, fields, reader.buffer) for name in names], names, made)
            if reader.broken:
                self.dropped["broken record"] += reader.broken


class _Reader:
    """One capture, read through a buffer that slides along it."""

    def __init__(self, file: Bytes, path: str) -> None:
        self.file = file
        self.path = path
        self.buffer = np.zeros(_CHUNK, np.uint8)
        self.held = 0
        self.state = np.zeros(p.STATE, np.int64)
        self.state[p.SECOND] = -1
        self.faces = np.zeros(p.FACE * p.FACES, np.int64)
        self._more()
        self.ng = self._begin()

    @property
    def broken(self) -> int:
        """How many records were broken."""
        return int(self.state[p.BROKEN])

    def frames(self) -> Iterator[tuple[_Ints, int]]:
        """The packets, some at a time; each time the buffer holds what they are made of."""
        frames = np.empty(_FRAMES * p.FRAME, np.int64)
        while True:
            if self.ng:
                found = p.frame_pcapng(self.buffer, self.held, self.state, self.faces, frames)
            else:
                found = p.frame_pcap(self.buffer, self.held, self.state, frames)
            if found:
                yield frames, found
            if found < _FRAMES:
                if self.state[p.LAST]:
                    return
                self._more()

    def _more(self) -> None:
        """Move what is left to the front, and fill up."""
        at = int(self.state[p.AT])
        left = self.held - at
        self.buffer[:left] = self.buffer[at : self.held].copy()
        self.held = left + self.file.fill(memoryview(self.buffer.data)[left:])
        self.state[p.AT] = 0
        self.state[p.LAST] = self.held < len(self.buffer)
        self.state[p.BROKEN] += self.file.cut

    def _begin(self) -> bool:
        """Read the header of the file, and whether it is pcapng."""
        head = self.buffer[: min(self.held, 24)].tobytes()
        if head[:4] == _NG:
            return True
        if head[:4] not in _MAGIC or len(head) < 24:
            raise BadInput(
                f"{self.path!r} is no capture: it begins with {head[:4]!r}, or ends in its header; give a pcap or "
                "pcapng file, or say what it is with format="
            )
        big, ticks = _MAGIC[head[:4]]
        link = int.from_bytes(head[20:24], "big" if big else "little") & 0xFFFF  # above are other facts
        if link not in p.LINKS:
            raise BadInput(
                f"{self.path!r} has packets of link type {link}, which cannot be read; capture on Ethernet, Linux "
                "cooked or raw IP"
            )
        self.state[p.AT], self.state[p.BIG], self.state[p.TICKS], self.state[p.LINK] = 24, big, ticks, link
        return False


def _column(name: str, fields: NDArray[np.int64], buffer: NDArray[np.uint8]) -> pa.Array:
    if name == "time":
        return _times(fields[:, p.TIME])
    if name in ("srcIP6", "destIP6"):
        return _addresses(fields[:, p.PLACE], buffer, 8 if name == "srcIP6" else 24)
    field, kind = _PLAIN[name]
    values = fields[:, field].astype(kind)
    missing = values < 0 if field in (p.SRC, p.DEST, p.SRC_PORT, p.DEST_PORT, p.FLAGS) else None
    return pa.array(values, mask=missing if missing is not None and missing.any() else None)


def _times(values: NDArray[np.int64]) -> pa.Array:
    missing = values == p.NO_TIME
    return pa.array(values.copy(), mask=missing if missing.any() else None).cast(SCHEMA.field("time").type)


def _addresses(places: NDArray[np.int64], buffer: NDArray[np.uint8], offset: int) -> pa.Array:
    """The addresses of IPv6 headers at some places of the buffer; null where the place is -1."""
    there = places >= 0
    if not there.any():
        return pa.nulls(len(places), pa.binary(16))
    taken = buffer[(np.where(there, places, 0) + offset)[:, None] + np.arange(16)]
    valid = np.packbits(there, bitorder="little")
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(places), [pa.py_buffer(valid), pa.py_buffer(taken)])
