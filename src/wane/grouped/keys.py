"""Group keys to dense ids: 0 for the first group seen, 1 for the next, however many batches there are.

Every key becomes one 64-bit word: numbers and times as they are, everything else by a dictionary that lives as long
as the groups. One open-addressing table over the words then gives the ids, in one native pass over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane._jit import kernel
from wane.errors import BadInput

Words = NDArray[np.int64]
_FREE = -1


@kernel("int64(w_i8, w_i8, r_i8, int64, int64, w_i8)")
def _assign(slots: Words, known: Words, words: Words, width: int, groups: int, ids: Words) -> int:
    """Find or make the id of every row; gives the number of groups, or -1 - row where the table is full.

    Args:
        slots: The table: a group's id, or -1.
        known: The words of the groups, `width` for each.
        words: The words of the rows, `width` for each.
        width: Words of a key.
        groups: The number of groups so far.
        ids: Takes the ids.
    """
    mask = np.uint64(slots.shape[0] - 1)
    room = known.shape[0] // width
    for row in range(ids.shape[0]):
        h = np.uint64(0x9E3779B97F4A7C15)
        for j in range(width):
            h = (h ^ np.uint64(words[row * width + j])) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(32)
        at = h & mask
        while True:
            group = slots[np.int64(at)]
            if group == -1:
                if groups == room:
                    return -1 - row
                for j in range(width):
                    known[groups * width + j] = words[row * width + j]
                slots[np.int64(at)] = groups
                ids[row] = groups
                groups += 1
                break
            same = True
            for j in range(width):
                if known[group * width + j] != words[row * width + j]:
                    same = False
                    break
            if same:
                ids[row] = group
                break
            at = (at + np.uint64(1)) & mask
    return groups


class Groups:
    """The groups seen so far.

    Args:
        fields: The key columns, in order.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._columns = [_Column(field) for field in fields]
        self._width = len(self._columns) + 1  # one word more says which keys are null
        self._slots = np.full(1024, _FREE, np.int64)
        self._known = np.zeros(512 * self._width, np.int64)
        self.size = 0

    def ids(self, arrays: Sequence[pa.Array], rows: int) -> Words:
        """The group of every row of a batch."""
        words = np.zeros((rows, self._width), np.int64)
        for j, (column, array) in enumerate(zip(self._columns, arrays, strict=True)):
            words[:, j], missing = column.words(array)
            if missing is not None:
                words[missing, j] = 0
                words[missing, -1] |= 1 << j
        flat = words.reshape(-1)
        ids = np.empty(rows, np.int64)
        done = 0
        while done < rows:
            found = _assign(self._slots, self._known, flat[done * self._width :], self._width, self.size, ids[done:])
            if found >= 0:
                self.size = found
                break
            done += -1 - found
            self.size = len(self._known) // self._width
            self._grow()
        return ids

    def keys(self, order: NDArray[np.int64]) -> list[pa.Array]:
        """The keys of some groups, each column in its own type."""
        words = self._known.reshape(-1, self._width)[order]
        return [
            column.values(np.ascontiguousarray(words[:, j]), (words[:, -1] >> j) & 1 == 1)
            for j, column in enumerate(self._columns)
        ]

    def _grow(self) -> None:
        """Double the room; the table is at most half full."""
        self._known = np.concatenate([self._known, np.zeros_like(self._known)])
        self._slots = np.full(2 * len(self._slots), _FREE, np.int64)
        own = self._known[: self.size * self._width]
        again = np.empty(self.size, np.int64)
        _assign(self._slots, np.zeros_like(self._known), own.copy(), self._width, 0, again)


class _Column:
    """One key column: its values as words, and back."""

    def __init__(self, field: pa.Field) -> None:
        self.name = field.name
        kind = field.type
        self._type = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._plain = _word_view(self._type)
        self._codes: dict[Any, int] = {}

    def words(self, array: pa.Array) -> tuple[Words, NDArray[np.bool_] | None]:
        """The word of every row, and where the key is null (None: nowhere)."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode() if self._plain is not None else array
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if kind != self._type:
            raise BadInput(f"key column {self.name!r} was {self._type} and became {kind}; cast it to one type")
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        if self._plain is None:
            return self._interned(array), missing
        if pa.types.is_boolean(self._type):
            array = array.cast(pa.int8())
        if missing is not None:
            array = array.fill_null(_zero(array.type))
        if pa.types.is_floating(self._type):
            numbers = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
            return np.where(np.isnan(numbers), np.nan, numbers).view(np.int64), missing
        return array.cast(self._plain).to_numpy(zero_copy_only=False).astype(np.int64), missing

    def values(self, words: Words, missing: NDArray[np.bool_]) -> pa.Array:
        """The keys that words stand for."""
        if self._plain is None:
            by_code = list(self._codes)
            found = [
                None if gone else by_code[word] for word, gone in zip(words.tolist(), missing.tolist(), strict=True)
            ]
            return pa.array(found, self._type)
        if pa.types.is_floating(self._type):
            return pa.array(words.view(np.float64), mask=missing).cast(self._type)
        if pa.types.is_boolean(self._type):
            return pa.array(words != 0, mask=missing)
        if pa.types.is_uint64(self._type):
            return pa.array(words.view(np.uint64), mask=missing)
        narrow = pa.array(words, pa.int64(), mask=missing)
        return narrow.cast(self._plain).cast(self._type)

    def _interned(self, array: pa.Array) -> Words:
        """Codes of values that are no 64-bit word: each distinct value of the batch is looked up once."""
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        codes = self._codes
        ours = np.array([codes.setdefault(value, len(codes)) for value in encoded.dictionary.to_pylist()], np.int64)
        indices = encoded.indices
        plain = indices.fill_null(0) if indices.null_count else indices
        return ours[plain.to_numpy(zero_copy_only=False)] if len(ours) else np.zeros(len(array), np.int64)


def _word_view(kind: pa.DataType) -> pa.DataType | None:
    """The integer type that a type's values are read as, or None where they are no 64-bit word."""
    types = pa.types
    if types.is_boolean(kind) or types.is_floating(kind) or types.is_integer(kind):
        return pa.uint64() if types.is_uint64(kind) else pa.int64()
    if types.is_timestamp(kind) or types.is_date64(kind) or types.is_time64(kind) or types.is_duration(kind):
        return pa.int64()
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    return None


def _zero(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(0, pa.int64()).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
