"""Columns of items of any kind: told apart by their hashes, and kept as they are only where somebody asks for them.

A summary of items works on 64-bit hashes (:mod:`wane.hashing`), which cost about a nanosecond an item, and looks up
the item behind a hash by its row when it decides to keep it. So a text is copied once for each counter it enters, not
once for each time it is seen. Two integers never share a hash; two other items do with the odds of 64 random bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane import serde
from wane.errors import BadInput, CorruptState
from wane.hashing import Hashes, hash_column

_FORMS = ("int64", "float64", "values")


class Items:
    """A column of items: whole numbers, floats, texts or bytes, perhaps some of each.

    Attributes:
        valid: False where an item is missing (None, NaN, an Arrow null); None where none is.
    """

    def __init__(
        self,
        hashes: Hashes | None,
        column: Any,
        valid: NDArray[np.bool_] | None,
        rows: NDArray[np.int64] | None = None,
        seed: int = 0,
    ) -> None:
        self.valid = valid
        self._hashes = hashes  # None: those of a column of numbers, made when they are asked for
        self._column = column
        self._rows = rows  # where the items are in the column, if it holds others too
        self._seed = seed

    def __len__(self) -> int:
        """The number of items, missing ones included."""
        return len(self._column if self._rows is None else self._rows)

    def __getitem__(self, keep: Any) -> Items:
        """The items where a mask is true, or of a slice, or of row numbers."""
        rows = np.arange(len(self))[keep]
        hashes = None if self._hashes is None else self._hashes[keep]
        return Items(hashes, self._column, None, rows if self._rows is None else self._rows[rows], self._seed)

    @property
    def hashes(self) -> Hashes:
        """The hashes of all."""
        if self._hashes is None:
            self._hashes = self.hash(slice(None))
        return self._hashes

    def hash(self, rows: slice) -> Hashes:
        """The hashes of some: by chunks they stay in the cache, where all at once would go through memory."""
        if self._hashes is not None:
            return self._hashes[rows]
        return hash_column(self._column[rows if self._rows is None else self._rows[rows]], self._seed)

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Some of the items, as a NumPy array of int64 or float64, or of Python objects."""
        column = self._column
        rows = rows if self._rows is None else self._rows[rows]
        if isinstance(column, np.ndarray):
            return plain(column[rows])
        if isinstance(column, list):
            return plain(_objects([column[row] for row in rows.tolist()]))
        return plain(_objects(column.take(rows).to_pylist()))


def read(items: Any, seed: int = 0) -> Items:
    """Read a column of items.

    Args:
        items: A NumPy array, list, Arrow array, pandas or polars column of whole numbers, floats, texts or bytes.
        seed: The seed of the hashes.
    """
    if type(items).__module__.partition(".")[0] == "pyarrow":
        return _read_arrow(items, seed)
    if hasattr(items, "__arrow_c_stream__") and not isinstance(items, np.ndarray):
        import pyarrow as pa

        return _read_arrow(pa.chunked_array(items), seed)
    if not isinstance(items, (np.ndarray, list)):
        items = items.to_numpy() if hasattr(items, "to_numpy") else list(items)
    if isinstance(items, list) and not {int, float}.issuperset(map(type, items)):
        return _read_objects(items, seed)
    try:
        column = np.asarray(items)
    except (ValueError, OverflowError) as why:
        raise BadInput(f"items must be one column of numbers, texts or bytes: {why}") from None
    if column.ndim != 1:
        raise BadInput(f"items must have one dimension, got shape {column.shape}; ravel it or pass one column")
    if isinstance(column, np.ma.MaskedArray) or column.dtype.kind not in "iufbSU":
        return _read_objects(column.tolist(), seed)
    if isinstance(items, list) and column.dtype.kind == "f" and any(type(item) is int for item in items):
        return _read_objects(items, seed)  # an int beside floats stays what it is, also beyond 2**53
    valid = None
    if column.dtype.kind == "f" and np.isnan(column).any():
        valid = ~np.isnan(column)
    plain_numbers = column.dtype.kind in "iuf" and column.dtype.itemsize <= 8
    return Items(None if plain_numbers else hash_column(column, seed), column, valid, seed=seed)


