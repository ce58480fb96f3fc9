"""Parquet files, of which only the columns that are needed are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from wane.errors import BadInput
from wane.sources.base import BATCH, Source


class Parquet(Source):
    """Parquet files, or folders of them, as one table.

    A file without a column that others have is refused when that column is asked for: it would read as nulls.
    """

    kind = "Parquet"

    def __init__(self, paths: Any) -> None:
        import pyarrow.dataset as ds

        super().__init__(paths)
        found = self.paths
        try:
            self._data = ds.dataset(found[0] if len(found) == 1 else found, format="parquet")
            self.schema = self._data.schema
        except (pa.ArrowException, OSError) as why:
            raise BadInput(f"{found[0]!r} or a file beside it cannot be read as Parquet: {why}") from why
        if not self._data.files:
            raise BadInput(f"there is no file in {found[0]!r}; give the path or glob of Parquet files")

    def _rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for fragment in self._data.get_fragments():
            self._check(fragment, names)
        rows, whole, size = 0, self._data.count_rows() or 1, self.size
        for batch in self._data.to_batches(columns=names, batch_size=BATCH):
            rows += batch.num_rows
            self.position = size * rows // whole
            yield batch

    def _check(self, fragment: Any, names: Sequence[str]) -> None:
        """Refuse a file beside others whose columns are not theirs: they would read as nulls, or as another time."""
        there = fragment.physical_schema
        for name in names:
            if name not in there.names:
                raise BadInput(f"{fragment.path!r} has no column {name!r}, and other files have; leave it out")
            ours, theirs = self.schema.field(name).type, there.field(name).type
            if meaning(ours) != meaning(theirs):
                raise BadInput(
                    f"column {name!r} is {theirs} in {fragment.path!r}, and {ours} in another file; write all of them "
                    "with one type, times with a zone or all without"
                )


def meaning(kind: pa.DataType) -> str:
    """What a time means beside its number: two columns that differ in it are no one column."""
    if pa.types.is_timestamp(kind):
        return "a time without a zone" if kind.tz is None else "a time with a zone"
    return "a date" if pa.types.is_date(kind) else ""
