"""Weighing a column of times: fast for sums, which share a power of two a chunk, and exact for any span."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wane.decay.base import Floats, Forward, Frame, Ints, share, split
from wane.decay.forward_decays import NoDecay
from wane.times import SECOND, Ticks

CHUNK = 32768
"""Rows that are weighed at once: their weights stay in the cache between the steps."""

_FAINT = math.ldexp(1.0, -900)
"""Beside a product of this size, what has underflowed is nothing."""


class Weighed(NamedTuple):
    """One chunk of rows, whose weights are ``weights * 2**exponent``; the array is valid until the next chunk."""

    rows: slice
    weights: Floats
    exponent: int


def weigh(
    decay: Forward,
    landmark: int | None,
    size: int,
    times: Ticks | None,
    span: tuple[int, int],
    loads: Floats | None = None,
) -> Iterator[Weighed]:
    """Give the decayed weights of `size` rows, a chunk at a time.

    Args:
        decay: The decay.
        landmark: Where it measures from.
        size: The number of rows.
        times: Their times, none missing; None under no decay.
        span: The oldest and the newest of them.
        loads: Weights of the rows' own, which multiply the decayed ones.
    """
    if not size:
        return  # and `span` means nothing
    if isinstance(decay, NoDecay):
        times = None
    # One frame serves all where it reaches: then a column is measured against a constant.
    shared = None
    buffer = np.ones(min(size, CHUNK))  # one for all chunks: fresh memory for each would cost as much as the weights
    if times is not None and (span[1] - span[0]) / SECOND <= decay.reach:
        shared = _place(decay, landmark, times, span)
    for start in range(0, size, CHUNK):
        rows = slice(start, min(start + CHUNK, size))
        if times is None:
            weights, exponent = buffer[: rows.stop - start], 0
        elif shared is not None:
            values, base, seconds, frame = shared
            weights, exponent = _scaled(decay, values[rows], base, seconds, frame, buffer)
        else:
            chunk = Ticks(times.values[rows], times.unit)
            weights, exponent = _scaled(decay, *_place(decay, landmark, chunk, chunk.span()), buffer)
        if loads is not None:
            own = loads[rows]
            shift = math.frexp(float(own.max()))[1]
            weights, exponent = weights * np.ldexp(own, -shift), exponent + shift
            # Where the newest weigh nothing of their own, the old ones decide.
            if times is not None and weights.max() < _FAINT:
                mantissas, exponents = decay.locate(Ticks(times.values[rows], times.unit), landmark)
                more, powers = split(own)
                weights, exponent = share(mantissas * more, exponents + powers)
        yield Weighed(rows, weights, exponent)


def _place(decay: Forward, landmark: int | None, times: Ticks, span: tuple[int, int]) -> tuple[Ints, int, float, Frame]:
    frame = decay.frame(span[1], landmark)
    values, base, per = times.since(frame.origin, *span)
    return values, base, per / SECOND, frame


def _scaled(
    decay: Forward, values: Ints, base: int, seconds: float, frame: Frame, buffer: Floats
) -> tuple[Floats, int]:
    weights, exponent = decay.fill(values, base, seconds, frame.lag, buffer[: len(values)])
    return weights, exponent + frame.exponent
