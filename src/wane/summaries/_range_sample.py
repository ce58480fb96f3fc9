"""RangeSample: how many integers of a range are in a sample, in logarithmic time (Pavan and Tirthapura, 2007).

An integer is in the sample of level `i` if its hash is under ``floor(p / 2**i)``. The hashes of a range of integers are
an arithmetic progression modulo `p`. Followed round the circle, it passes 0 once a round, and what counts is where each
round begins: these places are an arithmetic progression again, modulo the step. So the modulus halves, and so does the
number of terms. The continued fraction behind it also tells, in one walk, the first integer of a range that is in the
sample of each level (:func:`first_hits`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.summaries._pairwise import PRIME, times_plus

Ints = NDArray[np.int64]

_P = np.int64(PRIME)
_FEW = 6
"""So many terms are looked at one by one."""
_HALF_WAY = 25
_EXACT = 2**50
"""A quotient under this is right to 1 in a double."""


def threshold(level: int) -> int:
    """Hashes under this are in the sample of a level."""
    return PRIME >> level


@inline
def _divide(d: Any, n: Any, m: Any) -> Any:
    """Quotient and remainder of ``d n / m``, for ``d < m < 2**61`` and a quotient under ``2**50``.

    The double guesses the quotient to within 1. What it leaves is small, so that 64 bits which wrap around give it.
    """
    quotient = np.int64(np.float64(d) * (np.float64(n) / np.float64(m)))
    rest = d * n - quotient * m
    while rest < 0:
        quotient -= 1
        rest += m
    while rest >= m:
        quotient += 1
        rest -= m
    return quotient, rest


@inline
def _rounds(u: Any, d: Any, n: Any, m: Any) -> Any:
    """Quotient and remainder of ``(u + d n) / m``, for ``u, d < m < 2**61`` and ``n < 2**57``."""
    if n < _EXACT:
        quotient, rest = _divide(d, n, m)
    else:
        upper, rest = _divide(d, n >> _HALF_WAY, m)
        more, rest = _divide(rest, np.int64(1) << _HALF_WAY, m)
        less, lower = _divide(d, n & np.int64((1 << _HALF_WAY) - 1), m)
        quotient = (upper << _HALF_WAY) + more + less
        rest += lower
        if rest >= m:
            quotient += 1
            rest -= m
    rest += u
    return (quotient + 1, rest - m) if rest >= m else (quotient, rest)


@inline
def hits(u: Any, a: Any, n: Any, limit: Any) -> Any:
    """How many of the `n` terms ``(u + a j) mod p`` are under a limit from 0 to `p`, and how many steps that took."""
    m, found, steps = _P, np.int64(0), np.int64(0)
    while True:
        steps += 1
        if n <= _FEW or a == 0:
            if a == 0:
                return found + (n if u < limit else np.int64(0)), steps
            for _ in range(n):
                if u < limit:
                    found += 1
                u += a
                if u >= m:
                    u -= m
            return found, steps
        rounds, end = _rounds(u, a, n - 1, m)
        if a > m - a:  # backwards the step is shorter
            u, end, a = end, u, m - a
            rounds, _ = _rounds(u, a, n - 1, m)
        # Every round begins under `a`. The first is thought to begin there too, and the last to be ended.
        whole = limit // a
        rest = limit - whole * a
        found += whole * (rounds + 1)
        before = u // a
        begin = u - before * a
        top = min(u, limit)
        if begin < top:
            found -= (top - begin - 1) // a + 1
        if end < limit:
            found -= (limit - end - 1) // a
        if rest == 0:
            return found, steps
        u, n, limit = begin, rounds + 1, rest
        over = m % a
        m, a = a, (a - over if over else np.int64(0))


@inline
def first_hits(u: Any, a: Any, n: Any, bottom: Any, top: Any, out: Ints) -> Any:
    """The first of `n` terms ``(u + a j) mod p`` that is in the sample of each level, for as many levels as have one.

    A term under all before it comes a `down` step after another such; the shortest step that lowers by no more than
    there is left comes from the continued fraction of ``a / p``, whose steps down and up are kept as lengths and
    heights.

    Args:
        u: The first term.
        a: The step.
        n: The number of terms.
        bottom: The lowest level that is asked for.
        top: The highest one.
        out: Written: the place of the first hit of each level, from `bottom` on.

    Returns:
        The first level without one.
    """
    level = bottom
    limit = _P >> level
    at = np.int64(0)
    down, fall = np.int64(1), _P - a
    up, rise = np.int64(1), a
    while level <= top:
        if u < limit:
            out[level - bottom] = at
            level += 1
            limit >>= 1
        elif fall <= u:
            times = min(u // fall, (u - limit) // fall + 1)
            if times > (n - 1 - at) // down:
                return level
            at += times * down
            u -= times * fall
        elif down + up > n:  # every step that falls less is longer still
            return level
        elif rise >= fall:
            times = (rise - 1) // fall
            up += times * down
            rise -= times * fall
        else:
            times = min((fall - u + rise - 1) // rise, (fall - 1) // rise)
            down += times * up
            fall -= times * rise
    return level


@kernel("int64(int64, int64, int64, int64, int64, w_i8)")
def range_sample(base: int, size: int, level: int, a: int, b: int, steps: Ints) -> int:
    """How many of the integers from `base` on, `size` of them, are in the sample of a level; the steps it took."""
    if size <= 0:
        return 0
    u = np.int64(times_plus(np.uint64(a), np.uint64(base), np.uint64(b)))
    found: int
    found, steps[0] = hits(u, np.int64(a), np.int64(size), _P >> np.int64(level))
    return found


@kernel("void(r_i8, r_i8, r_i8, int64, int64, w_i8)")
def range_samples(bases: Ints, sizes: Ints, levels: Ints, a: int, b: int, out: Ints) -> None:
    """:func:`range_sample` of many ranges, each at its level."""
    for i in range(bases.shape[0]):
        out[i] = 0
        if sizes[i] > 0:
            u = np.int64(times_plus(np.uint64(a), np.uint64(bases[i]), np.uint64(b)))
            out[i], _ = hits(u, np.int64(a), sizes[i], _P >> levels[i])


@kernel("int64(int64, int64, int64, int64, int64, w_i8)")
def first_samples(base: int, size: int, bottom: int, a: int, b: int, out: Ints) -> int:
    """:func:`first_hits` of the integers from `base` on, `size` of them, up to as many levels as `out` has room for."""
    u = np.int64(times_plus(np.uint64(a), np.uint64(base), np.uint64(b)))
    top = bottom + out.shape[0] - 1
    found: int = first_hits(u, np.int64(a), np.int64(size), np.int64(bottom), np.int64(top), out) - bottom
    return found
