"""Tuples of a Greenwald-Khanna summary: values in order, with bounds of their ranks.

A tuple stands for itself and for the values between it and the one before it, `gain` of them together. Of the
possible ranks of its value, the least is the sum of the gains up to it, and the largest is `slack` more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wane._jit import kernel
from wane.decay.base import Ints
from wane.hashing import Hashes


class Tuples(NamedTuple):
    """Tuples in the order of their values.

    Attributes:
        keys: The values, as keys of the same order.
        gains: By how much the least possible rank of each is above that of the one before it (`g`).
        slacks: By how much the largest possible rank of each is above its least (`Delta`).
    """

    keys: Hashes
    gains: Ints
    slacks: Ints

    def first(self, size: int) -> Tuples:
        """The first of them."""
        return Tuples(self.keys[:size].copy(), self.gains[:size].copy(), self.slacks[:size].copy())


def none() -> Tuples:
    """No tuples."""
    return Tuples(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))


def thinned(ordered: Hashes, step: int) -> Tuples:
    """Sorted values as tuples: the least, the largest, and every so many between them, with their exact ranks."""
    last = len(ordered) - 1
    places = np.arange(last, -1, -step)[::-1]
    if places[0]:
        places = np.append(0, places)
    return Tuples(ordered[places], np.diff(places, prepend=-1), np.zeros(len(places), np.int64))


@kernel("int64(r_u8, r_i8, r_i8, r_u8, r_i8, r_i8, int64, w_u8, w_i8, w_i8)")
def _merge(
    keys_a: Hashes,
    gains_a: Ints,
    slacks_a: Ints,
    keys_b: Hashes,
    gains_b: Ints,
    slacks_b: Ints,
    limit: int,
    keys: Hashes,
    gains: Ints,
    slacks: Ints,
) -> int:
    """Figure 1 of the paper, until both inputs are used up: what ends first is followed by (infinity, 1, 0).

    Equal values become one tuple only where that stands for no more than the limit. In summaries of very few values,
    whose tuples stand for more than ``2 epsilon n`` though only for themselves, that is not so by itself. The least
    value stays apart, so that its rank stays exact.
    """
    a = b = made = 0
    ends_a, ends_b = keys_a.shape[0], keys_b.shape[0]
    while a < ends_a or b < ends_b:
        both = made > 0 and a < ends_a and b < ends_b and keys_a[a] == keys_b[b]
        if both and gains_a[a] + gains_b[b] + slacks_a[a] + slacks_b[b] <= limit:
            keys[made], gains[made] = keys_a[a], gains_a[a] + gains_b[b]
            slacks[made] = slacks_a[a] + slacks_b[b]
            a += 1
            b += 1
        elif b == ends_b or (a < ends_a and keys_a[a] < keys_b[b]):
            more = 0 if b == ends_b else gains_b[b] + slacks_b[b] - 1
            keys[made], gains[made], slacks[made] = keys_a[a], gains_a[a], slacks_a[a] + more
            a += 1
        else:
            more = 0 if a == ends_a else gains_a[a] + slacks_a[a] - 1
            keys[made], gains[made], slacks[made] = keys_b[b], gains_b[b], slacks_b[b] + more
            b += 1
        made += 1
    return made


def merge(mine: Tuples, theirs: Tuples, limit: int) -> Tuples:
    """The tuples of both: where none had gain and slack over ``2 epsilon n``, none has over ``2 epsilon (m + n)``.

    Args:
        mine: Tuples of `m` values.
        theirs: Tuples of `n` others.
        limit: ``2 epsilon (m + n)``.
    """
    if not len(mine.keys) or not len(theirs.keys):
        return mine if len(mine.keys) else theirs
    room = len(mine.keys) + len(theirs.keys)
    made = Tuples(np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64))
    size = _merge(*mine, *theirs, limit, *made)
    return made.first(size)


@kernel("int64(w_u8, w_i8, w_i8, int64, int64)")
def _compress(keys: Hashes, gains: Ints, slacks: Ints, size: int, limit: int) -> int:
    made = 1
    for i in range(1, size):
        if made > 1 and gains[made - 1] + gains[i] + slacks[i] <= limit:
            made -= 1
            gains[i] += gains[made]
        keys[made], gains[made], slacks[made] = keys[i], gains[i], slacks[i]
        made += 1
    return min(made, size)


def compress(tuples: Tuples, limit: int) -> Tuples:
    """Let each tuple but the first stand for the one before it, where no gain and slack pass a limit by that."""
    made = Tuples(tuples.keys.copy(), tuples.gains.copy(), tuples.slacks.copy())
    size = _compress(*made, len(made.keys), limit)
    return made.first(size)
