"""The rows of the smallest keys: what samples without replacement and the distinct count are made of.

Each row has an identity, a 64-bit hash, that stands for a random number `r`; its key is ``r / w`` for its weight `w`.
The heavier a row, the smaller its key. Kept are the `k` rows of the smallest keys, and the next one, which tells how
likely the others were to be kept. Rows of one identity are one row, that of the smallest key. So what is kept is a
function of the set of rows: neither order, nor repetition, nor the way of merging can change it.

Keys are wide, as weights are: nothing overflows, and a key made a million half-lives ago still compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane._jit import inline, kernel
from wane.decay import Forward
from wane.decay.base import LARGEST_EXPONENT, Floats, Ints
from wane.errors import CorruptState
from wane.hashing import Hashes, hash_column
from wane.summaries._candidates import Wide, candidates, normal, unit
from wane.summaries._tally import slot_of
from wane.summaries.base import Batch

_NARROW = 1000
"""Keys within so many powers of two are doubles of one scale."""

_LN2 = math.log(2)

Take = Callable[[Ints], NDArray[Any]]
"""Gives the items of some rows."""

Keys = Callable[[Hashes, Floats], None]
"""Writes the random number of each hash."""


@kernel("void(r_u8, w_f8)")
def uniform(hashes: Hashes, out: Floats) -> None:
    """Random numbers of the uniform distribution: keys of priority sampling."""
    for i in range(hashes.shape[0]):
        out[i] = unit(hashes[i])


@inline
def _log(x: float) -> float:
    """The natural logarithm by its series, so that it has the same bits on every machine."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2.0
        exponent -= 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = 0.0
    for n in range(23, 0, -2):
        series = series * z + 1.0 / n
    return 2.0 * s * series + exponent * _LN2


@kernel("void(r_u8, w_f8)", fuse=False)
def exponential(hashes: Hashes, out: Floats) -> None:
    """Random numbers of the exponential distribution, each larger than the uniform one of its hash."""
    for i in range(hashes.shape[0]):
        out[i] = -_log(1.0 - unit(hashes[i]))


@kernel("int64(r_u8, r_f8, r_i8, w_i4, w_i8, w_i8)")
def _smallest(hashes: Hashes, mantissas: Floats, exponents: Ints, slots: Any, heads: Ints, winners: Ints) -> int:
    """The row of the smallest key of each identity; `heads` tells each row its identity's place in `winners`."""
    mask = slots.shape[0] - 1
    size = 0
    for i in range(hashes.shape[0]):
        at = slot_of(hashes[i], mask)
        while slots[at] != 0 and hashes[winners[slots[at] - 1]] != hashes[i]:
            at = (at + 1) & mask
        if slots[at] == 0:
            winners[size] = i
            size += 1
            slots[at] = size
        head = slots[at] - 1
        heads[i] = head
        rival = winners[head]
        if exponents[i] < exponents[rival] or (exponents[i] == exponents[rival] and mantissas[i] < mantissas[rival]):
            winners[head] = i
    return size