def plain(items: NDArray[Any]) -> NDArray[Any]:
    """Items in the most compact of three forms that holds them: int64, float64, or Python objects."""
    kind = items.dtype.kind
    if kind in "ib" or (kind == "u" and items.dtype.itemsize < 8):
        return items.astype(np.int64)
    if kind == "f":
        return items.astype(np.float64)
    if kind != "O":
        return plain(_objects(items.tolist()))
    kinds = set(map(type, items))
    if kinds and kinds <= {int, bool} and all(-(2**63) <= item < 2**63 for item in items):
        return items.astype(np.int64)
    return items.astype(np.float64) if kinds == {float} else items


def join(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Two columns of items as one."""
    if not len(first) or not len(second):
        return first if len(first) else second
    if first.dtype == second.dtype:
        return np.concatenate([first, second])
    return np.concatenate([_objects(first.tolist()), _objects(second.tolist())])


def write(writer: serde.Writer, items: NDArray[Any]) -> None:
    """Write items to a state."""
    form = str(items.dtype) if items.dtype.kind in "if" else "values"
    writer.uint(_FORMS.index(form))
    if form == "values":
        writer.value(items.tolist())
    else:
        writer.array(items)


def parse(reader: serde.Reader, seed: int = 0, *, unique: bool = True) -> tuple[NDArray[Any], Hashes]:
    """Read items from a state, with their hashes; if `unique`, no two may be equal."""
    form = reader.uint()
    if form >= len(_FORMS):
        raise CorruptState(f"the state holds items of unknown form {form}")
    if _FORMS[form] == "values":
        values = reader.value()
        if not isinstance(values, list) or not all(isinstance(v, (int, float, str, bytes)) for v in values):
            raise CorruptState("the state holds something else where items must be")
        items = _objects(values)
    else:
        items = reader.array(_FORMS[form])
    found = read(items if items.dtype.kind != "O" else items.tolist(), seed)
    if found.valid is not None or (unique and len(np.unique(found.hashes)) != len(items)):
        raise CorruptState("an item in the state is missing, or there twice")
    return items, found.hashes


def _read_arrow(items: Any, seed: int) -> Items:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    if not isinstance(column, pa.Array):
        raise BadInput(f"items must be one column, got a {type(items).__name__}; pass one of its columns")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    more = (types.is_binary_view, types.is_fixed_size_binary, types.is_boolean, types.is_null)
    if not (types.is_integer(kind) or types.is_floating(kind) or any(of(kind) for of in (*texts, *more))):
        raise BadInput(f"items must be whole numbers, floats, texts or bytes, got Arrow type {kind}; cast the column")
    if types.is_integer(kind) and not column.null_count and column.type == kind:
        return read(column.to_numpy(zero_copy_only=False), seed)
    missing = column.is_null()
    if types.is_floating(kind):
        values = column.dictionary_decode() if column.type != kind else column
        missing = pc.or_(missing, pc.fill_null(pc.is_nan(values), True))
    gone = missing.to_numpy(zero_copy_only=False)
    return Items(hash_column(column, seed), column, ~gone if gone.any() else None)


def _read_objects(items: list[Any], seed: int) -> Items:
    gone = np.array([item is None or item != item for item in items], np.bool_)
    known = [0 if bad else item for item, bad in zip(items, gone.tolist(), strict=True)]
    for item in known:
        if not isinstance(item, (int, float, str, bytes, np.integer, np.floating)):
            raise BadInput(
                f"an item must be a whole number, a float, a text or bytes, got {type(item).__name__} {item!r:.60}; "
                "turn it into one of them, say with str()"
            )
        if isinstance(item, int) and item.bit_length() > 512:
            raise BadInput(f"an item may have 512 bits, got an int of {item.bit_length()}; give its hash, or a text")
    return Items(hash_column(known, seed), known, ~gone if gone.any() else None)


def _objects(values: list[Any]) -> NDArray[Any]:
    """A one-dimensional array of Python objects, whatever they are."""
    made = np.empty(len(values), object)
    made[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
    return made
