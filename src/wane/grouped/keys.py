"""Group keys to dense ids: 0 for the first group seen, 1 for the next, however many batches there are.

Every key becomes a 64-bit word (:mod:`wane.grouped.words`), and the columns are taken one after the other: the first
one's words get ids, then the pairs of such an id and the second one's word, and so on; the last ids are the groups. A
pair and its id fit two words of an open-addressing table, so that a row costs one look into memory a column; rows that
come in runs, as epochs do, cost less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.errors import BadInput
from wane.grouped.words import WordColumn, Words

MOST = 2**31 - 2
"""The largest number of groups."""

_NULL = 1 << 31
"""Marks, beside the id of the columns before, that the word stands for null."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SCRAMBLE = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)
_ID = 0xFFFFFFFF


@inline
def _slot(prefix: int, word: int, mask: int) -> Any:
    """Where the search for a pair begins."""
    h = (np.uint64(word) ^ (np.uint64(prefix) * _GOLDEN)) * _SCRAMBLE
    h ^= h >> _HALF
    return np.int64((h * _GOLDEN) >> _HALF) & mask


@kernel("int64(w_i8, w_i8, w_i8, r_i8, r_i8, r_u1, int64, int64, w_i8)")
def _assign(
    slots: Words, prefixes: Words, known: Words, before: Words, words: Words, missing: NDArray[np.uint8], size: int,
    first: int, ids: Words,
) -> int:  # fmt: skip
    """Find or make the id of every pair; gives the number of ids, or -1 - row where there is no room for one more.

    Args:
        slots: The table, two words a slot: a pair's word, and its prefix and id, or 0.
        prefixes: The prefix of each id: the id of the columns before, and whether the word stands for null.
        known: The word of each id.
        before: The rows' ids by the columns before; empty if there are none.
        words: The rows' words.
        missing: Where a word stands for null; empty if nowhere.
        size: The number of ids so far.
        first: The row to begin with.
        ids: Takes the ids.
    """
    mask = slots.shape[0] // 2 - 1
    room = known.shape[0]
    last_prefix = np.int64(-1)
    last_word = np.int64(0)
    last = np.int64(0)
    for row in range(first, words.shape[0]):
        prefix = before[row] if before.shape[0] > 0 else np.int64(0)
        if missing.shape[0] > 0 and missing[row]:
            prefix |= _NULL
        word = words[row]
        if word == last_word and prefix == last_prefix:
            ids[row] = last
            continue
        at = _slot(prefix, word, mask)
        while True:
            entry = slots[2 * at + 1]
            if entry == 0:
                if size == room:
                    return -1 - row
                prefixes[size] = prefix
                known[size] = word
                size += 1
                slots[2 * at] = word
                entry = (prefix << 32) | size
                slots[2 * at + 1] = entry
                break
            if slots[2 * at] == word and ((entry >> 32) & _ID) == prefix:
                break
            at = (at + 1) & mask
        last = (entry & _ID) - 1
        last_prefix = prefix
        last_word = word
        ids[row] = last
    return size


class _Level:
    """The ids of the pairs of one key column."""

    def __init__(self) -> None:
        self.slots = np.zeros(2 * 1024, np.int64)
        self.prefixes = np.zeros(512, np.int64)
        self.known = np.zeros(512, np.int64)
        self.size = 0

    def ids(self, before: Words, words: Words, missing: NDArray[np.uint8]) -> Words:
        """The id of every row."""
        ids = np.empty(len(words), np.int64)
        first = 0
        while True:
            found = self._assign(before, words, missing, first, ids)
            if found >= 0:
                self.size = found
                return ids
            first = -1 - found
            self.size = len(self.known)
            self._grow()

    def _assign(self, before: Words, words: Words, missing: NDArray[np.uint8], first: int, ids: Words) -> int:
        return int(_assign(self.slots, self.prefixes, self.known, before, words, missing, self.size, first, ids))

    def _grow(self) -> None:
        """Double the room; the table is at most half full."""
        if 2 * self.size > MOST:
            raise BadInput(f"more than {MOST} groups do not fit; group by fewer columns, or by longer epochs")
        prefixes, known = self.prefixes, self.known
        self.slots = np.zeros(2 * len(self.slots), np.int64)
        self.prefixes, self.known = np.zeros(2 * len(known), np.int64), np.zeros(2 * len(known), np.int64)
        again = np.empty(self.size, np.int64)
        self.size = 0
        gone = (prefixes & _NULL != 0).astype(np.uint8)
        self.size = self._assign(prefixes & ~_NULL, known, gone, 0, again)


class Groups:
    """The groups seen so far.

    Args:
        fields: The key columns, in order.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._columns = [WordColumn(field) for field in fields]
        self._levels = [_Level() for _ in fields]
        self._seen = False

    @property
    def size(self) -> int:
        """The number of groups; without keys all rows are one."""
        return self._levels[-1].size if self._levels else int(self._seen)

    def ids(self, arrays: Sequence[pa.Array], rows: int) -> Words:
        """The group of every row of a batch."""
        self._seen = self._seen or rows > 0
        ids = np.empty(0, np.int64) if arrays else np.zeros(rows, np.int64)
        for column, level, array in zip(self._columns, self._levels, arrays, strict=True):
            words, missing = column.words(array)
            gone = np.empty(0, np.uint8)
            if missing is not None:
                words = np.where(missing, 0, words)
                gone = missing.view(np.uint8)
            ids = level.ids(ids, words, gone)
        return ids

    @property
    def nbytes(self) -> int:
        """About the memory that the groups take."""
        tables = sum(level.slots.nbytes + level.prefixes.nbytes + level.known.nbytes for level in self._levels)
        return tables + sum(column.nbytes for column in self._columns)

    def keys(self, order: NDArray[np.int64]) -> list[pa.Array]:
        """The keys of some groups, each column in its own type."""
        found = []
        for column, level in zip(reversed(self._columns), reversed(self._levels), strict=True):
            prefixes = level.prefixes[order]
            found.append(column.values(level.known[order], prefixes & _NULL != 0))
            order = prefixes & ~_NULL
        return found[::-1]
