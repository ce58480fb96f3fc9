"""Times and durations: every form people write, to the nanosecond; what cannot be read is refused with a remedy."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import math
import pickle
import random
import re
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wane.errors import BadInput, BadTime, WaneError
from wane.times import (
    PER_TICK,
    SECOND,
    Nanoseconds,
    Ticks,
    duration,
    instant,
    measure,
    show,
    show_duration,
    ticks,
)

checked = settings(max_examples=200)

NEW_YEAR = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z
PARIS = ZoneInfo("Europe/Paris")
MAX = 2**63 - 1


def instants(column: Ticks) -> list[int | None]:
    """A column as nanoseconds, None where a time is missing."""
    valid = np.ones(len(column), bool) if column.valid is None else column.valid
    return [int(v) * column.per_tick if good else None for v, good in zip(column.values, valid, strict=True)]


def pandas() -> Any:
    return pytest.importorskip("pandas")


def arrow() -> Any:
    return pytest.importorskip("pyarrow")


# --- one instant -----------------------------------------------------------------------------------------------

SAME_INSTANT = [
    1_767_225_600,
    1_767_225_600.0,
    np.int32(1_767_225_600),
    np.int64(1_767_225_600),
    np.uint64(1_767_225_600),
    np.float64(1_767_225_600),
    Nanoseconds(NEW_YEAR),
    dt.datetime(2026, 1, 1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 1, 1, tzinfo=PARIS),
    dt.datetime(2025, 12, 31, 19, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    dt.date(2026, 1, 1),
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-01-01 00:00:00",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00.000000000+01:00",
    "20260101T000000Z",
    " 2026-01-01 00:00:00 UTC\n",
    "2026-01-01 00:00:00.000000000 GMT",
    "2026-01-01t00:00:00z",
    np.str_("2026-01-01"),
    *(np.datetime64("2026-01-01", unit) for unit in ("Y", "M", "D", "h", "m", "s", "ms", "us", "ns")),
    np.datetime64("2026-01-01", "25s"),
]


def _name(value):
    """The value in a test's name, without an address, which would differ between the workers of one run."""
    return re.sub(r" at 0x\w+", "", repr(value))[:40]


@pytest.mark.parametrize("time", SAME_INSTANT, ids=repr)
def test_an_instant_in_every_form(time: Any) -> None:
    assert instant(time) == NEW_YEAR
    assert instants(ticks([time])) == [NEW_YEAR]
    assert instants(ticks([time, None])) == [NEW_YEAR, None]


def test_an_instant_of_pandas_in_every_unit_and_zone() -> None:
    pd = pandas()
    for unit in PER_TICK:
        assert instant(pd.Timestamp("2026-01-01").as_unit(unit)) == NEW_YEAR
        assert instant(pd.Timestamp("2026-01-01 01:00", tz="Europe/Paris").as_unit(unit)) == NEW_YEAR
    assert instant(pd.Timestamp("2026-01-01T00:00:00.123456789Z")) == NEW_YEAR + 123_456_789
    assert instant(pd.Timestamp("9999-12-31")) == 253_402_214_400 * SECOND
    with pytest.raises(BadTime, match="missing"):
        instant(pd.NaT)


def test_an_instant_of_arrow() -> None:
    pa = arrow()
    for unit, per in PER_TICK.items():
        for zone in (None, "UTC", "Asia/Kolkata"):
            assert instant(pa.scalar(NEW_YEAR // per + 1, pa.timestamp(unit, zone))) == NEW_YEAR + per
    assert instant(pa.scalar(dt.date(2026, 1, 1))) == NEW_YEAR
    assert instant(pa.scalar(1.5)) == 1_500_000_000
    assert instant(pa.scalar("1970-01-01T00:00:01Z")) == SECOND
    with pytest.raises(BadTime, match="missing"):
        instant(pa.scalar(None, pa.timestamp("us")))


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00.5Z", 500_000_000),
        ("1970-01-01T00:00:00.123456Z", 123_456_000),
        ("1970-01-01T00:00:00.1234567Z", 123_456_700),
        ("1970-01-01T00:00:00.123456789", 123_456_789),
        ("1970-01-01T00:00:00,123456789", 123_456_789),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1970-01-01T00:00:00.123456789123+01:00", 123_456_789 - 3600 * SECOND),
        ("1970-01-01T00:00:00.000000001-05:30", 1 + 5 * 3600 * SECOND + 1800 * SECOND),
    ],
)
def test_a_text_keeps_nanoseconds(text: str, ns: int) -> None:
    assert instant(text) == ns


