"""Files that the low level opens itself, in Spark's workers: the query goes to the data, and no row through the JVM.

The driver reads the footers and lists *splits*: row groups of Parquet, of which those that a filter cannot meet are
left out. A task gets the numbers of its splits from `spark.range`, so that what it reads depends on its rows alone, and
not on the task or its attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from wane.errors import BadInput, BadParameter
from wane.expr import Binary, Column, Expr, Number
from wane.spark.expressions import kept

_BATCH = 131072
"""Rows of a batch: what the low level takes at once."""

_GLOB = "*?["


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
        files: Where they are, as Spark may read them as well.
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
        """The plain DataFrame of the same files; Spark reads them, unless they have times of nanoseconds."""
        reader = self.reader(tuple(self.schema.names), None)
        if any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in self.schema.types):
            found = self.tasks().mapInArrow(reader, from_arrow_schema(reader.schema))
        else:
            found = self.spark.read.parquet(*self.files)
        return found if self.where is None else found.where(kept(self.where, reader.schema))

    def tasks(self) -> DataFrame:
        """A DataFrame of the numbers of the splits, a few to a partition."""
        cores = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        # More partitions than cores, so that the last one does not keep all waiting for it.
        return self.spark.range(0, len(self.splits), 1, max(1, min(len(self.splits), 2 * cores)))

    def reader(self, columns: tuple[str, ...], time: str | None) -> Reader:
        """Reads some columns of splits by their numbers, in a worker; one of them may be the query's time column."""
        fields = [self.schema.field(name) for name in columns or self.schema.names[:1]]
        kinds = [field if field.name == time else field.with_type(_known(field.type)) for field in fields]
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
                            yield rows.select(names).cast(self.schema, safe=False)
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
    filesystem, files = _files(path)
    filters = Expr.parse(where) if isinstance(where, str) else where
    splits: list[Split] = []
    schema: pa.Schema | None = None
    skipped: dict[str, str] = {}
    for name in files:
        try:
            with filesystem.open_input_file(name) as source, pq.ParquetFile(source) as file:
                found = file.schema_arrow.remove_metadata()
                if schema is not None and found != schema:
                    raise BadInput(f"its columns are {_short(found)}, and those of {files[0]!r} {_short(schema)}")
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
        schema = found
        splits += mine
    if schema is None:
        raise BadInput(f"no file of {path!r} can be scanned: {'; '.join(skipped.values())}")
    known = tuple(name for name in files if name not in skipped)
    return Scan(spark, known, filesystem, tuple(splits), schema, filters, skipped)


def _opened(source: Any) -> pq.ParquetFile:
    """A file whose pages are checked against their checksums, where it has them."""
    return pq.ParquetFile(source, page_checksum_verification=True)


def _files(path: str) -> tuple[fs.FileSystem, list[str]]:
    """The filesystem of a path, and the files that it names, in order."""
    if not isinstance(path, str) or not path:  # type: ignore[redundant-expr]
        raise BadParameter(f"a path is a text, got {path!r}; write ws.scan(spark, 'trace/*.parquet')")
    plain = next((i for i, c in enumerate(path) if c in _GLOB), len(path))
    stem = path[: path.rfind("/", 0, plain) + 1] or "." if plain < len(path) else path
    filesystem, root = fs.FileSystem.from_uri(stem) if "://" in stem else (fs.LocalFileSystem(), stem)
    info = filesystem.get_file_info(root.rstrip("/") or root)
    if info.type == fs.FileType.File:
        return filesystem, [root]
    if info.type == fs.FileType.NotFound:
        raise BadInput(f"there is no file or folder {stem!r}; a path may be a file, a folder or a glob")
    inside = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
    pattern = f"{root.rstrip('/')}/{path[len(stem) :]}" if plain < len(path) and stem != "." else path
    names = [
        entry.path
        for entry in inside
        if entry.type == fs.FileType.File
        and (
            fnmatch(entry.path.removeprefix("./"), pattern.removeprefix("./"))
            if plain < len(path)
            else not entry.base_name.startswith(("_", "."))
        )
    ]
    if not names:
        raise BadInput(f"{path!r} names no file; a path may be a file, a folder or a glob")
    return filesystem, sorted(names)


def _may_have(group: Any, where: Expr) -> bool:
    """Whether a row group can have rows for a filter, by the least and largest values that its footer tells."""
    if not (isinstance(where, Binary) and isinstance(where.left, Column) and isinstance(where.right, Number)):
        return True
    for i in range(group.num_columns):
        column = group.column(i)
        if column.path_in_schema != where.left.name or not column.is_stats_set or not column.statistics.has_min_max:
            continue
        least, most, limit = column.statistics.min, column.statistics.max, where.right.value
        if not isinstance(least, (int, float)):
            return True
        return bool(
            {
                "<": least < limit, "<=": least <= limit, ">": most > limit, ">=": most >= limit,
                "==": least <= limit <= most,
            }.get(where.operator, True)
        )  # fmt: skip
    return True


def _known(kind: pa.DataType) -> pa.DataType:
    """The type that Spark knows a column by: it has no unsigned numbers, and its times are microseconds."""
    if pa.types.is_unsigned_integer(kind):
        return _SIGNED[kind.bit_width]
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


_SIGNED = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}


def _short(schema: pa.Schema) -> str:
    return ", ".join(f"{item.name} {item.type}" for item in schema)
