"""The nodes of the q-digests of many groups in one piece of memory: the algorithm of :mod:`wane.summaries.q_digest`.

A group has a stretch (:mod:`wane.grouped.arena`) of nodes: first those that are *settled*, in order, no two alike, and
after them the rows that came since, each a leaf. A row costs one write; when the stretch is full it is settled, which
sorts the rows and adds up equal ones. A group of more than ``1 / epsilon`` nodes is then compressed as well, and a
stretch that is still half full doubles. So a group of few values is exact and takes tens of bytes, and no row costs a
call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.grouped.arena import CAPACITY, END, FIRST, FREE, SIZE, START, cursor, give, reserved, take
from wane.grouped.arrays import grown
from wane.grouped.moments_pool import plus, power_of_two
from wane.grouped.slab import mixed
from wane.hashing import Hashes
from wane.summaries._nodes import Bytes, squeeze, zip_nodes
from wane.summaries._ordered import float_key

TOTAL, LOST = range(2)
"""What is known of a group in floats: the sum of weights, and what its rounding lost."""

_HOT = 1 << 14
"""Nodes whose place is remembered."""

_SHORT = 24
"""So many rows and nodes are sorted where they are."""

_HALF = np.uint64(32)
_ALL = np.uint64(2**64 - 1)
_NODE_BYTES = 17


class Rule(NamedTuple):
    """What the nodes of a group obey.

    Attributes:
        share: The part of the group's weight that a node which is no leaf may weigh.
        few: So many nodes are not compressed.
        most: More nodes than compressing leaves in any case.
    """

    share: float
    few: int
    most: int


@inline
def _rescale(meta: Ints, sums: Floats, loads: Floats, group: int, exponent: int) -> float:
    """Bring a group to the larger of two powers of two; gives the factor for weights at `exponent`."""
    if exponent > meta[group * 5 + 4] or sums[group * 2] == 0.0:
        factor = power_of_two(min(meta[group * 5 + 4] - exponent, 0))
        sums[group * 2] *= factor
        sums[group * 2 + 1] *= factor
        start = meta[group * 5]
        for i in range(start, start + meta[group * 5 + 1]):
            loads[i] *= factor
        meta[group * 5 + 4] = exponent
        return 1.0
    scale: float = power_of_two(exponent - meta[group * 5 + 4])
    return scale


@inline
def _insert(highs: Hashes, loads: Floats, levels: Bytes, start: int, size: int, settled: int) -> int:
    """Settle a few rows where they are; gives the number of nodes."""
    left = settled
    for i in range(start + settled, start + size):
        key = highs[i]
        load = loads[i]
        at = start + left
        while at > start and highs[at - 1] > key:
            at -= 1
        before = at  # nodes of this key, if any, lie right before here, the leaf first of them
        while before > start and highs[before - 1] == key:
            before -= 1
        if before < at and levels[before] == 0:
            loads[before] += load
            continue
        for j in range(start + left, before, -1):
            highs[j] = highs[j - 1]
            loads[j] = loads[j - 1]
            levels[j] = levels[j - 1]
        highs[before] = key
        loads[before] = load
        levels[before] = 0
        left += 1
    return left


@inline
def _sort(highs: Hashes, loads: Floats, levels: Bytes, start: int, size: int, settled: int) -> int:
    """Settle many rows; gives the number of nodes."""
    tail = start + settled
    order = np.argsort(highs[tail : start + size])
    keys = np.empty(len(order), np.uint64)
    weights = np.empty(len(order))
    rows = 0
    for i in range(len(order)):
        key = highs[tail + order[i]]
        if rows > 0 and keys[rows - 1] == key:
            weights[rows - 1] += loads[tail + order[i]]
        else:
            keys[rows] = key
            weights[rows] = loads[tail + order[i]]
            rows += 1
    old_highs = highs[start:tail].copy()
    old_levels = levels[start:tail].copy()
    old_loads = loads[start:tail].copy()
    return zip_nodes(  # type: ignore[no-any-return]
        old_highs,
        old_levels,
        old_loads,
        keys[:rows],
        np.zeros(rows, np.uint8),
        weights[:rows],
        highs[start : start + size],
        levels[start : start + size],
        loads[start : start + size],
    )


@inline
def _shrink(highs: Hashes, loads: Floats, levels: Bytes, start: int, size: int, limit: float) -> int:
    """Compress the nodes of a group; gives their number."""
    work_highs = np.empty(2 * size, np.uint64)
    work_levels = np.empty(2 * size, np.uint8)
    work_loads = np.zeros(2 * size)
    work_highs[:size] = highs[start : start + size]
    work_levels[:size] = levels[start : start + size]
    work_loads[:size] = loads[start : start + size]
    made = squeeze(work_highs, work_levels, work_loads, size, limit, np.empty(size, np.int64), np.empty(size, np.int64))
    ends = np.zeros(2, np.int64)
    for part in range(2):  # first what was there, then what was made, each brought together
        begin = size * part
        end = size if part == 0 else made
        left = begin
        for i in range(begin, end):
            if work_loads[i] > 0.0:
                work_highs[left] = work_highs[i]
                work_levels[left] = work_levels[i]
                work_loads[left] = work_loads[i]
                left += 1
        ends[part] = left
    return zip_nodes(  # type: ignore[no-any-return]
        work_highs[: ends[0]],
        work_levels[: ends[0]],
        work_loads[: ends[0]],
        work_highs[size : ends[1]],
        work_levels[size : ends[1]],
        work_loads[size : ends[1]],
        highs[start : start + size],
        levels[start : start + size],
        loads[start : start + size],
    )


@inline
def _settle(
    meta: Ints, sums: Floats, highs: Hashes, loads: Floats, levels: Bytes, group: int, share: float, few: int, most: int
) -> None:
    """Bring the nodes of a group in order, and compress them where they are many."""
    start = meta[group * 5]
    size = meta[group * 5 + 1]
    settled = meta[group * 5 + 2]
    if settled < size:
        if size <= _SHORT:
            size = _insert(highs, loads, levels, start, size, settled)
        else:
            size = _sort(highs, loads, levels, start, size, settled)
    if size > few and (2 * size > meta[group * 5 + 3] or size > most):
        size = _shrink(highs, loads, levels, start, size, share * sums[group * 2])
    meta[group * 5 + 1] = size
    meta[group * 5 + 2] = size


@inline
def _widen(meta: Ints, highs: Hashes, loads: Floats, levels: Bytes, group: int, capacity: int, ints: Ints) -> bool:
    """Give a group more room; false where there is none left."""
    end = take(ints, highs, capacity)
    if end < 0:
        return False
    start = meta[group * 5]
    for i in range(meta[group * 5 + 1]):
        highs[end + i] = highs[start + i]
        loads[end + i] = loads[start + i]
        levels[end + i] = levels[start + i]
    give(ints, highs, start, meta[group * 5 + 3])
    meta[group * 5] = end
    meta[group * 5 + 3] = capacity
    return True


@kernel(
    "int64(w_i8, w_f8, w_u8, w_u8, w_f8, w_u1, w_i8, w_i8, float64, int64, int64, int64, r_i8, r_f8, r_i8, r_f8)",
)
def _append(
    meta: Ints,
    sums: Floats,
    ends: Hashes,
    highs: Hashes,
    loads: Floats,
    levels: Bytes,
    ints: Ints,
    hot: Ints,
    share: float,
    few: int,
    most: int,
    first: int,
    ids: Ints,
    weights: Floats,
    powers: Ints,
    values: Floats,
) -> int:
    """Append rows to their groups; gives the row at which the memory is used up, or their number.

    Where a value was put last is remembered in `hot`, as for items (:mod:`wane.grouped.slab`).
    """
    hot_mask = hot.shape[0] - 1
    for row in range(first, ids.shape[0]):
        weight = weights[row]
        if weight == 0.0:
            continue
        group = ids[row]
        at = group * 5
        key = float_key(values[row])
        if powers[row] != meta[at + 4] or sums[group * 2] == 0.0:
            weight *= _rescale(meta, sums, loads, group, powers[row])
        seen = np.int64(mixed(np.int64(key) ^ (group << 40)) >> _HALF) & hot_mask
        place = hot[seen]
        if place >= meta[at] and place < meta[at] + meta[at + 1] and highs[place] == key and levels[place] == 0:
            loads[place] += weight
            plus(sums, group * 2, weight)
            continue
        if meta[at + 1] == meta[at + 3]:
            _settle(meta, sums, highs, loads, levels, group, share, few, most)
            capacity = meta[at + 3]
            if 2 * meta[at + 1] >= capacity and not _widen(
                meta, highs, loads, levels, group, max(FIRST, 2 * capacity), ints
            ):
                return row
        if sums[group * 2] == 0.0:
            ends[2 * group] = key
            ends[2 * group + 1] = key
        ends[2 * group] = min(ends[2 * group], key)
        ends[2 * group + 1] = max(ends[2 * group + 1], key)
        place = meta[at] + meta[at + 1]
        hot[seen] = place
        highs[place] = key
        loads[place] = weight
        levels[place] = 0
        meta[at + 1] += 1
        plus(sums, group * 2, weight)
    rows: int = ids.shape[0]
    return rows


@kernel(
    "int64(w_i8, w_f8, w_u8, w_u8, w_f8, w_u1, w_i8, float64, int64, int64, int64, r_i8, r_i8, r_f8, r_u8, r_i8, r_u8, "
    "r_f8, r_u1)",
)
def _merge(
    meta: Ints,
    sums: Floats,
    ends: Hashes,
    highs: Hashes,
    loads: Floats,
    levels: Bytes,
    ints: Ints,
    share: float,
    few: int,
    most: int,
    first: int,
    ids: Ints,
    powers: Ints,
    their_sums: Floats,
    their_ends: Hashes,
    offsets: Ints,
    their_highs: Hashes,
    their_loads: Floats,
    their_levels: Bytes,
) -> int:
    """Merge settled nodes into groups; gives the partial at which the memory is used up, or their number."""
    for row in range(first, ids.shape[0]):
        if their_sums[row * 2] == 0.0:
            continue
        group = ids[row]
        at = group * 5
        begin = offsets[row]
        coming = offsets[row + 1] - begin
        _settle(meta, sums, highs, loads, levels, group, share, few, most)
        size = meta[at + 1]
        if size + coming > meta[at + 3]:
            capacity = max(FIRST, meta[at + 3])
            while capacity < size + coming:
                capacity *= 2
            if not _widen(meta, highs, loads, levels, group, capacity, ints):
                return row
        if sums[group * 2] == 0.0:
            ends[2 * group] = _ALL
            ends[2 * group + 1] = np.uint64(0)
        scale = 1.0
        if powers[row] != meta[at + 4] or sums[group * 2] == 0.0:
            scale = _rescale(meta, sums, loads, group, powers[row])
        start = meta[at]
        room = start + size + coming
        size = zip_nodes(
            highs[start : start + size].copy(),
            levels[start : start + size].copy(),
            loads[start : start + size].copy(),
            their_highs[begin : begin + coming],
            their_levels[begin : begin + coming],
            their_loads[begin : begin + coming] * scale,
            highs[start:room],
            levels[start:room],
            loads[start:room],
        )
        meta[at + 1] = size
        meta[at + 2] = size
        plus(sums, group * 2, their_sums[row * 2] * scale)
        sums[group * 2 + 1] += their_sums[row * 2 + 1] * scale
        ends[2 * group] = min(ends[2 * group], their_ends[2 * row])
        ends[2 * group + 1] = max(ends[2 * group + 1], their_ends[2 * row + 1])
        if size > most:
            _settle(meta, sums, highs, loads, levels, group, share, few, most)
    rows: int = ids.shape[0]
    return rows


@kernel("void(w_i8, w_f8, w_u8, w_f8, w_u1, float64, int64, int64, r_i8)")
def _settle_all(
    meta: Ints,
    sums: Floats,
    highs: Hashes,
    loads: Floats,
    levels: Bytes,
    share: float,
    few: int,
    most: int,
    groups: Ints,
) -> None:
    """Settle some groups."""
    for i in range(groups.shape[0]):
        _settle(meta, sums, highs, loads, levels, groups[i], share, few, most)


@kernel("void(w_i8, w_f8, w_u8, w_i8, r_i8)")
def _clear(meta: Ints, sums: Floats, highs: Hashes, ints: Ints, groups: Ints) -> None:
    """Forget some groups."""
    for i in range(groups.shape[0]):
        at = groups[i] * 5
        give(ints, highs, meta[at], meta[at + 3])
        meta[at : at + 5] = 0
        sums[groups[i] * 2 : groups[i] * 2 + 2] = 0.0


@kernel(
    "void(r_i8, r_i8, r_i8, r_u8, w_u8)", "void(r_i8, r_i8, r_i8, r_f8, w_f8)", "void(r_i8, r_i8, r_i8, r_u1, w_u1)"
)
def _gather(meta: Ints, groups: Ints, offsets: Ints, column: Any, out: Any) -> None:
    """Copy one column of the nodes of some groups, one group after the other."""
    for i in range(groups.shape[0]):
        start = meta[groups[i] * 5]
        for j in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + j] = column[start + j]


@kernel("void(r_i8, r_u8, r_f8, r_u1, r_u8, r_f8, w_u8)")
def _find(offsets: Ints, highs: Hashes, loads: Floats, levels: Bytes, ends: Hashes, phis: Floats, out: Hashes) -> None:
    """The keys of some ranks in each group that has nodes: half of what is at a node counts from its lowest key on."""
    for group in range(offsets.shape[0] - 1):
        begin = offsets[group]
        size = offsets[group + 1] - begin
        if size == 0:
            continue
        leaves = True
        for i in range(begin, begin + size):
            leaves = leaves and levels[i] == 0
        places = highs[begin : begin + size].copy()
        steps = loads[begin : begin + size].copy()
        if not leaves:
            places = np.empty(2 * size, np.uint64)
            steps = np.empty(2 * size)
            for i in range(size):
                level = np.uint64(levels[begin + i])
                span = np.uint64(0) if level == 0 else _ALL >> (np.uint64(64) - level)
                places[i] = highs[begin + i] & ~span
                places[size + i] = highs[begin + i]
                steps[i] = loads[begin + i] / 2
                steps[size + i] = loads[begin + i] / 2
            order = np.argsort(places)
            places = places[order]
            steps = steps[order]
        for i in range(1, len(steps)):
            steps[i] += steps[i - 1]
        for j in range(phis.shape[0]):
            wanted = phis[j] * (steps[-1] * (1 - 1e-15))
            at = min(np.searchsorted(steps, wanted), len(places) - 1)
            key = min(max(places[at], ends[2 * group]), ends[2 * group + 1])
            out[group * phis.shape[0] + j] = key


class GroupedNodes(NamedTuple):
    """The nodes of some groups, one group after the other, each group's in order.

    Attributes:
        offsets: Where each group's begin, and where the last one's end.
        highs: The highest key under each.
        loads: Their weights.
        levels: Their levels.
    """

    offsets: Ints
    highs: Hashes
    loads: Floats
    levels: Bytes

    def quantiles(self, phis: Floats, ends: Hashes) -> Hashes:
        """The keys of some ranks in each group; where there are no nodes they mean nothing."""
        found = np.zeros((len(self.offsets) - 1) * len(phis), np.uint64)
        _find(self.offsets, self.highs, self.loads, self.levels, ends, phis, found)
        return found

    @property
    def exact(self) -> NDArray[np.bool_]:
        """The groups of which no two values have been put together."""
        upto = np.concatenate([[0], np.cumsum(self.levels != 0)])
        found: NDArray[np.bool_] = upto[self.offsets[1:]] == upto[self.offsets[:-1]]
        return found


class DigestSlab:
    """The nodes of all groups.

    Args:
        rule: What they obey.
        budget: Bytes that they may take, which are reserved; None for no bound.
    """

    def __init__(self, rule: Rule, budget: int | None = None) -> None:
        self._rule = rule
        self.meta = np.zeros(0, np.int64)
        self.sums = np.zeros(0)
        self.ends = np.zeros(0, np.uint64)
        self._reserve(4096 if budget is None else budget // _NODE_BYTES + 4096)
        self._ints = cursor()
        self._hot = np.full(_HOT, -1, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that the groups take."""
        return self.meta.nbytes + self.sums.nbytes + self.ends.nbytes + _NODE_BYTES * int(self._ints[END])

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        self.meta, self.sums = grown(self.meta, groups * 5), grown(self.sums, groups * 2)
        self.ends = grown(self.ends, groups * 2)

    def append(self, ids: Ints, weights: Floats, powers: Ints, values: Floats) -> None:
        """Add rows, with weights ``weights * 2**powers``."""
        done = 0
        while done < len(ids):
            done = _append(
                self.meta, self.sums, self.ends, *self._nodes, self._ints, self._hot, *self._rule,
                done, ids, weights, powers, values,
            )  # fmt: skip
            if done < len(ids):
                self._make_room()

    def merge(self, ids: Ints, powers: Ints, sums: Floats, ends: Hashes, nodes: GroupedNodes) -> None:
        """Merge settled states of groups: their sums and ends, two a row, and their nodes."""
        done = 0
        while done < len(ids):
            done = _merge(
                self.meta, self.sums, self.ends, *self._nodes, self._ints, *self._rule,
                done, ids, powers, sums, ends, *nodes,
            )  # fmt: skip
            if done < len(ids):
                self._make_room(int(np.diff(nodes.offsets).max()))

    def nodes(self, groups: Ints) -> GroupedNodes:
        """The nodes of some groups, settled."""
        _settle_all(self.meta, self.sums, *self._nodes, *self._rule, groups)
        sizes = self.meta.reshape(-1, 5)[groups, SIZE]
        return self._gathered(groups, np.concatenate([[0], np.cumsum(sizes)]), int(sizes.sum()))

    def clear(self, groups: Ints) -> None:
        """Forget some groups."""
        _clear(self.meta, self.sums, self._nodes[0], self._ints, groups)

    def _gathered(self, groups: Ints, offsets: Ints, size: int) -> GroupedNodes:
        made = GroupedNodes(offsets, np.empty(size, np.uint64), np.empty(size), np.empty(size, np.uint8))
        for column, out in zip(self._nodes, made[1:], strict=True):
            _gather(self.meta, groups, offsets, column, out)
        return made

    def _reserve(self, size: int) -> None:
        kinds = np.uint64, np.float64, np.uint8
        self._nodes: tuple[Any, ...] = tuple(reserved(size, kind) for kind in kinds)

    def _make_room(self, more: int = 0) -> None:
        """Move the stretches together, into memory that is at least half free then."""
        meta = self.meta.reshape(-1, 5)
        offsets = np.concatenate([[0], np.cumsum(meta[:, CAPACITY])])
        live = int(offsets[-1])
        kept = self._gathered(np.arange(len(meta)), offsets, live)
        self._reserve(max(2 * live, len(self._nodes[0])) + 2 * (self._rule.most + more) + 4096)
        for mine, column in zip(self._nodes, kept[1:], strict=True):
            mine[:live] = column
        meta[:, START] = offsets[:-1]
        self._ints[END] = live
        self._ints[FREE:] = 0