def test_the_hour_that_comes_twice_is_told_apart_by_fold() -> None:
    first = dt.datetime(2026, 10, 25, 2, 30, tzinfo=PARIS)
    assert instant(first.replace(fold=1)) - instant(first) == 3600 * SECOND


def test_a_zone_without_an_offset_is_no_zone() -> None:
    class Nowhere(dt.tzinfo):
        def utcoffset(self, _: dt.datetime | None) -> None:
            return None

    assert instant(dt.datetime(2026, 1, 1, tzinfo=Nowhere())) == NEW_YEAR


@checked
@given(st.floats(-9e9, 9e9))
def test_float_seconds_are_right_to_half_a_nanosecond(seconds: float) -> None:
    exact = Fraction(seconds) * SECOND
    assert abs(instant(seconds) - exact) <= Fraction(1, 2) + abs(exact - int(exact)) / 2**50
    assert instants(ticks(np.array([seconds]))) == [instant(seconds)]


@checked
@given(st.integers(-(2**62), 2**62))
def test_an_int_of_seconds_is_exact(seconds: int) -> None:
    assert instant(seconds) == seconds * SECOND
    assert instants(ticks([seconds])) == [seconds * SECOND]


@pytest.mark.parametrize(
    "bad",
    [
        "yesterday", "", "2026-13-01", "1767225600", "2026-01-01T25:00", b"2026-01-01", True, np.True_, None, 1j,
        math.nan, math.inf, -math.inf, 1e300, 10**400, -(10**30), [1], {}, dt.time(1), dt.timedelta(1),
        np.datetime64("NaT"), np.datetime64(5, "ps"), np.timedelta64(1, "s"), np.array(5.0), object(), Fraction(1, 2),
        "2026-01-01" + " " * 10**6 + "UTC", "9" * 10**6,
    ],
    ids=_name,
)  # fmt: skip
def test_what_is_no_instant_is_refused(bad: Any) -> None:
    with pytest.raises(BadTime, match="when") as refused:
        instant(bad, "when")
    assert len(str(refused.value)) < 300


# --- columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "10ms", "25s"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_datetime64_of_every_unit_and_byte_order(unit: str, order: str) -> None:
    texts = ["2024-02-29", "1969-12-25", "NaT", "2026-01-01"]
    column = np.array(texts, f"M8[{unit}]").astype(f"{order}M8[{unit}]")
    expected = [None if np.isnat(t) else int(t.astype("M8[s]").astype(int)) * SECOND for t in column]
    assert instants(ticks(column)) == expected
    assert instants(ticks(column[::-2])) == expected[::-2]
    assert instants(ticks(list(column))) == expected
    assert instants(ticks(column.astype(object) if unit != "ns" else list(column))) == expected


def test_numpy_numbers_of_every_type_are_seconds() -> None:
    for code in "bBhHiIlLqQfd":
        for order in "<>":
            column = np.array([1, 2, 3, 4, 100], np.dtype(code).newbyteorder(order))
            assert instants(ticks(column)) == [n * SECOND for n in (1, 2, 3, 4, 100)]
            assert instants(ticks(column[1::2])) == [2 * SECOND, 4 * SECOND]
    assert instants(ticks(np.array([1.5, np.nan, np.inf, -np.inf, -0.25]))) == [
        1_500_000_000, None, None, None, -250_000_000,
    ]  # fmt: skip
    assert ticks(np.array([], float)).values.dtype == np.int64
    with pytest.raises(BadTime, match="64 bits"):
        ticks(np.array([2**63], np.uint64))
    with pytest.raises(BadTime, match=r"9300000000.0 seconds.*datetime64"):
        ticks(np.array([1.0, 9.3e9]))


