"""Hashes: their values for good, which items hash equal, and how random they look."""

from __future__ import annotations

import datetime as dt
import math
import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wane.errors import BadInput, BadParameter, Unsupported
from wane.hashing import combine, hash_column, hash_one, hash_range

FALSE_ALARM = 1e-6
relaxed = settings(deadline=None)  # the first example compiles kernels
INT_DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]

integers = st.integers() | st.integers(-(2**65), 2**65) | st.integers(-130, 260)
numbers = st.booleans() | integers | st.floats() | st.decimals(allow_nan=False)
texts = st.text(st.characters(), max_size=80)
scalars = st.none() | numbers | texts | st.binary(max_size=80)
items = scalars | st.tuples(scalars, scalars) | st.tuples(scalars)


def naive_utc(seconds: int, micros: int = 0) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds, microseconds=micros)


def xxhash_sanity_bytes(length: int) -> bytes:
    """The input of the published sanity checks of xxHash (tests/sanity_test.c, `fillTestBuffer`)."""
    content, state = bytearray(), 2654435761
    for _ in range(length):
        content.append(state >> 56)
        state = state * 11400714785074694797 % 2**64
    return bytes(content)


def same(*columns: Any, seed: int = 0) -> None:
    """Every column hashes like the first."""
    first = hash_column(columns[0], seed)
    for column in columns[1:]:
        np.testing.assert_array_equal(hash_column(column, seed), first)


# --- values for good ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "seed", "digest"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
        (xxhash_sanity_bytes(0), 2654435761, 0xAC75FDA2929B17EF),
        (xxhash_sanity_bytes(1), 0, 0xE934A84ADB052768),
        (xxhash_sanity_bytes(1), 2654435761, 0x5014607643A9B4C3),
        (xxhash_sanity_bytes(4), 0, 0x9136A0DCA57457EE),
        (xxhash_sanity_bytes(14), 0, 0x8282DCC4994E35C8),
        (xxhash_sanity_bytes(14), 2654435761, 0xC3BD6BF63DEB6DF0),
        (xxhash_sanity_bytes(222), 0, 0xB641AE8CB691C174),
        (xxhash_sanity_bytes(222), 2654435761, 0x20CB8AB7AE10C14A),
    ],
)
def test_bytes_are_xxh64(content: bytes, seed: int, digest: int) -> None:
    assert hash_one(content, seed) == digest
    assert hash_column([content], seed)[0] == digest


GOLDEN: list[tuple[Any, int, int]] = [
    (None, 0, 0x89FE50A77CD925BE),
    (0, 2**64 - 1, 0x42C8DCE28C737E37),
    (1, 0, 0x3C099C3FB9A2C745),
    (-1, 42, 0x4270DE2FEC200546),
    (2**63 - 1, 0, 0xD41311DC690E057B),
    (-(2**63), 2**64 - 1, 0x49E5B907A7E1813D),
    (2**63, 0, 0x3403BBD3D1967649),
    (2**64 - 1, 2**64 - 1, 0x2BA0ADE0001FB659),
    (2**64 + 1, 0, 0x85B880D655926468),
    (2**70, 42, 0x35ECA8BEA2C4528B),
    (-(2**63) - 1, 0, 0x236F962B2026D876),
    (True, 2**64 - 1, 0x9BF360CD0ABD6634),
    (0.5, 0, 0x889EEDB055344AEF),
    (-1.5, 2**64 - 1, 0x28846F6310C869CB),
    (1e300, 0, 0xEA87F133C968B8F5),
    (math.inf, 42, 0x95219BC70156FE77),
    (math.nan, 0, 0x3CEB7F9945CD59B3),
    (Decimal("0.1"), 2**64 - 1, 0xFF2CDBDA988824F3),
    ("", 0, 0xAB4C8BEA70A9C7E3),
    ("a", 2**64 - 1, 0xB721671C54500BAB),
    ("naïve ☃ 🦉", 0, 0xDF6D5EBA58DC2770),
    ("x" * 100, 42, 0x8728F5578AF32495),
    (b"", 0, 0xEF46DB3751D8E999),
    (b"wane", 2**64 - 1, 0x469DDE00987BEE93),
    ((), 0, 0xA9623D04B9BCB961),
    ((1,), 2**64 - 1, 0x82AA3D4F89CEC368),
    ((1, "a", None), 0, 0x45CD568CB0BA68F2),
    ((("a", 1), 2.5), 42, 0x1C8B0A73BCF72A62),
    (dt.date(2024, 2, 29), 0, 0x69EAEBCCD18E796A),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), 2**64 - 1, 0x955FBEE04EF58C7A),
    (dt.timedelta(microseconds=-1), 0, 0xC1F618BCC0351476),
    (dt.time(12, 30), 2**64 - 1, 0x7EDA389AA23DE1CF),
    (np.datetime64(1, "ns"), 0, 0x23D3A746E84EB68B),
]


