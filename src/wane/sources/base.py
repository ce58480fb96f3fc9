"""What every source of rows is: files whose rows come as Arrow record batches."""

from __future__ import annotations

import glob
import os
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import pyarrow as pa

from wane.errors import BadInput

BATCH = 1 << 20
"""Rows of a batch at most."""


class Source(ABC):
    """Files of one form, in the order of their names.

    Attributes:
        paths: The files.
        schema: The columns of the rows.
        dropped: What could not be read so far, by reason: rows, or whatever the form counts.
        position: About how many bytes have been read so far, of `size`.
    """

    kind: str
    """What the files are, for messages."""

    schema: pa.Schema

    def __init__(self, paths: Any) -> None:
        self.paths = expand(paths, self.kind)
        self.dropped: Counter[str] = Counter()
        self.position = 0

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(map(_size, self.paths))

    def batches(self, columns: Iterable[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of all files, a batch at a time, in bounded memory.

        Args:
            columns: Those that are needed, in the order in which the batches have them; others are not made. None is
                all. Names that the source does not have are left away.
        """
        names = self.schema.names if columns is None else [name for name in columns if name in self.schema.names]
        try:
            yield from self._rows(names)
        except (OSError, EOFError, pa.ArrowException) as why:
            raise BadInput(f"{self.paths[0]!r} or a file beside it cannot be read as {self.kind}: {why}") from why

    @abstractmethod
    def _rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The batches of all files, with these columns."""

    def _batch(self, columns: Sequence[pa.Array], names: Sequence[str], rows: int) -> pa.RecordBatch:
        """A batch of some of the columns; one of none knows how many rows it has all the same."""
        if not names:
            return pa.record_batch([pa.nulls(rows)], [""]).select([])
        return pa.record_batch(columns, schema=pa.schema([self.schema.field(name) for name in names]))


class FileByFile(Source):
    """Files that are read one after the other."""

    def _rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        done = 0
        for path in self.paths:
            yield from self._read(path, names)
            done += _size(path)
            self.position = done

    @abstractmethod
    def _read(self, path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The batches of one file, with these columns."""


def expand(paths: Any, kind: str) -> list[str]:
    """The files that a path, a glob or a list of them names, in the order of their names."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    asked = [os.fspath(path) for path in given]
    found = [match for path in asked for match in (sorted(glob.glob(path)) if glob.has_magic(path) else [path])]
    missing = [path for path in found if not os.path.exists(path)]
    if missing or not found:
        raise BadInput(f"there is no file {(missing or asked or [''])[0]!r}; give the path or glob of {kind} files")
    return found


def are_paths(source: Any) -> bool:
    """Whether this is a path, or a list of them."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(path, (str, os.PathLike)) for path in source)
    return isinstance(source, (str, os.PathLike))


class Bytes:
    """A file's bytes, unpacked where it is a gzip file, whatever its name; a cut one gives what is there.

    Attributes:
        cut: Whether the packed file ended too early, or went wrong.
    """

    def __init__(self, path: str) -> None:
        self.cut = False
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 -- closed by close()
        self._unpack = zlib.decompressobj(31) if self._file.read(2) == _GZIP else None
        self._file.seek(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def fill(self, buffer: memoryview) -> int:
        """Read until the buffer is full or nothing is left; gives how many bytes that were."""
        held = 0
        while held < len(buffer):
            more = self._some(buffer[held:])
            if not more:
                break
            held += more
        return held

    def tell(self) -> int:
        """How many bytes of the file itself have been read."""
        return self._file.tell()

    def _some(self, buffer: memoryview) -> int:
        if self._unpack is None:
            return self._file.readinto(buffer) or 0
        while not self.cut:
            unpack = self._unpack
            # In small pieces: what a broken one unpacks to is lost.
            packed = unpack.unconsumed_tail or unpack.unused_data or self._file.read(_PIECE)
            if unpack.eof:
                if not packed:
                    return 0
                unpack = self._unpack = zlib.decompressobj(31)
            try:
                made = unpack.decompress(packed, len(buffer))
            except zlib.error:
                self.cut = True
                return 0
            if made:
                buffer[: len(made)] = made
                return len(made)
            self.cut = not packed
        return 0


_GZIP = b"\x1f\x8b"
_PIECE = 1 << 14


def _size(path: str) -> int:
    if os.path.isdir(path):
        return sum(_size(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
    return os.path.getsize(path)