class Bottom:
    """The rows of the ``k + 1`` smallest keys, smallest first.

    Args:
        k: How many rows are asked for.
        random: Makes the random numbers of hashes: :func:`uniform` or :func:`exponential`.
    """

    def __init__(self, k: int, random: Keys) -> None:
        self.k = k
        self._random = random
        self.hashes = np.empty(0, np.uint64)
        self.weights = Wide(np.empty(0), np.empty(0, np.int64))
        self.keys = self.weights
        self.items: NDArray[Any] = np.empty(0, np.int64)

    def __len__(self) -> int:
        """The number of rows in the sample, of which there are `k` at most."""
        return min(len(self.hashes), self.k)

    def feed(
        self, decay: Forward, landmark: int | None, batch: Batch, hashes_of: Callable[[slice], Hashes], take: Take
    ) -> None:
        """Add the rows of a batch, whose identities and items two functions give."""
        room = max(4 * self.k, 4096)
        for hashes, rows, weights in candidates(decay, landmark, batch, hashes_of, self.threshold, room):
            self.add(hashes, weights, lambda chosen, rows=rows: take(rows[chosen]))  # type: ignore[misc]

    def add(self, hashes: Hashes, weights: Wide, take: Take) -> None:
        """Add rows with their exact weights; rows of weight 0 leave no trace."""
        there = np.flatnonzero(weights.mantissas != 0)
        hashes, weights = hashes[there], weights.take(there)
        mine = len(self.hashes)
        keys = self.keys.joined(self._keys(hashes, weights))
        hashes, weights = np.concatenate([self.hashes, hashes]), self.weights.joined(weights)
        chosen = self._one_each(hashes, keys, lambda rows: self._items(rows, mine, there, take))
        order = chosen[_ascending(keys.take(chosen), hashes[chosen])[: self.k + 1]]
        if mine != len(order) or (order != np.arange(mine)).any():
            self.items = self._items(order, mine, there, take)
            self.hashes, self.weights, self.keys = hashes[order], weights.take(order), keys.take(order)

    def threshold(self) -> tuple[float, int] | None:
        """The smallest key that is not in the sample; None where all rows are."""
        if len(self.hashes) <= self.k:
            return None
        return float(self.keys.mantissas[-1]), int(self.keys.exponents[-1])

    def write(self, writer: serde.Writer, hashes: bool) -> None:
        """Write the state; without `hashes` where they are those of the items."""
        items.write(writer, items.plain(self.items))
        writer.array(self.weights.mantissas).array(self.weights.exponents)
        if hashes:
            writer.array(self.hashes)

    def read(self, reader: serde.Reader, seed: int | None) -> None:
        """Read the state.

        Args:
            reader: Where from.
            seed: The seed of the hashes, where they are those of the items.
        """
        self.items, hashes = items.parse(reader, seed or 0, unique=seed is not None)
        self.weights = Wide(reader.array(np.float64), reader.array(np.int64))
        self.hashes = reader.array(np.uint64) if seed is None else hashes
        mantissas, exponents = self.weights
        if not len(self.items) == len(self.hashes) == len(mantissas) == len(exponents) <= self.k + 1:
            raise CorruptState(f"the state has {len(self.items)} rows, and at most {self.k + 1} of one length fit")
        if not ((mantissas >= 1) & (mantissas < 2) & (abs(exponents // 2) < LARGEST_EXPONENT)).all():
            raise CorruptState("a weight in the state is no wide number")
        self.keys = self._keys(self.hashes, self.weights)
        order = np.lexsort((self.hashes, self.keys.mantissas, self.keys.exponents))
        if (order != np.arange(len(order))).any() or len(np.unique(self.hashes)) != len(order):
            raise CorruptState("the rows in the state are out of order, or there twice")

    def _keys(self, hashes: Hashes, weights: Wide) -> Wide:
        random = np.empty(len(hashes))
        self._random(hashes, random)
        return normal(random / weights.mantissas, -weights.exponents)

    def _one_each(self, hashes: Hashes, keys: Wide, take: Take) -> Ints:
        """The row of the smallest key of each identity; of equal keys, that of the first item in a canonical order."""
        size = len(hashes)
        slots = np.zeros(1 << (2 * size).bit_length(), np.int32)
        heads, winners = np.empty(size, np.int64), np.empty(size, np.int64)
        winners = winners[: _smallest(hashes, *keys, slots, heads, winners)]
        best = winners[heads]
        tied = (keys.exponents == keys.exponents[best]) & (keys.mantissas == keys.mantissas[best])
        rivals = np.flatnonzero(tied & (best != np.arange(size)))
        if len(rivals):
            rows = np.append(rivals, np.unique(best[rivals]))
            rows = rows[_in_order(take(rows), heads[rows])]
            winners[heads[rows[::-1]]] = rows[::-1]  # the first of each is written last
        return winners

    def _items(self, rows: Ints, mine: int, there: Ints, take: Take) -> NDArray[Any]:
        """The items of rows that are numbered through the state and what is added to it."""
        old = rows < mine
        joined = items.join(self.items[rows[old]], take(there[rows[~old] - mine]))
        found = np.empty(len(rows), joined.dtype)
        found[np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])] = joined
        return found


def _ascending(keys: Wide, hashes: Hashes) -> Ints:
    """The order of keys; of equal ones, that of their hashes."""
    powers = keys.exponents - keys.exponents.min(initial=2 * LARGEST_EXPONENT)
    if powers.max(initial=0) < _NARROW:
        numbers = np.ldexp(keys.mantissas, powers.astype(np.int32))
        order = np.argsort(numbers)
        if (numbers[order[1:]] != numbers[order[:-1]]).all():
            return order
    return np.lexsort((hashes, keys.mantissas, keys.exponents))


def _in_order(column: NDArray[Any], groups: Ints) -> Ints:
    """The order of items within groups, which equal items have in whatever form they come.

    Of equal ones the int is before the bool, the float and the negative zero.
    """
    if column.dtype.kind != "O":
        forms = np.signbit(column) if column.dtype.kind == "f" else np.zeros(len(column))
        return np.lexsort((forms, hash_column(column), groups))
    kinds = {int: 0, bool: 1, float: 2}
    forms = np.array([kinds.get(type(item), 0) + (str(item) == "-0.0") for item in column])
    return np.lexsort((forms, hash_column(column.tolist()), groups))
