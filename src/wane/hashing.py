"""Seeded 64-bit hashes of items, the same in every process and on every machine.

**Which items hash equal.** Items that are equal in Python, and the same item in any form:

* numbers by value: every integer width, signed or not, bools as 0 and 1, floats and decimals that equal an
  integer like that integer, a float32 like the float64 it widens to, a decimal like a float that equals it
  exactly (integral ones up to 400 digits); -0.0 like 0; all NaNs alike;
* text by its UTF-8, bytes by content, text never like bytes; in fixed-width NumPy arrays trailing NULs are
  padding;
* instants as a point in time, whatever the unit: a date is its midnight, a time without a zone is UTC, and
  the zone itself does not count; durations and times of day likewise, each kind apart from the others and
  from numbers (NumPy units coarser than a second are turned into seconds, which reach 292 billion years);
* missing values (None, NaT, Arrow nulls, masked entries) alike, and NaN is a value, not a missing one.

**What is guaranteed.** For one seed no two 64-bit signed integers collide, and no two unsigned ones; anything
else collides with the odds of 64 random bits. Different seeds give unrelated hashes. The hash is no secret:
it does not withstand someone who picks items in order to make them collide.

**How.** Integers go through the finaliser of splitmix64 with two words of the seed mixed in. Bytes are XXH64
with the seed as it is, text is XXH64 of its UTF-8 with a derived seed. Tuples, and rows of several columns,
are folded by :func:`combine`. Stored states depend on these values, so they never change.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.errors import BadInput, BadParameter, Unsupported

if TYPE_CHECKING:
    import pyarrow as pa

Hashes: TypeAlias = NDArray[np.uint64]
Word: TypeAlias = Any  # np.uint64; helpers of kernels are untyped to whoever calls them

_MASK = 2**64 - 1
_ATTOSECONDS = 10**18
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}

# Tags keep kinds of items apart. They are digits of pi, so that nobody has picked them.
_UPPER = 0x243F6A8885A308D3  # integers from 2**63 on; its top bit is 0, so that they stay among themselves
_FLOAT = 0x13198A2E03707344
_NULL = 0xA4093822299F31D0
_TEXT = 0x082EFA98EC4E6C89
_BIG_INTEGER = 0x452821E638D01377
_DECIMAL = 0xBE5466CF34E90C6C
_INSTANT = 0xC0AC29B7C97C50DD
_DURATION = 0x3F84D5B5B5470917
_CLOCK = 0x9216D5D98979FB1B
_NO_PARTS = 0xD1310BA698DFB5AC
_NAN = 0x7FF8000000000000

# numba reads NumPy scalars as typed constants; a bare int next to a uint64 would make a float of both.
_U0, _U1, _U2, _U3, _U4, _U7, _U8, _U11, _U12, _U16, _U18 = map(np.uint64, (0, 1, 2, 3, 4, 7, 8, 11, 12, 16, 18))
_U23, _U24, _U27, _U29, _U30, _U31, _U32, _U33, _U63, _U64 = map(np.uint64, (23, 24, 27, 29, 30, 31, 32, 33, 63, 64))
_TAG_FLOAT, _TAG_UPPER, _BITS_NAN = np.uint64(_FLOAT), np.uint64(_UPPER), np.uint64(_NAN)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE_1, _SCRAMBLE_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

_PRIME_1, _PRIME_2 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3, _PRIME_4 = np.uint64(0x165667B19E3779F9), np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def hash_one(item: Any, seed: int = 0) -> int:
    """Hash one item: ``hash_one(x, seed) == hash_column([x], seed)[0]``.

    Args:
        item: None, bool, int, float, Decimal, str, bytes, a date, time, datetime or timedelta, a NumPy
            scalar, or a tuple of these, which hashes as :func:`combine` of its parts.
        seed: From 0 to 2**64 - 1.

    Returns:
        An int from 0 to 2**64 - 1, in a few microseconds; tuples, dates and times cost more.
    """
    key = _key(seed)
    if isinstance(item, str):
        return _hash_content(item.encode("utf-8", "surrogatepass"), _stream(_TEXT, key))
    if isinstance(item, int):
        return _hash_integer(int(item), key)
    if isinstance(item, float):
        return _hash_float(item, key)
    if isinstance(item, bytes):
        return _hash_content(item, key)
    if item is None:
        return _hash_word(_NULL, key)
    if isinstance(item, tuple):
        state = len(item)
        for part in item:
            state = int(_fold_word(np.uint64(state), np.uint64(hash_one(part, seed))))
        return state if item else _hash_word(_NO_PARTS, key)
    if isinstance(item, decimal.Decimal):
        return _hash_decimal(item, key)
    if isinstance(item, np.generic):
        return int(_hash_numpy(np.array([item]), key)[0])
    if isinstance(item, dt.date | dt.time | dt.timedelta):
        import pyarrow as pa

        if isinstance(item, dt.datetime) and item.tzinfo:
            item = item.astimezone(dt.UTC)  # Arrow does not know every kind of zone
        return int(_hash_arrow(pa.array([item]), key)[0])
    raise Unsupported(
        f"an item of type {type(item).__name__} has no hash: wane hashes None, numbers, text, bytes, dates, "
        "times and tuples of these; turn it into one of them, say with str()"
    )


def hash_column(items: NDArray[Any] | list[Any] | pa.Array | pa.ChunkedArray, seed: int = 0) -> Hashes:
    """Hash every item of a column.

    Numbers take about a nanosecond an item, dates and times five. Text and bytes are hashed straight from
    Arrow's buffers, which beats finding the distinct ones first: a million short strings take 7 ns each,
    against 22 when one in twenty is distinct and 135 when all are; as Python objects, 55 to 70 ns against 50
    to 150. Where a hash costs more than a lookup, each distinct item is hashed once: the dictionary of a
    dictionary-encoded array (once a chunk), decimals, and Python objects of mixed or uncommon types.

    Args:
        items: A one-dimensional NumPy array of integers, floats up to 64 bits, bools, text, bytes, instants,
            durations or objects; a list of what :func:`hash_one` takes; or an Arrow array of numbers, bools,
            decimals, text, bytes, dates, times or durations, plain or dictionary-encoded.
        seed: From 0 to 2**64 - 1.

    Returns:
        One hash for each item, in order.
    """
    key = _key(seed)
    if isinstance(items, np.ndarray):
        return _hash_numpy(items, key)
    if isinstance(items, list):
        return _hash_objects(items, key)
    if type(items).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa

        if isinstance(items, pa.ChunkedArray):
            return np.concatenate([np.empty(0, np.uint64), *(_hash_arrow(chunk, key) for chunk in items.chunks)])
        if isinstance(items, pa.Array):
            return _hash_arrow(items, key)
    raise Unsupported(
        f"a column of type {type(items).__name__} cannot be hashed: wane takes NumPy arrays, lists and Arrow "
        "arrays; give list(items) or pyarrow.array(items)"
    )


def hash_range(start: int, stop: int, seed: int = 0) -> Hashes:
    """``hash_column(np.arange(start, stop), seed)``, of 0 or more, without the array."""
    hashes = np.empty(stop - start, np.uint64)
    _mix_range(start, _key(seed), hashes)
    return hashes


def combine(first: Hashes, *others: Hashes) -> Hashes:
    """Hash the rows of several columns from the columns' hashes; the order and the number of columns count.

    ``combine(hash_column(a), hash_column(b))[i] == hash_one((a[i], b[i]))``. About a nanosecond an item and
    column.
    """
    columns = (first, *others)
    for column in columns:
        if column.dtype != np.uint64 or column.shape != first.shape:
            raise BadInput(
                f"the hashes to combine must be uint64 arrays of one length, got {column.dtype} of shape "
                f"{column.shape} beside {first.dtype} of shape {first.shape}; give what hash_column returned "
                "for columns of one table"
            )
    state = np.full(first.shape, len(columns), np.uint64)
    for column in columns:
        _fold_words(_plain(column, np.uint64), state)
    return state


def _key(seed: int) -> np.uint64:
    value = operator.index(seed)
    if not 0 <= value <= _MASK:
        raise BadParameter(f"seed must be from 0 to 2**64 - 1, got {seed}; give seed % 2**64")
    return np.uint64(value)


def _stream(tag: int, key: np.uint64) -> np.uint64:
    """Derive the seed of a kind of items from the seed of all."""
    return np.uint64(_hash_word(tag, key))


def _hash_word(word: int, key: np.uint64) -> int:
    return int(_mix_word(np.uint64(word), key))


def _hash_content(content: bytes, key: np.uint64) -> int:
    return int(_xxh64_whole(np.frombuffer(content, np.uint8), key))


def _hash_integer(value: int, key: np.uint64) -> int:
    if -(2**63) <= value < 2**63:
        return _hash_word(value & _MASK, key)
    if 0 < value <= _MASK:
        return _hash_word(value ^ _UPPER, key)
    try:
        twin = float(value)
    except OverflowError:
        twin = math.nan
    if twin == value:
        return _hash_float(twin, key)
    content = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return _hash_content(content, _stream(_BIG_INTEGER, key))


def _hash_float(value: float, key: np.uint64) -> int:
    if -(2.0**63) <= value < 2.0**64 and value == int(value):
        return _hash_integer(int(value), key)
    bits = _NAN if value != value else struct.unpack("<Q", struct.pack("<d", value))[0]
    return _hash_word(bits ^ _FLOAT, key)


def _hash_decimal(value: decimal.Decimal, key: np.uint64) -> int:
    if value.is_nan():
        return _hash_float(math.nan, key)
    twin = float(value)
    if twin == value:
        return _hash_float(twin, key)
    digits = len(value.as_tuple().digits)
    exact = decimal.Context(digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    reduced = value.normalize(exact)
    # an exponent is cheap to write: the integer of 1e999999999 would be a gigabyte
    if reduced.adjusted() < 400 and reduced == reduced.to_integral_value():
        return _hash_integer(int(reduced), key)
    return _hash_content(str(reduced).encode(), _stream(_DECIMAL, key))


def _hash_objects(items: list[Any], key: np.uint64) -> Hashes:
    """Hash Python objects: through Arrow where all are of one common type, else each distinct one once."""
    import pyarrow as pa

    common = {
        str: pa.large_string(),
        bytes: pa.large_binary(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
    }
    kinds = set(map(type, items)) - {type(None)}
    if len(kinds) == 1 and (arrow := common.get(kinds.pop())) is not None:
        try:
            return _hash_arrow(pa.array(items, arrow), key)
        except (OverflowError, UnicodeEncodeError):
            pass  # integers beyond 64 bits and lone surrogates, which Arrow has no room for
    seed = int(key)
    # by type as well: NumPy holds timedelta64(5) and 5 for one key, in some versions, and they hash apart here
    known: dict[tuple[type, Any], int] = {}
    hashes = np.empty(len(items), np.uint64)
    for index, item in enumerate(items):
        try:
            hashes[index] = known[type(item), item]
        except KeyError:
            hashes[index] = known[type(item), item] = hash_one(item, seed)
        except (TypeError, ValueError):  # no key of a dict: a list, or a timedelta64 without a unit
            hashes[index] = hash_one(item, seed)
    return hashes


def _hash_numpy(items: NDArray[Any], key: np.uint64) -> Hashes:
    if items.ndim != 1:
        raise BadInput(f"a column has one dimension, got an array of shape {items.shape}; give items.ravel()")
    if isinstance(items, np.ma.MaskedArray):
        hashes = _hash_numpy(np.asarray(items.data), key)
        hashes[np.ma.getmaskarray(items)] = _hash_word(_NULL, key)
        return hashes
    kind, width = items.dtype.kind, items.dtype.itemsize
    if kind in "bi":
        return _hash_words(_plain(items, np.int64).view(np.uint64), 0, key)
    if kind == "u":
        return _hash_words(_plain(items, np.uint64), _UPPER, key)
    if kind == "f" and width <= 8:
        return _hash_floats(_plain(items, np.float64), key)
    if kind == "S":
        begins = np.arange(len(items), dtype=np.int64) * width
        return _hash_spans(_plain(items, items.dtype).view(np.uint8), begins, begins + np.char.str_len(items), key)
    if kind == "U":
        codes = _plain(items, items.dtype.newbyteorder("=")).view(np.uint32)
        content = np.empty(4 * len(codes), np.uint8)
        ends = np.zeros(len(items) + 1, np.int64)
        _encode_utf8(codes, width // 4, content, ends[1:])
        return _hash_spans(content, ends[:-1], ends[1:], _stream(_TEXT, key))
    if kind == "M" or (kind == "m" and np.datetime_data(items.dtype)[0] not in ("Y", "M")):
        unit = np.datetime_data(items.dtype)[0]
        unit = unit if unit in _PER_SECOND else "s"
        ticks = _plain(items, np.dtype(f"{kind}8[{unit}]")).view(np.int64)
        hashes = _hash_moments(ticks, unit, _INSTANT if kind == "M" else _DURATION, key)
        hashes[np.isnat(items)] = _hash_word(_NULL, key)
        return hashes
    if kind in "OT":
        return _hash_objects(items.tolist(), key)
    raise Unsupported(
        f"an array of {items.dtype} cannot be hashed: wane hashes integers, floats up to 64 bits, bools, "
        "text, bytes, instants, durations of fixed length and objects; convert it with astype()"
    )


def _hash_arrow(array: pa.Array, key: np.uint64) -> Hashes:
    hashes = _hash_arrow_values(array, key)
    if array.null_count:
        hashes[np.asarray(array.is_null())] = _hash_word(_NULL, key)
    return hashes


def _hash_arrow_values(array: pa.Array, key: np.uint64) -> Hashes:
    """Hash an Arrow array; what is given for its nulls means nothing."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if len(array) == 0 or types.is_null(kind):
        return np.full(len(array), _hash_word(_NULL, key), np.uint64)
    if types.is_dictionary(kind):
        values = array.dictionary
        if len(values) > len(array):
            return _hash_arrow(array.dictionary_decode(), key)
        decimals = types.is_decimal(values.type)
        table = _hash_objects(values.to_pylist(), key) if decimals else _hash_arrow(values, key)
        indices = array.indices.cast(pa.int64()).fill_null(0)  # which even an empty dictionary then has
        hashes: Hashes = np.append(table, np.uint64(0))[indices.to_numpy()]
        return hashes
    if types.is_decimal(kind):
        return _hash_arrow_values(array.dictionary_encode(), key)
    if types.is_boolean(kind):
        array, kind = array.cast(pa.int8()), pa.int8()
    if types.is_integer(kind) or types.is_floating(kind):
        return _hash_numpy(_slots(array, kind.to_pandas_dtype()), key)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        array = array.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
        kind = array.type
    text = types.is_string(kind) or types.is_large_string(kind)
    if text or types.is_binary(kind) or types.is_large_binary(kind):
        long = types.is_large_string(kind) or types.is_large_binary(kind)
        offsets = _slots(array, np.int64 if long else np.int32, extra=1)
        return _hash_spans(
            np.frombuffer(array.buffers()[2], np.uint8),
            offsets[:-1],
            offsets[1:],
            _stream(_TEXT, key) if text else key,
        )
    if types.is_fixed_size_binary(kind):
        begins = np.arange(array.offset, array.offset + len(array), dtype=np.int64) * kind.byte_width
        return _hash_spans(np.frombuffer(array.buffers()[1], np.uint8), begins, begins + kind.byte_width, key)
    if types.is_date32(kind):
        return _hash_moments(_slots(array, np.int32).astype(np.int64) * 86400, "s", _INSTANT, key)
    if types.is_date64(kind):
        return _hash_moments(_slots(array, np.int64), "ms", _INSTANT, key)
    for matches, tag in (
        (types.is_timestamp, _INSTANT),
        (types.is_duration, _DURATION),
        (types.is_time, _CLOCK),
    ):
        if matches(kind):
            return _hash_moments(_slots(array, np.dtype(f"i{kind.bit_width // 8}")), kind.unit, tag, key)
    raise Unsupported(
        f"an Arrow array of {kind} cannot be hashed: wane hashes numbers, bools, decimals, text, bytes, "
        "dates, times and durations; cast it to one of them, or hash its parts and combine() the hashes"
    )


