"""State to bytes and back.

An envelope holds: magic, format, name and version of the thing, a digest of its parameters, the payload's length,
the payload, and a checksum over all of it. Bytes from outside are not trusted: reading gives the payload or
:class:`~wane.errors.CorruptState`, and :class:`Reader` never reads past the end or believes a length.
"""

from __future__ import annotations

import builtins
import hashlib
import math
import operator
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane.errors import CorruptState

MAGIC = b"WANE"
FORMAT = 1
_HEAD = struct.Struct("<4sBB")
_MIDDLE = struct.Struct("<H8sQ")
_FLOAT = struct.Struct("<d")
_CHECK = 8
_INT_BITS = 518  # 74 bytes of 7 bits
_DEEPEST = 16


class Envelope(NamedTuple):
    """What :func:`unpack` finds."""

    name: str
    version: int
    digest: bytes
    payload: bytes


def pack(name: str, version: int, digest: bytes, payload: bytes) -> bytes:
    """Wrap a payload: ``unpack(pack(...))`` gives it back, and any change on the way is noticed."""
    label = name.encode("ascii")
    body = _HEAD.pack(MAGIC, FORMAT, len(label)) + label + _MIDDLE.pack(version, digest, len(payload)) + payload
    return body + _checksum(body)


def unpack(data: bytes) -> Envelope:
    """Read an envelope, or raise `CorruptState` with what is wrong."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise CorruptState(f"a state is bytes, got {type(data).__name__}; pass what to_bytes() gave")
    data = bytes(data)
    if len(data) < _HEAD.size or data[:4] != MAGIC:
        raise CorruptState(
            f"{len(data)} bytes starting with {data[:4]!r} are no state of wane's, which starts with {MAGIC!r}"
        )
    _, form, label_size = _HEAD.unpack_from(data)
    if form != FORMAT:
        raise CorruptState(f"the state has format {form}, this version of wane reads format {FORMAT}; upgrade wane")
    start = _HEAD.size + label_size
    if len(data) < start + _MIDDLE.size + _CHECK:
        raise CorruptState(f"the state was cut: {len(data)} bytes do not even hold its head")
    version, digest, size = _MIDDLE.unpack_from(data, start)
    if len(data) != start + _MIDDLE.size + size + _CHECK:
        raise CorruptState(
            f"the state was cut or grew: its head promises a payload of {size} bytes in {len(data)} in all"
        )
    if _checksum(data[:-_CHECK]) != data[-_CHECK:]:
        raise CorruptState("the state was changed on the way: its checksum does not fit its bytes")
    try:
        name = data[_HEAD.size : start].decode("ascii")
    except UnicodeDecodeError:
        raise CorruptState("the state's name is not text") from None
    return Envelope(name, version, digest, data[start + _MIDDLE.size : -_CHECK])


def digest_of(name: str, version: int, parameters: Mapping[str, Any]) -> bytes:
    """Eight bytes that tell parameters apart, whatever order they are given in."""
    writer = Writer()
    writer.text(name).uint(version).mapping(parameters)
    return hashlib.blake2b(writer.bytes(), digest_size=8).digest()


class Writer:
    """Builds a payload. Each method writes one value and returns the writer."""

    def __init__(self) -> None:
        self._parts: list[builtins.bytes] = []

    def bytes(self) -> builtins.bytes:
        """All that was written."""
        return b"".join(self._parts)

    def uint(self, value: builtins.int) -> Writer:
        """An int of 0 or more and up to 518 bits, in as few bytes as it needs (LEB128)."""
        value = operator.index(value)
        if not 0 <= value < 1 << _INT_BITS:
            raise ValueError(
                f"an int in a state has 0 to {_INT_BITS} bits and no sign here, got {value.bit_length()} bits"
            )
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        self._parts.append(bytes(out))
        return self

    def int(self, value: builtins.int) -> Writer:
        """An int of either sign and up to 517 bits."""
        value = operator.index(value)
        return self.uint(value << 1 if value >= 0 else (-value << 1) - 1)

    def float(self, value: builtins.float) -> Writer:
        """A double, bit for bit."""
        self._parts.append(_FLOAT.pack(value))
        return self

    def blob(self, value: builtins.bytes) -> Writer:
        """Bytes, with their length."""
        self.uint(len(value))
        self._parts.append(value)
        return self

    def text(self, value: str) -> Writer:
        """A text."""
        return self.blob(value.encode("utf-8", "surrogatepass"))

    def array(self, values: NDArray[Any]) -> Writer:
        """A one-dimensional array of numbers, little-endian, with its type."""
        plain = np.ascontiguousarray(values)
        if plain.ndim != 1 or plain.dtype.kind not in "biuf":
            raise TypeError(f"cannot write an array of {plain.dtype} with {plain.ndim} dimensions")
        self.text(plain.dtype.newbyteorder("<").str)
        return self.blob(plain.astype(plain.dtype.newbyteorder("<"), copy=False).tobytes())

    def value(self, value: Any, depth: builtins.int = 0) -> Writer:
        """None, a bool, int, float, text, bytes, or a list or mapping of such, up to 16 of them deep."""
        if depth > _DEEPEST:
            raise ValueError(f"cannot write values nested more than {_DEEPEST} deep")
        if value is None:
            return self.uint(0)
        if isinstance(value, bool):
            return self.uint(1).uint(value)
        if isinstance(value, int):
            return self.uint(2).int(value)
        if isinstance(value, float):
            return self.uint(3).float(value)
        if isinstance(value, str):
            return self.uint(4).text(value)
        if isinstance(value, bytes):
            return self.uint(5).blob(value)
        if isinstance(value, (list, tuple)):
            self.uint(6).uint(len(value))
            for item in value:
                self.value(item, depth + 1)
            return self
        if isinstance(value, Mapping):
            return self.uint(7).mapping(value, depth + 1)
        raise TypeError(f"cannot write a {type(value).__name__}")

    def mapping(self, values: Mapping[str, Any], depth: builtins.int = 0) -> Writer:
        """Names and values, in the order of the names."""
        self.uint(len(values))
        for name in sorted(values):
            self.text(name).value(values[name], depth)
        return self


class Reader:
    """Reads a payload back; anything that does not fit is `CorruptState`."""

    def __init__(self, payload: builtins.bytes) -> None:
        self._data = payload
        self._at = 0

    def uint(self) -> builtins.int:
        """An int of 0 or more."""
        value = shift = 0
        while shift < _INT_BITS:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise CorruptState("an int in the state has more bytes than it needs")
                return value
            shift += 7
        raise CorruptState("an int in the state does not end")

    def int(self) -> builtins.int:
        """An int of either sign."""
        raw = self.uint()
        return raw >> 1 if raw % 2 == 0 else -((raw + 1) >> 1)

    def float(self) -> builtins.float:
        """A double."""
        return float(_FLOAT.unpack(self._take(8))[0])

    def finite(self) -> builtins.float:
        """A double that is neither infinite nor NaN."""
        value = self.float()
        if not math.isfinite(value):
            raise CorruptState(f"the state holds {value!r} where a finite number must be")
        return value

    def blob(self) -> builtins.bytes:
        """Bytes."""
        return self._take(self.uint())

    def text(self) -> str:
        """A text."""
        try:
            return self.blob().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise CorruptState("a text in the state is not UTF-8") from None

    def array(self, dtype: Any) -> NDArray[Any]:
        """An array, which must have this type."""
        expected = np.dtype(dtype)
        if self.text() != expected.newbyteorder("<").str:
            raise CorruptState(f"an array in the state does not hold {expected}")
        raw = self.blob()
        if len(raw) % expected.itemsize:
            raise CorruptState(f"an array in the state is cut in the middle of a {expected}")
        if expected.kind == "b" and raw.strip(b"\0\1"):
            raise CorruptState("an array of yes and no in the state holds something else")
        return np.frombuffer(raw, expected.newbyteorder("<")).astype(expected)

    def value(self, depth: builtins.int = 0) -> Any:
        """What :meth:`Writer.value` wrote."""
        kind = self.uint()
        if depth > _DEEPEST:
            raise CorruptState("values in the state are nested too deep")
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self._count())]
        if kind == 7:
            return self.mapping(depth + 1)
        if kind == 0:
            return None
        if kind == 1:
            return self._bool()
        readers = {2: self.int, 3: self.float, 4: self.text, 5: self.blob}
        if kind not in readers:
            raise CorruptState(f"the state holds a value of unknown kind {kind}")
        return readers[kind]()

    def mapping(self, depth: builtins.int = 0) -> dict[str, Any]:
        """What :meth:`Writer.mapping` wrote."""
        found: dict[str, Any] = {}
        last: str | None = None
        for _ in range(self._count()):
            name = self.text()
            if last is not None and name <= last:
                raise CorruptState(f"the names {last!r} and {name!r} in the state are out of order")
            found[name] = self.value(depth)
            last = name
        return found

    def done(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._data):
            raise CorruptState(f"{len(self._data) - self._at} bytes are left over at the end of the state")

    def _bool(self) -> bool:
        value = self.uint()
        if value > 1:
            raise CorruptState(f"the state holds {value} where yes (1) or no (0) must be")
        return value == 1

    def _count(self) -> builtins.int:
        """A number of values to come, each of which needs a byte at least."""
        count = self.uint()
        if count > len(self._data) - self._at:
            raise CorruptState(f"the state promises {count} values in {len(self._data) - self._at} bytes")
        return count

    def _take(self, size: builtins.int) -> builtins.bytes:
        end = self._at + size
        if end > len(self._data):
            raise CorruptState(f"the state ends early: {size} bytes wanted, {len(self._data) - self._at} left")
        found = self._data[self._at : end]
        self._at = end
        return found


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK).digest()
