"""Greenwald-Khanna: ranks within epsilon n over many streams and merges, the size, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import wane
from wane import GreenwaldKhanna, fn
from wane._jit import DISABLED
from wane.errors import BadParameter, CorruptState, Unsupported
from wane.summaries._tuples import Tuples, compress, merge, thinned

ROWS = 800 if DISABLED else 6000
PHIS = np.array([0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1])


def shapes(seed: int) -> list[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    # New values always fall where the summary knows least, between the two tuples in the middle.
    towards = np.cumsum(np.where(rng.integers(0, 2, ROWS) > 0, 1, -1) * np.exp2(-np.arange(ROWS) / 40))
    alternate = np.where(np.arange(ROWS) % 2, np.arange(ROWS), -np.arange(ROWS)).astype(float)
    return [
        *((f"zipf {s}", np.minimum(np.floor(rng.pareto(s, ROWS)), 1e9)) for s in (0.8, 1.2, 2.0)),
        ("uniform", rng.uniform(-1, 1, ROWS)),
        ("sorted", np.sort(rng.normal(0, 1, ROWS))),
        ("reversed", np.sort(rng.normal(0, 1, ROWS))[::-1].copy()),
        ("one value", np.full(ROWS, rng.normal())),
        ("two values", rng.integers(0, 2, ROWS).astype(float)),
        ("inwards", towards),
        ("outwards", alternate),
    ]


def rank_error(found: np.ndarray, data: np.ndarray) -> float:
    """How far values are from the ranks that were asked for, as a share of the number of values."""
    ordered = np.sort(data)
    below, upto = (np.searchsorted(ordered, found, side) / len(data) for side in ("left", "right"))
    return float(np.maximum(np.maximum(below - PHIS, PHIS - upto), 0).max())


def check(one: GreenwaldKhanna, data: np.ndarray, rng: np.random.Generator, note: str) -> None:
    epsilon = one.epsilon
    assert one.count() == len(data)
    gains, slacks = one._tuples.gains, one._tuples.slacks
    assert (gains + slacks).max() <= max(math.floor(2 * epsilon * len(data)), 1), note
    assert rank_error(one.quantiles(PHIS), data) <= epsilon + 1e-9, note
    probes = np.append(rng.choice(data, 30), [data.min(), data.max(), data.min() - 1, data.max() + 1])
    exact = np.searchsorted(np.sort(data), probes, "right")
    assert np.abs(one.rank(probes) - exact).max() <= epsilon * len(data) + 1e-9, note
    ordered = np.sort(data)
    least = np.cumsum(gains)
    values = one._domain.values(one._tuples.keys)
    # The bounds themselves: the value's own places in the sorted data meet them.
    assert (np.searchsorted(ordered, values, "left") + 1 <= least + slacks).all(), note
    assert (np.searchsorted(ordered, values, "right") >= least).all(), note


def judge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    every = shapes(seed)
    name, data = every[seed % len(every)]
    epsilon = (0.01, 0.05, 0.2)[seed % 3]
    at_once = GreenwaldKhanna(epsilon).update(data)
    pieces = GreenwaldKhanna(epsilon)
    cuts = np.sort(rng.integers(0, len(data), int(rng.integers(1, 60))))
    for part in np.split(data, cuts):
        pieces.update(part)
    hands = [GreenwaldKhanna(epsilon) for _ in range(int(rng.integers(2, 9)))]
    for part in np.array_split(rng.permutation(len(data)), 40):
        hands[int(rng.integers(len(hands)))].update(data[part])
    while len(hands) > 1:
        a, b = hands.pop(int(rng.integers(len(hands)))), hands.pop()
        hands.append(GreenwaldKhanna.from_bytes(a.to_bytes()).merge(b))
    for way, one in (("at once", at_once), ("in pieces", pieces), ("merged", hands[0])):
        check(one, data, rng, f"{name} {way}")
        assert one.tuples <= 4 / epsilon, (name, way, one.tuples * epsilon)


@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_within_epsilon(seed):
    judge(seed)


@pytest.mark.slow
def test_ranks_are_within_epsilon_over_many_streams():
    for seed in range(1000, 1300):
        judge(seed)


def test_a_chain_of_uneven_merges_keeps_the_bound():
    rng = np.random.default_rng(5)
    seen, one = [], GreenwaldKhanna(0.05)
    for i in range(200):
        data = rng.integers(0, 30, int(rng.integers(1, 4))) * 1.0 if i % 3 else rng.normal(i % 7, 2, 300)
        seen.append(data)
        other = GreenwaldKhanna(0.05).update(data)
        one = other.merge(one) if i % 2 else one.merge(other)
    check(one, np.concatenate(seen), rng, "chain")
    assert one.tuples <= 4 / 0.05


def test_many_summaries_of_one_value_each():
    """Their tuples stand for all of them, which is more than 2 epsilon n: equal ones must not be piled up."""
    rng = np.random.default_rng(6)
    data = rng.integers(0, 2, 1000).astype(float)
    one = GreenwaldKhanna(0.01)
    for value in data:
        one.merge(GreenwaldKhanna(0.01).update([value]))
    check(one, data, rng, "ones")


def test_the_size_as_measured():
    rng = np.random.default_rng(1)
    size = 5_000 if DISABLED else 200_000
    for data in (rng.normal(100, 15, size), np.minimum(rng.zipf(1.5, size), 10**6) * 1.0, np.arange(size) * 1.0):
        one = GreenwaldKhanna(0.01)
        for part in np.array_split(data, 50):
            one.merge(GreenwaldKhanna(0.01).update(part))
        assert one.tuples <= 4 / 0.01
        assert len(one.to_bytes()) <= GreenwaldKhanna.SPEC.state_bytes({"epsilon": 0.01})


def test_few_values_are_exact():
    data = np.array([5.0, -3.0, 5.0, 1e100, -0.0, 0.0, 5e-324, 2.5])
    one = GreenwaldKhanna(0.01).update(data)
    for k, value in enumerate(np.sort(data)):
        assert one.quantile((k + 1) / 8) == value
        assert one.rank(value) == (data <= value).sum()


def test_whole_numbers_of_64_bits_are_told_apart():
    data = [0, 1, 2**53, 2**53 + 1, 2**63, 2**64 - 2, 2**64 - 1]
    one = GreenwaldKhanna(0.01, bits=64).update(data)
    assert one.quantiles([(k + 1) / 7 for k in range(7)]).tolist() == data
    assert one.rank([2**53, 2**64 - 2]).tolist() == [3.0, 6.0]
    assert GreenwaldKhanna(0.01, bits=8).update([0, 255, 256, -1]).dropped == {"value": 2}


def test_a_landmark_leaves_out_what_is_at_it():
    one = GreenwaldKhanna(0.1, "landmark", 100).update([1.0, 2.0, 3.0], [100, 101, 102])
    assert (one.count(), one.quantile(0.0), one.rows) == (2.0, 2.0, 3)


def test_other_decays_and_weights_are_refused_with_a_name():
    for decay in ("exp(half_life=1m)", "poly(2)", wane.decay.pinned("backward poly(1)", now=100)):
        with pytest.raises(Unsupported, match="use QDigest"):
            GreenwaldKhanna(0.1, decay, 0)
    for weights in ([1.0], [math.inf], [math.nan], [-1.0], [0.0], [1e-300]):
        with pytest.raises(Unsupported, match=r"counts each row once, and weights were given.*use QDigest"):
            GreenwaldKhanna().update([1.0], weights=weights)
    with pytest.raises(BadParameter, match="epsilon must be a number"):
        GreenwaldKhanna(0)


def test_bounds_from_outside_are_checked():
    rng = np.random.default_rng(3)
    one = GreenwaldKhanna(0.05).update(rng.normal(0, 1, 2000))
    keys, gains, slacks = one._tuples
    heavy = gains.copy()
    heavy[5] += 500
    for forged in (
        Tuples(keys[::-1].copy(), gains, slacks),
        Tuples(keys, heavy, slacks),
        Tuples(keys, gains, slacks + 1),
        Tuples(keys, np.where(np.arange(len(keys)) == 3, 0, gains), slacks),
    ):
        one._tuples = forged
        with pytest.raises(CorruptState):
            GreenwaldKhanna.from_bytes(one.to_bytes())


def test_figure_1():
    """Two summaries by hand: what is between the other's tuples takes over how little is known there."""
    low = Tuples(*(np.array(column) for column in ([5, 10, 30], [1, 1, 3], [0, 0, 0])))
    high = Tuples(*(np.array(column) for column in ([6, 10, 20, 40], [1, 1, 2, 4], [0, 0, 1, 0])))
    low, high = (t._replace(keys=t.keys.astype(np.uint64)) for t in (low, high))
    made = merge(low, high, 100)
    assert made.keys.tolist() == [5, 6, 10, 20, 30, 40]
    assert made.gains.tolist() == [1, 1, 2, 2, 3, 4]
    assert made.slacks.tolist() == [0, 0, 0, 1 + 3 + 0 - 1, 0 + 4 + 0 - 1, 0]
    assert merge(low, low, 100).keys.tolist() == [5, 5, 10, 30]  # as printed, the loop goes on after both inputs end
    assert merge(low, low, 1).keys.tolist() == [5, 5, 10, 10, 30, 30]
    assert compress(made, 7).keys.tolist() == [5, 10, 20, 40]
    assert compress(made, 0).keys.tolist() == made.keys.tolist()
    assert thinned(np.arange(10, dtype=np.uint64), 4).keys.tolist() == [0, 1, 5, 9]


def test_quantiles_of_groups_by_either_method():
    rng = np.random.default_rng(2)
    table = pa.table({"t": np.sort(rng.integers(0, 120, 500)), "v": rng.normal(0, 1, 500)})
    query = wane.local.group(table, every=("t", "1 minute"))
    asked = {m: fn.quantiles("v", [0.1, 0.5], epsilon=0.05, method=m).alias(m) for m in ("qdigest", "gk")}
    for row in query.agg(*asked.values()).to_pylist():
        data = np.sort(table["v"].to_numpy()[table["t"].to_numpy() // 60 == row["epoch"] // 60])
        for method in asked:
            ranks = np.searchsorted(data, row[method], "right") / len(data)
            assert np.abs(ranks - [0.1, 0.5]).max() <= 0.05 + 1 / len(data)
    with pytest.raises(Unsupported, match="summaries that take it: QDigest"):
        query.agg(fn.quantiles("v", [0.5], decay="exp(half_life=1m)", method="gk"))