def test_a_mask_marks_missing_times() -> None:
    column = np.ma.masked_array([1.0, 9e300, 3.0], mask=[False, True, False])
    assert instants(ticks(column)) == [SECOND, None, 3 * SECOND]
    assert instants(ticks(np.ma.masked_array([1, 2], mask=True))) == [None, None]
    assert instants(ticks(np.ma.masked_array([1, 2]))) == [SECOND, 2 * SECOND]
    assert instants(ticks(np.ma.masked_array(np.array(["NaT", "1970-01-02"], "M8[D]"), mask=[False, True]))) == [
        None, None,
    ]  # fmt: skip
    assert instants(ticks(np.ma.masked_array([9e300, 1.0], mask=[True, False]))) == [None, SECOND]
    assert instants(ticks(np.ma.masked_array(["", "1970-01-02"], mask=True))) == [None, None]
    assert instants(ticks(np.ma.masked_array(np.array([]), mask=np.array([], bool)))) == []


def test_lists_take_the_coarsest_unit_that_is_exact() -> None:
    assert ticks([1, 2]).unit == "s"
    assert ticks([dt.datetime(2026, 1, 1), dt.date(1970, 1, 1)]).unit == "s"
    assert ticks([dt.datetime(2026, 1, 1, microsecond=5000)]).unit == "ms"
    assert ticks([dt.datetime(2026, 1, 1, microsecond=5)]).unit == "us"
    assert ticks(["1970-01-01T00:00:00.000000005"]).unit == "ns"
    assert instants(ticks([0, 0.5, None])) == [0, 500_000_000, None]
    assert instants(ticks((1, "1970-01-01", dt.date(1970, 1, 2), np.float32(0.5)))) == [
        SECOND, 0, 86400 * SECOND, 500_000_000,
    ]  # fmt: skip
    assert instants(ticks(range(3))) == [0, SECOND, 2 * SECOND]
    assert len(ticks([])) == 0
    assert instants(ticks([None, math.nan, np.datetime64("NaT"), np.float32("nan")])) == [None] * 4
    # years 1 and 9999 together fit no column of nanoseconds
    assert instants(ticks([dt.date(1, 1, 1), dt.date(9999, 12, 31)]))[1] == 253_402_214_400 * SECOND
    with pytest.raises(BadTime, match="coarser unit"):
        ticks(["0001-01-01", "9999-12-31T00:00:00.000000001"])


