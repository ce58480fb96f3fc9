"""Event times and durations, in every form people write them.

Two representations, and no others:

* one **instant** or **duration** is a Python int of nanoseconds (since 1970 UTC, for an instant);
* a **column** of times is :class:`Ticks`: int64 ticks with a unit, as Arrow and Spark have them.

A float appears only after a subtraction: a float of seconds since 1970 steps by 238 ns, and ties and the order of
packets would be lost. Plain numbers are seconds, kept to the nanosecond. A time without a zone is UTC; a list that
mixes times with and without a zone is refused.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import kernel
from wane.errors import BadInput, BadTime

SECOND = 1_000_000_000
PER_TICK = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds in a tick, by unit, coarsest first."""

_INT64_MAX = 2**63 - 1
_FARTHEST = _INT64_MAX * SECOND  # what a column of seconds can hold
_NAT = -(2**63)  # datetime64's missing time
_EXACT = 9_007_199  # seconds (104 days) whose nanoseconds a double still counts one by one
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONGEST_TEXT = 200
_DURATION_UNITS = {
    "ns": ("nanosecond", 1),
    "us": ("microsecond", 1_000),
    "µs": ("microsecond", 1_000),  # U+00B5, the micro sign of keyboards
    "μs": ("microsecond", 1_000),  # U+03BC, the Greek letter
    "ms": ("millisecond", 1_000_000),
    "s": ("second", SECOND),
    "sec": ("second", SECOND),
    "m": ("minute", 60 * SECOND),
    "min": ("minute", 60 * SECOND),
    "h": ("hour", 3600 * SECOND),
    "hr": ("hour", 3600 * SECOND),
    "d": ("day", 86400 * SECOND),
    "w": ("week", 7 * 86400 * SECOND),
}
_DURATION_WORDS = {
    **dict(_DURATION_UNITS.values()),
    **{short: _DURATION_UNITS[short][1] for short in ("sec", "min", "hr")},
    **dict.fromkeys(("msec", "milli"), 1_000_000),
    **dict.fromkeys(("usec", "micro"), 1_000),
    **dict.fromkeys(("nsec", "nano"), 1),
}
"""Units that take a plural and any case."""
_LARGE_LETTERS = frozenset("WDHS")
"""Letters that mean the same in capitals; M does not: it is months to some."""
_TIMEDELTA_UNITS = {
    "W": 7 * 86400 * SECOND,
    "D": 86400 * SECOND,
    "h": 3600 * SECOND,
    "m": 60 * SECOND,
    **PER_TICK,
}
_NUMBER = r"(\d+(?:\.\d+)?)"
_ISO_DURATION = re.compile(rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?")
_CLOCK_DURATION = re.compile(r"()(?:(\d+) days?,? )?(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_SPELLED_ZONE = re.compile(r"(?: ?(?:UTC|GMT)|z)$", re.IGNORECASE)
_DURATION_PART = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*([a-zA-Zµμ]+)\s*")


class Nanoseconds(int):
    """An int that is nanoseconds already, where a plain one would be seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Ticks:
    """A column of event times: int64 ticks with a unit.

    Attributes:
        values: The ticks; what stands where `valid` is false means nothing.
        unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        valid: False where the time is missing (null, NaT, NaN or infinite), or None when none is.
        ends: The smallest and the largest tick, where they are known already.

    >>> Ticks([1763500000123, 1763500000456], "ms").span()
    (1763500000123000000, 1763500000456000000)
    """

    values: NDArray[np.int64]
    unit: str
    valid: NDArray[np.bool_] | None = None
    ends: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.unit not in PER_TICK:
            raise BadTime(f"unit must be one of {', '.join(PER_TICK)}, got {self.unit!r}; write Ticks(values, 'ms')")
        values = self.values
        if type(values) is not np.ndarray or values.dtype != np.int64 or not values.flags.c_contiguous:
            object.__setattr__(self, "values", _whole(values))
        if self.values.ndim != 1:
            raise BadInput(f"ticks must have one dimension, got shape {self.values.shape}; pass one column")
        if self.valid is not None and np.shape(self.valid) != self.values.shape:
            raise BadInput(
                f"valid must say yes or no for each of {len(self.values)} ticks, got shape {np.shape(self.valid)}; "
                "leave it out when none is missing"
            )

    def __len__(self) -> int:
        """The number of times, missing ones included."""
        return len(self.values)

    @property
    def per_tick(self) -> int:
        """Nanoseconds in a tick."""
        return PER_TICK[self.unit]

    def take(self, keep: NDArray[np.bool_]) -> Ticks:
        """The times where `keep` is true, which must all be there."""
        return Ticks(self.values[keep], self.unit)

    def span(self) -> tuple[int, int]:
        """The oldest and the newest instant; none may be missing and there must be one."""
        lo, hi = self.ends or _min_max(self.values)
        return int(lo) * self.per_tick, int(hi) * self.per_tick

    def since(self, origin: int, lo: int, hi: int) -> tuple[NDArray[np.int64], int, int]:
        """Prepare the exact subtraction of an instant: ``(values - base) * per`` nanoseconds have passed since it.

        Args:
            origin: The instant to measure from.
            lo: The oldest instant of the column (:meth:`span`).
            hi: The newest.

        Returns:
            The ticks, the instant in the same ticks, and the nanoseconds in a tick, such that no subtraction overflows.
        """
        per = self.per_tick
        values = self.values
        while origin % per:  # the origin lies between two ticks: go to a finer unit
            per //= 1000
            values = values * 1000
        if max(abs(lo), abs(hi), abs(origin), hi - origin, origin - lo) // per > _INT64_MAX:
            raise BadTime(
                f"times from {show(lo)} to {show(hi)} measured from {show(origin)} do not fit 64 bits of "
                f"{_unit_of(per)}; give times and landmark in a coarser unit, such as datetime64[us]"
            )
        return values, origin // per, per

    def seconds_since(self, origin: int) -> NDArray[np.float64]:
        """Seconds from an instant to each time: one instant gives one number, in whatever unit it came."""
        if not len(self.values):
            return np.empty(0)
        lo, hi = self.span()
        values, base, per = self.since(origin, lo, hi)
        ages = np.empty(len(values))
        near = max(hi - origin, origin - lo) < _EXACT * SECOND
        (_divide if near else _divide_long)(values, base, SECOND // per, ages)
        return ages


@kernel("UniTuple(int64, 2)(r_i8)")
def _min_max(values: NDArray[np.int64]) -> tuple[int, int]:
    """Both ends in one pass over the memory, as four streams (:func:`wane.decay.exp2.raise_two_ticks` says why)."""
    lo = hi = values[0]
    lo2 = hi2 = lo3 = hi3 = lo4 = hi4 = lo
    quarter = values.shape[0] // 4
    for i in range(quarter):
        a, b, c, d = values[i], values[i + quarter], values[i + 2 * quarter], values[i + 3 * quarter]
        lo, lo2, lo3, lo4 = min(lo, a), min(lo2, b), min(lo3, c), min(lo4, d)
        hi, hi2, hi3, hi4 = max(hi, a), max(hi2, b), max(hi3, c), max(hi4, d)
    for i in range(4 * quarter, values.shape[0]):
        lo, hi = min(lo, values[i]), max(hi, values[i])
    return min(lo, lo2, lo3, lo4), max(hi, hi2, hi3, hi4)


@kernel("void(r_i8, int64, float64, w_f8)")
def measure(values: NDArray[np.int64], base: int, seconds: float, ages: NDArray[np.float64]) -> None:
    """Subtract as integers, then scale: right to two roundings, and fast."""
    for i in range(values.shape[0]):
        ages[i] = (values[i] - base) * seconds


@kernel("void(r_i8, int64, int64, w_f8)")
def _divide(values: NDArray[np.int64], base: int, per_second: int, ages: NDArray[np.float64]) -> None:
    """Subtract as integers, then divide: one rounding, of ages under `_EXACT`."""
    for i in range(values.shape[0]):
        ages[i] = (values[i] - base) / per_second


@kernel("void(r_i8, int64, int64, w_f8)")
def _divide_long(values: NDArray[np.int64], base: int, per_second: int, ages: NDArray[np.float64]) -> None:
    """:func:`_divide` for any age: whole seconds and the rest apart, so that the unit does not show."""
    for i in range(values.shape[0]):
        ticks_passed = values[i] - base
        if -_EXACT * per_second < ticks_passed < _EXACT * per_second:
            ages[i] = ticks_passed / per_second
        else:
            whole = ticks_passed // per_second
            ages[i] = whole + (ticks_passed - whole * per_second) / per_second


def ticks(times: Any, what: str = "times") -> Ticks:
    """Read a column of event times.

    Takes :class:`Ticks`, NumPy arrays (numbers are seconds; datetime64 of any unit), Arrow arrays (timestamps of any
    unit and zone, dates, numbers, texts), pandas and polars Series, indexes, and lists of anything that
    :func:`instant` takes. Null, NaT, NaN and infinities are marked as missing.

    >>> ticks([1.5, 2]).values, ticks([1.5, 2]).unit
    (array([1500000000, 2000000000]), 'ns')
    """
    if isinstance(times, Ticks):
        return times
    if isinstance(times, np.ndarray):
        return _from_numpy(times, what)
    if hasattr(times, "__arrow_c_array__") or hasattr(times, "__arrow_c_stream__") or _is_arrow(times):
        return _from_arrow(times, what)
    if hasattr(times, "to_numpy"):
        return _from_pandas(times, what)
    if isinstance(times, (str, bytes, bytearray)) or not isinstance(times, Sequence):
        raise BadInput(f"{what} must be an array or a list of times, got {times!r}; wrap a single time in a list")
    return _from_list(times, what)


def instant(time: Any, what: str = "time") -> int:
    """Read one event time as nanoseconds since 1970 UTC.

    Takes a number of seconds, ``datetime``, ``date``, ``datetime64``, an Arrow scalar, a pandas Timestamp, or an
    ISO 8601 text.

    >>> instant(1.25), instant("1970-01-01T00:00:02Z")
    (1250000000, 2000000000)
    """
    kind = type(time)
    if kind is float:
        return _float_seconds(time, what)
    if isinstance(time, (bool, np.bool_)):
        raise BadTime(f"{what} must be a time, got {time!r}; write seconds, a datetime or a text such as '2026-01-31'")
    if isinstance(time, (int, np.integer)) and kind is not np.timedelta64:  # which claims to be an integer
        return _int_seconds(time, what)
    if isinstance(time, (float, np.floating)):
        return _float_seconds(float(time), what)
    if isinstance(time, np.datetime64):
        values, unit = _plain_datetime64(np.array([time]), what)
        return _there(None if values[0] == _NAT else int(values[0]) * PER_TICK[unit], time, what)
    if hasattr(time, "to_datetime64"):  # pandas: a datetime with nanoseconds of its own, perhaps NaT
        return instant(time.to_datetime64(), what)
    if isinstance(time, dt.datetime):
        aware = time.replace(tzinfo=dt.UTC) if time.utcoffset() is None else time
        return _timedelta_ns(aware - _EPOCH)
    if isinstance(time, dt.date):
        return (time - _EPOCH.date()).days * 86400 * SECOND
    if isinstance(time, str):
        return _from_text(time, what)
    if _is_arrow(time) and hasattr(time, "as_py"):
        return _from_arrow_scalar(time, what)
    raise BadTime(
        f"{what} must be a time, got {time!r} of type {kind.__name__}; write seconds, a datetime, a datetime64 or a "
        "text such as '2026-01-31T12:00:00Z'"
    )


def duration(length: Any, what: str = "duration") -> int:
    """Read a length of time as nanoseconds: a number of seconds, ``"5m"``, ``"1 minute"``, ``"1h 30m"``, a timedelta.

    >>> duration("1 minute"), duration("1h30m"), duration(0.5)
    (60000000000, 5400000000000, 500000000)
    """
    if isinstance(length, str):
        return _duration_text(length, what)
    if isinstance(length, (bool, np.bool_)):
        raise BadTime(f"{what} must be a length of time, got {length!r}; write seconds or a text such as '5m'")
    if isinstance(length, np.timedelta64):
        unit, count = np.datetime_data(length)
        if np.isnat(length):
            return _there(None, length, what)
        if unit in ("Y", "M", "generic"):
            raise BadTime(f"{what} must have a fixed length, got {length!r}; write it in days or less")
        if unit not in _TIMEDELTA_UNITS:
            raise BadTime(f"{what} is finer than a nanosecond: {length!r}; write it in ns or more")
        return int(length.astype(np.int64)) * count * _TIMEDELTA_UNITS[unit]
    if isinstance(length, (int, np.integer)):
        return _int_seconds(length, what)
    if isinstance(length, (float, np.floating)):
        return _float_seconds(float(length), what)
    if isinstance(length, dt.timedelta):
        return _timedelta_ns(length)
    if _is_arrow(length) and hasattr(length, "as_py"):
        if not length.is_valid:
            return _there(None, length, what)
        if _pa().types.is_duration(length.type):
            return int(length.value) * PER_TICK[length.type.unit]
        if isinstance(plain := length.as_py(), (int, float, str)):
            return duration(plain, what)
    raise BadTime(f"{what} must be a length of time, got {length!r}; write seconds, a timedelta or a text such as '5m'")


def show(time: int) -> str:
    """Write an instant for a person: in full, or as seconds where that is no time of our age."""
    seconds, rest = divmod(int(time), SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    if abs(seconds) >= 10**8:
        try:
            day = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
        except OverflowError:
            pass
        else:
            return f"{day.isoformat()}{fraction}Z"
    if seconds < 0 and rest:  # -1.5 is -2 and a half
        seconds, rest = seconds + 1, SECOND - rest
        fraction = f".{rest:09d}".rstrip("0")
        return f"-{-seconds}{fraction}"
    return f"{seconds}{fraction}"


def show_duration(length: int) -> str:
    """Write a duration exactly and shortly; the text parses back to the same length.

    >>> show_duration(300 * 10**9), show_duration(5_400 * 10**9), show_duration(1_500_000)
    ('5m', '90m', '1500us')
    """
    for unit in ("w", "d", "h", "m", "s", "ms", "us"):
        per = _DURATION_UNITS[unit][1]
        if length and length % per == 0:
            return f"{length // per}{unit}"
    return f"{length}ns" if length else "0s"


def _whole(values: Any) -> NDArray[np.int64]:
    """Ticks that came in another form than a contiguous array of int64."""
    if isinstance(values, np.ma.MaskedArray):
        raise BadInput("ticks came with a mask; write Ticks(values.data, unit, valid=~values.mask)")
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise BadInput(
            f"ticks must be whole numbers, got dtype {array.dtype}; drop what is missing and convert them with "
            "astype('int64'), or leave out Ticks for numbers of seconds"
        )
    if array.dtype.kind == "u" and array.size and int(array.max()) > _INT64_MAX:
        raise BadTime(f"ticks hold {int(array.max())}, beyond 64 bits; give them in a coarser unit")
    return np.ascontiguousarray(array, np.int64)


def _from_numpy(times: NDArray[Any], what: str) -> Ticks:
    if times.ndim != 1:
        raise BadInput(f"{what} must have one dimension, got shape {times.shape}; ravel it or pass one column")
    if isinstance(times, np.ma.MaskedArray):
        there = ~np.ma.getmaskarray(times)
        if not there.any():
            return _only(Ticks(np.zeros(len(there), np.int64), "s"), there)
        plain = np.array(times.data)
        plain[~there] = plain[there][0]  # a masked place may hold anything
        return _only(_from_numpy(plain, what), there)
    kind = times.dtype.kind
    if kind == "M":
        return _from_datetime64(times, what)
    if kind in "iu":
        if kind == "u" and times.dtype.itemsize == 8 and len(times) and int(times.max()) > _INT64_MAX:
            raise BadTime(f"{what} hold {int(times.max())} seconds, beyond 64 bits; check the unit of the column")
        return Ticks(times.astype(np.int64, copy=False), "s")
    if kind == "f":
        return _from_floats(times.astype(np.float64, copy=False), what)
    if kind in "OU" or kind == "T":
        return _from_list(times.tolist(), what)
    raise BadTime(f"{what} must be numbers of seconds or datetime64, got dtype {times.dtype}; convert the column first")


def _plain_datetime64(times: NDArray[Any], what: str) -> tuple[NDArray[np.int64], str]:
    """Ticks of datetime64 of any unit and byte order, and their unit."""
    unit, count = np.datetime_data(times.dtype)
    if unit in ("ps", "fs", "as"):
        raise BadTime(f"{what} are finer than a nanosecond ({times.dtype}); cast them to datetime64[ns]")
    if unit not in PER_TICK or count != 1:
        unit = unit if unit in PER_TICK else "s"  # days, weeks, minutes: whole seconds
        plain = times.astype(f"datetime64[{unit}]")
        if not np.array_equal(plain.astype(times.dtype), times, equal_nan=True):
            raise BadTime(f"{what} of {times.dtype} do not fit 64 bits of {unit}; check the unit of the column")
        times = plain
    return np.ascontiguousarray(times, f"datetime64[{unit}]").view(np.int64), unit


def _from_datetime64(times: NDArray[Any], what: str) -> Ticks:
    values, unit = _plain_datetime64(times, what)
    ends = _min_max(values) if len(values) else None
    missing = ends is not None and ends[0] == _NAT
    return Ticks(values, unit, values != _NAT if missing else None, None if missing else ends)


def _from_floats(seconds: NDArray[np.float64], what: str) -> Ticks:
    """Whole seconds and the rest are converted apart: each is exact, so the sum is right to the nanosecond."""
    valid = np.isfinite(seconds)
    everything = bool(valid.all())
    known = seconds if everything else np.where(valid, seconds, 0.0)
    if len(known) and float(np.abs(known).max()) >= _INT64_MAX // SECOND:
        worst = float(known[np.argmax(np.abs(known))])
        raise BadTime(
            f"{what} hold {worst!r} seconds, which nanoseconds of 64 bits cannot; give a column with a unit, such as "
            "datetime64[ms], or Ticks(values, 'ms')"
        )
    whole = np.trunc(known)
    rest = np.rint((known - whole) * SECOND)
    return Ticks(whole.astype(np.int64) * SECOND + rest.astype(np.int64), "ns", None if everything else valid)


def _from_list(times: Sequence[Any], what: str) -> Ticks:
    kinds = {type(time) for time in times}
    try:
        if kinds <= {int}:
            return Ticks(np.array(times, np.int64), "s")
        if kinds <= {int, float}:
            return _from_floats(np.array(times, np.float64), what)
    except OverflowError:
        raise BadTime(f"{what} hold an int beyond 64 bits; check the unit of the column") from None
    there = [not _missing(time) for time in times]
    zoned = {_zoned(time, what) for time, known in zip(times, there, strict=True) if known}
    if {True, False} <= zoned:
        raise BadTime(f"{what} mix times with and without a time zone; give all of them a zone, such as UTC")
    instants = [instant(time, what) if known else 0 for time, known in zip(times, there, strict=True)]
    unit = next(u for u, per in PER_TICK.items() if all(t % per == 0 for t in instants))
    try:
        values = np.array([t // PER_TICK[unit] for t in instants], np.int64)
    except OverflowError:
        raise BadTime(
            f"{what} from {show(min(instants))} to {show(max(instants))} do not fit 64 bits of {unit}; "
            "round them to a coarser unit"
        ) from None
    return Ticks(values, unit, None if all(there) else np.array(there))


def absent(thing: Any) -> bool:
    """Whether this stands for nothing: None, NaN, NaT, a null of any library."""
    if thing is None:
        return True
    if isinstance(thing, (float, np.floating)):
        return math.isnan(thing)
    if isinstance(thing, (int, str, bytes, dt.date)) and not hasattr(thing, "to_datetime64"):
        return False
    if _is_arrow(thing) and hasattr(thing, "is_valid"):
        return not thing.is_valid
    try:
        return bool(thing != thing)
    except (TypeError, ValueError):
        return type(thing).__name__ == "NAType"  # pandas.NA, which is neither equal nor unequal


def _missing(time: Any) -> bool:
    """Whether this is no time: nothing, or an infinity."""
    return absent(time) or (isinstance(time, (float, np.floating)) and math.isinf(time))


def _zoned(time: Any, what: str) -> bool | None:
    """Whether a time names its zone, or None for one that needs none, such as a number."""
    if isinstance(time, str):
        time = _iso(time, what)
    if isinstance(time, dt.datetime):
        return time.utcoffset() is not None
    if isinstance(time, (dt.date, np.datetime64)):
        return False
    if _is_arrow(time) and hasattr(time, "type"):
        if _pa().types.is_timestamp(time.type):
            return time.type.tz is not None
        return False if _pa().types.is_date(time.type) else None
    return None


def _from_arrow(times: Any, what: str) -> Ticks:
    pa = _pa()
    column = times
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        try:
            column = pa.chunked_array(times) if hasattr(times, "__arrow_c_stream__") else pa.array(times)
        except (pa.ArrowException, TypeError, ValueError) as why:
            raise BadInput(f"{what} must be a column of times, got a {type(times).__name__}: {why}") from None
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kind = column.type
    if pa.types.is_date32(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    elif pa.types.is_date64(kind):
        column, kind = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    there = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(kind):
        plain = column.cast(pa.int64())
        return Ticks((plain if there is None else plain.fill_null(0)).to_numpy(), kind.unit, there)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = (column if there is None else column.fill_null(0)).to_numpy(zero_copy_only=False)
        read = _from_numpy(numbers, what)
        return read if there is None else _only(read, there)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _from_list(column.to_pylist(), what)
    if pa.types.is_null(kind):
        return Ticks(np.zeros(len(column), np.int64), "s", np.zeros(len(column), np.bool_))
    raise BadTime(
        f"{what} must be timestamps, dates, texts or numbers of seconds, got Arrow type {kind}; cast the column first"
    )


def _from_arrow_scalar(time: Any, what: str) -> int:
    if not time.is_valid:
        return _there(None, time, what)
    if _pa().types.is_timestamp(time.type):
        return int(time.value) * PER_TICK[time.type.unit]
    return instant(time.as_py(), what)


def _from_pandas(times: Any, what: str) -> Ticks:
    dtype: Any = getattr(times, "dtype", None)
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_arrow(times.array.__arrow_array__(), what)
    if getattr(dtype, "tz", None) is not None:
        return _from_numpy(times.to_numpy(dtype=f"datetime64[{dtype.unit}]"), what)
    return _from_numpy(np.asarray(times.to_numpy()), what)


def _only(column: Ticks, there: NDArray[np.bool_]) -> Ticks:
    """The column with further times marked as missing."""
    valid = there if column.valid is None else column.valid & there
    return column if valid.all() else Ticks(column.values, column.unit, valid)


def _iso(text: str, what: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(_SPELLED_ZONE.sub("Z", text.strip()))
    except ValueError:
        shown = repr(text[:_LONGEST_TEXT])
        raise BadTime(f"{what} must be a time, got {shown}; write it as in '2026-01-31T12:00:00Z'") from None


def _from_text(text: str, what: str) -> int:
    # datetime keeps microseconds: nanoseconds are ours to keep
    digits = re.match(r"[^.,]*[.,]\d{6}(\d{1,3})", text)
    return instant(_iso(text, what)) + (int(digits[1].ljust(3, "0")) if digits else 0)


def _int_seconds(seconds: Any, what: str) -> int:
    whole = int(seconds)
    found = whole if isinstance(seconds, Nanoseconds) else whole * SECOND
    if not -_FARTHEST <= found <= _FARTHEST:
        raise BadTime(f"{what} must be seconds that fit 64 bits, got an int of {whole.bit_length()} bits")
    return found


def _float_seconds(seconds: float, what: str) -> int:
    if not math.isfinite(seconds):
        raise BadTime(f"{what} must be finite, got {seconds!r}; leave it out if it is unknown")
    if abs(seconds) > _INT64_MAX:
        raise BadTime(f"{what} must be seconds that fit 64 bits, got {seconds!r}")
    whole = int(seconds)
    return whole * SECOND + round((seconds - whole) * SECOND)


def _duration_text(text: str, what: str) -> int:
    total = Fraction(0)
    at = 0
    body = text.strip()
    if len(body) <= _LONGEST_TEXT:
        body = _spelled_out(body)
    sign = -1 if body.startswith("-") else 1
    body = body[1:] if body[:1] in ("-", "+") else body
    while at < len(body) <= _LONGEST_TEXT:
        match = _DURATION_PART.match(body, at)
        per = _unit_ns(match[2]) if match else None
        if match is None or per is None:
            break
        about = float(match[1])
        if about * per > _FARTHEST:
            raise BadTime(f"{what} must fit 64 bits of seconds, got {text!r}")
        total += Fraction(match[1]) * per if about > 1e-30 else 0
        at = match.end()
    if not body or at < len(body):
        raise BadTime(
            f"{what} must be a length of time, got {text[:_LONGEST_TEXT]!r}; write a number and a unit of fixed length "
            "(ns, us, ms, s, m for minutes, h, d, w), such as '5m', '1 minute' or '1h 30m'"
        )
    return sign * round(total)


def _spelled_out(text: str) -> str:
    """A duration of ISO 8601 (PT5M), a clock's (1 day, 2:03:04) or SQL's (interval 5 minutes), as numbers with units.

    A sign is no part of the first two: before a clock, to Python it would belong to the days alone.
    """
    found = _ISO_DURATION.fullmatch(text) or _CLOCK_DURATION.fullmatch(text)
    if found is None:
        return re.sub(r"^interval\s+(?=\d)", "", text, flags=re.IGNORECASE)
    return " ".join(f"{number}{unit}" for number, unit in zip(found.groups(), "wdhms", strict=True) if number)


def _unit_ns(word: str) -> int | None:
    """Nanoseconds in a unit of duration; a letter, mostly, is taken as it is, a word in any case and in the plural."""
    word = word.lower() if word in _LARGE_LETTERS else word
    if word in _DURATION_UNITS:
        return _DURATION_UNITS[word][1]
    return _DURATION_WORDS.get(word.lower().removesuffix("s"))


def _timedelta_ns(length: dt.timedelta) -> int:
    whole = (length.days * 86400 + length.seconds) * SECOND + length.microseconds * 1000
    return whole + int(getattr(length, "nanoseconds", 0))  # pandas' Timedelta has them


def _there(time: int | None, given: Any, what: str) -> int:
    if time is None:
        raise BadTime(f"{what} is missing: {given!r}; leave it out, or put it in a column, where it is counted")
    return time


def _unit_of(per: int) -> str:
    return next(unit for unit, p in PER_TICK.items() if p == per)


def _is_arrow(thing: Any) -> bool:
    return type(thing).__module__.partition(".")[0] == "pyarrow"


def _pa() -> Any:
    import pyarrow

    return pyarrow
