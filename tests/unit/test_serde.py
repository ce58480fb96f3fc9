"""State to bytes and back: what is read is what was written, or `CorruptState`, for any bytes at all."""

from __future__ import annotations

import hashlib
import math
import random
import struct
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wane.errors import CorruptState, WaneError
from wane.serde import FORMAT, MAGIC, Envelope, Reader, Writer, digest_of, pack, unpack

checked = settings(max_examples=200)

INTS = st.integers(-(2**517) + 1, 2**517 - 1)
TEXTS = st.text(st.characters(), max_size=20)  # lone surrogates too
LEAVES = st.none() | st.booleans() | INTS | st.floats() | TEXTS | st.binary(max_size=20)
VALUES = st.recursive(
    LEAVES, lambda parts: st.lists(parts, max_size=4) | st.dictionaries(TEXTS, parts, max_size=4), max_leaves=20
)


def same(a: Any, b: Any) -> bool:
    """Equality that tells types apart, NaN alike and 0.0 from -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def written(value: Any) -> bytes:
    return Writer().value(value).bytes()


# --- values ----------------------------------------------------------------------------------------------------


@checked
@given(VALUES)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    reader = Reader(written(value))
    assert same(reader.value(), value)
    reader.done()


@checked
@given(VALUES, st.randoms(use_true_random=False))
def test_a_cut_value_is_noticed(value: Any, rng: random.Random) -> None:
    data = written(value)
    cut = Reader(data[: rng.randrange(len(data))])
    with pytest.raises(CorruptState):
        cut.value()


@checked
@given(VALUES, st.binary(min_size=1, max_size=8))
def test_what_is_left_over_is_noticed(value: Any, more: bytes) -> None:
    reader = Reader(written(value) + more)
    reader.value()
    with pytest.raises(CorruptState, match=rf"{len(more)} bytes are left over"):
        reader.done()


METHODS: list[Callable[[Reader], Any]] = [
    Reader.value, Reader.uint, Reader.int, Reader.float, Reader.finite, Reader.blob, Reader.text, Reader.mapping,
    lambda reader: reader.array("f8"), lambda reader: reader.array("?"), lambda reader: reader.array("u1"),
]  # fmt: skip


@settings(max_examples=500)
@given(st.binary(max_size=40), st.sampled_from(METHODS))
def test_any_bytes_give_a_value_or_corrupt_state(data: bytes, read: Callable[[Reader], Any]) -> None:
    reader = Reader(data)
    try:
        value = read(reader)
    except CorruptState:
        return
    if read is Reader.value:  # one value has one form only
        assert written(value) == data[: reader._at]
    assert reader._at <= len(data)


@pytest.mark.parametrize("value", [0, 1, -1, 63, 64, -64, -65, 2**63, -(2**63), 2**517 - 1, -(2**517) + 1])
def test_big_ints(value: int) -> None:
    assert Reader(written(value)).value() == value


def test_an_int_that_could_not_be_read_is_not_written() -> None:
    with pytest.raises(ValueError, match="518 bits"):
        Writer().uint(2**518)
    with pytest.raises(ValueError, match="518 bits"):
        Writer().value(2**518)
    with pytest.raises(ValueError, match="no sign"):
        Writer().uint(-1)
    with pytest.raises(TypeError):
        Writer().uint(1.5)  # type: ignore[arg-type]


def test_numpy_ints_do_not_wrap() -> None:
    for number in (np.int64(2**63 - 1), np.int64(-(2**63)), np.uint64(2**64 - 1), np.int8(-128), np.uint8(255)):
        assert Reader(Writer().int(number).bytes()).int() == int(number)
    assert Reader(Writer().uint(np.uint64(2**64 - 1)).bytes()).uint() == 2**64 - 1


def test_an_endless_or_padded_int_is_corrupt() -> None:
    with pytest.raises(CorruptState, match="does not end"):
        Reader(b"\xff" * 1000).uint()
    with pytest.raises(CorruptState, match="ends early"):
        Reader(b"\xff" * 10).uint()
    with pytest.raises(CorruptState, match="more bytes than it needs"):
        Reader(b"\x81\x00").uint()
    assert Reader(b"\x00").uint() == 0


def nested(depth: int, inner: Any = 0) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def test_nesting_is_bounded_on_both_sides() -> None:
    assert Reader(written(nested(16))).value() == nested(16)
    with pytest.raises(ValueError, match="nested more than 16"):
        written(nested(17))
    with pytest.raises(ValueError, match="nested more than 16"):
        written(nested(8, {"a": nested(8)}))
    bomb = b"\x06\x01" * 100_000
    with pytest.raises(CorruptState, match="nested too deep"):
        Reader(bomb).value()
    with pytest.raises(CorruptState, match="nested too deep"):
        Reader(b"\x07\x01\x00" * 10_000).value()


@pytest.mark.parametrize("read", METHODS)
def test_a_huge_length_is_not_believed(read: Callable[[Reader], Any]) -> None:
    huge = Writer().uint(2**40).bytes()
    heads = [huge, *(bytes([kind]) + huge for kind in range(9)), Writer().text("<f8").bytes() + huge]
    tracemalloc.start()
    try:
        for head in heads:
            for _ in range(3):
                try:
                    read(Reader(head + b"\x00" * 50))
                except CorruptState:
                    continue
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_more_values_than_bytes_are_refused_at_once() -> None:
    for head, read in ((b"\x06", Reader.value), (b"\x07", Reader.value), (b"", Reader.mapping)):
        with pytest.raises(CorruptState, match="the state promises 9 values in 3 bytes"):
            read(Reader(head + b"\x09\0\0\0"))


def test_yes_and_no_have_one_form() -> None:
    assert Reader(b"\x01\x01").value() is True
    with pytest.raises(CorruptState, match=r"holds 2 where yes \(1\) or no \(0\)"):
        Reader(b"\x01\x02").value()


def test_names_of_a_mapping_come_in_order_and_once() -> None:
    assert Writer().mapping({"b": 1, "a": 2}).bytes() == Writer().mapping({"a": 2, "b": 1}).bytes()
    for names in ("ba", "aa"):
        writer = Writer().uint(2)
        for name in names:
            writer.text(name).value(None)
        with pytest.raises(CorruptState, match="out of order"):
            Reader(writer.bytes()).mapping()


def test_text_that_is_not_text_is_corrupt() -> None:
    with pytest.raises(CorruptState, match="UTF-8"):
        Reader(b"\x02\xff\xfe").text()
    assert Reader(Writer().text("\ud800é\0").bytes()).text() == "\ud800é\0"


def test_a_number_that_must_be_finite() -> None:
    for number in (math.inf, -math.inf, math.nan):
        data = Writer().float(number).bytes()
        assert same(Reader(data).float(), number)
        with pytest.raises(CorruptState, match="finite number"):
            Reader(data).finite()


def test_what_cannot_be_written_is_refused() -> None:
    for value in (object(), {1, 2}, 1j, np.int64(5), [object()]):
        with pytest.raises(TypeError, match="cannot write a"):
            written(value)


# --- arrays ----------------------------------------------------------------------------------------------------

DTYPES = ["?", "i1", "u1", "<i2", "<u4", "<i8", "<u8", "<f4", "<f8"]


@checked
@given(st.sampled_from(DTYPES), st.binary(max_size=64))
def test_an_array_comes_back_bit_for_bit(dtype: str, raw: bytes) -> None:
    size = np.dtype(dtype).itemsize
    values = np.frombuffer(raw[: len(raw) // size * size], dtype)
    if dtype == "?":
        values = values.view("u1") > 127
    for form in (values, values[::-1][::-1], values.astype(values.dtype.newbyteorder(">"))):
        found = Reader(Writer().array(form).bytes()).array(dtype)
        assert found.dtype == np.dtype(dtype)
        assert found.tobytes() == values.tobytes()
    if len(found):
        found[0] = 0  # a copy of its own


def test_an_array_must_be_of_its_type_and_whole() -> None:
    data = Writer().array(np.arange(3.0)).bytes()
    with pytest.raises(CorruptState, match="does not hold int64"):
        Reader(data).array("i8")
    with pytest.raises(CorruptState, match="cut in the middle of a float64"):
        Reader(Writer().text("<f8").blob(b"1234567").bytes()).array("f8")
    with pytest.raises(CorruptState, match="yes and no"):
        Reader(Writer().text("|b1").blob(b"\x02").bytes()).array("?")
    for bad in (np.zeros((2, 2)), np.array(["a"]), np.array([None]), np.zeros(1, "M8[s]")):
        with pytest.raises(TypeError, match="cannot write an array"):
            Writer().array(bad)


# --- envelopes -------------------------------------------------------------------------------------------------

DIGEST = bytes(range(8))


@checked
@given(st.text(st.characters(max_codepoint=127), max_size=50), st.integers(0, 65535), st.binary(max_size=100))
def test_an_envelope_comes_back(name: str, version: int, payload: bytes) -> None:
    data = pack(name, version, DIGEST, payload)
    assert unpack(data) == Envelope(name, version, DIGEST, payload)
    assert unpack(bytearray(data)) == unpack(memoryview(data)) == unpack(data)


def test_every_change_of_one_byte_is_noticed() -> None:
    data = pack("moments", 1, DIGEST, b"payload")
    for at in range(len(data)):
        for change in range(1, 256):
            changed = bytearray(data)
            changed[at] ^= change
            with pytest.raises(CorruptState):
                unpack(bytes(changed))


@settings(max_examples=300)
@given(st.binary(max_size=60), st.randoms(use_true_random=False))
def test_every_other_change_is_noticed(noise: bytes, rng: random.Random) -> None:
    data = pack("moments", 1, DIGEST, bytes(rng.randrange(256) for _ in range(rng.randrange(40))))
    a, b = sorted(rng.choices(range(len(data) + 1), k=2))
    changes = [data[:a], data[b:], data[:a] + noise + data[b:], data + noise, noise + data, data[b:] + data[:b], noise]
    for changed in changes:
        if changed != data:
            with pytest.raises(CorruptState):
                unpack(changed)


def test_errors_say_what_is_wrong() -> None:
    data = pack("moments", 1, DIGEST, b"payload")
    for bad, said in [
        (b"", "0 bytes"), (b"PK\3\4 a zip", "no state of wane's"), (data[:20], "was cut"), (data[:-1], "cut or grew"),
        (data + b"x", "cut or grew"), (MAGIC + bytes([FORMAT + 1]) + data[5:], "upgrade wane"),
        (data[:-9] + b"X" + data[-8:], "changed on the way"), ("text", "got str"), (None, "got NoneType"),
    ]:  # fmt: skip
        with pytest.raises(CorruptState, match=said) as corrupt:
            unpack(bad)  # type: ignore[arg-type]
        assert isinstance(corrupt.value, WaneError)


def test_a_promised_size_is_not_believed() -> None:
    data = bytearray(pack("moments", 1, DIGEST, b"payload"))
    at = data.index(b"payload") - 8
    for size in (2**64 - 1, 2**40, 0, 8):
        data[at : at + 8] = struct.pack("<Q", size)
        with pytest.raises(CorruptState):
            unpack(bytes(data))


def test_digests_tell_parameters_apart_in_any_order() -> None:
    digest = digest_of("a", 1, {"x": 1, "y": [2.0, None]})
    assert digest == digest_of("a", 1, {"y": [2.0, None], "x": 1})
    others = [
        digest_of("b", 1, {"x": 1, "y": [2.0, None]}), digest_of("a", 2, {"x": 1, "y": [2.0, None]}),
        digest_of("a", 1, {"x": True, "y": [2.0, None]}), digest_of("a", 1, {"x": 1, "y": [2, None]}),
        digest_of("a", 1, {"x": 1}), digest_of("a", 1, {}),
    ]  # fmt: skip
    assert len({digest, *others}) == len(others) + 1


def test_golden_bytes() -> None:
    # Stored states depend on these: they never change, only FORMAT and versions do.
    payload = (
        Writer()
        .value({"name": "wane", "list": [None, True, -5, 2.5, b"\0\xff"], "big": 2**70})
        .array(np.array([1.0, -0.0]))
        .bytes()
    )
    assert payload.hex() == (
        "070303626967028080808080808080808002046c6973740605000101020903000000000000044005020"
        "0ff046e616d65040477616e65033c663810000000000000f03f0000000000000080"
    )
    state = pack("golden", 7, digest_of("golden", 7, {"k": 10}), payload)
    assert state.hex() == (
        "57414e45" "01" "06" "676f6c64656e" "0700" "1efeefb910da86e9" "4b00000000000000"
        + payload.hex()
        + "fe310a334d21979b"
    )  # fmt: skip
    assert state[-8:] == hashlib.blake2b(state[:-8], digest_size=8).digest()


@pytest.mark.skipif(sys.byteorder == "big", reason="the point is to compare with little-endian machines")
def test_a_float_is_eight_bytes_little_endian() -> None:
    assert Writer().float(1.5).bytes() == struct.pack("<d", 1.5)