@pytest.mark.parametrize(("item", "seed", "digest"), GOLDEN)
def test_golden(item: Any, seed: int, digest: int) -> None:
    """Stored states depend on these: a change of any of them is a break of every state ever written."""
    assert hash_one(item, seed) == digest


def test_the_same_in_every_process() -> None:
    code = (
        "from wane.hashing import hash_column, hash_one\n"
        "print(hash_one('x'), hash_one(('x', 2.5, None), 9), hash_column(['a', 1, b'', None, 'a']).tolist())"
    )

    def run(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        ).stdout

    here = f"{hash_one('x')} {hash_one(('x', 2.5, None), 9)} {hash_column(['a', 1, b'', None, 'a']).tolist()}\n"
    assert run("1") == run("2") == here


# --- which items hash equal ---------------------------------------------------------------------------------


@relaxed
@given(st.lists(items, max_size=8), st.integers(0, 2**64 - 1))
def test_a_column_hashes_like_its_items(column: list[Any], seed: int) -> None:
    assert hash_column(column, seed).tolist() == [hash_one(item, seed) for item in column]
    as_objects = np.empty(len(column), object)
    as_objects[:] = column
    same(column, as_objects, seed=seed)


def test_items_that_numpy_holds_equal_stay_apart() -> None:
    column = [np.timedelta64(5, "s"), 5, np.timedelta64(5), dt.timedelta(seconds=5), np.datetime64(5, "s")]
    assert hash_column(column).tolist() == [hash_one(item) for item in column]


@relaxed
@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_hash_by_value_in_every_width(value: int) -> None:
    fitting = [d for d in INT_DTYPES if np.iinfo(d).min <= value <= np.iinfo(d).max]
    for dtype in fitting:
        array = np.array([value], dtype)
        same([value], array, array.astype(array.dtype.newbyteorder()), pa.array(array), [array[0]])


@relaxed
@given(st.lists(numbers, min_size=2, max_size=6))
def test_numbers_equal_in_python_hash_equal(values: list[Any]) -> None:
    for value in values:
        twins = [twin(value) for twin in (int, float, Decimal) if math.isfinite(value)]
        for other in [*values, *twins]:
            if other == value:
                assert hash_one(other) == hash_one(value)


@pytest.mark.parametrize(
    "value",
    [2.0**53, 2.0**62, 2.0**63, -(2.0**63), 2.0**63 + 2048, 2.0**64 - 2048, 2.0**64, 2.0**100, 1e300, -1e300],
)
def test_integral_floats_hash_like_integers(value: float) -> None:
    assert hash_one(value) == hash_one(int(value)) == hash_one(Decimal(value))
    same([int(value)], np.array([value]), [value])


@relaxed
@given(st.lists(st.floats()))
def test_float_columns_hash_like_floats(values: list[float]) -> None:
    same(
        values,
        np.array(values, float),
        pa.array(values, pa.float64()),
        pa.chunked_array([values], pa.float64()),
    )


@relaxed
@given(st.lists(st.floats(width=32)))
def test_narrow_floats_widen(values: list[float]) -> None:
    same(values, np.array(values, "f4"), np.array(values, ">f4"), pa.array(values, pa.float32()))
    half = np.array([1.5, -0.0, np.nan, np.inf], "f2")
    same(half.tolist(), half, pa.array(half))


def test_zeros_are_one_and_nans_are_one() -> None:
    assert hash_one(-0.0) == hash_one(0.0) == hash_one(0) == hash_one(False)
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], "u8").view("f8")
    assert set(hash_column(nans).tolist()) == {hash_one(math.nan)} == {hash_one(Decimal("sNaN")), hash_one(-math.nan)}
    assert hash_one(math.nan) not in (hash_one(None), hash_one(math.inf), hash_one(-math.inf))


def test_bools_are_numbers() -> None:
    column = [True, False, True]
    same([1, 0, 1], column, np.array(column), pa.array(column), pa.array(column).slice(0), [np.True_, 0, 1.0])
    same(column[1:], pa.array(column)[1:])


