"""Which rows of a batch may matter to a sample: those whose random number is small for their weight.

A row's key is ``r / w``, `r` the random number that its identity's hash stands for and `w` its weight; small keys
matter. Nearly all rows are ruled out by their hash and the heaviest weight in their chunk, before any weight of their
own is known. Those that are left are weighed in bulk, as doubles that share a power of two and may be off in the last
digits, to find the heaviest row of each identity. What remains of these is weighed exactly, each row by itself
(:meth:`wane.decay.Forward.locate`): so what a sample keeps depends on no batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wane._jit import inline, kernel
from wane.decay import Forward, Landmark, NoDecay
from wane.decay.base import Floats, Ints, share, split
from wane.decay.weigh import weigh
from wane.hashing import Hashes
from wane.summaries._tally import slot_of
from wane.summaries.base import Batch
from wane.times import Ticks

_SLACK = 1e-12
"""How far weights in bulk may be from the exact ones, relatively."""

_ROUGH = 1 + 1e-9
"""What makes a bound safe against all rounding."""

_FAINT = 1e-290
"""A weight in bulk under this may have lost digits, and is no ground for a decision."""

_STRIDE = 65536
"""Rows that are sifted at once: their hashes stay in the cache."""

_MOST = 800
"""Beside a limit of this power of two no row is ruled out."""

_TWELVE = np.uint64(12)


@inline
def unit(word: Any) -> float:
    """A random number above 0 and under 1 from the upper bits of a hash, exactly."""
    return (np.float64(np.int64(word >> _TWELVE)) + 0.5) * 2.0**-52


@kernel("int64(r_u8, r_i8, r_f8, r_i8, float64, w_i4, w_u8, w_i8, w_f8, w_i8)")
def _gather(
    hashes: Hashes,
    places: Ints,
    weights: Floats,
    ticks: Ints,
    slack: float,
    slots: Any,
    known: Hashes,
    rows: Ints,
    best: Floats,
    filled: Ints,
) -> int:
    """Collect the heaviest row of each identity until the room is used up; gives the number of rows dealt with.

    Two that weigh the same as far as weights in bulk can tell are both collected, unless they come at the same time.
    """
    mask = slots.shape[0] - 1
    size = filled[0]
    for i in range(hashes.shape[0]):
        if size == rows.shape[0]:
            filled[0] = size
            return i
        key, weight = hashes[i], weights[i]
        entry = -1
        if weight >= _FAINT:
            at = slot_of(key, mask)
            while slots[at] != 0 and known[slots[at] - 1] != key:
                at = (at + 1) & mask
            if slots[at] == 0:
                slots[at] = size + 1
            else:
                entry = slots[at] - 1
                if weight < best[entry] * (1.0 - slack):
                    continue
                if weight <= best[entry] * (1.0 + slack):
                    same = ticks.shape[0] > 0 and ticks[places[i]] == ticks[rows[entry]]
                    if slack == 0.0 or same:
                        continue
                    entry = -1
        if entry < 0:
            entry = size
            size += 1
        known[entry] = key
        rows[entry] = places[i]
        best[entry] = weight
    filled[0] = size
    read: int = hashes.shape[0]
    return read


class Wide(NamedTuple):
    """Wide numbers, as :meth:`wane.decay.Forward.wide` gives them."""

    mantissas: Floats
    exponents: Ints

    def take(self, chosen: Any) -> Wide:
        """Some of them."""
        return Wide(self.mantissas[chosen], self.exponents[chosen])

    def joined(self, other: Wide) -> Wide:
        """Both, one after the other."""
        return Wide(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def normal(mantissas: Floats, exponents: Ints) -> Wide:
    """Wide numbers with mantissas in [1, 2)."""
    found, extra = split(mantissas)
    return Wide(found, np.where(found == 0, extra, exponents + extra))


def exact_weights(decay: Forward, landmark: int | None, batch: Batch, rows: Ints) -> Wide:
    """The weights of some rows of a batch, each of which depends on its own row alone."""
    weights = Wide(np.ones(len(rows)), np.zeros(len(rows), np.int64))
    if batch.times is not None and not isinstance(decay, NoDecay):
        weights = Wide(*decay.locate(Ticks(batch.times.values[rows], batch.times.unit), landmark))
    if batch.weights is not None:
        mantissas, exponents = split(batch.weights[rows])
        weights = normal(weights.mantissas * mantissas, weights.exponents + exponents)
    return weights


class Candidates(NamedTuple):
    """Some rows of a batch: their hashes, their places in it, and their exact weights."""

    hashes: Hashes
    rows: Ints
    weights: Wide


def candidates(
    decay: Forward,
    landmark: int | None,
    batch: Batch,
    hashes_of: Callable[[slice], Hashes],
    limit: Callable[[], tuple[float, int] | None],
    room: int,
) -> Iterator[Candidates]:
    """Give the rows of a batch whose keys may be under a limit, `room` of them at a time.

    Args:
        decay: The decay.
        landmark: Where it measures from.
        batch: The rows.
        hashes_of: Gives the identities of a slice of rows.
        limit: Gives the limit, a wide number, or None where there is none yet; it may fall while rows are given.
        room: How many are given at a time.
    """
    found = _Table(min(room, max(batch.size, 1)), decay, batch)
    power = 0

    def exact() -> Iterator[Candidates]:
        hashes, rows = found.empty()
        if len(rows):
            yield Candidates(hashes, rows, exact_weights(decay, landmark, batch, rows))

    stop, stride = 0, room  # a few rows first: they set a limit for the others
    while stop < batch.size:
        start, stop = stop, min(stop + stride, batch.size)
        chunk, stride = slice(start, stop), min(2 * stride, max(_STRIDE, room))
        hashes = hashes_of(chunk)
        places = _sift(decay, landmark, batch, chunk, hashes, limit())
        for part, weights, exponent in _weigh(decay, landmark, batch, places):
            if exponent != power:  # weights in bulk are compared, so that they must share it
                yield from exact()
            power, at = exponent, part.start
            while at < part.stop:
                rest = slice(at, part.stop)
                at += found.add(hashes[places[rest] - start], places[rest], weights[at - part.start :])
                if at < part.stop:
                    yield from exact()
    yield from exact()


def _sift(
    decay: Forward, landmark: int | None, batch: Batch, chunk: slice, hashes: Hashes, limit: tuple[float, int] | None
) -> Ints:
    """The rows of a chunk that are not ruled out by their hash, their own weight and the newest time."""
    top, power = 1.0, 0
    if batch.times is not None and not isinstance(decay, NoDecay):
        top, power = decay.at(Ticks(batch.times.values[chunk], batch.times.unit).span()[1], landmark)
    if limit is None or limit[1] + power > _MOST:
        return np.arange(chunk.start, chunk.stop)
    most = math.ldexp(limit[0] * top * _ROUGH, max(limit[1] + power, -1000) + 64)
    if batch.weights is None:
        few = hashes <= np.uint64(min(int(most) + 4096, 2**64 - 1))
    else:
        with np.errstate(over="ignore"):
            few = hashes <= batch.weights[chunk] * most + 4096.0
    found: Ints = np.flatnonzero(few) + chunk.start
    return found


def _weigh(decay: Forward, landmark: int | None, batch: Batch, places: Ints) -> Iterator[tuple[slice, Floats, int]]:
    """The weights of some rows, in bulk."""
    times = None if batch.times is None else Ticks(batch.times.values[places], batch.times.unit)
    loads = None if batch.weights is None else batch.weights[places]
    yield from weigh(decay, landmark, len(places), times, batch.span, loads)


class _Table:
    """Rows of one batch, one for each identity, but for those that only exact weights can tell apart."""

    def __init__(self, room: int, decay: Forward, batch: Batch) -> None:
        self._slots = np.zeros(1 << (2 * room).bit_length(), np.int32)  # at most half full
        self._known = np.empty(room, np.uint64)
        self._rows = np.empty(room, np.int64)
        self._best = np.empty(room)
        self._filled = np.zeros(1, np.int64)
        self._slack = 0.0 if isinstance(decay, (NoDecay, Landmark)) else _SLACK
        alike = batch.times is not None and batch.weights is None  # where the time is the same, so is the weight
        self._ticks = batch.times.values if alike and batch.times is not None else np.empty(0, np.int64)

    def add(self, hashes: Hashes, places: Ints, weights: Floats) -> int:
        """Add rows until the room is used up; gives their number."""
        table = (self._slots, self._known, self._rows, self._best, self._filled)
        return int(_gather(hashes, places, weights, self._ticks, self._slack, *table))

    def empty(self) -> tuple[Hashes, Ints]:
        """Give the hashes and places of the rows, and forget them."""
        size = int(self._filled[0])
        self._filled[0] = 0
        self._slots[:] = 0
        return self._known[:size].copy(), self._rows[:size].copy()


def doubles(*parts: Wide) -> tuple[list[Floats], int]:
    """Several columns of wide numbers as doubles that share one power of two."""
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.joined(part)
    numbers, exponent = share(*joined)
    return np.split(numbers, np.cumsum([len(part.mantissas) for part in parts[:-1]])), exponent
