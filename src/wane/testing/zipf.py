"""Skewed ids in shapes that sketches of frequencies find hard, for loops over many seeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def id_shapes(seed: int, size: int = 3000) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Seeded columns of ids under ``2**32`` by name: the shapes that frequencies come in.

    Args:
        seed: Chooses the random numbers.
        size: The number of ids in each.
    """
    rng = np.random.default_rng([seed, size, 7])
    names = rng.permutation(2**20)[:2000] * 4093
    for skew in (0.8, 1.2, 2.0):
        odds = np.arange(1, 2001) ** -skew
        yield f"zipf {skew}", names[rng.choice(2000, size, p=odds / odds.sum())]
    yield "uniform", rng.integers(0, 2**32, size)
    yield "sorted", np.sort(rng.integers(0, 500, size))
    yield "reversed", np.sort(rng.integers(0, 500, size))[::-1].copy()
    yield "one item", np.full(size, int(rng.integers(0, 2**32)))
    yield "each once", rng.permutation(size) * 2**10
    yield "one prefix", (10 << 24) + rng.integers(0, 2**24, size)
