"""Time columns of a DataFrame: read as ticks, and written back in their own type, by Spark's own functions."""

from __future__ import annotations

import math

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
        return _days(column(name))
    if pa.types.is_timestamp(kind):
        if kind.tz is None:  # a difference of timestamps would be taken in the session's zone, with its lost hours
            return _days(F.to_date(column(name))) * 10**6 + _micros_of_day(column(name))
        return F.unix_micros(column(name))
    return column(name).cast("long")


def _days(date: Column) -> Column:
    """The seconds since 1970 of a date."""
    return F.unix_date(date).cast("long") * _DAY


def _micros_of_day(time: Column) -> Column:
    minutes = F.hour(time).cast("long") * 60 + F.minute(time)
    return minutes * (60 * 10**6) + (F.extract(F.lit("SECOND"), time) * 10**6).cast("long")


def newest(name: str, kind: pa.DataType) -> Column:
    """The newest time of a column, in its own type; NaN, which Spark takes for the largest number, is no time."""
    time = column(name)
    return F.max(F.when(F.abs(time) < math.inf, time) if pa.types.is_floating(kind) else time)


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
