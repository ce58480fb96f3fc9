"""Aggregates of a user's own, for tests: exact medians and sums, in the manner of the paper's C functions."""

from __future__ import annotations

import struct
from typing import Any


class LowMedian:
    """Collects integers in its scratchpad until it is full: a count, and four bytes for each."""

    sizes: tuple[int, ...] = ()

    def initialize(self, pad: memoryview) -> None:
        struct.pack_into("<i", pad, 0, 0)

    def iterate(self, pad: memoryview, value: int) -> None:
        (count,) = struct.unpack_from("<i", pad, 0)
        struct.pack_into("<i", pad, 4 + 4 * count, value)
        struct.pack_into("<i", pad, 0, count + 1)

    def output(self, pad: memoryview) -> bytes:
        (count,) = struct.unpack_from("<i", pad, 0)
        return bytes(pad[4 : 4 + 4 * count])

    def destroy(self, pad: memoryview) -> None:
        pad.release()

    def flushme(self, pad: memoryview) -> bool:
        (count,) = struct.unpack_from("<i", pad, 0)
        return 4 + 4 * (count + 1) > len(pad)


class HighMedian:
    """The lower median of what low levels collected."""

    def initialize(self, pad: memoryview) -> None:
        self.values: list[int] = []

    def iterate(self, pad: memoryview, state: bytes) -> None:
        self.values += struct.unpack(f"<{len(state) // 4}i", state)

    def output(self, pad: memoryview) -> int:
        return sorted(self.values)[(len(self.values) - 1) // 2]

    def destroy(self, pad: memoryview) -> None:
        pad.release()


class Careless(LowMedian):
    """Never says that it is full."""

    def flushme(self, pad: memoryview) -> bool:
        return False


class Sorted:
    """Not split: all values, sorted, for extractors to search."""

    made = 0

    def initialize(self, pad: memoryview) -> None:
        type(self).made += 1
        self.values: list[int] = []

    def iterate(self, pad: memoryview, value: int) -> None:
        self.values.append(value)

    def output(self, pad: memoryview) -> list[int]:
        return sorted(self.values)

    def destroy(self, pad: memoryview) -> None:
        pad.release()


def percentile(values: list[Any], percent: float) -> Any:
    return values[min(len(values) - 1, int(len(values) * percent / 100))]
