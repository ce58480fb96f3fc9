"""Nodes of a binary tree over 64-bit keys with weights: what a q-digest is made of, in a few native passes.

A node of level `l` stands for the `2**l` keys that agree in all but their last `l` bits; a leaf has level 0. It is
known by its highest key and its level, and nodes are kept in the order of these two, in which a node comes right after
all that lies under it. A weight at a node belongs to keys under it, it is not known which.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane._jit import bits, inline, kernel
from wane.decay.base import Floats
from wane.errors import CorruptState
from wane.hashing import Hashes
from wane.summaries._tally import FEW, added_up, alike

Bytes = NDArray[np.uint8]

_ALL = np.uint64(2**64 - 1)
_U0, _U1, _U64 = np.uint64(0), np.uint64(1), np.uint64(64)

_U6, _U63, _LOW = np.uint64(6), np.uint64(63), np.uint64(2**32 - 1)
_SETTLED = _ALL
"""In a plan: nothing is left to look at."""

_FINEST = 11
"""Bits of the keys that one look at the rows may tell apart: that many sums stay in the cache."""


class Nodes(NamedTuple):
    """Nodes in order, no two alike.

    Attributes:
        highs: The highest key under each.
        levels: The level of each.
        loads: The weight of each.
    """

    highs: Hashes
    levels: Bytes
    loads: Floats

    @property
    def lows(self) -> Hashes:
        """The lowest key under each."""
        return self.highs & ~spans(self.levels)


def none() -> Nodes:
    """No nodes."""
    return Nodes(np.empty(0, np.uint64), np.empty(0, np.uint8), np.empty(0))


def spans(levels: Bytes) -> Hashes:
    """For each level, how far the lowest and the highest key under a node of it are apart: its last bits all set."""
    return np.where(levels == 0, _U0, _ALL >> ((_U64 - levels) & np.uint64(63)))


@inline
def _width(word: Any) -> Any:
    """The number of bits that a word needs."""
    if word == _U0:
        return 0
    top = word & ~(word >> _U1)  # the highest bit is kept and none follows it, so that no rounding can carry into it
    return (bits(float(top)) >> 52) - 1022


@inline
def _span(level: Any) -> Any:
    """:func:`spans` of one level."""
    return _U0 if level == 0 else _ALL >> (_U64 - np.uint64(level))


@kernel("UniTuple(uint64, 4)(r_u8)")
def survey(keys: Hashes) -> tuple[Any, Any, Any, Any]:
    """The least and the largest of some keys, all their bits together, and those that all have."""
    least, most, some, every = _ALL, _U0, _U0, _ALL
    for i in range(keys.shape[0]):
        key = keys[i]
        least = min(least, key)
        most = max(most, key)
        some |= key
        every &= key
    return least, most, some, every


@kernel("int64(w_u8, w_f8, int64, w_i4, r_u8, w_f8, w_u8)")
def _look(keys: Hashes, loads: Floats, size: int, places: Any, plan: Hashes, sums: Floats, cells: Hashes) -> int:
    """Add the rows of ranges that are looked at closer to the cells in them; brings them to front, and counts them.

    `sums` and `cells` are one block of memory, four words a cell: the weight, what bits its keys have together, what
    bits all have. A row costs one line of it, and one of the plan.
    """
    kept = 0
    for i in range(size):
        step = plan[places[i]]
        if step == _SETTLED:
            continue
        key, load = keys[i], loads[i]
        at = np.int64(((key >> (step & _U63)) + (step >> _U6)) & _LOW)
        sums[4 * at] += load
        cells[4 * at + 1] |= key
        cells[4 * at + 2] &= key
        keys[kept] = key
        loads[kept] = load
        places[kept] = at
        kept += 1
    return kept


@kernel("UniTuple(int64, 2)(r_f8, r_u8, float64, float64, w_u8, w_u8, w_u1, w_f8)")
def _judge(
    sums: Floats,
    cells: Hashes,
    limit: float,
    least: float,
    plan: Hashes,
    highs: Hashes,
    levels: Bytes,
    loads: Floats,
) -> tuple[int, int]:
    """Make nodes of the cells of one key or of little weight, and plan a closer look at the others.

    Gives the number of nodes, and of the cells of the closer look. The plan has a word for each cell of now: by how
    much a key is shifted, in the last six bits, and what is added, modulo ``2**32``, to find its next cell.
    """
    made, room = 0, np.uint64(0)
    for cell in range(sums.shape[0] // 4):
        plan[cell] = _SETTLED
        load = sums[4 * cell]
        if load == 0.0:
            continue
        some, every = cells[4 * cell + 1], cells[4 * cell + 2]
        level = _width(some ^ every)
        if level == 0 or load <= limit:
            highs[made] = some | _span(level)
            levels[made] = level
            loads[made] = load
            made += 1
            continue
        finer = min(level, min(_FINEST, 2 + _width(np.uint64(load / max(limit, least)))))
        shift = np.uint64(level - finer)
        plan[cell] = ((room - ((every & ~_span(level)) >> shift)) & _LOW) << _U6 | shift
        room += _U1 << np.uint64(finer)
    return made, int(room)


def gather(keys: Hashes, loads: Floats, limit: float) -> Nodes:
    """Sum up rows by key: keys that weigh more than a limit exactly, the others by ranges that weigh no more.

    The leading bits are looked at first, and more of them only where too much weight lies: of most rows one or two
    looks are enough. The nodes do not overlap.

    Args:
        keys: The rows' keys. The array is used for other things afterwards.
        loads: Their weights, above 0. Likewise.
        limit: What a node that is no leaf may weigh.
    """
    if len(keys) >= FEW and alike(keys):
        rows, loads = added_up(keys, loads)
        keys = keys[rows]
    size = len(keys)
    places = np.zeros(size, np.int32)
    found = none()
    sums, cells = _cells(1)
    _, _, cells[1], cells[2] = survey(keys)
    sums[0] = loads.sum()
    least = float(sums[0]) / size  # no use in more ranges than rows
    while True:
        room = len(cells) // 4
        plan, highs = np.empty(room, np.uint64), np.empty(room, np.uint64)
        levels, weights = np.empty(room, np.uint8), np.empty(room)
        made, room = _judge(sums, cells, limit, least, plan, highs, levels, weights)
        found = merge(found, Nodes(highs[:made], levels[:made], weights[:made]))
        if not room:
            return found
        sums, cells = _cells(room)
        size = _look(keys, loads, size, places, plan, sums, cells)


def _cells(count: int) -> tuple[Floats, Hashes]:
    """Empty cells, as doubles and as words."""
    cells = np.zeros(4 * count, np.uint64)
    cells[2::4] = _ALL
    return cells.view(np.float64), cells


@inline
def zip_nodes(
    highs_a: Hashes,
    levels_a: Bytes,
    loads_a: Floats,
    highs_b: Hashes,
    levels_b: Bytes,
    loads_b: Floats,
    highs: Hashes,
    levels: Bytes,
    loads: Floats,
) -> int:
    """Write the nodes of two orderly columns, those of one key and level added; gives their number."""
    a = b = made = 0
    while a < highs_a.shape[0] or b < highs_b.shape[0]:
        first = b == highs_b.shape[0]
        same = False
        if not first and a < highs_a.shape[0]:
            same = highs_a[a] == highs_b[b] and levels_a[a] == levels_b[b]
            first = highs_a[a] < highs_b[b] or (highs_a[a] == highs_b[b] and levels_a[a] <= levels_b[b])
        if first:
            highs[made], levels[made], loads[made] = highs_a[a], levels_a[a], loads_a[a]
            a += 1
        else:
            highs[made], levels[made], loads[made] = highs_b[b], levels_b[b], loads_b[b]
            b += 1
        if same:
            loads[made] += loads_b[b]
            b += 1
        made += 1
    return made


@kernel("int64(r_u8, r_u1, r_f8, r_u8, r_u1, r_f8, w_u8, w_u1, w_f8)")
def _merge(
    highs_a: Hashes,
    levels_a: Bytes,
    loads_a: Floats,
    highs_b: Hashes,
    levels_b: Bytes,
    loads_b: Floats,
    highs: Hashes,
    levels: Bytes,
    loads: Floats,
) -> int:
    return zip_nodes(highs_a, levels_a, loads_a, highs_b, levels_b, loads_b, highs, levels, loads)  # type: ignore[no-any-return]


def merge(mine: Nodes, theirs: Nodes) -> Nodes:
    """The nodes of both, with their weights added."""
    if not len(mine.highs) or not len(theirs.highs):
        return mine if len(mine.highs) else theirs
    room = len(mine.highs) + len(theirs.highs)
    highs, levels, loads = np.empty(room, np.uint64), np.empty(room, np.uint8), np.empty(room)
    made = _merge(*mine, *theirs, highs, levels, loads)
    return Nodes(highs[:made], levels[:made], loads[:made])


@inline
def squeeze(highs: Hashes, levels: Bytes, loads: Floats, size: int, limit: float, stack: Any, joints: Any) -> int:
    """One pass over the nodes, which fill half of the arrays; gives the end of those that it made.

    What has been merged weighs 0 afterwards. On the stack are nodes that may still be merged, each further right than
    the one below it; `joints` has the level at which each meets the one below. Where two meet, or meet a node above
    them, they become one if they weigh no more than the limit together, and are settled otherwise. They meet when the
    first node that is not under their meeting point comes, so new nodes are made in order.
    """
    depth, made = 0, size
    for x in range(size + 1):
        level = 65 if x == size else np.int64(levels[x])
        joint = 65
        while depth > 0:
            t = stack[depth - 1]
            joint = 65 if x == size else max(level, _width(highs[t] ^ highs[x]))
            if depth == 1 or joints[depth - 1] >= joint:
                break
            s = stack[depth - 2]
            depth -= 2
            if loads[s] + loads[t] <= limit:
                highs[made] = highs[t] | _span(joints[depth + 1])
                levels[made] = joints[depth + 1]
                loads[made] = loads[s] + loads[t]
                loads[s] = loads[t] = 0.0
                stack[depth] = made
                made += 1
                depth += 1
        if x == size or (level == 0 and loads[x] > limit):
            continue  # such a leaf can merge with nothing
        if depth > 0 and joint == level:  # one or two are left under it
            bottom = depth - 2 if depth > 1 and joints[depth - 1] == joint else depth - 1
            total = loads[x]
            for d in range(bottom, depth):
                total += loads[stack[d]]
            if total <= limit:
                for d in range(bottom, depth):
                    loads[stack[d]] = 0.0
                loads[x] = total
            depth = bottom
            if depth > 0:
                joint = _width(highs[stack[depth - 1]] ^ highs[x])
        stack[depth] = x
        joints[depth] = joint
        depth += 1
    return made


@kernel("int64(w_u8, w_u1, w_f8, int64, float64, w_i8, w_i8)")
def _compress(highs: Hashes, levels: Bytes, loads: Floats, size: int, limit: float, stack: Any, joints: Any) -> int:
    return squeeze(highs, levels, loads, size, limit, stack, joints)  # type: ignore[no-any-return]


def compress(nodes: Nodes, limit: float) -> Nodes:
    """Move weights up the tree as long as no node that is no leaf weighs more than a limit.

    Fewer than ``4 C / limit + 1`` nodes remain, of the weight `C`. Two nodes stay where they would meet only if they
    and their meeting point weigh more than the limit together. Over all such places, what was settled there adds up to
    `C` at most, since it is settled once, and so does what the meeting points weigh themselves; so there are fewer than
    ``2 C / limit`` of them, with two settled at each. A leaf above the limit has a share of `C` to itself.
    """
    size = len(nodes.highs)
    highs, levels, loads = (np.concatenate([column, np.empty_like(column)]) for column in nodes)
    made = _compress(highs, levels, loads, size, limit, np.empty(size, np.int64), np.empty(size, np.int64))
    keep = loads > 0
    old, new = np.flatnonzero(keep[:size]), size + np.flatnonzero(keep[size:made])
    return merge(*(Nodes(highs[rows], levels[rows], loads[rows]) for rows in (old, new)))


@kernel("boolean(r_u8, r_u1, w_u8)")
def _climb(ups: Hashes, levels: Bytes, highs: Hashes) -> bool:
    at = _U0
    for i in range(ups.shape[0]):
        shift = np.uint64(min(levels[i], 63))
        if ups[i] > (_ALL >> shift) - (at >> shift):
            return False
        at = (((at >> shift) + ups[i]) << shift) | _span(levels[i])
        highs[i] = at
    return True


def steps(nodes: Nodes) -> Hashes:
    """How far each node is from the one before it, in widths of its own: small numbers, where nodes are many."""
    shifts = np.minimum(nodes.levels, 63).astype(np.uint64)
    before = np.concatenate([np.zeros(1, np.uint64), nodes.highs])[:-1]
    return (nodes.highs >> shifts) - (before >> shifts)


def upwards(ups: Hashes, levels: Bytes) -> Hashes:
    """The highest keys of nodes, from what :func:`steps` gave; `CorruptState` where they pass the last key."""
    highs = np.empty(len(ups), np.uint64)
    if not _climb(ups, levels, highs):
        raise CorruptState("a node in the state is beyond all keys")
    return highs
