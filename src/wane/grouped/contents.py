"""One hash for the content of each row of a batch, lists included: what partials are sorted by before they merge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from wane._jit import inline, kernel
from wane.decay.base import Ints
from wane.hashing import Hashes, combine, hash_column

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


@inline
def _fold(state: Any, word: Any) -> Any:
    state = (state ^ word) * _SCRAMBLE + _GOLDEN
    return state ^ (state >> _HALF)


@kernel("void(r_i8, r_u8, w_u8)")
def _fold_lists(offsets: Ints, hashes: Hashes, out: Hashes) -> None:
    """Fold the hashes of each list's elements, in their order."""
    for row in range(out.shape[0]):
        state = np.uint64(offsets[row + 1] - offsets[row])
        for i in range(offsets[row], offsets[row + 1]):
            state = _fold(state, hashes[i])
        out[row] = state


def content_hashes(rows: pa.RecordBatch) -> Hashes:
    """A hash for each row; equal rows have equal ones."""
    return combine(*(_hashes(column) for column in rows.columns))


def list_offsets(lists: pa.Array) -> Ints:
    """Where each list begins in what `flatten` gives, and where the last one ends; a null is an empty list."""
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _hashes(column: pa.Array) -> Hashes:
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return hash_column(column)
    found = np.empty(len(column), np.uint64)
    _fold_lists(list_offsets(column), hash_column(column.flatten()), found)
    return found
