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

    def _rows(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for fragment in self._data.get_fragments():
            lacking = [name for name in names if name not in fragment.physical_schema.names]
            if lacking:
                raise BadInput(f"{fragment.path!r} has no column {lacking[0]!r}, and other files have; leave it out")
        rows, whole, size = 0, self._data.count_rows() or 1, self.size
        for batch in self._data.to_batches(columns=names, batch_size=BATCH):
            rows += batch.num_rows
            self.position = size * rows // whole
            yield batch
