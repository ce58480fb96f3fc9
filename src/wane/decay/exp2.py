"""Powers of two of a whole column, in vector registers: the one transcendental function on every hot path.

``2**x = 2**n * 2**r`` with `n` the nearest int and `r` in [-1/2, 1/2]. Adding 1.5 * 2^52 leaves `n` in the low bits
of the sum, from where a shift moves it into the exponent; `2**r` is its Taylor series, whose 14th term is under half
a unit in the last place. The result is within 1.5 units in the last place.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from wane._jit import bits, from_bits, inline, kernel


def _series(terms: int) -> tuple[float, ...]:
    """``ln(2)**k / k!``, each rounded once."""
    with localcontext() as context:
        context.prec = 40
        ln2 = Decimal(2).ln()
        return tuple(float(ln2**k / math.factorial(k)) for k in range(terms))


_C = _series(14)
_ROUND = 6755399441055744.0  # 1.5 * 2**52
_SMALLEST = -1021.0  # below it a double is no longer normal: what is that small counts as 0


@inline
def exp2(x: float) -> float:
    """``2**x`` for x up to 1023, and 0 for x under -1021."""
    shifted = x + _ROUND
    r = x - (shifted - _ROUND)
    p = _C[13]
    p = p * r + _C[12]
    p = p * r + _C[11]
    p = p * r + _C[10]
    p = p * r + _C[9]
    p = p * r + _C[8]
    p = p * r + _C[7]
    p = p * r + _C[6]
    p = p * r + _C[5]
    p = p * r + _C[4]
    p = p * r + _C[3]
    p = p * r + _C[2]
    p = p * r + _C[1]
    p = p * r + 1.0
    power: float = from_bits(bits(p) + (bits(shifted) << np.int64(52)))
    return power if x >= _SMALLEST else 0.0


@kernel("void(r_f8, float64, float64, w_f8)")
def raise_two(ages: NDArray[np.float64], scale: float, lag: float, out: NDArray[np.float64]) -> None:
    """``2**(ages * scale - lag)``; `out` may be `ages`."""
    for i in range(ages.shape[0]):
        out[i] = exp2(ages[i] * scale - lag)


@kernel("void(r_i8, int64, float64, float64, w_f8)")
def raise_two_ticks(values: NDArray[np.int64], base: int, scale: float, lag: float, out: NDArray[np.float64]) -> None:
    """``2**((values - base) * scale - lag)``.

    Four streams at once: the processor fetches ahead in each of them, and a column that is not in the cache costs a
    third of what it costs in one.
    """
    quarter = values.shape[0] // 4
    for i in range(quarter):
        j, k, m = i + quarter, i + 2 * quarter, i + 3 * quarter
        out[i] = exp2((values[i] - base) * scale - lag)
        out[j] = exp2((values[j] - base) * scale - lag)
        out[k] = exp2((values[k] - base) * scale - lag)
        out[m] = exp2((values[m] - base) * scale - lag)
    for i in range(4 * quarter, values.shape[0]):
        out[i] = exp2((values[i] - base) * scale - lag)