@relaxed
@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)))
def test_decimals_hash_by_value_in_every_scale(values: list[Decimal]) -> None:
    scaled = [pa.array(values, pa.decimal128(30, scale)) for scale in (3, 7)]
    same(values, [v.normalize() for v in values], *scaled, pa.array(values, pa.decimal256(60, 12)))


def test_decimals_among_numbers() -> None:
    assert hash_one(Decimal("1.50")) == hash_one(1.5)
    assert hash_one(Decimal(2**70 + 1)) == hash_one(2**70 + 1)
    assert hash_one(Decimal("0.1")) != hash_one(0.1)
    assert hash_one(Decimal("0.1")) == hash_one(Decimal("0.100")) != hash_one(Decimal("0.10000000000000000001"))
    assert hash_one(Decimal("1e999999")) == hash_one(Decimal("10e999998")) != hash_one(Decimal("1e999998"))
    same([Decimal("1.5"), None], pa.array([Decimal("1.5"), None]))


@relaxed
@given(st.lists(texts.filter(lambda t: not t.endswith("\0")), max_size=6))
def test_text_hashes_by_content_in_every_form(column: list[str]) -> None:
    fixed = np.array(column, "U80")
    same(
        column,
        fixed,
        fixed.astype(">U80"),
        fixed[::-1][::-1],
        np.array(column, object),
        [*map(np.str_, column)],
    )
    encodable = [text.encode("utf-8", "replace").decode() for text in column]
    plain = pa.array(encodable, pa.string())
    same(
        encodable,
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
    )
    same(encodable, np.array(encodable, np.dtypes.StringDType()))


@relaxed
@given(st.lists(st.binary(max_size=80).filter(lambda b: not b.endswith(b"\0")), max_size=6))
def test_bytes_hash_by_content_in_every_form(column: list[bytes]) -> None:
    plain = pa.array(column, pa.binary())
    forms = [plain, plain.cast(pa.large_binary()), plain.cast(pa.binary_view()), plain.dictionary_encode()]
    same(column, np.array(column, "S80"), np.array(column, "S160")[::1], [*map(np.bytes_, column)], *forms)


def test_fixed_size_binary() -> None:
    column = [b"abc", None, b"xyz", b"\0\0\0"]
    array = pa.array(column, pa.binary(3))
    same(column, array)
    same(column[1:3], array[1:3])


@relaxed
@given(texts)
def test_text_is_not_bytes(text: str) -> None:
    assert hash_one(text) != hash_one(text.encode("utf-8", "surrogatepass"))


def test_lone_surrogates_hash() -> None:
    same(["\ud800", "a"], np.array(["\ud800", "a"]), ["\ud800", np.str_("a")])


@relaxed
@given(st.lists(st.tuples(st.integers(-(10**9), 10**10), st.integers(0, 999_999))))
def test_instants_hash_by_the_point_in_time(moments: list[tuple[int, int]]) -> None:
    column = [naive_utc(*moment) for moment in moments]
    micros = np.array([s * 10**6 + us for s, us in moments], "M8[us]")
    zoned = pa.array(micros).cast(pa.timestamp("us", "Asia/Tokyo"))
    aware = [time.replace(tzinfo=dt.UTC).astimezone(dt.timezone(dt.timedelta(hours=2))) for time in column]
    same(micros, column, aware, [*micros], pa.array(micros), zoned)
    seconds = micros.astype("M8[s]")
    coarse = [seconds.astype(f"M8[{unit}]") for unit in ("ms", "us")]
    same(seconds, *coarse, *(pa.array(c) for c in coarse), pa.array(seconds))
    short = seconds[np.abs(seconds.astype(int)) < 9 * 10**9]
    same(short, short.astype("M8[ns]"), pa.array(short.astype("M8[ns]")))


