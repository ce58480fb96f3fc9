"""Values of any type as 64-bit words, and back: numbers and times as they are, everything else by a dictionary.

A column's dictionary lives as long as the column, so that a value has one word however many batches there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.errors import BadInput

Words = NDArray[np.int64]

_PER_VALUE = 150
"""Bytes of a short text with its code in a dictionary of Python's."""


class WordColumn:
    """One column of keys or items: its values as words, and back.

    Args:
        field: Its name and type.
    """

    def __init__(self, field: pa.Field) -> None:
        self.name = field.name
        kind = field.type
        self._type = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._plain = _word_view(self._type)
        self._codes: dict[Any, int] = {}
        self._texts = pa.nulls(0, self._type)  # the values of the codes, as far as they were asked for

    def words(self, array: pa.Array) -> tuple[Words, NDArray[np.bool_] | None]:
        """The word of every row, and where the key is null (None: nowhere)."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode() if self._plain is not None else array
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if kind != self._type:
            raise BadInput(f"column {self.name!r} was {self._type} and became {kind}; cast it to one type")
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
        return array.cast(self._plain).to_numpy(zero_copy_only=False).astype(np.int64, copy=False), missing

    @property
    def kind(self) -> pa.DataType:
        """The type of its values."""
        return self._type

    @property
    def nbytes(self) -> int:
        """About what its dictionary takes."""
        return _PER_VALUE * len(self._codes)

    def values(self, words: Words, missing: NDArray[np.bool_]) -> pa.Array:
        """The values that words stand for."""
        if self._plain is None:
            if len(self._texts) < len(self._codes):
                self._texts = pa.array(list(self._codes), self._type)
            return self._texts.take(pa.array(words, pa.int64(), mask=missing))
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
