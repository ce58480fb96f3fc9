"""The counters of a Count-Min hierarchy: one table for each length of prefix, all in one array, filled in one pass.

An id is known by its leading bits: `highs` holds the first 64 of them, left-aligned, and `lows` the rest of a longer
id. A table whose prefixes are no more than its counters is a plain list of counts. Any other has `depth` rows of
`width` counters, and an id is counted once in each row; 32 bits of a hash say where, so that a width need not be a
power of two. The same seed gives the same places, so that tables of two streams add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.decay.base import Floats
from wane.hashing import Hashes, hash_one

Cells = NDArray[Any]
"""Counters: uint32, or doubles."""

Wide = tuple[Hashes, Hashes]
"""Ids, or prefixes of them: the first 64 bits, and the next."""

_U1, _U31, _U32, _U64 = (np.uint64(n) for n in (1, 31, 32, 64))
_LOW = np.uint64(2**32 - 1)
_SCRAMBLE_1, _SCRAMBLE_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


@inline
def _scramble(word: Any) -> Any:
    """The finaliser of MurmurHash3: each bit of the word turns half of the bits that come out."""
    word = (word ^ (word >> np.uint64(33))) * _SCRAMBLE_1
    word = (word ^ (word >> np.uint64(29))) * _SCRAMBLE_2
    return word ^ (word >> _U32)


@inline
def _bump(cells: Any, at: Any, width: Any, depth: Any, mixed: Any, weight: Any) -> None:
    """Add a weight in each row of a table, which begins at a cell; two rows share a hash."""
    for row in range(0, depth, 2):
        cells[at + np.int64(((mixed >> _U32) * width) >> _U32)] += weight
        if row + 1 < depth:
            cells[at + np.int64(width + (((mixed & _LOW) * width) >> _U32))] += weight
            at += np.int64(width) * 2
            mixed = _scramble(mixed + _SCRAMBLE_2)


@kernel(
    "void(r_u8, r_f8, r_u8, r_u8, r_i8, int64, uint64, int64, w_f8)",
    "void(r_u8, r_u4, r_u8, r_u8, r_i8, int64, uint64, int64, w_u4)",
)
def _add(
    highs: Hashes,
    weights: Any,
    shifts: Hashes,
    salts: Hashes,
    starts: Any,
    plain: int,
    width: Any,
    depth: int,
    cells: Any,
) -> None:
    """Count rows in all tables of prefixes of 64 bits or fewer, of which the first `plain` are lists of counts."""
    for i in range(highs.shape[0]):
        key, weight = highs[i], weights[i]
        for level in range(plain):
            cells[starts[level] + np.int64(key >> shifts[level])] += weight
        for level in range(plain, shifts.shape[0]):
            _bump(cells, starts[level], width, depth, _scramble((key >> shifts[level]) ^ salts[level]), weight)


@kernel("void(r_i8, r_u8, r_f8, int64, r_u8, r_u8, r_i8, int64, uint64, int64, w_f8)")
def _add_to(
    owners: Any,
    highs: Hashes,
    weights: Any,
    size: int,
    shifts: Hashes,
    salts: Hashes,
    starts: Any,
    plain: int,
    width: Any,
    depth: int,
    cells: Any,
) -> None:
    """:func:`_add` for many sketches, one after the other in one array."""
    for i in range(highs.shape[0]):
        key, weight, base = highs[i], weights[i], owners[i] * size
        for level in range(plain):
            cells[base + starts[level] + np.int64(key >> shifts[level])] += weight
        for level in range(plain, shifts.shape[0]):
            _bump(cells, base + starts[level], width, depth, _scramble((key >> shifts[level]) ^ salts[level]), weight)


@kernel(
    "void(r_u8, r_u8, r_f8, r_u8, r_u8, r_i8, uint64, int64, w_f8)",
    "void(r_u8, r_u8, r_u4, r_u8, r_u8, r_i8, uint64, int64, w_u4)",
)
def _add_long(
    highs: Hashes,
    lows: Hashes,
    weights: Any,
    shifts: Hashes,
    salts: Hashes,
    starts: Any,
    width: Any,
    depth: int,
    cells: Any,
) -> None:
    """Count rows in all tables of prefixes of more than 64 bits."""
    for i in range(highs.shape[0]):
        first, low, weight = _scramble(highs[i]), lows[i], weights[i]
        for level in range(shifts.shape[0]):
            word = first + (low >> shifts[level])
            _bump(cells, starts[level], width, depth, _scramble(word ^ salts[level]), weight)


@kernel("void(r_u8, uint64, uint64, int64, r_f8, w_f8)", "void(r_u8, uint64, uint64, int64, r_u4, w_f8)")
def _least(words: Hashes, salt: Any, width: Any, depth: int, table: Any, out: Floats) -> None:
    """The least of the counters of each word in one table."""
    for i in range(words.shape[0]):
        mixed = _scramble(words[i] ^ salt)
        at, least = np.int64(0), np.inf
        for row in range(0, depth, 2):
            least = min(least, float(table[at + np.int64(((mixed >> _U32) * width) >> _U32)]))
            if row + 1 < depth:
                least = min(least, float(table[at + np.int64(width + (((mixed & _LOW) * width) >> _U32))]))
                at += np.int64(width) * 2
                mixed = _scramble(mixed + _SCRAMBLE_2)
        out[i] = least


class Layout:
    """Where the counters of each prefix are.

    Args:
        levels: The lengths of prefixes, in order.
        width: Counters in a row.
        depth: Rows of a table.
        seed: Chooses the hashes.

    Attributes:
        size: The number of counters.
        ends: Where the counters of each level end.
    """

    def __init__(self, levels: Sequence[int], width: int, depth: int, seed: int) -> None:
        self.levels = tuple(levels)
        self._width, self._depth = np.uint64(width), depth
        sizes = [min(2**length, width * depth) for length in levels]
        ends = np.cumsum(sizes)
        self.size = int(ends[-1])
        self._starts = ends - np.array(sizes)
        self.ends = ends
        self._salts = np.array([hash_one(length, seed) for length in levels], np.uint64)
        self._plain = sum(2**length <= width * depth for length in levels)
        self._short = sum(length <= 64 for length in levels)
        self._shifts = np.array([64 - length if length <= 64 else 128 - length for length in levels], np.uint64)

    def add(self, ids: Wide, weights: NDArray[Any], cells: Cells) -> None:
        """Count rows: doubles in cells of doubles, uint32 in cells of uint32."""
        short, cut = self._short, slice(self._short, None)
        width, depth = self._width, self._depth
        _add(
            ids[0], weights, self._shifts[:short], self._salts[:short], self._starts[:short], self._plain, width, depth,
            cells,
        )  # fmt: skip
        if short < len(self.levels):
            _add_long(*ids, weights, self._shifts[cut], self._salts[cut], self._starts[cut], width, depth, cells)

    def add_to(self, owners: Any, highs: Hashes, weights: Floats, cells: Floats) -> None:
        """Count rows of ids of up to 64 bits in sketches that lie one after the other, each in that of its owner."""
        _add_to(
            owners, highs, weights, self.size, self._shifts, self._salts, self._starts, self._plain, self._width,
            self._depth, cells,
        )  # fmt: skip

    def estimates(self, level: int, ids: Wide, cells: Cells) -> Floats:
        """What some ids' prefixes of the length ``levels[level]`` weigh, or more."""
        table = cells[self._starts[level] : self.ends[level]]
        shift = self._shifts[level]
        words = ids[0] >> shift if level < self._short else _hashed(ids[0]) + (ids[1] >> shift)
        if level < self._plain:
            return np.asarray(table[words.astype(np.int64)], np.float64)
        found = np.empty(len(words))
        _least(np.ascontiguousarray(words), self._salts[level], self._width, self._depth, table, found)
        return found

    def rows(self, cells: Cells) -> Iterator[Cells]:
        """The counters that each id is in one of: each list, and each row of a table."""
        for level, (start, end) in enumerate(zip(self._starts.tolist(), self.ends.tolist(), strict=True)):
            yield from np.split(cells[start:end], 1 if level < self._plain else self._depth)

    def children(self, level: int, parents: Wide) -> Wide:
        """All prefixes of the length ``levels[level]`` under some of the length before it; all there are, of one."""
        before = self.levels[level - 1] if level else 0
        length = self.levels[level]
        steps = np.arange(2 ** (length - before), dtype=np.uint64)
        highs, lows = (np.repeat(column, len(steps)) for column in parents)
        steps = np.tile(steps, len(parents[0]))
        if length <= 64:
            return highs | steps << np.uint64(64 - length), lows
        lows = lows | steps << np.uint64(128 - length)
        if before < 64:  # a step over the middle sets bits in both
            highs = highs | steps >> np.uint64(length - 64)
        return highs, lows


@kernel("void(r_u8, w_u8)")
def _scramble_all(words: Hashes, out: Hashes) -> None:
    for i in range(words.shape[0]):
        out[i] = _scramble(words[i])


def _hashed(words: Hashes) -> Hashes:
    out = np.empty(len(words), np.uint64)
    _scramble_all(np.ascontiguousarray(words), out)
    return out