def test_a_date_is_its_midnight_in_every_unit() -> None:
    days = np.array(["1969-12-31", "1970-01-01", "2024-02-29", "NaT"], "M8[D]")
    units = [days.astype(f"M8[{unit}]") for unit in ("h", "m", "s", "ms", "us", "ns", "25s")]
    same(days, *units[:-1], pa.array(days), pa.array(days).cast(pa.date64()), days.tolist())
    same(
        np.array(["1970-01-01", "NaT"], "M8[D]"),
        *(np.array([0, "NaT"], f"M8[{u}]") for u in ("Y", "M", "W", "ps", "fs", "as")),
    )
    same(np.array(["NaT"], "M8"), [None], [np.datetime64("NaT")], [np.timedelta64("NaT")])
    odd = dt.timezone(dt.timedelta(seconds=-3599))
    assert hash_one(dt.datetime(2020, 1, 1, tzinfo=odd)) == hash_one(dt.datetime(2020, 1, 1, 0, 59, 59))
    assert hash_one(np.datetime64(-1, "as")) != hash_one(np.datetime64(-1, "ns"))


def test_durations_and_times_of_day() -> None:
    lengths = [dt.timedelta(seconds=-3), dt.timedelta(days=2), dt.timedelta(microseconds=5), None]
    micros = np.array(lengths, "m8[us]")
    same(
        lengths,
        micros,
        micros.astype("m8[ns]"),
        pa.array(micros),
        pa.array(micros.astype("m8[ns]")),
        [*micros],
    )
    same(
        micros[:2],
        micros[:2].astype("m8[s]"),
        np.array([-3, 172800], "m8"),
        pa.array(micros[:2].astype("m8[s]")),
    )
    times = [dt.time(0, 0, 1), dt.time(23, 59, 59), None]
    clocks = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    same(times, *(pa.array(times, clock) for clock in clocks))


def test_kinds_of_one_content_differ() -> None:
    ones = [
        1,
        "1",
        b"1",
        None,
        "",
        b"",
        (),
        (1,),
        ((1,),),
        (1, None),
        math.nan,
        2**64 + 1,
        -(2**63) - 1,
        Decimal("0.1"),
    ]
    ones += [
        dt.date(1970, 1, 2),
        dt.timedelta(days=1),
        dt.time(0, 0, 1),
        dt.timedelta(seconds=1),
        0.5,
        0,
        -1,
        "None",
    ]
    assert len({hash_one(one) for one in ones}) == len(ones)


@relaxed
@given(st.sets(st.integers(-(2**63), 2**63 - 1)))
def test_no_two_64_bit_integers_collide(values: set[int]) -> None:
    column = np.array(sorted(values), "i8")
    assert len(set(hash_column(column).tolist())) == len(values)
    assert len(set(hash_column(column.view("u8")).tolist())) == len(values)
    huge = column[column < 0]
    assert not set(hash_column(huge).tolist()) & set(hash_column(huge.view("u8")).tolist())


# --- Arrow's corners ----------------------------------------------------------------------------------------

COLUMNS: list[tuple[list[Any], pa.DataType]] = [
    ([3, None, -1, 2**40, None], pa.int64()),
    ([3, None, 200, 0, 5], pa.uint8()),
    ([3, 2**64 - 1, None, 0, 5], pa.uint64()),
    ([0.5, None, math.nan, -0.0, 7.0], pa.float64()),
    ([True, None, False, True, True], pa.bool_()),
    (["ab", None, "", "ü" * 50, "ab"], pa.string()),
    (["ab", None, "", "ü" * 50, "ab"], pa.large_string()),
    (["ab", None, "", "ü" * 50, "ab"], pa.string_view()),
    (["ab", None, "", "ü" * 50, "ab"], pa.dictionary(pa.int8(), pa.string())),
    ([5, None, 6, 5, None], pa.dictionary(pa.uint16(), pa.int32())),
    ([b"ab", None, b"", b"x" * 50, b"ab"], pa.binary()),
    ([b"ab", None, b"  ", b"xy", b"ab"], pa.binary(2)),
    ([Decimal("1.5"), None, Decimal("0.1"), Decimal(7), Decimal("1.5")], pa.decimal128(20, 4)),
    (
        [Decimal("1.5"), None, Decimal("0.1"), Decimal(7), None],
        pa.dictionary(pa.int32(), pa.decimal128(20, 4)),
    ),
    ([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1), None, dt.date(2020, 1, 1)], pa.date32()),
    ([dt.date(2020, 1, 1), None, dt.date(1900, 1, 1), None, dt.date(2020, 1, 1)], pa.date64()),
    ([naive_utc(-5), None, naive_utc(7), naive_utc(0), None], pa.timestamp("ms")),
    ([dt.time(1), None, dt.time(2), None, dt.time(3)], pa.time32("s")),
    ([None] * 5, pa.null()),
]


