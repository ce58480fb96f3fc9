"""When the last sampled integer of an element goes: its expiry, by binary search over ages.

Under a decay fixed ahead an element of weight `w` has ``floor(w scale f(age))`` integers, from the first of its range
on. At a level where the first of them that is sampled is the one numbered `d`, it expires at the first age where `d` or
fewer are left. A table of ages narrows the search before it begins, so that nearly all elements that are gone anyway
are told by a look at it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline
from wane.decay import Backward, NoDecay, SlidingWindow
from wane.decay.base import Floats, Ints
from wane.times import SECOND

NEVER = -(2**63)
"""Before all times."""

FOREVER = 2**63 - 1
"""The expiry of what does not expire, which is after all times."""

_LAST = 62
"""Ages from ``2**62`` nanoseconds on, 146 years, are not looked at: what lives so long does not expire."""

_GRID = 2048

_CELLS = 12
"""Bits of the number of cells: a look at one costs no search."""


class Expiry:
    """The ages at which elements expire under one decay.

    Args:
        decay: The decay.
        heaviest: The largest number of integers an element can have.

    Attributes:
        ages: Some ages in nanoseconds, the first of them 0.
        shares: The decay at these.
        cells: The decay at whole multiples of ``2**shift`` nanoseconds, for a first look.
    """

    def __init__(self, decay: Backward, heaviest: int) -> None:
        self._decay = decay
        powers = 2 ** np.arange(_LAST + 1)
        over = np.flatnonzero(heaviest * self.share(powers) < 1)
        last = int(powers[over[0]]) if len(over) else int(powers[-1])
        grid = np.concatenate([np.linspace(0, last, _GRID), np.geomspace(1, last, _GRID)]).astype(np.int64)
        self.ages = np.unique(np.append(grid.clip(0, last), [0, last]))
        self.shares = np.minimum.accumulate(self.share(self.ages))
        self.shift = max(0, last.bit_length() - _CELLS)
        self.cells = np.minimum.accumulate(self.share(np.arange((last >> self.shift) + 1) << self.shift))

    def share(self, ages: NDArray[Any]) -> Floats:
        """The decay at ages in nanoseconds, whole numbers of 64 bits with a sign or without."""
        if isinstance(self._decay, SlidingWindow):
            return (ages < self._decay.length).astype(np.float64)
        if isinstance(self._decay, NoDecay):
            return np.ones(len(ages))
        return self._decay.of_age(np.ascontiguousarray(ages / SECOND))

    def search(self, loads: Floats, hits: Ints, places: Ints) -> Ints:
        """The first ages at which ``floor(load f(age))`` is `hit` or less.

        Args:
            loads: What the weights are without decay.
            hits: The numbers of the first integers that are sampled.
            places: Places in the table, as :func:`place` gives them.
        """
        endless = places == len(self.ages)
        above = np.where(endless, 1, places)
        low, high = self.ages[above - 1], self.ages[above]
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            gone = loads * self.share(middle) < hits + 1
            low, high = np.where(gone, low, middle), np.where(gone, middle, high)
        return np.where(endless, FOREVER, high)


@inline
def place(load: float, hit: int, shares: Floats) -> int:
    """The first place in the table of ages where at most `hit` integers are left; its length where more always are."""
    low, high = 0, shares.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if load * shares[middle] < hit + 1:
            high = middle
        else:
            low = middle + 1
    return low
