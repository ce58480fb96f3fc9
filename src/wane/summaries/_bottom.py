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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane._jit import inline, kernel
from wane.decay import Forward
from wane.decay.base import LARGEST_EXPONENT, Floats, Ints
from wane.errors import CorruptState
from wane.hashing import Hashes, hash_column
from wane.summaries._candidates import Wide, candidates, doubles, normal, unit
from wane.summaries._tally import slot_of
from wane.summaries.base import Batch

_NARROW = 1000
"""Keys within so many powers of two are doubles of one scale."""

_LN2 = math.log(2)

_FAINT = 1e-200
"""The exponential of a number under this is 1."""

Take = Callable[[Ints], NDArray[Any]]
"""Gives the items of some rows."""


class Interval(NamedTuple):
    """Where the true answer lies, with the confidence that was asked for."""

    low: float
    high: float


class Ranks(NamedTuple):
    """A distribution of random numbers `r`.

    Attributes:
        random: Writes the random number of each hash.
        stand: What a row of weight `w` stands for where every key under ``1 / least`` was kept: its weight over the
            odds that ``r / w`` is such a key. That has no bias (Cohen and Kaplan, Summarizing data using bottom-k
            sketches, 2007; for uniform numbers it is priority sampling's).
    """

    random: Callable[[Hashes, Floats], None]
    stand: Callable[[Floats, float], Floats]


@kernel("void(r_u8, w_f8)")
def uniform(hashes: Hashes, out: Floats) -> None:
    """Random numbers of the uniform distribution: keys of priority sampling."""
    for i in range(hashes.shape[0]):
        out[i] = unit(hashes[i])


@inline
def log(x: float) -> float:
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
        out[i] = -log(1.0 - unit(hashes[i]))


def _over_exponential_odds(weights: Floats, least: float) -> Floats:
    """``w / (1 - exp(-w / least))``, which is `least` for the smallest weights."""
    if not least:
        return weights
    shares = np.maximum(weights / least, _FAINT)
    return np.asarray(least * shares / -np.expm1(-shares))


UNIFORM = Ranks(uniform, np.maximum)
EXPONENTIAL = Ranks(exponential, _over_exponential_odds)


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
        ranks: The distribution of the random numbers: :data:`UNIFORM` or :data:`EXPONENTIAL`.
    """

    def __init__(self, k: int, ranks: Ranks) -> None:
        self.k = k
        self._ranks = ranks
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
        chosen = one_each(hashes, keys, lambda rows: spliced(self.items, rows, there, take))
        order = chosen[_ascending(keys.take(chosen), hashes[chosen])[: self.k + 1]]
        if mine != len(order) or (order != np.arange(mine)).any():
            self.items = spliced(self.items, order, there, take)
            self.hashes, self.weights, self.keys = hashes[order], weights.take(order), keys.take(order)

    def threshold(self) -> tuple[float, int] | None:
        """The smallest key that is not in the sample; None where all rows are."""
        if len(self.hashes) <= self.k:
            return None
        return float(self.keys.mantissas[-1]), int(self.keys.exponents[-1])

    def represented(self) -> Represented:
        """What the sample stands for."""
        sampled = slice(len(self))
        limit = self.threshold()
        one = normal(np.array([1.0 if limit is None else 1 / limit[0]]), np.array([0 if limit is None else -limit[1]]))
        (weights, (least,)), exponent = doubles(self.weights.take(sampled), one)
        least = 0.0 if limit is None else float(least)
        stands = self._ranks.stand(weights, least)
        return Represented(self.items[sampled].tolist(), weights, stands, least, exponent)

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
        self.weights = read_weights(reader)
        self.hashes = reader.array(np.uint64) if seed is None else hashes
        if not len(self.items) == len(self.hashes) == len(self.weights.mantissas) <= self.k + 1:
            raise CorruptState(f"the state has {len(self.items)} rows, and at most {self.k + 1} of one length fit")
        self.keys = self._keys(self.hashes, self.weights)
        order = np.lexsort((self.hashes, self.keys.mantissas, self.keys.exponents))
        if (order != np.arange(len(order))).any() or len(np.unique(self.hashes)) != len(order):
            raise CorruptState("the rows in the state are out of order, or there twice")

    def _keys(self, hashes: Hashes, weights: Wide) -> Wide:
        random = np.empty(len(hashes))
        self._ranks.random(hashes, random)
        return normal(random / weights.mantissas, -weights.exponents)


def one_each(hashes: Hashes, keys: Wide, take: Take) -> Ints:
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


def spliced(mine: NDArray[Any], rows: Ints, there: Ints, take: Take) -> NDArray[Any]:
    """The items of rows that are numbered through some of a state and then those at `there`, which `take` gives."""
    old = rows < len(mine)
    joined = items.join(mine[rows[old]], take(there[rows[~old] - len(mine)]))
    found = np.empty(len(rows), joined.dtype)
    found[np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])] = joined
    return found


def read_weights(reader: serde.Reader) -> Wide:
    """Weights above 0 from a state, checked."""
    mantissas, exponents = Wide(reader.array(np.float64), reader.array(np.int64))
    usable = len(mantissas) == len(exponents) and (mantissas >= 1) & (mantissas < 2)
    if not (np.all(usable) and (abs(exponents // 2) < LARGEST_EXPONENT).all()):
        raise CorruptState("a weight in the state is no wide number")
    return Wide(mantissas, exponents)


class Represented(NamedTuple):
    """A sample and what it stands for; weights are relative to ``2**exponent``.

    Attributes:
        items: The items.
        weights: Their own weights.
        stands: What each of them stands for.
        least: What a row of the least weight would stand for; 0 where no row is missing.
        exponent: The power of two.
    """

    items: list[Any]
    weights: Floats
    stands: Floats
    least: float
    exponent: int

    def part(self, where: Callable[[Any], Any] | None) -> Represented:
        """Those rows for whose item a function gives true."""
        if where is None:
            return self
        chosen = np.array([bool(where(item)) for item in self.items], np.bool_)
        items = [item for item, there in zip(self.items, chosen.tolist(), strict=True) if there]
        return self._replace(items=items, weights=self.weights[chosen], stands=self.stands[chosen])

    def estimate(self) -> float:
        """The sum of weights that it stands for, without bias."""
        return math.fsum(self.stands)

    def variance(self) -> float:
        """That of the estimate, without bias: ``s (s - w)`` is what a row that stands for `s` adds to it."""
        return math.fsum(self.stands * (self.stands - self.weights))

    def interval(self, z: float) -> tuple[float, float]:
        """The score interval: the Poisson distribution's where nothing was found, the normal one's where much was.

        Args:
            z: Its half-width in standard deviations.
        """
        known, middle = math.fsum(self.weights), self.estimate()
        half = z * math.sqrt(self.variance() + (self.least * z) ** 2 / 4)
        centre = middle + self.least * z**2 / 2
        return min(max(known, centre - half), middle), centre + half


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
