"""Files that the low level opens itself, in Spark's workers: the query goes to the data, and no row through the JVM.

The driver reads the footers and lists *splits*: row groups of Parquet, of which those that a filter cannot meet are
left out. A task gets the numbers of its splits from `spark.range`, so that what it reads depends on its rows alone, and
not on the task or its attempt.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from wane.errors import BadInput, BadParameter
from wane.expr import Binary, Column, Expr, Number
from wane.plan import Plan, check
from wane.spark.expressions import kept

_BATCH = 131072
"""Rows of a batch: what the low level takes at once."""

_GLOB = "*?["
_URI = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/")


class Split(NamedTuple):
    """A row group of a file."""

    path: str
    group: int
    rows: int


@dataclass(frozen=True)
class Scan:
    """Parquet files to be read in the workers; made by :func:`scan`.

    Attributes:
        spark: The session.
        files: Where they are on the filesystem.
        filesystem: How they are opened.
        splits: What there is to read.
        schema: Their columns.
        where: Rows to keep.
        skipped: Files that were left out, with the reason.
    """

    spark: SparkSession
    files: tuple[str, ...]
    filesystem: fs.FileSystem
    splits: tuple[Split, ...]
    schema: pa.Schema
    where: Expr | None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows the splits have, before any filter."""
        return sum(split.rows for split in self.splits)

    def to_df(self) -> DataFrame:
        """The plain DataFrame of the same files; Spark reads them, where it finds them and they have no nanoseconds."""
        reader = self.reader(tuple(self.schema.names), None)
        exact = any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in self.schema.types)
        # Spark has its own settings for stores, and its own globs.
        plain = isinstance(self.filesystem, fs.LocalFileSystem) and not set("".join(self.files)) & set("*?[]{}\\")
        if exact or not plain:
            found = self.tasks().mapInArrow(reader, from_arrow_schema(reader.schema))
        else:
            found = self.spark.read.parquet(*(f"file://{name}" for name in self.files))
        return found if self.where is None else found.where(kept(self.where, reader.schema))

    def tasks(self) -> DataFrame:
        """A DataFrame of the numbers of the splits, a few to a partition."""
        cores = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        # More partitions than cores, so that the last one does not keep all waiting for it.
        return self.spark.range(0, len(self.splits), 1, max(1, min(len(self.splits), 2 * cores)))

    def reader(self, columns: tuple[str, ...], time: str | None, exact: bool = True) -> Reader:
        """Reads some columns of splits by their numbers, in a worker.

        Args:
            columns: Their names.
            time: Which of them is the query's time column.
            exact: Whether its times are read to the nanosecond, which Spark does not know.
        """
        fields = [self.schema.field(name) for name in columns or self.schema.names[:1]]
        kinds = [
            field.with_type(_clock(field.type, exact) if field.name == time else _known(field.type)) for field in fields
        ]
        return Reader(self.filesystem, self.splits, pa.schema(kinds))


