"""Packets of a capture decoded to columns, beside dpkt; no decay."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dpkt

from bench.runner import Comparison, Settings
from wane.sources import Pcap, Traffic, write

ROWS = 2_000_000


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Decode an uncompressed capture of 96-byte snaps, to the sum of its lengths."""
    rows = settings.rows(ROWS)
    path = capture(rows, settings.seed)
    few = capture(settings.rows(ROWS // 20), settings.seed)
    peer = "dpkt, headers of Ethernet, IP and TCP"
    for table in ("IP", "TCP"):

        def ours(path: str = path, table: str = table) -> int:
            return sum(batch.num_rows for batch in Pcap(path, table).batches())

        yield Comparison(what=f"packets to columns, table {table}", ours=ours, work=rows, unit="ns/row", target=200.0)
    few_rows = settings.rows(ROWS // 20)
    yield Comparison(
        what=f"a capture of {few_rows:,}",
        ours=lambda: sum(batch.num_rows for batch in Pcap(few).batches()),
        work=few_rows,
        unit="ns/row",
        peers={peer: lambda: _by_dpkt(few)},
        ratios={peer: 1 / 30},
        agree=0.0,
    )


def _by_dpkt(path: str) -> int:
    """The same columns as lists, field by field."""
    columns: tuple[list[object], ...] = tuple([] for _ in range(9))
    with open(path, "rb") as file:
        for time, data in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(data).data
            upper = ip.data
            flags = upper.flags if isinstance(upper, dpkt.tcp.TCP) else None
            row = (time, ip.src, ip.dst, upper.sport, upper.dport, ip.len, ip.p, flags, ip.ttl)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return len(columns[0])


@cache
def capture(rows: int, seed: int) -> str:
    """A capture of made-up traffic."""
    folder = tempfile.mkdtemp(prefix="wane-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = str(Path(folder) / "traffic.pcap")
    write(path, Traffic(rows=rows, seed=seed).batches())
    return path
