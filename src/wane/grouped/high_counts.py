"""High-level parts for heavy hitters: sums of sketches, sketches filled directly, and adaptive ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from wane._jit import kernel
from wane.decay.base import Floats, Ints
from wane.grouped.arrays import grown
from wane.grouped.strategies import Flushed, HighPart, Powers, aligned, brought
from wane.hashing import Hashes
from wane.summaries._cells import Layout
from wane.summaries._tally import slot_of
from wane.summaries.count_min import CountMinHierarchy


class _Sketches(HighPart):
    """Sketches of groups, in one array.

    Args:
        parameters: Those of the :class:`~wane.CountMinHierarchy` that each group becomes; ids have up to 64 bits.
    """

    _exact = 0

    def __init__(self, **parameters: Any) -> None:
        self._make = parameters | {"exact": self._exact}
        empty = CountMinHierarchy(**self._make)
        self.layout = Layout(empty.levels, empty.width, empty.depth, empty.seed)
        self._bits = empty.bits
        self._cells = np.zeros(0)
        self._powers = Powers(0)

    @property
    def nbytes(self) -> int:
        """About the memory that all groups take."""
        return int(self._cells.nbytes)

    def take(self, groups: Ints, flushed: Flushed) -> None:
        """Add what was flushed, from scratchpads of these groups."""
        self._grow(int(groups.max(initial=-1)) + 1)
        raised, by, gaps = self._powers.meet(groups, flushed.exponents)
        if len(raised):
            self._rescale(raised, by)
        self._add(groups, gaps, flushed)

    def summary(self, group: int) -> CountMinHierarchy:
        """The summary of a group; it does not know how many rows that has seen."""
        made = CountMinHierarchy(**self._make)
        if group < len(self._powers.each):
            made.take_cells(self._sketch(group), int(self._powers.each[group]))
        return made

    def _add(self, groups: Ints, gaps: Ints, flushed: Flushed) -> None:
        raise NotImplementedError

    def _aligned(self, ids: Hashes) -> Hashes:
        return aligned(ids, self._bits)

    def _grow(self, groups: int) -> None:
        if groups > len(self._powers.each):
            self._powers.grow(groups)
            self._cells = grown(self._cells, groups * self.layout.size)

    def _rescale(self, groups: Ints, by: Ints) -> None:
        cells = self._cells[: len(self._powers.each) * self.layout.size].reshape(-1, self.layout.size)
        cells[groups] = np.ldexp(cells[groups], by.astype(np.int32)[:, None])

    def _sketch(self, group: int) -> Floats:
        return self._cells[group * self.layout.size :][: self.layout.size]


class SumOfSketches(_Sketches):
    """Adds up sketches of the low level, counter by counter."""

    def _add(self, groups: Ints, gaps: Ints, flushed: Flushed) -> None:
        size = self.layout.size
        theirs = flushed.columns[0].reshape(-1, size)
        theirs = np.ldexp(theirs, np.maximum(gaps, -3000).astype(np.int32)[:, None]) if gaps.any() else theirs
        np.add.at(self._cells[: len(self._powers.each) * size].reshape(-1, size), groups, theirs)


class Direct(_Sketches):
    """Adds pairs of id and weight to the sketch of their group."""

    def _add(self, groups: Ints, gaps: Ints, flushed: Flushed) -> None:
        owners = flushed.owners
        ids, weights = flushed.columns
        self.layout.add_to(groups[owners], self._aligned(ids), brought(weights, gaps[owners]), self._cells)


@kernel("int64(r_i8, r_u8, r_f8, int64, int64, w_u8, w_f8, w_i8, r_i8, w_i8)")
def _pair(
    groups: Ints,
    items: Hashes,
    weights: Floats,
    first: int,
    exact: int,
    ids: Hashes,
    sums: Floats,
    used: Ints,
    sketches: Ints,
    beyond: Ints,
) -> int:
    """Add pairs to the lists of their groups; gives the row where one is full, or the end.

    The rows of groups that have a sketch already are listed in `beyond`, whose last place counts them.
    """
    room = ids.shape[0] // used.shape[0]
    for row in range(first, groups.shape[0]):
        group, item = groups[row], items[row]
        if weights[row] == 0.0:
            continue
        if sketches[group] >= 0:
            beyond[beyond[-1]] = row
            beyond[-1] += 1
            continue
        place = slot_of(item, room - 1)
        while ids[group * room + place] != item and sums[group * room + place] >= 0.0:
            place = (place + 1) & (room - 1)
        at = group * room + place
        if sums[at] < 0.0:
            if used[group] == exact:
                return row
            used[group] += 1
            ids[at], sums[at] = item, 0.0
        sums[at] += weights[row]
    end: int = groups.shape[0]
    return end


class Adaptive(_Sketches):
    """Keeps exact pairs for a group until it has too many distinct ids, and has a sketch from then on.

    Args:
        exact: How many distinct ids are kept: 64, 128 or 256.
        parameters: Those of the sketches.
    """

    def __init__(self, exact: int = 64, **parameters: Any) -> None:
        self._exact = exact
        super().__init__(**parameters)
        self._room = 1 << (2 * exact - 1).bit_length()  # at most half of the places are taken
        self._used = np.zeros(0, np.int64)
        self._ids = np.zeros(0, np.uint64)
        self._sums = np.zeros(0)  # -1 where there is none
        self._sketches = np.zeros(0, np.int64)  # the place of each group's sketch, or -1
        self._made = 0

    @property
    def nbytes(self) -> int:
        """About the memory that all groups take: 8 bytes an id and 8 a weight, or a sketch."""
        return int(self._ids.nbytes + self._sums.nbytes + self._cells.nbytes)

    def summary(self, group: int) -> CountMinHierarchy:
        """The summary of a group; it does not know how many rows that has seen."""
        if group < len(self._used) and self._sketches[group] >= 0:
            return super().summary(group)
        made = CountMinHierarchy(**self._make)
        if group < len(self._used):
            ids, sums = self._pairs(group)
            made.take_pairs(ids, sums, int(self._powers.each[group]))
        return made

    def _add(self, groups: Ints, gaps: Ints, flushed: Flushed) -> None:
        owners = flushed.owners
        owner_groups, ids = groups[owners], flushed.columns[0]
        weights = brought(flushed.columns[1], gaps[owners])
        beyond = np.zeros(len(ids) + 1, np.int64)
        row = 0
        while row < len(ids):
            row = _pair(
                owner_groups, ids, weights, row, self._exact, self._ids, self._sums, self._used, self._sketches, beyond
            )
            if row < len(ids):
                self._spread(int(owner_groups[row]))
        rows = beyond[: beyond[-1]]
        self.layout.add_to(self._sketches[owner_groups[rows]], self._aligned(ids[rows]), weights[rows], self._cells)

    def _spread(self, group: int) -> None:
        """Make the sketch of a group from its pairs."""
        ids, sums = self._pairs(group)
        self._sketches[group] = self._made
        self._made += 1
        self._cells = grown(self._cells, self._made * self.layout.size)
        self.layout.add_to(np.full(len(ids), self._sketches[group]), self._aligned(ids), sums, self._cells)

    def _pairs(self, group: int) -> tuple[Hashes, Floats]:
        rows = slice(group * self._room, (group + 1) * self._room)
        ids, sums = self._ids[rows], self._sums[rows]
        return ids[sums >= 0], sums[sums >= 0]

    def _grow(self, groups: int) -> None:
        before = len(self._used)
        if groups > before:
            self._powers.grow(groups)
            self._used = np.append(self._used, np.zeros(groups - before, np.int64))
            self._sketches = np.append(self._sketches, np.full(groups - before, -1, np.int64))
            self._ids = grown(self._ids, groups * self._room)
            held = len(self._sums)
            self._sums = grown(self._sums, groups * self._room)
            self._sums[held:] = -1.0
            self._ids, self._sums = self._ids[: groups * self._room], self._sums[: groups * self._room]

    def _rescale(self, groups: Ints, by: Ints) -> None:
        sums = self._sums.reshape(-1, self._room)
        there = sums[groups] >= 0
        sums[groups] = np.where(there, np.ldexp(sums[groups], by.astype(np.int32)[:, None]), -1.0)
        spread = self._sketches[groups] >= 0
        if spread.any():
            cells = self._cells[: self._made * self.layout.size].reshape(-1, self.layout.size)
            places = self._sketches[groups[spread]]
            cells[places] = np.ldexp(cells[places], by[spread].astype(np.int32)[:, None])

    def _sketch(self, group: int) -> Floats:
        place = int(self._sketches[group])
        return self._cells[place * self.layout.size :][: self.layout.size]