@pytest.mark.parametrize(("column", "kind"), COLUMNS, ids=[str(kind) for _, kind in COLUMNS])
def test_slices_chunks_and_nulls(column: list[Any], kind: pa.DataType) -> None:
    if pa.types.is_dictionary(kind) and pa.types.is_decimal(kind.value_type):
        array = pa.array(column, kind.value_type).dictionary_encode()
    else:
        array = pa.array(column, kind)
    same(column, array)
    for begin in range(6):
        for end in range(begin, 6):
            same(column[begin:end], array[begin:end])
    same([*column, *column[2:], *column[:1]], pa.chunked_array([array, array[2:], array[5:], array[:1]]))
    same([], pa.chunked_array([], array.type), array[:0])
    same([None, None], pa.nulls(2, array.type))


def test_buffers_without_content() -> None:
    array = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(bytes(12)), pa.py_buffer(b"")])
    same(["", ""], array, array.cast(pa.large_string()), array.cast(pa.string_view()))
    same([b"", None], pa.array([b"", None], pa.binary(0)))


def test_nulls_in_indices_and_in_the_dictionary() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), pa.array(["a", None]))
    same(["a", None, None, "a"], array, pa.chunked_array([array]))
    same([None], pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string())))
    same([None], array[1:2], array[2:3])  # fewer items than the dictionary has
    same(["a"], array[3:])


def test_strided_misaligned_and_masked_arrays() -> None:
    values = np.arange(20)
    same(values[::-3].tolist(), values[::-3], values.astype("u2")[::-3], values.astype(float)[::-3])
    same(values[::3].astype("U")[::-1].tolist(), values.astype("U")[::3][::-1])
    record = np.zeros(4, [("pad", "u1"), ("v", "i8"), ("s", "S3")])
    record["v"], record["s"] = range(4), b"xy"
    same([0, 1, 2, 3], record["v"], np.frombuffer(b"?" + np.arange(4).tobytes(), "i8", offset=1))
    same([b"xy"] * 4, record["s"])
    same([1, None, 3], np.ma.array([1, 2, 3], mask=[False, True, False]))


# --- tuples and rows ----------------------------------------------------------------------------------------


@relaxed
@given(st.lists(st.tuples(st.integers(), texts, st.none() | st.floats()), max_size=5), st.integers(0, 2**64 - 1))
def test_rows_hash_like_tuples(rows: list[tuple[Any, ...]], seed: int) -> None:
    columns = [hash_column([row[i] for row in rows], seed) for i in range(3)]
    np.testing.assert_array_equal(combine(*columns), hash_column(rows, seed))
    np.testing.assert_array_equal(combine(columns[0]), hash_column([row[:1] for row in rows], seed))


def test_order_and_number_of_parts_count() -> None:
    parts = [(1, 2), (2, 1), (1, 2, 2), ((1, 2), 2), (1, (2, 2)), (1,), 1, (1, 1)]
    assert len({hash_one(part) for part in parts}) == len(parts)


# --- how random they look -----------------------------------------------------------------------------------


def flip_bound(trials: int, cells: int) -> float:
    """Hoeffding's bound for |flips - trials / 2|: together, cells pass it with odds of FALSE_ALARM."""
    return math.sqrt(trials / 2 * math.log(2 * cells / FALSE_ALARM))


