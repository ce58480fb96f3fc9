"""Event times and durations, in every form people write them.

Two representations, and no others:

* one **instant** or **duration** is a Python int of nanoseconds (since 1970 UTC, for an instant), which never
  overflows;
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
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wane._jit import kernel
from wane.errors import BadInput, BadTime

SECOND = 1_000_000_000
PER_TICK = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds in a tick, by unit, coarsest first."""

_INT64_MAX = 2**63 - 1
_NAT = -(2**63)  # datetime64's missing time
_DURATION_UNITS = {
    "ns": ("nanosecond", 1),
    "us": ("microsecond", 1_000),
    "µs": ("microsecond", 1_000),
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
_DURATION_WORDS = {word: ns for word, ns in _DURATION_UNITS.values()}
_DURATION_PART = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*([a-zA-Zµ]+)\s*")


class Nanoseconds(int):
    """An int that is nanoseconds already, where a plain one would be seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Ticks:
    """A column of event times: int64 ticks with a unit.

    Attributes:
        values: The ticks; what stands where `valid` is false means nothing.
        unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        valid: False where the time is missing (null, NaT, NaN), or None when none is.
        ends: The smallest and the largest tick, where they are known already.
    """

    values: NDArray[np.int64]
    unit: str
    valid: NDArray[np.bool_] | None = None
    ends: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.unit not in PER_TICK:
            raise BadTime(f"unit must be one of {', '.join(PER_TICK)}, got {self.unit!r}; write Ticks(values, 'ms')")

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
        lo, hi = self.ends or _min_max(np.ascontiguousarray(self.values))
        return int(lo) * self.per_tick, int(hi) * self.per_tick

    def since(self, origin: int, lo: int, hi: int) -> tuple[NDArray[np.int64], int, int]:
        """Prepare the exact subtraction of an instant: ``(values - base) * per_tick`` nanoseconds have passed since it.

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
        """Seconds from an instant to each time, each rounded once."""
        if not len(self.values):
            return np.empty(0)
        values, base, per = self.since(origin, *self.span())
        ages = np.empty(len(values))
        measure(np.ascontiguousarray(values), base, per / SECOND, ages)
        return ages


@kernel("UniTuple(int64, 2)(r_i8)")
def _min_max(values: NDArray[np.int64]) -> tuple[int, int]:
    """Both ends in one pass over the memory."""
    lo = hi = values[0]
    for i in range(values.shape[0]):
        lo = min(lo, values[i])
        hi = max(hi, values[i])
    return lo, hi


@kernel("void(r_i8, int64, float64, w_f8)")
def measure(values: NDArray[np.int64], base: int, seconds: float, ages: NDArray[np.float64]) -> None:
    """Subtract as integers, then scale: one rounding."""
    for i in range(values.shape[0]):
        ages[i] = (values[i] - base) * seconds


def ticks(times: Any, what: str = "times") -> Ticks:
    """Read a column of event times.

    Takes :class:`Ticks`, NumPy arrays (numbers are seconds; datetime64 of any unit), Arrow arrays (timestamps of any
    unit and zone, dates, numbers), pandas Series and indexes, and lists of anything that :func:`instant` takes.

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
    if isinstance(times, (str, bytes)) or not isinstance(times, (Sequence, range)):
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
    if kind is int:
        return cast(int, time) * SECOND
    if kind is float:
        return _float_seconds(time, what)
    if isinstance(time, Nanoseconds):
        return int(time)
    if isinstance(time, (bool, np.bool_)):
        raise BadTime(f"{what} must be a time, got {time!r}; write seconds, a datetime or a text such as '2026-01-31'")
    if isinstance(time, (int, np.integer)):
        return int(time) * SECOND
    if isinstance(time, (float, np.floating)):
        return _float_seconds(float(time), what)
    if isinstance(time, np.datetime64):
        return _one(_from_numpy(np.array([time]), what), time, what)
    if isinstance(time, dt.datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
        past = aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        # pandas' Timestamp is a datetime with nanoseconds of its own
        return _timedelta_ns(past) + (0 if hasattr(past, "nanoseconds") else int(getattr(time, "nanosecond", 0)))
    if isinstance(time, dt.date):
        return (time - dt.date(1970, 1, 1)).days * 86400 * SECOND
    if isinstance(time, str):
        return _from_text(time, what)
    if _is_arrow(time):
        import pyarrow as pa

        return _one(_from_arrow(pa.array([time.as_py()], time.type), what), time, what)
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
    if isinstance(length, Nanoseconds):
        return int(length)
    if isinstance(length, (bool, np.bool_)):
        raise BadTime(f"{what} must be a length of time, got {length!r}; write seconds or a text such as '5m'")
    if isinstance(length, (int, np.integer)):
        return int(length) * SECOND
    if isinstance(length, (float, np.floating)):
        return _float_seconds(float(length), what)
    if isinstance(length, dt.timedelta):
        return _timedelta_ns(length)
    if isinstance(length, np.timedelta64):
        unit, count = np.datetime_data(length)
        if unit in ("Y", "M", "generic") or np.isnat(length):
            raise BadTime(f"{what} must have a fixed length, got {length!r}; write it in days or less")
        per = {"W": 7 * 86400 * SECOND, "D": 86400 * SECOND, "h": 3600 * SECOND, "m": 60 * SECOND, **PER_TICK}.get(unit)
        if per is None:
            raise BadTime(f"{what} is finer than a nanosecond: {length!r}; write it in ns or more")
        return int(length.astype(np.int64)) * count * per
    if _is_arrow(length):
        value = length.cast(_pa().duration("ns")).value
        if value is None:
            raise BadTime(f"{what} must be a length of time, got null")
        return int(value)
    raise BadTime(f"{what} must be a length of time, got {length!r}; write seconds, a timedelta or a text such as '5m'")


def show(time: int) -> str:
    """Write an instant for a person; the seconds too, since plain numbers are how many people give times."""
    seconds = time / SECOND
    number = str(time // SECOND) if time % SECOND == 0 else repr(seconds)
    if abs(seconds) < 10**8:  # nobody's clock: seconds of some trace
        return number
    try:
        day = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=time // 1000)
    except OverflowError:
        return number
    return f"{day.isoformat()}Z"


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


def _from_numpy(times: NDArray[Any], what: str) -> Ticks:
    if times.ndim != 1:
        raise BadInput(f"{what} must have one dimension, got shape {times.shape}; ravel it or pass one column")
    kind = times.dtype.kind
    if kind == "M":
        return _from_datetime64(times, what)
    if kind in "iu":
        if kind == "u" and times.dtype.itemsize == 8 and len(times) and int(times.max()) > _INT64_MAX:
            raise BadTime(f"{what} hold {int(times.max())} seconds, beyond 64 bits; check the unit of the column")
        return Ticks(times.astype(np.int64, copy=False), "s")
    if kind == "f":
        return _from_floats(times.astype(np.float64, copy=False), what)
    if kind == "O":
        return _from_list(times.tolist(), what)
    raise BadTime(f"{what} must be numbers of seconds or datetime64, got dtype {times.dtype}; convert the column first")


def _from_datetime64(times: NDArray[Any], what: str) -> Ticks:
    unit, count = np.datetime_data(times.dtype)
    if unit in ("ps", "fs", "as"):
        raise BadTime(f"{what} are finer than a nanosecond ({times.dtype}); cast them to datetime64[ns]")
    if unit not in PER_TICK or count != 1:
        unit = unit if unit in PER_TICK else "s"  # days, weeks, minutes: whole seconds
        plain = times.astype(f"datetime64[{unit}]")
        if not np.array_equal(plain.astype(times.dtype), times, equal_nan=True):
            raise BadTime(f"{what} of {times.dtype} do not fit 64 bits of {unit}")
        times = plain
    values = np.ascontiguousarray(times).view(np.int64)
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
    if kinds <= {int}:
        try:
            return Ticks(np.array(times, np.int64), "s")
        except OverflowError:
            raise BadTime(f"{what} hold an int beyond 64 bits; check the unit of the column") from None
    if kinds <= {int, float}:
        return _from_floats(np.array(times, np.float64), what)
    zones = {time.tzinfo is None for time in times if isinstance(time, dt.datetime)}
    if len(zones) == 2:
        raise BadTime(f"{what} mix datetimes with and without a time zone; give all of them a zone, such as UTC")
    missing = [time is None or time != time for time in times]
    instants = [0 if gone else instant(time, what) for time, gone in zip(times, missing, strict=True)]
    unit = next(u for u, per in PER_TICK.items() if all(t % per == 0 for t in instants))
    try:
        values = np.array([t // PER_TICK[unit] for t in instants], np.int64)
    except OverflowError:
        raise BadTime(
            f"{what} from {show(min(instants))} to {show(max(instants))} do not fit 64 bits of {unit}; "
            "round them to a coarser unit"
        ) from None
    return Ticks(values, unit, ~np.array(missing) if any(missing) else None)


def _from_arrow(times: Any, what: str) -> Ticks:
    pa = _pa()
    column = times
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.chunked_array(times) if hasattr(times, "__arrow_c_stream__") else pa.array(times)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):  # no chunk at all
            column = pa.array([], column.type)
    kind = column.type
    if pa.types.is_date32(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    elif pa.types.is_date64(kind):
        column, kind = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    valid = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(kind):
        plain = column.cast(pa.int64()) if valid is None else column.cast(pa.int64()).fill_null(0)
        return Ticks(plain.to_numpy(), kind.unit, valid)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = (column if valid is None else column.fill_null(0)).to_numpy(zero_copy_only=False)
        read = _from_numpy(numbers, what)
        both = valid if read.valid is None else read.valid if valid is None else read.valid & valid
        return Ticks(read.values, read.unit, both)
    if pa.types.is_null(kind):
        return Ticks(np.zeros(len(column), np.int64), "s", np.zeros(len(column), np.bool_))
    raise BadTime(f"{what} must be timestamps, dates or numbers of seconds, got Arrow type {kind}; cast the column first")


def _from_pandas(times: Any, what: str) -> Ticks:
    zone = getattr(getattr(times, "dt", times), "tz", None)
    if zone is not None:
        times = (times.dt if hasattr(times, "dt") else times).tz_convert("UTC")
        times = (times.dt if hasattr(times, "dt") else times).tz_localize(None)
    return _from_numpy(np.asarray(times.to_numpy()), what)


def _from_text(text: str, what: str) -> int:
    try:
        parsed = dt.datetime.fromisoformat(text)
    except ValueError:
        raise BadTime(f"{what} must be a time, got {text!r}; write it as in '2026-01-31T12:00:00Z'") from None
    digits = re.search(r"[.,]\d{6}(\d{1,3})", text)  # datetime keeps microseconds: nanoseconds are ours to keep
    return instant(parsed) + (int(digits[1].ljust(3, "0")) if digits else 0)


def _float_seconds(seconds: float, what: str) -> int:
    if not math.isfinite(seconds):
        raise BadTime(f"{what} must be finite, got {seconds!r}")
    whole = int(seconds)
    return whole * SECOND + round((seconds - whole) * SECOND)


def _duration_text(text: str, what: str) -> int:
    total = 0.0
    exact = 0
    at = 0
    sign = -1 if text.lstrip().startswith("-") else 1
    body = text.strip().lstrip("+-")
    while at < len(body):
        match = _DURATION_PART.match(body, at)
        word = match[2] if match else ""
        lower = word.lower()
        if word in _DURATION_UNITS:
            per = _DURATION_UNITS[word][1]
        elif lower.removesuffix("s") in _DURATION_WORDS:
            per = _DURATION_WORDS[lower.removesuffix("s")]
        elif lower.removesuffix("s") in ("min", "sec", "hr"):
            per = _DURATION_UNITS[lower.removesuffix("s")][1]
        else:
            match = None
        if match is None:
            break
        if match[1].isdigit():
            exact += int(match[1]) * per
        else:
            total += float(match[1]) * per
        at = match.end()
    if not body or at < len(body):
        raise BadTime(
            f"{what} must be a length of time, got {text!r}; write a number and a unit (ns, us, ms, s, m, h, d, w), "
            "such as '5m', '1 minute' or '1h 30m'"
        )
    return sign * (exact + round(total))


def _timedelta_ns(length: dt.timedelta) -> int:
    whole = (length.days * 86400 + length.seconds) * SECOND + length.microseconds * 1000
    return whole + int(getattr(length, "nanoseconds", 0))  # pandas' Timedelta has them


def _one(column: Ticks, given: Any, what: str) -> int:
    if column.valid is not None and not column.valid[0]:
        raise BadTime(f"{what} is missing: {given!r}")
    return int(column.values[0]) * column.per_tick


def _unit_of(per: int) -> str:
    return next(unit for unit, p in PER_TICK.items() if p == per)


def _is_arrow(thing: Any) -> bool:
    return type(thing).__module__.partition(".")[0] == "pyarrow"


def _pa() -> Any:
    import pyarrow

    return pyarrow
