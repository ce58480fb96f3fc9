"""SpaceSaving against exact weights over many streams, its size, its path without weights, and odd input."""

from __future__ import annotations

import ipaddress
import math
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from weighing import END, START, WEIGHTS, draw, weights_of

from wane import SpaceSaving, from_bytes
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter
from wane.summaries import _tally
from wane.summaries._tally import Tally
from wane.testing.zipf import id_shapes

ROWS = 500 if DISABLED else 4000


def shapes(seed: int, epsilon: float) -> list[tuple[str, np.ndarray]]:
    """Ids in named shapes; the last three are made to hurt this structure, whose counters are taken over by turns."""
    rng = np.random.default_rng(seed)
    room = math.ceil(1 / epsilon)
    rounds = np.arange(ROWS) % (room + 1)  # one more than fits, each just after it was pushed out
    late = np.where(np.arange(ROWS) < ROWS * 3 // 4, np.arange(ROWS) + 10**6, rng.integers(0, 3, ROWS))
    ties = np.repeat(rng.permutation(ROWS), 2)[:ROWS]
    return [*id_shapes(seed, ROWS), ("in turns", rounds), ("heavy at last", late), ("pairs", ties)]


def judge(seed: int) -> None:
    """One stream under a decay, in batches and after merges in any order, against what each item weighs."""
    rng = np.random.default_rng(seed)
    epsilon = (0.01, 0.05, 0.2)[seed % 3 if seed % 2 else seed // 7 % 3]
    shape, decay, weighted = draw(seed, 12)
    name, ids = shapes(seed, epsilon)[shape]
    times = np.sort(START + rng.integers(0, 3601, len(ids)))
    own = rng.pareto(1.2, len(ids)) if weighted else np.ones(len(ids))
    weights = weights_of(decay, times, own)
    total = weights.sum()
    exact = {int(item): weights[ids == item].sum() for item in np.unique(ids)}
    given = WEIGHTS[decay][0]
    hands = [SpaceSaving(epsilon, given, START) for _ in range(4)]
    with mock.patch("wane.summaries.space_saving._LONGEST", int(rng.integers(8, 400))):
        at_once = SpaceSaving(epsilon, given, START).update(ids, times, own if weighted else None)
        for part in np.array_split(rng.permutation(len(ids)), 13):
            hands[int(rng.integers(4))].update(ids[part], times[part], own[part] if weighted else None)
    merged = from_bytes(hands[0].merge(hands[1]).to_bytes()).merge(hands[2].merge(hands[3]))
    for one in (at_once, merged):
        assert isinstance(one, SpaceSaving)
        note, slack = (name, decay, epsilon), total * 1e-9
        assert one.count(now=END) == pytest.approx(total, rel=1e-9), note
        for hit in one.top(10**6, now=END):
            true = exact[hit.item]
            assert hit.weight - hit.error - slack <= true <= hit.weight + slack, note
            assert hit.error <= epsilon * total + slack, note
        for probe in [*rng.choice(ids, 5).tolist(), 2**40]:
            hit = one.estimate(probe, now=END)
            true = exact.get(probe, 0.0)
            assert hit.weight - hit.error - slack <= true <= hit.weight + slack, note
            assert hit.error <= epsilon * total + slack, note
        for phi in (0.21, 0.4):
            found = {hit.item for hit in one.heavy(phi, now=END)}
            assert {item for item, weight in exact.items() if weight >= phi * total + slack} <= found, note
            assert all(exact[item] >= (phi - epsilon) * total - slack for item in found), note


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_within_epsilon(seed: int) -> None:
    judge(seed)


@pytest.mark.slow
def test_weights_are_within_epsilon_over_many_streams() -> None:
    for seed in range(1000, 1324):
        judge(seed)


def test_a_chain_of_merges_keeps_the_bound() -> None:
    rng = np.random.default_rng(5)
    seen, one = [], SpaceSaving(0.05)
    for i in range(60):
        ids = np.minimum(rng.zipf(1.3, int(rng.integers(1, 300))), 10**6) * (1 + i % 3)
        seen.append(ids)
        other = SpaceSaving(0.05).update(ids)
        one = other.merge(one) if i % 2 else one.merge(other)
    every = np.concatenate(seen)
    for hit in one.top(20):
        assert hit.weight - hit.error <= (every == hit.item).sum() <= hit.weight
        assert hit.error <= 0.05 * len(every)


@pytest.mark.parametrize(("epsilon", "most"), [(0.01, 6 * 1024), (0.001, 60 * 1024)])
def test_the_size_for_items_of_8_bytes(epsilon: float, most: int) -> None:
    rng = np.random.default_rng(1)
    for ids in (rng.integers(0, 2**62, 20_000), np.minimum(rng.zipf(1.2, 20_000), 2**62), np.arange(20_000)):
        one = SpaceSaving(epsilon, "exp(half_life=5m)").update(ids, START + np.arange(20_000))
        assert one._items.dtype == np.int64
        state = sum(column.nbytes for column in (one._highs, one._errors, one._keys, one._items))
        assert 0.9 * 32 / epsilon < state < most
        assert len(one.to_bytes()) < most


def test_rows_without_weights_and_decay_are_counted() -> None:
    """The paper's unary path is taken by itself: no weight is made or looked at, and the answers are the same."""
    ids = np.minimum(np.random.default_rng(2).zipf(1.3, 3000), 10**6)
    weighted = SpaceSaving(0.01).update(ids, weights=np.ones(3000))
    calls: list[bool] = []
    add = Tally.add

    def watched(self: Tally, keys: np.ndarray, weights: np.ndarray | None, *more: int) -> int:
        calls.append(weights is None)
        return add(self, keys, weights, *more)

    with mock.patch.object(Tally, "add", watched), mock.patch.object(_tally, "_add", side_effect=AssertionError):
        one = SpaceSaving(0.01).update(ids)
    assert calls
    assert all(calls)
    assert one.top(200) == weighted.top(200)


def test_items_of_every_kind_are_kept_once() -> None:
    words = np.array([f"user-{i % 700}" for i in range(5000)])
    one = SpaceSaving(0.01).update(words)
    kept = one._items.tolist()
    assert len(kept) == len(set(kept)) == 100
    assert len(one.to_bytes()) < 100 * (24 + 16) + 512
    for form in (pa.array(words), pa.array(words).dictionary_encode(), words.tolist()):
        assert SpaceSaving(0.01).update(form).to_bytes() == one.to_bytes()
    addresses = [int(ipaddress.IPv6Address("2001:db8::") + i % 5) for i in range(50)]
    hits = SpaceSaving(0.05).update(addresses).top(5)
    assert sorted(hit.item for hit in hits) == sorted(set(addresses))
    packed = pa.array([address.to_bytes(16, "big") for address in addresses], pa.binary(16))
    assert {hit.item for hit in SpaceSaving(0.05).update(packed).top(5)} == {a.to_bytes(16, "big") for a in addresses}
    mixed = SpaceSaving(0.05).update(["a", b"a", 1, 1.0, True, 2.5, None, math.nan])
    assert {(hit.item, hit.weight) for hit in mixed.top(9)} == {("a", 1.0), (b"a", 1.0), (1, 3.0), (2.5, 1.0)}
    assert mixed.dropped == {"value": 2}


def test_estimates_of_what_has_no_counter() -> None:
    one = SpaceSaving(0.2).update([1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6])
    assert one.estimate(1) == (1, 4.0, 0.0)
    missing = one.estimate(99)
    assert 0 < missing.weight == missing.error <= 0.2 * 13
    assert SpaceSaving(0.2).estimate(99) == (99, 0.0, 0.0)


def test_weights_of_every_kind() -> None:
    """A stale and a tiny weight count for what they are, huge and infinite and missing ones are dropped and counted."""
    late = START + 10**6
    one = SpaceSaving(0.1, "exp(half_life=1s)")
    times = [START, *[late] * 5]
    one.update([1, 2, 3, 4, 5, 6], times, [1.0, 1e-300, 1e300, math.inf, math.nan, 0.0])
    assert one.dropped == {"weight": 3}
    assert one.estimate(2, now=late) == (2, pytest.approx(1e-300), 0.0)
    assert one.estimate(1, now=late).weight == 0.0
    assert 6 not in {hit.item for hit in one.top(9, now=late)}
    with pytest.raises(BadInput, match="a weight must be 0 or more"):
        one.update([1], [late], [-1.0])
    assert one.count(now=late) == pytest.approx(1e-300)
    assert SpaceSaving(0.1).update([1, 2], weights=[2.5e120, 1.0]).top(1) == [(1, 2.5e120, 0.0)]


def test_bad_arguments_are_refused() -> None:
    for epsilon in (0, 1, -0.1, math.nan, "x", True):
        with pytest.raises(BadParameter, match="epsilon must be a number"):
            SpaceSaving(epsilon)  # type: ignore[arg-type]
    one = SpaceSaving(0.1).update([1, 2])
    for phi in (0.05, 1.0, math.nan):
        with pytest.raises(BadParameter, match=r"phi must be a number above 0\.1"):
            one.heavy(phi)
    for k in (-1, 2.5, "3"):
        with pytest.raises(BadParameter, match="k must be a whole number"):
            one.top(k)  # type: ignore[arg-type]
