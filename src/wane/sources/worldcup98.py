"""The web logs of the 1998 World Cup: binary records of 20 bytes, big-endian, plain or as gz."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.sources.base import Bytes, FileByFile

RECORD = np.dtype(
    [
        ("time", ">u4"),
        ("client", ">u4"),
        ("object", ">u4"),
        ("bytes", ">u4"),
        ("method", "u1"),
        ("status", "u1"),
        ("type", "u1"),
        ("server", "u1"),
    ]
)

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("s", tz="UTC")),
        ("client", pa.int64()),
        ("object", pa.int64()),
        ("bytes", pa.int64()),
        ("method", pa.int16()),
        ("status", pa.int16()),
        ("type", pa.int16()),
        ("server", pa.int16()),
        ("region", pa.int16()),
    ]
)

NO_SIZE = 0xFFFFFFFF
"""What the logs write where the size of a reply is not known."""

_STATUS = (100, 101, *range(200, 207), *range(300, 306), *range(400, 416), *range(500, 506))
_CHUNK = 50_000

_Rows = NDArray[np.void]


class WorldCup98(FileByFile):
    """Requests as the logs have them: a client, an object and a size, to the second.

    Columns are ``time``, ``client``, ``object``, ``bytes`` (null where it is not known), ``method`` and ``type`` (the
    numbers of the logs), ``status`` (of HTTP, null where it is none), ``server`` and ``region``. Bytes after the last
    whole record are counted as one broken record.
    """

    kind = "WorldCup98"
    schema = SCHEMA

    def _read(self, path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        done = self.position
        buffer = bytearray(RECORD.itemsize * _CHUNK)
        with Bytes(path) as file:
            while True:
                held = file.fill(memoryview(buffer))
                self.position = done + file.tell()
                rows = np.frombuffer(buffer, RECORD, held // RECORD.itemsize).copy()
                if file.cut or held % RECORD.itemsize:
                    self.dropped["broken record"] += 1
                if len(rows):
                    yield self._batch([_COLUMNS[name](rows) for name in names], names, len(rows))
                if held < len(buffer):
                    return


def _plain(name: str) -> Callable[[_Rows], pa.Array]:
    return lambda rows: pa.array(rows[name].astype(np.int64)).cast(SCHEMA.field(name).type)


def _bytes(rows: _Rows) -> pa.Array:
    sizes = rows["bytes"].astype(np.int64)
    return pa.array(sizes, mask=sizes == NO_SIZE)


def _status(rows: _Rows) -> pa.Array:
    """The lower six bits are a place in a list of codes; above them is the version of HTTP."""
    codes = np.zeros(64, np.int16)
    codes[: len(_STATUS)] = _STATUS
    found = codes[rows["status"] & 63]
    return pa.array(found, mask=found == 0)


_COLUMNS: dict[str, Callable[[_Rows], pa.Array]] = {name: _plain(name) for name in SCHEMA.names if name != "region"}
_COLUMNS |= {
    "bytes": _bytes,
    "status": _status,
    "server": lambda rows: pa.array((rows["server"] & 31).astype(np.int16)),
    "region": lambda rows: pa.array((rows["server"] >> 5).astype(np.int16)),
}