def count_flips(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How often each of the 64 bits differs."""
    bits = np.unpackbits((left ^ right).view(np.uint8).reshape(-1, 8), axis=1)
    return np.asarray(bits.sum(axis=0, dtype=np.int64))


@pytest.mark.parametrize("inputs", ["random", "sequential"])
def test_avalanche_of_integers(inputs: str) -> None:
    trials = 1 << 14
    words = (
        np.random.default_rng(1).integers(0, 2**63, trials, np.uint64)
        if inputs == "random"
        else np.arange(trials, dtype="u8")
    )
    plain = hash_column(words.view("i8"), 5)
    for bit in range(64):
        flips = count_flips(plain, hash_column((words ^ np.uint64(1 << bit)).view("i8"), 5))
        assert np.abs(flips - trials / 2).max() < flip_bound(trials, 64 * 64), bit


@pytest.mark.jit_only
@pytest.mark.parametrize("length", [3, 4, 8, 13, 40])
def test_avalanche_of_bytes(length: int) -> None:
    trials = 1 << 12
    content = np.random.default_rng(2).integers(0, 256, (trials, length), np.uint8)

    def hashes() -> np.ndarray[Any, Any]:
        return hash_column(
            pa.FixedSizeBinaryArray.from_buffers(pa.binary(length), trials, [None, pa.py_buffer(content)])
        )

    plain = hashes()
    for bit in range(8 * length):
        content[:, bit // 8] ^= 1 << bit % 8
        flips = count_flips(plain, hashes())
        content[:, bit // 8] ^= 1 << bit % 8
        assert np.abs(flips - trials / 2).max() < flip_bound(trials, 64 * 8 * length), bit


def chi_square_bound(cells: int) -> float:
    """Laurent and Massart's bound on the upper tail of chi-square, at FALSE_ALARM."""
    x, freedom = -math.log(FALSE_ALARM), cells - 1
    return freedom + 2 * math.sqrt(freedom * x) + 2 * x


def chi_square(buckets: np.ndarray[Any, Any], cells: int) -> float:
    counts, expected = np.bincount(buckets.astype(np.int64), minlength=cells), len(buckets) / cells
    return float(((counts - expected) ** 2 / expected).sum())


SHAPES: dict[str, Any] = {
    "sequential": np.arange(100_000),
    "high bits only": np.arange(100_000, dtype="u8") << np.uint64(44),
    "multiples of 1000": np.arange(100_000) * -1000,
    "halves": np.arange(100_000) + 0.5,
    "integral floats": np.arange(100_000) * 1e9,
    "milliseconds": np.arange(100_000).astype("M8[ms]"),
    "text": [f"user-{i}" for i in range(100_000)],
    "padded": [b"%012d" % i for i in range(100_000)],
    "pairs": [(i % 300, i // 300) for i in range(90_000)],
}


@pytest.mark.jit_only
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_buckets_fill_evenly(shape: str, seed: int) -> None:
    hashes = hash_column(SHAPES[shape], seed)
    for shift in (0, 27, 54):
        buckets = hashes >> np.uint64(shift) & np.uint64(1023)
        assert chi_square(buckets, 1024) < chi_square_bound(1024)


@pytest.mark.jit_only
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seeds", [(0, 1), (0, 2**63), (2**64 - 1, 1), (7, 8)])
def test_seeds_give_unrelated_hashes(shape: str, seeds: tuple[int, int]) -> None:
    one, other = (hash_column(SHAPES[shape], seed) for seed in seeds)
    pair = (one & np.uint64(31)) << np.uint64(5) | other & np.uint64(31)
    assert chi_square(pair, 1024) < chi_square_bound(1024)
    flips = count_flips(one, other)
    assert np.abs(flips - len(one) / 2).max() < flip_bound(len(one), 64)


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [[1], {1}, 1j, object(), (1, [2]), np.longdouble(1), np.complex64(1)])
def test_items_without_a_hash(item: Any) -> None:
    with pytest.raises(Unsupported, match=r"(has no hash|cannot be hashed).*(str\(\)|astype)"):
        hash_one(item)
    with pytest.raises(Unsupported):
        hash_column([item, "x"])


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ("text", r"type str cannot be hashed.*pyarrow\.array"),
        (range(3), r"type range.*list\(items\)"),
        (pa.scalar(1), "type Int64Scalar"),
        (np.array([1j]), r"complex128.*astype"),
        (np.array([5], "m8[M]"), r"timedelta64\[M\].*fixed length"),
        (pa.array([[1]]), "list<.*combine"),
        (pa.array([{"a": 1}]), "struct<"),
    ],
)
def test_columns_without_a_hash(column: Any, rule: str) -> None:
    with pytest.raises(Unsupported, match=rule):
        hash_column(column)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range(seed: int) -> None:
    with pytest.raises(BadParameter, match=rf"seed must be .* got {seed}; give"):
        hash_one(1, seed)


def test_wrong_shapes() -> None:
    with pytest.raises(BadInput, match=r"shape \(2, 2\).*ravel"):
        hash_column(np.zeros((2, 2)))
    one = hash_column([1, 2])
    with pytest.raises(BadInput, match="one length"):
        combine(one, one[:1])
    with pytest.raises(BadInput, match="uint64"):
        combine(one, one.view(np.int64))


def test_a_range_hashes_as_its_numbers() -> None:
    for start, stop, seed in ((0, 10, 0), (5, 9, 3), (2**40, 2**40 + 3, 2**64 - 1), (7, 7, 1)):
        assert (hash_range(start, stop, seed) == hash_column(np.arange(start, stop), seed)).all()
