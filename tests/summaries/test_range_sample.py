"""RangeSample and its companions, against counting one by one and against sums of floors in whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wane._jit import DISABLED
from wane.summaries._pairwise import PRIME, Hash, chosen, times_plus
from wane.summaries._range_sample import first_samples, range_sample, range_samples

LEVELS = 58


def strange_steps(rng: np.random.Generator) -> int:
    """Steps that are tiny, nearly the modulus, near simple fractions of it, or anything."""
    fraction = PRIME * int(rng.integers(1, 9)) // int(rng.integers(9, 17))
    near = int(2 ** rng.uniform(0, 30))
    return [near, PRIME - near, (fraction + near) % PRIME or 1, int(rng.integers(1, PRIME))][int(rng.integers(4))]


def floor_sum(n: int, m: int, a: int, b: int) -> int:
    """The sum of ``(a j + b) // m`` for j under n."""
    found = 0
    while n:
        found += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        n, b, m, a = (a * n + b) // m, (a * n + b) % m, a, m
    return found


def counted(base: int, size: int, level: int, by: Hash) -> int:
    first = (by.a * base + by.b) % PRIME
    limit = PRIME >> level
    return floor_sum(size, PRIME, by.a, first + PRIME) - floor_sum(size, PRIME, by.a, first + PRIME - limit)


def test_limbs_multiply_like_whole_numbers() -> None:
    rng = np.random.default_rng(1)
    ends = [0, 1, 2**29 - 1, 2**29, 2**32 - 1, 2**32, 2**57 - 1, 2**60, PRIME - 2, PRIME - 1]
    some = rng.integers(0, PRIME, 60).tolist()
    for a in ends + some:
        for x in ends + some:
            b = int(rng.integers(0, PRIME))
            assert int(times_plus(np.uint64(a), np.uint64(x), np.uint64(b))) == (a * x + b) % PRIME


def test_it_is_the_naive_count_on_100_000_random_ranges() -> None:
    rng = np.random.default_rng(2)
    ranges = 2_000 if DISABLED else 100_000
    sizes = np.floor(2 ** rng.uniform(0, 6, ranges)).astype(np.int64)
    bases = rng.integers(0, 2**57 - 64, ranges)
    levels = rng.integers(0, 9, ranges)
    rows = np.array_split(np.arange(ranges), 100)
    for part in rows:  # a hundred hashes
        by = Hash(strange_steps(rng), int(rng.integers(0, PRIME)))
        found = np.empty(len(part), np.int64)
        range_samples(bases[part], sizes[part], levels[part], *by, found)
        for row, count in zip(part.tolist(), found.tolist(), strict=True):
            base, limit = int(bases[row]), PRIME >> int(levels[row])
            naive = sum((by.a * x + by.b) % PRIME < limit for x in range(base, base + int(sizes[row])))
            assert count == naive, (base, sizes[row], levels[row], by)


def test_it_is_the_sum_of_floors_on_ranges_of_any_size() -> None:
    rng = np.random.default_rng(3)
    steps = np.zeros(1, np.int64)
    for _ in range(500 if DISABLED else 20_000):
        by = Hash(strange_steps(rng), int(rng.integers(0, PRIME)))
        size = int(2 ** rng.uniform(0, 57))
        base, level = int(rng.integers(0, 2**57 - size + 1)), int(rng.integers(0, LEVELS))
        assert range_sample(base, size, level, *by, steps) == counted(base, size, level, by), (base, size, level, by)
    for size in (0, 1, 2**57):
        assert range_sample(0, size, 3, *by, steps) == counted(0, size, 3, by)


def test_it_costs_the_logarithm_of_the_size() -> None:
    """Every step at least halves what is left but two."""
    rng = np.random.default_rng(4)
    steps = np.zeros(1, np.int64)
    most: dict[int, int] = {}
    for _ in range(300 if DISABLED else 30_000):
        by = Hash(strange_steps(rng), int(rng.integers(0, PRIME)))
        bits = int(rng.integers(0, 58))
        size = min(2**bits + int(rng.integers(0, 2**bits)), 2**57)
        range_sample(int(rng.integers(0, 2**57 - size + 1)), size, int(rng.integers(0, 30)), *by, steps)
        most[bits] = max(most.get(bits, 0), int(steps[0]))
    assert all(taken <= max(1, bits) for bits, taken in most.items()), most
    assert max(most.values()) > 15  # else nothing was hard


def test_first_hits_are_first() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60 if DISABLED else 1_500):
        by = Hash(strange_steps(rng), int(rng.integers(0, PRIME)))
        size, base = int(2 ** rng.uniform(0, 9)), int(rng.integers(0, 2**56))
        bottom = int(rng.integers(0, 4))
        hashes = [(by.a * x + by.b) % PRIME for x in range(base, base + size)]
        out = np.zeros(LEVELS - bottom, np.int64)
        found = first_samples(base, size, bottom, *by, out)
        wanted = [next((i for i, h in enumerate(hashes) if h < PRIME >> level), None) for level in range(LEVELS)]
        assert out[:found].tolist() == [at for at in wanted[bottom:] if at is not None]


def test_first_hits_in_ranges_too_long_to_look_through() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60 if DISABLED else 3_000):
        by = Hash(strange_steps(rng), int(rng.integers(0, PRIME)))
        size = int(2 ** rng.uniform(9, 57))
        base = int(rng.integers(0, 2**57 - size + 1))
        out = np.zeros(LEVELS, np.int64)
        found = first_samples(base, size, 0, *by, out)
        for level, at in enumerate(out[:found].tolist()):
            assert (by.a * (base + at) + by.b) % PRIME < PRIME >> level
            assert counted(base, at, level, by) == 0
        if found < LEVELS:
            assert counted(base, size, int(found), by) == 0


def test_hashes_are_drawn_by_seed_and_copy() -> None:
    drawn = {chosen(seed, copy) for seed in range(20) for copy in range(5)}
    assert len(drawn) == 100
    assert all(1 <= by.a < PRIME and 0 <= by.b < PRIME for by in drawn)
    assert chosen(0, 0) == Hash(*GOLDEN)


GOLDEN = (685447193973677360, 2074831186701151428)
"""The first hash, which stored states depend on."""


def test_hashes_of_two_integers_are_independent() -> None:
    """Over many draws a pair falls into each cell of a grid as often as chance says (five standard errors)."""
    cells = np.zeros((4, 4))
    draws = 400 if DISABLED else 4_000
    for seed in range(draws):
        by = chosen(seed, 1)
        x, y = ((by.a * n + by.b) % PRIME * 4 // PRIME for n in (12345, 12346))
        cells[x, y] += 1
    assert np.abs(cells - draws / 16).max() < 5 * math.sqrt(draws / 16)


@pytest.mark.parametrize("level", [0, 1, 57])
def test_thresholds_are_nested_shares_of_the_prime(level: int) -> None:
    assert PRIME >> level == PRIME // 2**level
