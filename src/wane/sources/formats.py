"""Which source reads a file, told by its name or its first bytes."""

from __future__ import annotations

import difflib
import os
import re
from typing import Any

from wane.errors import BadInput, BadParameter
from wane.sources.base import Bytes, Source, expand

FORMATS = ("parquet", "pcap", "csv", "worldcup98")

_NAMES = (
    (re.compile(r"\.(pcap|cap|pcapng|ntar|dmp)(\d*|\.gz)$"), "pcap"),
    (re.compile(r"\.(csv|tsv)(\.gz)?$"), "csv"),
    (re.compile(r"\.parquet$"), "parquet"),
    (re.compile(r"(^wc_day\d+_\d+|\.log98)(\.gz)?$"), "worldcup98"),
)


def open_source(paths: Any, table: str = "IP", format: str | None = None) -> Source:
    """A source that reads files.

    Args:
        paths: A path, a glob, or a list of them.
        table: Of captures, the packets that are wanted: ``"TCP"``, ``"UDP"``, ``"ICMP"`` or, by any other name, all.
        format: One of :data:`FORMATS`; by default what the first file's name says, or its first bytes do.
    """
    if format is None:
        found = expand(paths, "Parquet, pcap or CSV")
        kinds = sorted({guess(path) for path in found})
        if len(kinds) > 1:
            raise BadInput(f"the files {found[0]!r} and so on are of several kinds, {', '.join(kinds)}; read one kind")
        (format,) = kinds
    if format != "parquet":  # of which Arrow reads folders itself
        paths = [inside for path in expand(paths, format) for inside in _inside(path)]
    if format == "pcap":
        from wane.sources.pcap import TABLES, Pcap

        return Pcap(paths, table if table in TABLES else "IP")
    if format == "csv":
        from wane.sources.csv import Csv

        return Csv(paths)
    if format == "worldcup98":
        from wane.sources.worldcup98 import WorldCup98

        return WorldCup98(paths)
    if format == "parquet":
        from wane.sources.parquet import Parquet

        return Parquet(paths)
    near = difflib.get_close_matches(str(format), FORMATS, 1, 0.5)
    meant = f"did you mean {near[0]!r}?" if near else f"the formats are {', '.join(FORMATS)}"
    raise BadParameter(f"there is no format {format!r}; {meant}")


def _inside(path: str) -> list[str]:
    """The files of a folder that are not hidden, in order; or the one file."""
    if not os.path.isdir(path):
        return [path]
    found = sorted(os.path.join(path, name) for name in os.listdir(path) if not name.startswith((".", "_")))
    if not found:
        raise BadInput(f"there is no file in {path!r}; give the path or glob of Parquet, pcap or CSV files")
    return found


def guess(path: str) -> str:
    """The format of a file; what nothing speaks for is taken for Parquet."""
    name = os.path.basename(path).lower()
    for pattern, format in _NAMES:
        if pattern.search(name):
            return format
    if os.path.isdir(path):
        return guess(_inside(path)[0])
    from wane.sources.pcap import MAGIC

    try:
        first = bytearray(4)
        with Bytes(path) as file:
            file.fill(memoryview(first))
        return "pcap" if bytes(first) in MAGIC else "parquet"
    except OSError:
        return "parquet"
