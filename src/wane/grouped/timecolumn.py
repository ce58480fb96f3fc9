"""A query's time column: read as ticks, and written back in its own type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.times import PER_TICK, SECOND, Ticks, ticks


def read(array: pa.Array) -> Ticks:
    """The times of a column."""
    return ticks(array)


def write(
    values: NDArray[np.int64], unit: str, kind: pa.DataType, missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Ticks of a unit as a column of a type (:func:`label_type`)."""
    if pa.types.is_timestamp(kind):
        return (
            pa.array(values, pa.int64(), mask=missing)
            .cast(pa.timestamp(unit))
            .cast(pa.timestamp(unit, kind.tz))
            .cast(kind)
        )
    if pa.types.is_date(kind):
        return pa.array(values, pa.int64(), mask=missing).cast(pa.timestamp(unit)).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array(values / (SECOND / PER_TICK[unit]), mask=missing).cast(kind)  # rounded once
    return pa.array(values * PER_TICK[unit] // SECOND, mask=missing).cast(kind)


def unit_of(kind: pa.DataType) -> str:
    """The unit that the times of a column are read in."""
    if pa.types.is_timestamp(kind):
        return str(kind.unit)
    if pa.types.is_date64(kind):
        return "ms"
    return "ns" if pa.types.is_floating(kind) else "s"


def label_type(kind: pa.DataType) -> pa.DataType:
    """The type of times in an answer: the column's own, but of small floats, which cannot tell epochs apart."""
    return pa.float64() if pa.types.is_floating(kind) or pa.types.is_null(kind) else kind
