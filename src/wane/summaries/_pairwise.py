"""Pairwise independent hashes modulo the prime ``2**61 - 1`` (Carter and Wegman), without wider words than 64 bits.

``h(x) = (a x + b) mod p``: of two different integers the hashes are independent and uniform, over the choice of `a` and
`b`. On a range of integers it is an arithmetic progression modulo `p`, which is what makes samples of whole ranges
cheap (:mod:`wane.summaries._range_sample`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wane._jit import inline
from wane.hashing import hash_one

PRIME = 2**61 - 1

_P = np.uint64(PRIME)
_LOW_32, _LOW_29 = np.uint64(2**32 - 1), np.uint64(2**29 - 1)
_U3, _U29, _U32, _U61 = map(np.uint64, (3, 29, 32, 61))


class Hash(NamedTuple):
    """One of the family: ``h(x) = (a x + b) mod PRIME``."""

    a: int
    b: int


def chosen(seed: int, copy: int) -> Hash:
    """The hash of one copy of a sketch: `a` and `b` are drawn by a seed, the same on every machine.

    `a` is not 0: that one choice in 2**61 would give all integers one hash.
    """
    a, b = (hash_one((part, copy), seed) for part in ("a", "b"))
    return Hash(1 + a % (PRIME - 1), b % PRIME)


@inline
def times_plus(a: Any, x: Any, b: Any) -> Any:
    """``(a x + b) mod p`` of unsigned numbers under `p`, from limbs of 32 bits: no product or sum passes 64 bits.

    With ``2**61 = 1`` modulo `p`, the upper limbs count ``2**64 = 8``, and those between ``2**32``.
    """
    a_high, a_low, x_high, x_low = a >> _U32, a & _LOW_32, x >> _U32, x & _LOW_32
    middle = a_high * x_low + a_low * x_high  # under 2**62
    low = a_low * x_low
    total = (a_high * x_high) << _U3  # under 2**61, as is each of the others
    total += (middle >> _U29) + ((middle & _LOW_29) << _U32)
    total += (low & _P) + (low >> _U61)
    total = (total & _P) + (total >> _U61) + b
    total = (total & _P) + (total >> _U61)
    return total - _P if total >= _P else total
