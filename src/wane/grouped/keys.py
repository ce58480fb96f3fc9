"""Group keys to dense ids: 0 for the first group seen, 1 for the next, however many batches there are.

Every key becomes one 64-bit word (:mod:`wane.grouped.words`). One open-addressing table over the words then gives the
ids, in one native pass over the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane._jit import kernel
from wane.grouped.words import WordColumn, Words

_FREE = -1


@kernel("int64(w_i8, w_i8, r_i8, int64, int64, w_i8)")
def _assign(slots: Words, known: Words, words: Words, width: int, groups: int, ids: Words) -> int:
    """Find or make the id of every row; gives the number of groups, or -1 - row where the table is full.

    Args:
        slots: The table: a group's id, or -1.
        known: The words of the groups, `width` for each.
        words: The words of the rows, `width` for each.
        width: Words of a key.
        groups: The number of groups so far.
        ids: Takes the ids.
    """
    mask = np.uint64(slots.shape[0] - 1)
    room = known.shape[0] // width
    for row in range(ids.shape[0]):
        h = np.uint64(0x9E3779B97F4A7C15)
        for j in range(width):
            h = (h ^ np.uint64(words[row * width + j])) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(32)
        at = h & mask
        while True:
            group = slots[np.int64(at)]
            if group == -1:
                if groups == room:
                    return -1 - row
                for j in range(width):
                    known[groups * width + j] = words[row * width + j]
                slots[np.int64(at)] = groups
                ids[row] = groups
                groups += 1
                break
            same = True
            for j in range(width):
                if known[group * width + j] != words[row * width + j]:
                    same = False
                    break
            if same:
                ids[row] = group
                break
            at = (at + np.uint64(1)) & mask
    return groups


class Groups:
    """The groups seen so far.

    Args:
        fields: The key columns, in order.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._columns = [WordColumn(field) for field in fields]
        self._width = len(self._columns) + 1  # one word more says which keys are null
        self._slots = np.full(1024, _FREE, np.int64)
        self._known = np.zeros(512 * self._width, np.int64)
        self.size = 0

    def ids(self, arrays: Sequence[pa.Array], rows: int) -> Words:
        """The group of every row of a batch."""
        words = np.zeros((rows, self._width), np.int64)
        for j, (column, array) in enumerate(zip(self._columns, arrays, strict=True)):
            words[:, j], missing = column.words(array)
            if missing is not None:
                words[missing, j] = 0
                words[missing, -1] |= 1 << j
        flat = words.reshape(-1)
        ids = np.empty(rows, np.int64)
        done = 0
        while done < rows:
            found = _assign(self._slots, self._known, flat[done * self._width :], self._width, self.size, ids[done:])
            if found >= 0:
                self.size = found
                break
            done += -1 - found
            self.size = len(self._known) // self._width
            self._grow()
        return ids

    @property
    def nbytes(self) -> int:
        """About the memory that the groups take."""
        return self._slots.nbytes + self._known.nbytes + sum(column.nbytes for column in self._columns)

    def keys(self, order: NDArray[np.int64]) -> list[pa.Array]:
        """The keys of some groups, each column in its own type."""
        words = self._known.reshape(-1, self._width)[order]
        return [
            column.values(np.ascontiguousarray(words[:, j]), (words[:, -1] >> j) & 1 == 1)
            for j, column in enumerate(self._columns)
        ]

    def _grow(self) -> None:
        """Double the room; the table is at most half full."""
        self._known = np.concatenate([self._known, np.zeros_like(self._known)])
        self._slots = np.full(2 * len(self._slots), _FREE, np.int64)
        own = self._known[: self.size * self._width]
        again = np.empty(self.size, np.int64)
        _assign(self._slots, np.zeros_like(self._known), own.copy(), self._width, 0, again)
