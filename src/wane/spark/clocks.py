"""Time columns of a DataFrame: read as ticks, and written back in their own type, by Spark's own functions."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- its name everywhere
from pyspark.sql.pandas.types import from_arrow_type

_DAY = 86400


def column(name: str) -> Column:
    """A column by its name, whatever is in the name."""
    return F.col("`" + name.replace("`", "``") + "`")


def is_time(kind: pa.DataType) -> bool:
    """Whether a column holds times and not numbers."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def ticks(name: str, kind: pa.DataType) -> Column:
    """The ticks since 1970 of a column of times or of whole seconds, as :mod:`wane.grouped.timecolumn` reads them."""
    if pa.types.is_date(kind):
        return F.unix_date(column(name)).cast("long") * _DAY
    if pa.types.is_timestamp(kind):
        if kind.tz is None:  # a cast to timestamp would depend on the session's zone
            return F.timestamp_diff("MICROSECOND", F.lit("1970-01-01").cast("timestamp_ntz"), column(name))
        return F.unix_micros(column(name))
    return column(name).cast("long")


def written(found: Column, kind: pa.DataType) -> Column:
    """Ticks as a column of their type."""
    if pa.types.is_date(kind):
        return F.date_from_unix_date(F.floor(found / _DAY).cast("int"))
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return F.timestamp_add("MICROSECOND", found, F.lit("1970-01-01").cast("timestamp_ntz"))
        return F.timestamp_micros(found)
    return found.cast(from_arrow_type(kind))


def seconds(name: str, kind: pa.DataType) -> Column:
    """The seconds since 1970 of a column of times, as doubles."""
    return ticks(name, kind).cast("double") / (1 if pa.types.is_date(kind) else 10**6)