def _slots(array: pa.Array, dtype: Any, extra: int = 0) -> NDArray[Any]:
    """View the fixed-width slots of an Arrow array, nulls' slots included; no copy.

    Offsets have one slot more than the array.
    """
    dtype = np.dtype(dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array) + extra, array.offset * dtype.itemsize)


def _plain(items: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Give the items as kernels take them: of `dtype`, contiguous, aligned; copies only if they are not."""
    plain: NDArray[Any] = np.require(items, dtype, ["C_CONTIGUOUS", "ALIGNED"])
    return plain


def _hash_words(words: Hashes, upper: int, key: np.uint64) -> Hashes:
    hashes = np.empty(len(words), np.uint64)
    _mix_words(words, np.uint64(upper), key, hashes)
    return hashes


def _hash_floats(values: NDArray[np.float64], key: np.uint64) -> Hashes:
    hashes = np.empty(len(values), np.uint64)
    _mix_floats(values, values.view(np.uint64), key, hashes)
    return hashes


def _hash_spans(content: NDArray[np.uint8], begins: NDArray[Any], ends: NDArray[Any], key: np.uint64) -> Hashes:
    hashes = np.empty(len(begins), np.uint64)
    _xxh64_spans(_plain(content, np.uint8), _plain(begins, begins.dtype), _plain(ends, ends.dtype), key, hashes)
    return hashes


def _hash_moments(ticks: NDArray[Any], unit: str, tag: int, key: np.uint64) -> Hashes:
    """Hash times by their whole seconds and the attoseconds past them, which every unit becomes exactly."""
    hashes = np.empty(len(ticks), np.uint64)
    _mix_moments(_plain(ticks, np.int64), _PER_SECOND[unit], _stream(tag, key), hashes)
    return hashes


@inline
def scramble(word: Word) -> Word:
    """The finaliser of splitmix64: a bijection of 64-bit words."""
    word = (word ^ (word >> _U30)) * _SCRAMBLE_1
    word = (word ^ (word >> _U27)) * _SCRAMBLE_2
    return word ^ (word >> _U31)


@inline
def _mix(word: Word, key_1: Word, key_2: Word) -> Word:
    """The same with a key at either multiplication: seeds give other bijections, not one of them shifted."""
    word ^= key_1
    word = (word ^ (word >> _U30)) * _SCRAMBLE_1 + key_2
    word = (word ^ (word >> _U27)) * _SCRAMBLE_2
    return word ^ (word >> _U31)


@inline
def _fold(state: Word, word: Word) -> Word:
    return scramble(state * _GOLDEN + word)


@kernel("uint64(uint64, uint64)")
def _fold_word(state: Word, word: Word) -> Word:
    return _fold(state, word)


@kernel("void(r_u8, w_u8)")
def _fold_words(words: Hashes, state: Hashes) -> None:
    for i in range(words.shape[0]):
        state[i] = _fold(state[i], words[i])


@kernel("uint64(uint64, uint64)")
def _mix_word(word: Word, seed: Word) -> Word:
    return _mix(word, scramble(seed + _GOLDEN), scramble(seed - _GOLDEN))


@kernel("void(r_u8, uint64, uint64, w_u8)")
def _mix_words(words: Hashes, upper: Word, seed: Word, hashes: Hashes) -> None:
    key_1, key_2 = scramble(seed + _GOLDEN), scramble(seed - _GOLDEN)
    for i in range(words.shape[0]):
        word = words[i]
        if word >> _U63:
            word ^= upper
        hashes[i] = _mix(word, key_1, key_2)


@kernel("void(int64, uint64, w_u8)")
def _mix_range(start: int, seed: Word, hashes: Hashes) -> None:
    key_1, key_2 = scramble(seed + _GOLDEN), scramble(seed - _GOLDEN)
    for i in range(hashes.shape[0]):
        hashes[i] = _mix(np.uint64(start + i), key_1, key_2)


@kernel("void(r_f8, r_u8, uint64, w_u8)")
def _mix_floats(values: NDArray[np.float64], bits: Hashes, seed: Word, hashes: Hashes) -> None:
    key_1, key_2 = scramble(seed + _GOLDEN), scramble(seed - _GOLDEN)
    for i in range(values.shape[0]):
        value = values[i]
        word = bits[i] ^ _TAG_FLOAT
        if -9223372036854775808.0 <= value < 9223372036854775808.0:
            whole = np.int64(value)
            if whole == value:
                word = np.uint64(whole)
        elif 9223372036854775808.0 <= value < 18446744073709551616.0:
            word = np.uint64(value) ^ _TAG_UPPER
        elif value != value:
            word = _BITS_NAN ^ _TAG_FLOAT
        hashes[i] = _mix(word, key_1, key_2)


@kernel("void(r_i8, int64, uint64, w_u8)")
def _mix_moments(ticks: NDArray[np.int64], per_second: int, seed: Word, hashes: Hashes) -> None:
    key_1, key_2 = scramble(seed + _GOLDEN), scramble(seed - _GOLDEN)
    per_tick = _ATTOSECONDS // per_second
    for i in range(ticks.shape[0]):
        seconds = ticks[i] // per_second
        past = (ticks[i] - seconds * per_second) * per_tick
        hashes[i] = _fold(_mix(np.uint64(seconds), key_1, key_2), np.uint64(past))


@kernel("void(r_u4, int64, w_u1, w_i8)")
def _encode_utf8(codes: NDArray[np.uint32], width: int, content: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
    """Encode rows of `width` code points, padded with zeros, back to back; row i ends before ``ends[i]``."""
    at = 0
    for row in range(ends.shape[0]):
        begin, end = row * width, (row + 1) * width
        while end > begin and codes[end - 1] == 0:
            end -= 1
        for i in range(begin, end):
            code = np.int64(codes[i])
            if code < 0x80:
                content[at] = code
                at += 1
                continue
            tails = 1 if code < 0x800 else 2 if code < 0x10000 else 3
            content[at] = (0xFF00 >> (tails + 1)) & 0xFF | code >> 6 * tails
            for tail in range(1, tails + 1):
                content[at + tail] = 0x80 | code >> 6 * (tails - tail) & 0x3F
            at += tails + 1
        ends[row] = at


@inline
def _read_4(content: NDArray[np.uint8], at: Word) -> Word:
    """Read four bytes, the lowest first on every machine; one load where that is the machine's own order."""
    return (
        np.uint64(content[at])
        | np.uint64(content[at + _U1]) << _U8
        | np.uint64(content[at + _U2]) << _U16
        | np.uint64(content[at + _U3]) << _U24
    )


@inline
def _read_8(content: NDArray[np.uint8], at: Word) -> Word:
    return _read_4(content, at) | _read_4(content, at + _U4) << _U32


@inline
def _rotate(word: Word, left: Word) -> Word:
    return (word << left) | (word >> (_U64 - left))


@inline
def _round(lane: Word, word: Word) -> Word:
    return _rotate(lane + word * _PRIME_2, _U31) * _PRIME_1


@inline
def _xxh64(content: NDArray[np.uint8], at: Word, end: Word, seed: Word) -> Word:
    """XXH64 of ``content[at:end]``, after its specification (Collet, xxHash fast digest algorithm, 0.1.1).

    Positions are unsigned: a signed index would be checked for being negative at every byte.
    """
    length = end - at
    if length >= _U32:
        lane_1, lane_2, lane_3, lane_4 = seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2, seed, seed - _PRIME_1
        while end - at >= _U32:
            lane_1 = _round(lane_1, _read_8(content, at))
            lane_2 = _round(lane_2, _read_8(content, at + _U8))
            lane_3 = _round(lane_3, _read_8(content, at + _U16))
            lane_4 = _round(lane_4, _read_8(content, at + _U24))
            at += _U32
        digest = _rotate(lane_1, _U1) + _rotate(lane_2, _U7) + _rotate(lane_3, _U12) + _rotate(lane_4, _U18)
        for lane in (lane_1, lane_2, lane_3, lane_4):
            digest = (digest ^ _round(_U0, lane)) * _PRIME_1 + _PRIME_4
    else:
        digest = seed + _PRIME_5
    digest += length
    while end - at >= _U8:
        digest = _rotate(digest ^ _round(_U0, _read_8(content, at)), _U27) * _PRIME_1 + _PRIME_4
        at += _U8
    if end - at >= _U4:
        digest = _rotate(digest ^ _read_4(content, at) * _PRIME_1, _U23) * _PRIME_2 + _PRIME_3
        at += _U4
    while at < end:
        digest = _rotate(digest ^ np.uint64(content[at]) * _PRIME_5, _U11) * _PRIME_1
        at += _U1
    digest = (digest ^ (digest >> _U33)) * _PRIME_2
    digest = (digest ^ (digest >> _U29)) * _PRIME_3
    return digest ^ (digest >> _U32)


@kernel("uint64(r_u1, uint64)")
def _xxh64_whole(content: NDArray[np.uint8], seed: Word) -> Word:
    return _xxh64(content, _U0, np.uint64(content.shape[0]), seed)


@kernel("void(r_u1, r_i4, r_i4, uint64, w_u8)", "void(r_u1, r_i8, r_i8, uint64, w_u8)")
def _xxh64_spans(
    content: NDArray[np.uint8], begins: NDArray[Any], ends: NDArray[Any], seed: Word, hashes: Hashes
) -> None:
    for i in range(begins.shape[0]):
        hashes[i] = _xxh64(content, np.uint64(begins[i]), np.uint64(ends[i]), seed)
