"""Approximate membership: which items are in the window."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane.errors import BadParameter
from wane.hashing import hash_one
from wane.monoids.base import PAPER, Monoid
from wane.registry import MonoidSpec

Words = NDArray[np.uint64]


class Filter:
    """The answer of a :class:`Bloom` window: ``item in answer``."""

    def __init__(self, words: Words, bloom: Bloom) -> None:
        self._words = words
        self._bloom = bloom

    def __contains__(self, item: object) -> bool:
        """Whether an item may be there; if not, it is not."""
        return all(int(self._words[place >> 6]) >> (place & 63) & 1 for place in self._bloom.places(item))

    @property
    def false_positives(self) -> float:
        """The odds that an item which is not there seems to be: the share of set bits, to the number of hashes."""
        share = int(np.bitwise_count(self._words).sum()) / self._bloom.bits
        return float(share**self._bloom.hashes)


class Bloom(Monoid):
    """Which items are there: no false negatives, false positives with the odds that the answer tells.

    With `bits` m and `hashes` k over n distinct items, the odds of a false positive are about
    ``(1 - exp(-k n / m)) ** k``.

    Args:
        bits: The size, a multiple of 64; by default the paper's 2^14.
        hashes: How many bits an item sets.
        seed: The seed of the hashes.

    >>> import wane
    >>> w = wane.DABA("bloom")
    >>> w.insert("a")
    >>> w.insert("b")
    >>> w.evict()
    >>> "b" in w.query(), "a" in w.query()
    (True, False)
    """

    def __init__(self, bits: Any = 2**14, hashes: Any = 4, seed: int = 0) -> None:
        if not isinstance(bits, int) or bits < 64 or bits % 64:
            raise BadParameter(f"bits must be a multiple of 64, got {bits!r}; 2**14 keeps a thousand items apart")
        if not isinstance(hashes, int) or not 1 <= hashes <= 64:
            raise BadParameter(f"hashes must be from 1 to 64, got {hashes!r}")
        self.bits, self.hashes, self.seed = bits, hashes, seed
        self.identity = np.zeros(bits // 64, np.uint64)
        self.lift = self._lift
        self.lower = self._lower

    @staticmethod
    def combine(a: Words, b: Words) -> Words:
        """All bits of both."""
        both: Words = a | b
        return both

    def places(self, item: Any) -> list[int]:
        """The bits that an item sets: double hashing, with an odd step."""
        hashed = hash_one(item, self.seed)
        step = hashed >> 32 | 1
        return [(hashed + i * step) % self.bits for i in range(self.hashes)]

    def _lift(self, item: Any) -> Words:
        words: Words = np.zeros_like(self.identity)
        for place in self.places(item):
            words[place >> 6] |= np.uint64(1 << (place & 63))
        return words

    def _lower(self, words: Words) -> Filter:
        return Filter(words, self)


Bloom.SPEC = MonoidSpec(
    name="bloom",
    make=Bloom,
    title="which items are there, approximately",
    guarantee="no false negatives; a false positive with odds (1 - exp(-k n / m))^k",
    space="m bits an item",
    time="m / 64 words",
    paper=f"{PAPER}, Table 1; Bloom (1970)",
    has=frozenset({"commutative", "idempotent"}),
    items="any",
    native=False,
)