def test_arrow_timestamps_of_every_unit_and_zone() -> None:
    pa = arrow()
    for unit, per in PER_TICK.items():
        for zone in (None, "UTC", "America/New_York", "+05:30"):
            column = pa.array([5, None, -7, NEW_YEAR // per], pa.timestamp(unit, zone))
            expected = [5 * per, None, -7 * per, NEW_YEAR]
            read = ticks(column)
            assert read.unit == unit
            assert instants(read) == expected
            assert instants(ticks(column.slice(1, 2))) == expected[1:3]
            assert instants(ticks(column.slice(2))) == expected[2:]
            assert ticks(column.slice(2)).valid is None
            chunks = pa.chunked_array([column.slice(3), column.slice(0, 2), column.slice(4)])
            assert instants(ticks(chunks)) == [expected[3], *expected[:2]]
            assert instants(ticks(pa.chunked_array([column]).slice(1, 2))) == expected[1:3]
            assert instants(ticks(pa.chunked_array([], column.type))) == []
            assert instants(ticks(list(column))) == expected


def test_arrow_dates_numbers_texts_and_nulls() -> None:
    pa = arrow()
    days = [dt.date(1970, 1, 2), None, dt.date(1969, 12, 31)]
    expected = [86400 * SECOND, None, -86400 * SECOND]
    for kind in (pa.date32(), pa.date64()):
        assert instants(ticks(pa.array(days, kind))) == expected
        assert instants(ticks(pa.array(days, kind).slice(1))) == expected[1:]
    for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()):
        assert instants(ticks(pa.array([1, None, 2], kind))) == [SECOND, None, 2 * SECOND]
    assert instants(ticks(pa.array([0.5, None, math.nan]))) == [500_000_000, None, None]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert instants(ticks(pa.array(["1970-01-02", None], kind))) == expected[:2]
    assert instants(ticks(pa.nulls(2))) == [None, None]
    for bad in (pa.array([True]), pa.array([b"x"]), pa.array([[1]]), pa.table({"a": [1]}), pa.array([dt.time(1)])):
        with pytest.raises(WaneError, match=r"clock must be.*(cast|got)"):
            ticks(bad, "clock")


def test_a_dictionary_of_times_is_read() -> None:
    pa = arrow()
    for kind in (pa.timestamp("ns", "Asia/Kolkata"), pa.int64()):
        column = pa.array([5, None, 5], pa.int64()).cast(kind)
        assert instants(ticks(column.dictionary_encode())) == instants(ticks(column))
    texts = pa.array(["2026-01-01", None, "2026-01-01"]).dictionary_encode()
    assert instants(ticks(texts)) == [NEW_YEAR, None, NEW_YEAR]


def test_pandas_series_indexes_and_their_dtypes() -> None:
    pd, pa = pandas(), arrow()
    texts = ["2026-01-01T00:00:00.000000001", None, "1969-12-31T23:59:59"]
    expected = [NEW_YEAR + 1, None, -SECOND]
    naive = pd.to_datetime(pd.Series(texts), format="ISO8601")
    for zone in (None, "UTC", "Europe/Paris"):
        series = naive if zone is None else naive.dt.tz_localize("UTC").dt.tz_convert(zone)
        assert instants(ticks(series)) == expected
        assert instants(ticks(pd.DatetimeIndex(series))) == expected
        assert instants(ticks(series[::-1])) == expected[::-1]
        assert instants(ticks(list(series))) == expected
        assert instants(ticks(series.astype(object))) == expected
        for unit, per in PER_TICK.items():
            coarse = [None if t is None else t // per * per for t in expected]
            assert instants(ticks(series.dt.as_unit(unit))) == coarse
            kind = pd.ArrowDtype(pa.timestamp(unit, zone))
            assert instants(ticks(series.dt.as_unit(unit).astype(kind))) == coarse
    assert instants(ticks(pd.Series([1, None], dtype="Int64"))) == [SECOND, None]
    assert instants(ticks(pd.Series([0.5, None], dtype="Float64"))) == [500_000_000, None]
    assert instants(ticks(pd.Series(["1970-01-02", None], dtype="string"))) == [86400 * SECOND, None]
    assert instants(ticks(pd.Series(["1970-01-02", "1970-01-01"], dtype="category"))) == [86400 * SECOND, 0]
    assert instants(ticks([pd.NA, 1, pd.NaT, pd.Timestamp(5)])) == [None, SECOND, None, 5]
    assert instants(ticks(pd.Series([1.0], index=["tz"]))) == [SECOND]  # a label is no attribute
    for bad in (pd.DataFrame({"tz": [1]}), pd.period_range("2026", periods=2), pd.to_timedelta(["1s"])):
        with pytest.raises(WaneError, match="clock must"):
            ticks(bad, "clock")


def test_polars_series() -> None:
    pl = pytest.importorskip("polars")
    when = dt.datetime(2026, 1, 1, microsecond=7000)
    for unit in ("ms", "us", "ns"):
        series = pl.Series([when, None], dtype=pl.Datetime(unit))
        assert instants(ticks(series)) == [NEW_YEAR + 7_000_000, None]
        zoned = series.dt.replace_time_zone("Europe/Paris")
        assert instants(ticks(zoned)) == [NEW_YEAR + 7_000_000 - 3600 * SECOND, None]
    assert instants(ticks(pl.Series([dt.date(2026, 1, 1), None]))) == [NEW_YEAR, None]
    assert instants(ticks(pl.Series([1, None]))) == [SECOND, None]
    assert instants(ticks(pl.Series([1.5, None, math.nan]))) == [1_500_000_000, None, None]
    assert instants(ticks(pl.Series(["2026-01-01", None]))) == [NEW_YEAR, None]
    with pytest.raises(WaneError, match="clock must"):
        ticks(pl.DataFrame({"a": [1]}), "clock")


AWARE = [
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00+01:00",
    lambda: pandas().Timestamp("2026-01-01", tz="UTC"),
    lambda: arrow().scalar(1, arrow().timestamp("s", "UTC")),
]
NAIVE = [
    dt.datetime(2026, 1, 1),
    "2026-01-01",
    "2026-01-01T00:00:00",
    np.datetime64("2026-01-01"),
    dt.date(2026, 1, 1),
    lambda: pandas().Timestamp("2026-01-01"),
    lambda: arrow().scalar(1, arrow().timestamp("s")),
]


@pytest.mark.parametrize("aware", AWARE)
@pytest.mark.parametrize("naive", NAIVE)
def test_a_list_with_and_without_zones_is_refused(aware: Any, naive: Any) -> None:
    pair = [time() if callable(time) else time for time in (aware, naive)]
    for mixed in (pair, pair[::-1], [None, *pair], np.array(pair, object)):
        with pytest.raises(BadTime, match="clock mix times with and without a time zone; give all of them"):
            ticks(mixed, "clock")
    for fine in (pair[:1], pair[1:]):
        assert len(ticks([*fine, 5, None, *fine])) == 4  # a number is an instant whatever the zone


@pytest.mark.parametrize(
    "bad",
    [
        5, "2026-01-01", b"2026", bytearray(b"ab"), None, {1: 2}, {1}, (x for x in [1]), np.array(5), np.zeros((2, 2)),
        np.array([True]), np.array([1j]), np.array([b"2026"]), np.zeros(2, "m8[s]"), np.zeros(1, [("a", "i8")]),
        [True], [[1, 2], [3, 4]], [np.array([1, 2])] * 2, [1, "x"], [2**70], [2**2000, 0.5], [-(2**70), None],
        np.array([1], "M8[ps]"), np.array([2**62]).view("M8[h]"), [dt.time(1)], [object()], [{}],
    ],
    ids=_name,
)  # fmt: skip
def test_what_is_no_column_of_times_is_refused(bad: Any) -> None:
    with pytest.raises(WaneError, match=r"clock (must|hold|are|of)"):
        ticks(bad, "clock")


# --- Ticks -----------------------------------------------------------------------------------------------------


def test_ticks_take_ints_in_any_form() -> None:
    forms: list[Any] = [
        [1, 2, 3], (1, 2, 3), range(1, 4), np.array([1, 2, 3], np.int32), np.array([1, 2, 3], ">i8"),
        np.array([1, 9, 2, 9, 3])[::2], np.array([1, 2, 3], np.uint64),
    ]  # fmt: skip
    for form in forms:
        column = Ticks(form, "ms")
        assert column.values.dtype == np.int64
        assert column.values.dtype.isnative
        assert column.values.flags.c_contiguous
        assert column.span() == (1_000_000, 3_000_000)
        assert ticks(column) is column
    assert len(Ticks([], "ns")) == 0
    same = np.arange(3)
    assert Ticks(same, "s").values is same
    again = pickle.loads(pickle.dumps(Ticks([1, 2], "us", np.array([True, False]))))
    assert (instants(again), again.unit) == ([1000, None], "us")


def test_ticks_refuse_what_is_no_column_of_ints() -> None:
    for values in ([1.5], [1.0, math.nan], ["a"], [None], np.ma.masked_array([1], mask=[True])):
        with pytest.raises(BadInput, match="ticks"):
            Ticks(values, "ms")
    with pytest.raises(BadTime, match="9223372036854775808, beyond 64 bits"):
        Ticks(np.array([2**63], np.uint64), "ms")
    with pytest.raises(BadTime, match="unit must be one of s, ms, us, ns, got 'min'"):
        Ticks([1], "min")
    with pytest.raises(BadInput, match="one dimension"):
        Ticks(np.zeros((2, 2), np.int64), "ms")
    with pytest.raises(BadInput, match="yes or no for each of 2"):
        Ticks([1, 2], "ms", np.array([True]))


@checked
@given(
    st.sampled_from(list(PER_TICK)), st.lists(st.integers(-(2**62), 2**62), min_size=1), st.integers(-(2**62), 2**62)
)
def test_subtraction_is_exact_or_refused(unit: str, values: list[int], origin: int) -> None:
    column = Ticks(values, unit)
    lo, hi = column.span()
    assert (lo, hi) == (min(values) * column.per_tick, max(values) * column.per_tick)
    finest = 1 if origin % column.per_tick else column.per_tick
    if max(abs(lo), abs(hi), abs(origin), hi - origin, origin - lo) // finest > MAX:
        with contextlib.suppress(BadTime):  # a unit between may do
            column.since(origin, lo, hi)
            assert origin % 1000 == 0
        return
    moved, base, per = column.since(origin, lo, hi)
    assert base * per == origin
    assert [(int(v) - base) * per for v in moved] == [v * column.per_tick - origin for v in values]
    seconds = column.seconds_since(origin)
    for found, value in zip(seconds.tolist(), values, strict=True):
        exact = Fraction(value * column.per_tick - origin, SECOND)
        assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(1.2e-16)


@checked
@given(st.integers(-(2**33), 2**33), st.lists(st.integers(-(2**33), 2**33), min_size=1, max_size=5))
def test_one_instant_is_as_old_in_every_unit(origin: int, seconds: list[int]) -> None:
    columns = [
        Ticks([(t * SECOND + t % 1000 * 1_000_000) // per for t in seconds], unit)
        for unit, per in PER_TICK.items()
        if unit != "s"
    ]
    ages = [column.seconds_since(origin * SECOND).tolist() for column in columns]
    assert ages[0] == ages[1] == ages[2]
    # and each by itself, as in a column
    alone = [Ticks(columns[0].values[i : i + 1], "ms").seconds_since(origin * SECOND)[0] for i in range(len(seconds))]
    assert alone == ages[0]


@checked
@given(st.integers(-(2**52), 2**52), st.integers(-(2**52), 2**52))
def test_ages_under_104_days_are_rounded_once(ns: int, origin: int) -> None:
    if abs(ns - origin) < 2**53:
        assert Ticks([ns], "ns").seconds_since(origin)[0] == (ns - origin) / SECOND


def test_measure_is_right_to_two_roundings() -> None:
    random.seed(5)
    values = np.array([NEW_YEAR + random.randrange(10**15) for _ in range(100)])
    ages = np.empty(100)
    measure(values, NEW_YEAR, 1e-9, ages)
    for value, age in zip(values.tolist(), ages.tolist(), strict=True):
        assert math.isclose(age, (value - NEW_YEAR) / SECOND, rel_tol=3e-16)


def test_nanoseconds_of_2026_keep_order_and_ties() -> None:
    pd, pa = pandas(), arrow()
    wanted = [NEW_YEAR + n for n in (3, 1, 1, 2, 0, 238)]
    columns = {
        "ticks": Ticks(wanted, "ns"),
        "datetime64": np.array(wanted).view("M8[ns]"),
        "pandas": pd.Series(pd.to_datetime(wanted, utc=True)),
        "arrow": pa.array(wanted, pa.timestamp("ns", "UTC")),
        "texts": [f"2026-01-01T00:00:00.{n - NEW_YEAR:09d}Z" for n in wanted],
        "list": [Nanoseconds(n) for n in wanted],
        "timestamps": [pd.Timestamp(n) for n in wanted],
    }
    for name, column in columns.items():
        assert instants(ticks(column)) == wanted, name


def test_missing_times_are_marked_and_nothing_else() -> None:
    column = ticks(np.array(["NaT", "2026-01-01"], "M8[ns]"))
    assert column.valid is not None
    assert column.valid.tolist() == [False, True]
    assert column.take(column.valid).span() == (NEW_YEAR, NEW_YEAR)
    assert ticks(np.array(["2026-01-01"], "M8[ns]")).valid is None
    assert ticks([1.5]).valid is None


# --- durations -------------------------------------------------------------------------------------------------

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86400 * SECOND


@pytest.mark.parametrize(
    ("length", "ns"),
    [
        (300, 5 * MINUTE), (0.5, SECOND // 2), (np.float32(0.5), SECOND // 2), (np.int16(2), 2 * SECOND),
        (Nanoseconds(7), 7), ("5m", 5 * MINUTE), ("5 m", 5 * MINUTE), ("5min", 5 * MINUTE), ("5 mins", 5 * MINUTE),
        ("1 minute", MINUTE), ("2 Minutes", 2 * MINUTE), ("7d", 7 * DAY), ("7 days", 7 * DAY), ("1w", 7 * DAY),
        ("1h 30m", 90 * MINUTE), ("1h30m", 90 * MINUTE), (" 1 hour 30 minutes ", 90 * MINUTE), ("1hr", HOUR),
        ("2 hrs", 2 * HOUR), ("1.5h", 90 * MINUTE), (".5s", SECOND // 2), ("5.s", 5 * SECOND), ("1e3s", 1000 * SECOND),
        ("1e-3 s", 1_000_000), ("250ms", 250_000_000), ("3us", 3_000), ("3µs", 3_000), ("3μs", 3_000), ("9ns", 9),
        ("1 nanosecond", 1), ("30 sec", 30 * SECOND), ("30secs", 30 * SECOND), ("30 seconds", 30 * SECOND),
        ("-5m", -5 * MINUTE), ("+5m", 5 * MINUTE), ("- 5m", -5 * MINUTE), ("0.1s", 100_000_000), ("0.1us", 100),
        ("1D", DAY), ("2W", 14 * DAY), ("1H", HOUR), ("30S", 30 * SECOND), ("1D 2H", 26 * HOUR),
        ("5 msecs", 5_000_000), ("3 millis", 3_000_000), ("3 micros", 3_000), ("3 usec", 3_000), ("3 nanos", 3),
        ("interval 5 minutes", 5 * MINUTE),
        ("INTERVAL 1 DAY", DAY), ("PT5M", 5 * MINUTE), ("PT1H30M", 90 * MINUTE), ("P1D", DAY), ("P2W", 14 * DAY),
        ("P1DT0.5S", DAY + SECOND // 2), ("00:05:00", 5 * MINUTE), ("0:00:00.000001", 1_000), ("36:00:00", 36 * HOUR),
        (str(dt.timedelta(days=1, seconds=5)), DAY + 5 * SECOND), (str(dt.timedelta(days=2)), 2 * DAY),
        ("1 days 02:03:04", DAY + 7384 * SECOND),
        ("1.000000001s", 1_000_000_001), ("123456789.123456789s", 123_456_789_123_456_789), ("0s", 0), ("1e-400s", 0),
        (dt.timedelta(days=-1, microseconds=1), -DAY + 1000), (np.timedelta64(5, "m"), 5 * MINUTE),
        (np.timedelta64(2, "W"), 14 * DAY), (np.timedelta64(3, "D"), 3 * DAY), (np.timedelta64(5, "25us"), 125_000),
        (np.timedelta64(-5, "ns"), -5),
    ],
    ids=repr,
)  # fmt: skip
def test_a_duration_in_every_form(length: Any, ns: int) -> None:
    assert duration(length) == ns


def test_durations_of_pandas_and_arrow() -> None:
    pd, pa = pandas(), arrow()
    assert duration(pd.Timedelta(-1, "ns")) == -1
    assert duration(pd.Timedelta("1D 00:00:00.000000001")) == DAY + 1
    for unit, per in PER_TICK.items():
        assert duration(pa.scalar(5, pa.duration(unit))) == 5 * per
        assert duration(pd.Timedelta(5, unit).as_unit(unit)) == 5 * per
    assert duration(pa.scalar(2**62, pa.duration("s"))) == 2**62 * SECOND
    assert duration(pa.scalar(5)) == 5 * SECOND
    assert duration(pa.scalar("5m")) == 5 * MINUTE
    for bad in (pa.scalar(None, pa.duration("s")), pa.scalar(None), pd.NaT, pa.scalar(dt.date(2026, 1, 1)), pd.NA):
        with pytest.raises(BadTime, match="length"):
            duration(bad, "length")


@pytest.mark.parametrize(
    "bad",
    [
        "", " ", "5", "m", "5 parsecs", "5M", "5MS", "P", "PT", "P5", "P1Y", "P1M", "PT1D", "-PT5M", "1:30",
        "-1 day, 23:59:59", "00:60:00", "1 month, 0:00:01", "interval", "interval m", "intervals 5m", "5 sS",
        "5 WD", "5 m s", "five minutes", "1h-30m", "+-5m", "--5m", "- -5m",
        "1..5m", "5m,", "1 month", "1y", "1_000s", "inf s", "nan s", "1e400s",
        "9" * 190 + "s", "9" * 5000 + "s", "0" * 5000 + "5s", "1e999999999999s", "1e-999999999999 parsecs",
        None, True, math.nan, math.inf, 1e300, 10**40,
        np.timedelta64("NaT"), np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64(5),
        np.timedelta64(5, "ps"),
        dt.date(2026, 1, 1), dt.time(1), [5], b"5m", 5j,
    ],
    ids=_name,
)  # fmt: skip
def test_what_is_no_duration_is_refused(bad: Any) -> None:
    with pytest.raises(BadTime, match="length") as refused:
        duration(bad, "length")
    assert len(str(refused.value)) < 450


@checked
@given(st.integers(-(2**80), 2**80))
def test_a_shown_duration_reads_back(length: int) -> None:
    assert duration(show_duration(length)) == length


def test_a_shown_duration_is_short() -> None:
    lengths = [0, 1, 1_500, 1_500_000, SECOND, 90 * SECOND, 5 * MINUTE, 36 * HOUR, 7 * DAY, -MINUTE]
    assert [show_duration(n) for n in lengths] == [
        "0s", "1ns", "1500ns", "1500us", "1s", "90s", "5m", "36h", "1w", "-1m",
    ]  # fmt: skip


@checked
@given(st.text(max_size=30))
def test_no_text_crashes_the_readers(text: str) -> None:
    for read in (instant, duration, lambda t: ticks([t, None])):
        with contextlib.suppress(BadTime):
            read(text)


# --- showing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (0, "0"), (5 * SECOND, "5"), (-5 * SECOND, "-5"), (1_500_000_000, "1.5"), (-1_500_000_000, "-1.5"),
        (-500_000_000, "-0.5"), (1, "0.000000001"), (-1, "-0.000000001"),
        (12_345_678 * SECOND + 123_456_789, "12345678.123456789"),
        (NEW_YEAR, "2026-01-01T00:00:00Z"), (NEW_YEAR + 1, "2026-01-01T00:00:00.000000001Z"),
        (NEW_YEAR + 250_000_000, "2026-01-01T00:00:00.25Z"), (-(10**9) * SECOND - 1, "1938-04-24T22:13:19.999999999Z"),
        (10**12 * SECOND, "1000000000000"), (10**400, str(10**391)),
    ],
    ids=_name,
)  # fmt: skip
def test_show_tells_every_nanosecond(time: int, text: str) -> None:
    assert show(time) == text


@checked
@given(st.integers(-(2**62), 2**62))
def test_a_shown_instant_is_the_instant(time: int) -> None:
    text = show(time)
    read = instant(text) if text.endswith("Z") else Fraction(text) * SECOND
    assert read == time


def test_plain_numbers_and_their_neighbours_agree() -> None:
    # a column, a list and a scalar read one float alike
    random.seed(11)
    floats = [random.uniform(-9e9, 9e9) for _ in range(500)] + [0.1 * n for n in range(100)]
    one_by_one = [instant(x) for x in floats]
    assert instants(ticks(np.array(floats))) == one_by_one
    assert instants(ticks(floats)) == one_by_one
    assert instants(ticks([*floats, None]))[:-1] == one_by_one
    assert functools.reduce(max, one_by_one) == instant(max(floats))
