"""Columns of small whole numbers as bytes: seven bits a byte, the last byte of each number below 128 (LEB128)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import kernel
from wane.errors import CorruptState
from wane.hashing import Hashes

_LOW, _MORE, _SEVEN = np.uint64(0x7F), np.uint64(0x80), np.uint64(7)


@kernel("int64(r_u8, w_u1)")
def _pack(numbers: Hashes, out: NDArray[np.uint8]) -> int:
    size = 0
    for i in range(numbers.shape[0]):
        rest = numbers[i]
        while rest >= _MORE:
            out[size] = (rest & _LOW) | _MORE
            rest >>= _SEVEN
            size += 1
        out[size] = rest
        size += 1
    return size


@kernel("boolean(r_u1, w_u8)")
def _unpack(data: NDArray[np.uint8], out: Any) -> bool:
    """Whether the bytes are that many numbers, each in as few bytes as it needs."""
    at = 0
    for i in range(out.shape[0]):
        number, shift = np.uint64(0), np.uint64(0)
        while True:
            if at == data.shape[0] or shift > np.uint64(63):
                return False
            byte = np.uint64(data[at])
            if shift == np.uint64(63) and byte > np.uint64(1):
                return False
            number |= (byte & _LOW) << shift
            at += 1
            shift += _SEVEN
            if byte < _MORE:
                if byte == np.uint64(0) and shift > _SEVEN:
                    return False
                break
        out[i] = number
    return bool(at == data.shape[0])


def pack(numbers: Hashes) -> bytes:
    """Numbers as bytes."""
    out = np.empty(10 * len(numbers), np.uint8)
    return out[: _pack(numbers, out)].tobytes()


def unpack(data: bytes, count: int) -> Hashes:
    """That many numbers from bytes; anything else is `CorruptState`."""
    if count > len(data):
        raise CorruptState(f"the state promises {count} numbers in {len(data)} bytes")
    out = np.empty(count, np.uint64)
    if not _unpack(np.frombuffer(data, np.uint8), out):
        raise CorruptState("a column of whole numbers in the state is damaged")
    return out
