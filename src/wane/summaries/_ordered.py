"""Numbers as 64-bit keys of the same order: floats by their bits, whole numbers as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import bits, inline, kernel
from wane.decay.base import Floats
from wane.errors import BadInput
from wane.hashing import Hashes
from wane.summaries.base import LARGEST, column_of

_SIGN = np.uint64(2**63)


@inline
def float_key(value: float) -> Any:
    """The key of a double."""
    word = bits(value + 0.0)  # -0.0 is 0.0
    return np.uint64(word ^ ((word >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))) ^ _SIGN


@kernel("int64(r_f8, r_f8, w_u8, w_f8, int64)")
def _enter_floats(values: Floats, weights: Floats, keys: Hashes, loads: Floats, filled: int) -> int:
    for i in range(values.shape[0]):
        keys[filled] = float_key(values[i])
        loads[filled] = weights[i]
        filled += weights[i] > 0.0
    return filled


@kernel("int64(r_u8, r_f8, w_u8, w_f8, int64)")
def _enter_words(values: Hashes, weights: Floats, keys: Hashes, loads: Floats, filled: int) -> int:
    for i in range(values.shape[0]):
        keys[filled] = values[i]
        loads[filled] = weights[i]
        filled += weights[i] > 0.0
    return filled


class FloatKeys:
    """Doubles: a sign that is turned round, and for negative ones all other bits too, order as whole numbers do."""

    levels = 64

    def read(self, given: Any) -> tuple[Floats, NDArray[np.bool_] | None]:
        """A column of numbers, and where they can be used."""
        return column_of(given)

    def usable(self, item: Any) -> bool:
        """Whether one Python number surely can be used."""
        return bool(-LARGEST < item < LARGEST)

    def enter(self, values: Floats, weights: Floats, keys: Hashes, loads: Floats, filled: int) -> int:
        """Append rows that weigh something to a buffer of keys and weights; gives how far it is filled then."""
        return int(_enter_floats(values, weights, keys, loads, filled))

    def place(self, values: Any) -> tuple[Hashes, NDArray[np.int8]]:
        """The keys of some numbers, and -1 or 1 where one is below or above all keys."""
        numbers = np.ascontiguousarray(values, np.float64)
        if np.isnan(numbers).any():
            raise BadInput("a value to compare with must be a number, got nan")
        keys, loads = np.empty(len(numbers), np.uint64), np.empty(len(numbers))
        self.enter(numbers, np.ones(len(numbers)), keys, loads, 0)
        return keys, np.zeros(len(numbers), np.int8)

    def values(self, keys: Hashes) -> Floats:
        """The numbers of some keys."""
        words = (keys ^ _SIGN).view(np.int64)
        return (words ^ ((words >> 63) & 0x7FFFFFFFFFFFFFFF)).view(np.float64)


class WholeKeys:
    """Whole numbers from 0 to ``2**levels - 1``; anything else is dropped and counted."""

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self._most = 2**levels - 1

    def read(self, given: Any) -> tuple[Hashes, NDArray[np.bool_] | None]:
        """A column of numbers, and where they can be used."""
        column, missing = _whole_column(given)
        if column.dtype.kind == "f":
            fits = (column >= 0) & (column < 2.0**self.levels) & (column == np.floor(column))
        else:
            fits = (column >= 0) & (column.astype(np.uint64) <= np.uint64(self._most))
        fits = fits if missing is None else fits & ~missing
        if fits.all():
            return np.ascontiguousarray(column, np.uint64), None
        return np.where(fits, column, 0).astype(np.uint64), fits

    def usable(self, item: Any) -> bool:
        """Whether one Python number surely can be used."""
        return type(item) is int and 0 <= item <= self._most

    def enter(self, values: Hashes, weights: Floats, keys: Hashes, loads: Floats, filled: int) -> int:
        """Append rows that weigh something to a buffer of keys and weights; gives how far it is filled then."""
        return int(_enter_words(values, weights, keys, loads, filled))

    def place(self, values: Any) -> tuple[Hashes, NDArray[np.int8]]:
        """The keys of some numbers, rounded down, and -1 or 1 where one is below or above all keys."""
        sides = np.zeros(len(values), np.int8)
        keys = np.zeros(len(values), np.uint64)
        for i, value in enumerate(values):
            if value != value:
                raise BadInput("a value to compare with must be a number, got nan")
            sides[i] = -1 if value < 0 else int(value > self._most)
            keys[i] = 0 if sides[i] else int(value)
        return keys, sides

    def values(self, keys: Hashes) -> NDArray[Any]:
        """The numbers of some keys: int64, or uint64 where they may need it."""
        return keys.astype(np.int64) if self.levels < 64 else keys


def _whole_column(given: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """A column of numbers, as integers where it holds such: those beyond 2**53 may not pass through doubles."""
    missing = None
    column = given
    if type(given).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(given, (pa.Array, pa.ChunkedArray)) and pa.types.is_integer(given.type):
            missing = np.asarray(given.is_null()) if given.null_count else None
            column = np.asarray(pc.fill_null(given, 0))
    elif isinstance(given, np.ma.MaskedArray):
        column, missing = given.filled(0), np.ma.getmaskarray(given)
    elif hasattr(given, "isna") and getattr(given.dtype, "kind", "O") in "iu":
        missing = np.asarray(given.isna(), np.bool_)
        column = given.fillna(0).to_numpy(np.uint64 if given.dtype.kind == "u" else np.int64)
    elif isinstance(given, list):
        try:
            column = np.asarray(given)
        except (ValueError, OverflowError):
            column = np.empty(0)
        if column.dtype.kind == "O" or any(isinstance(item, int) for item in given) > (column.dtype.kind in "iub"):
            column, missing = _whole_list(given)
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iub":
        return column, missing
    numbers, good = column_of(given)
    return numbers, None if good is None else ~good


def _whole_list(given: list[Any]) -> tuple[Any, NDArray[np.bool_] | None]:
    """A list of integers of 64 bits that NumPy would read as floats or objects; others of it count as missing."""
    known = [type(item) is int and 0 <= item < 2**64 for item in given]
    if not all(item is None or isinstance(item, (int, float, np.integer, np.floating)) for item in given):
        return given, None  # which is refused where all columns of numbers are read
    plain = [
        item
        if good
        else int(item)
        if item is not None and item == item and 0 <= item < 2.0**64 and item % 1 == 0
        else -1
        for item, good in zip(given, known, strict=True)
    ]
    missing = np.array([item < 0 for item in plain], np.bool_)
    return np.array([max(item, 0) for item in plain], np.uint64), missing