@dataclass(frozen=True)
class Reader:
    """Reads some columns of splits that are named by their numbers; it is sent to the workers."""

    filesystem: fs.FileSystem
    splits: tuple[Split, ...]
    schema: pa.Schema

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the splits with these numbers."""
        names = self.schema.names
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                path, group, _ = self.splits[number]
                try:
                    with self.filesystem.open_input_file(path) as source, _opened(source) as file:
                        for rows in file.iter_batches(_BATCH, [group], names, use_threads=False):
                            yield _cast(rows, self.schema)
                except (OSError, pa.ArrowException) as why:
                    raise BadInput(f"the file {path!r} cannot be read ({why}); mend it or take it away") from why


def scan(
    spark: SparkSession,
    path: str,
    *,
    where: str | Expr | None = None,
    on_error: str = "fail",
) -> Scan:
    """Files that are opened in the workers, for :func:`wane.spark.group`.

    Args:
        spark: The session.
        path: A Parquet file, a folder or a glob, on any filesystem that `pyarrow.fs` can open.
        where: Rows to keep, such as ``"len > 100"``; row groups that cannot have any are not read.
        on_error: ``"fail"`` refuses files that are no Parquet or have other columns; ``"skip"`` leaves them out and
            says so in `skipped`. A file that breaks while it is read fails the job, since some of its rows may have
            been counted.
    """
    if on_error not in ("fail", "skip"):
        raise BadParameter(f"on_error must be fail or skip, got {on_error!r}")
    if where is not None and not isinstance(where, (str, Expr)):
        raise BadParameter(f"where is an expression, got {where!r}; write where='len > 100'")
    filesystem, files = _files(path)
    filters = Expr.parse(where) if isinstance(where, str) else where
    splits: list[Split] = []
    schema: pa.Schema | None = None
    first = ""
    skipped: dict[str, str] = {}
    for name in files:
        try:
            with filesystem.open_input_file(name) as source, pq.ParquetFile(source) as file:
                found = file.schema_arrow.remove_metadata()
                if schema is not None and found != schema:
                    raise BadInput(f"its columns are {_short(found)}, and those of {first!r} {_short(schema)}")
                mine = [
                    Split(name, i, file.metadata.row_group(i).num_rows)
                    for i in range(file.metadata.num_row_groups)
                    if file.metadata.row_group(i).num_rows
                    and (filters is None or _may_have(file.metadata.row_group(i), filters))
                ]
        except (OSError, pa.ArrowException, BadInput) as why:
            if on_error == "fail":
                raise BadInput(
                    f"the file {name!r} cannot be scanned: {why}; take it away, or write on_error='skip'"
                ) from why
            skipped[name] = str(why)
            continue
        schema, first = found, first or name
        splits += mine
    if schema is None:
        raise BadInput(f"no file of {path!r} can be scanned: {'; '.join(skipped.values())}")
    check(Plan((), None, None, filters, (), ()), schema)
    known = tuple(name for name in files if name not in skipped)
    return Scan(spark, known, filesystem, tuple(splits), schema, filters, skipped)


def _opened(source: Any) -> pq.ParquetFile:
    """A file whose pages are checked against their checksums, where it has them."""
    return pq.ParquetFile(source, page_checksum_verification=True)


def _files(path: str) -> tuple[fs.FileSystem, list[str]]:
    """The filesystem of a path, and the files that it names, in order."""
    if not isinstance(path, str) or not path:  # type: ignore[redundant-expr]
        raise BadParameter(f"a path is a text, got {path!r}; write ws.scan(spark, 'trace/*.parquet')")
    uri = _URI.match(path) is not None
    # In the URI of a store, what follows a question mark are its options.
    plain, mark, options = path.partition("?") if uri and not path.startswith("file:") else (path, "", "")
    wild = next((i for i, c in enumerate(plain) if c in _GLOB), len(plain))
    stem = plain if wild == len(plain) else plain[: plain.rfind("/", 0, wild) + 1] or "."
    try:
        # Workers may run in another folder.
        filesystem, root = (
            fs.FileSystem.from_uri(stem + mark + options) if uri else (fs.LocalFileSystem(), os.path.abspath(stem))
        )
    except pa.ArrowException as why:
        raise BadInput(f"{path!r} is no address that can be opened ({why}); write %20 for a space, or a path") from why
    root = root.rstrip("/") or root
    info = filesystem.get_file_info(root)
    if info.type == fs.FileType.File:
        return filesystem, [root]
    if info.type == fs.FileType.NotFound:
        raise BadInput(f"there is no file or folder {stem!r}; a path may be a file, a folder or a glob")
    pattern = plain.removeprefix(stem).split("/") if wild < len(plain) else []
    inside = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
    files = [entry.path for entry in inside if entry.type == fs.FileType.File]
    names = [name for name in files if _matches(name.removeprefix(root).lstrip("/").split("/"), pattern)]
    if not names:
        raise BadInput(f"{path!r} names no file; a path may be a file, a folder or a glob")
    return filesystem, sorted(names)


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Whether a file is named by a glob, or is in a folder that is; hidden ones must be named as such."""
    if len(parts) < len(pattern):
        return False
    wanted = [*pattern, *["*"] * (len(parts) - len(pattern))]
    return all(
        fnmatchcase(part, want) and (want[:1] in ("_", ".") or not part.startswith(("_", ".")))
        for part, want in zip(parts, wanted, strict=True)
    )


def _may_have(group: Any, where: Expr) -> bool:
    """Whether a row group can have rows for a filter, by the least and largest values that its footer tells."""
    if not (isinstance(where, Binary) and isinstance(where.left, Column) and isinstance(where.right, Number)):
        return True
    limit = where.right.value
    columns = [group.column(i) for i in range(group.num_columns)]
    # A field of a struct may have the path of a column with a dot in its name: any of them may be the one.
    named = [column for column in columns if column.path_in_schema == where.left.name]
    for column in named:
        if not column.is_stats_set or not column.statistics.has_min_max:
            return True
        least, most = column.statistics.min, column.statistics.max
        if not isinstance(least, (int, float)) or math.isnan(least) or math.isnan(most):
            return True
        # Rows are compared as doubles, which large whole numbers are rounded to.
        least, most = float(least), float(most)
        if {
            "<": least < limit, "<=": least <= limit, ">": most > limit, ">=": most >= limit,
            "==": least <= limit <= most,
        }.get(where.operator, True):  # fmt: skip
            return True
    return not named


def _known(kind: pa.DataType) -> pa.DataType:
    """The type that Spark knows a column by: it has no unsigned numbers or dictionaries, and times of microseconds."""
    if pa.types.is_dictionary(kind):
        return _known(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return _SIGNED[kind.bit_width]
    if pa.types.is_float16(kind):
        return pa.float32()
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _clock(kind: pa.DataType, exact: bool) -> pa.DataType:
    """The type that a time column is read as; where that is exact, perhaps one that Spark does not know."""
    if pa.types.is_uint64(kind):
        return pa.int64()  # a time is no decimal
    return kind if exact and pa.types.is_timestamp(kind) else _known(kind)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a schema; times lose their nanoseconds, and nothing else loses anything."""
    arrays = [batch.column(item.name).cast(item.type, safe=not pa.types.is_temporal(item.type)) for item in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_SIGNED = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}


def _short(schema: pa.Schema) -> str:
    return ", ".join(f"{item.name} {item.type}" for item in schema)
