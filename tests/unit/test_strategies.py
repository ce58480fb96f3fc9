"""The parts of the two levels: any low one with any high one that takes its output gives the group's own summary."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wane import CountMinHierarchy, GreenwaldKhanna
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter
from wane.grouped.high_counts import Adaptive, Direct, SumOfSketches
from wane.grouped.low_counts import Buffer, Compress, Hash, LowSketch
from wane.grouped.low_ranks import Heavy, Lite, Medium, Ranks
from wane.grouped.strategies import Flushed, HighPart, LowPart

ROWS = 3_000 if DISABLED else 40_000
GROUPS = 7
SLOTS = 5

PAIRS = {"buffer": Buffer, "hash": Hash, "compress": Compress}


def stream(seed: int, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups, ids and weights; the last groups are small."""
    rng = np.random.default_rng(seed)
    groups = np.minimum(rng.geometric(0.45, rows) - 1, GROUPS - 1)
    ids = np.minimum(rng.zipf(1.3, rows), 2**32 - 1).astype(np.uint64)
    return groups, ids, rng.integers(0, 5, rows).astype(float)


def run(low: LowPart, high: HighPart, groups: np.ndarray, *columns: np.ndarray, powers: tuple[int, ...] = (0,)) -> int:
    """Groups take slots in turn, as in a cache that ejects whoever holds the slot; gives the entries handed on."""
    holders = np.full(SLOTS, -1)
    moved = 0

    def hand_on(flushed: Flushed) -> None:
        nonlocal moved
        moved += len(flushed)
        high.take(holders[flushed.slots], flushed)

    for k, rows in enumerate(np.array_split(np.arange(len(groups)), 40)):
        for group in np.unique(groups[rows]).tolist():
            slot = group % SLOTS
            mine = rows[groups[rows] == group]
            if holders[slot] not in (group, -1):
                hand_on(low.flush(np.array([slot])))
            holders[slot] = group
            power = powers[k % len(powers)]
            given = (
                (columns[0][mine], np.ldexp(columns[1][mine], -power), power)
                if len(columns) > 1
                else (columns[0][mine],)
            )
            for flushed in low.add(np.full(len(mine), slot), *given):
                hand_on(flushed)
    hand_on(low.flush(np.arange(SLOTS)))
    return moved


def expected(groups: np.ndarray, ids: np.ndarray, weights: np.ndarray, exact: int) -> list[CountMinHierarchy]:
    return [
        CountMinHierarchy(exact=exact).update(ids[groups == g], weights=weights[groups == g]) for g in range(GROUPS)
    ]


def state(one: CountMinHierarchy) -> bytes:
    one.rows = 0  # what only the low level has seen
    return one.to_bytes()


@pytest.mark.parametrize("low", PAIRS)
@pytest.mark.parametrize("exact", [0, 64, 256])
def test_pairs_make_the_sketch_of_the_rows(low: str, exact: int) -> None:
    groups, ids, weights = stream(1)
    high = Adaptive(exact) if exact else Direct()
    run(PAIRS[low](SLOTS), high, groups, ids, weights)
    for group, want in enumerate(expected(groups, ids, weights, exact)):
        assert state(high.summary(group)) == state(want)


def test_sketches_add_up() -> None:
    groups, ids, weights = stream(2)
    high = SumOfSketches()
    run(LowSketch(SLOTS, high.layout), high, groups, ids, weights)
    for group, want in enumerate(expected(groups, ids, weights, 0)):
        assert state(high.summary(group)) == state(want)


@pytest.mark.parametrize(("low", "exact"), [*((name, exact) for name in PAIRS for exact in (0, 64)), ("low sketch", 0)])
def test_powers_of_two_meet(low: str, exact: int) -> None:
    """Weights come at powers that grow and fall by hundreds, as those of exponential decay do."""
    groups, ids, weights = stream(3, 4000)
    if low == "low sketch":
        high: HighPart = SumOfSketches()
        part: LowPart = LowSketch(SLOTS, high.layout)  # type: ignore[attr-defined]
    else:
        high, part = Adaptive(exact) if exact else Direct(), PAIRS[low](SLOTS)
    run(part, high, groups, ids, weights, powers=(0, 700, -600, 5))
    for group, want in enumerate(expected(groups, ids, weights, exact)):
        found = high.summary(group)
        assert found.count() == pytest.approx(want.count(), rel=1e-12)
        for item in np.unique(ids[groups == group])[:20].tolist():
            assert found.estimate(item).weight == pytest.approx(want.estimate(item).weight, rel=1e-12)


def test_a_slot_left_alone_keeps_its_shares() -> None:
    buffer, high = Hash(2), Direct()
    list(buffer.add(np.array([0]), np.array([5], np.uint64), np.array([3.0]), 0))
    list(buffer.add(np.array([1]), np.array([6], np.uint64), np.array([1.0]), 10**6))
    high.take(np.array([0, 1]), buffer.flush(np.array([0, 1])))
    assert high.summary(0)._total == 3.0
    assert high.summary(0).heavy(0.5)[0] == (5, 3.0, pytest.approx(3.0 * math.e / 256))


def test_each_strategy_hands_on_what_it_should() -> None:
    """Hashing adds rows up, so that skewed ids make less to move; a sparse table is moved whole, or compressed."""
    groups, ids, weights = stream(4)
    moved = {name: run(make(SLOTS), Direct(), groups, ids, weights) for name, make in PAIRS.items()}
    assert moved["buffer"] == (weights > 0).sum()
    assert moved["compress"] < moved["hash"]
    assert moved["compress"] < moved["buffer"] * 0.7
    few = np.zeros(2, np.int64), np.array([3, 4], np.uint64), np.ones(2)
    sizes = {}
    for name, make in PAIRS.items():
        part = make(1)
        assert list(part.add(*few)) == []
        sizes[name] = len(part.flush(np.array([0])))
        assert len(part.flush(np.array([0]))) == 0
        assert part.slot_bytes == 16 * 128
    assert sizes == {"buffer": 2, "hash": 128, "compress": 2}


def test_a_hash_is_full_after_eight_places() -> None:
    from wane.summaries._tally import slot_of

    place = [item for item in range(1, 20_000) if slot_of(np.uint64(item), 127) == 5][:9]
    table = Hash(1)
    first = table.add(np.zeros(8, np.int64), np.array(place[:8], np.uint64), np.ones(8))
    assert list(first) == []
    (flushed,) = table.add(np.zeros(1, np.int64), np.array(place[8:], np.uint64), np.ones(1))
    assert sorted(flushed.columns[0][flushed.columns[1] > 0].tolist()) == place[:8]
    rest = table.flush(np.array([0]))
    assert rest.columns[0][rest.columns[1] > 0].tolist() == place[8:]


def test_many_flushes_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wane.grouped.low_counts.OUT", 16)
    monkeypatch.setattr("wane.grouped.low_ranks.OUT", 16)
    rng = np.random.default_rng(5)
    slots, ids = rng.integers(0, 3, 400), rng.integers(0, 10**6, 400).astype(np.uint64)
    for part in (Buffer(3, 16), Hash(3, 16), Compress(3, 16), Lite(3, 16), Heavy(3, 0.001, 16), Medium(3, 0.001, 16)):
        found = [(slot, columns) for f in part.add(slots, ids) for slot, columns in f.parts()]
        found += list(part.flush(np.arange(3)).parts())
        assert len(found) > 20
        for slot in range(3):
            keys = np.concatenate([columns[0] for at, columns in found if at == slot])
            if isinstance(part, Buffer):
                sums = np.concatenate([columns[1] for at, columns in found if at == slot])
                keys = np.repeat(keys, sums.astype(int))
            assert np.sort(keys).tolist() == np.sort(ids[slots == slot]).tolist()


@pytest.mark.parametrize("room", [32, 128])
@pytest.mark.parametrize("low", ["lite", "heavy", "medium"])
@pytest.mark.parametrize("shape", ["normal", "ties", "sorted", "reversed"])
def test_ranks_are_within_epsilon_whatever_the_low_level_does(low: str, shape: str, room: int) -> None:
    epsilon = 0.05
    rng = np.random.default_rng(room)
    groups, _, _ = stream(6, 1500 if DISABLED else 12_000)
    values = {
        "normal": rng.normal(0, 1, len(groups)),
        "ties": rng.integers(0, 5, len(groups)).astype(float),
        "sorted": np.arange(len(groups)) * 1.0,
        "reversed": -np.arange(len(groups)) * 1.0,
    }[shape]
    keys = np.empty(len(values), np.uint64)
    GreenwaldKhanna()._domain.enter(values, np.ones(len(values)), keys, np.empty(len(values)), 0)
    made = {"lite": lambda: Lite(SLOTS, room), "heavy": lambda: Heavy(SLOTS, epsilon, room)}
    part = made.get(low, lambda: Medium(SLOTS, epsilon, room))()
    high = Ranks(epsilon)
    run(part, high, groups, keys)
    for group in range(GROUPS):
        data = np.sort(values[groups == group])
        one = high.summary(group)
        assert one.count() == len(data)
        exact = np.searchsorted(data, data[:: max(len(data) // 50, 1)], "right")
        assert np.abs(one.rank(data[:: max(len(data) // 50, 1)]) - exact).max() <= epsilon * len(data) + 1e-9
        gains, slacks = one._tuples.gains, one._tuples.slacks
        assert (gains + slacks).max() <= max(math.floor(2 * epsilon * len(data)), 1)
        assert one.quantile(0.0) == data[0]
        assert one.quantile(1.0) == data[-1]


@pytest.mark.parametrize("low", [Heavy, Medium])
def test_tuples_of_the_low_level_have_true_bounds(low: type[Heavy]) -> None:
    rng = np.random.default_rng(8)
    keys = rng.integers(0, 3000, 4000).astype(np.uint64)
    part = low(1, 0.05, 100)
    done = 0
    for flushed in [*part.add(np.zeros(len(keys), np.int64), keys), part.flush(np.array([0]))]:
        for _, (found, gains, slacks) in flushed.parts():
            mine = np.sort(keys[done : done + gains.sum()])
            done += gains.sum()
            least = np.cumsum(gains)
            assert (np.diff(found.astype(np.int64)) >= 0).all()
            assert (np.searchsorted(mine, found, "left") + 1 <= least + slacks).all()
            assert (np.searchsorted(mine, found, "right") >= least).all()
            assert (gains + slacks).max() <= max(math.floor(0.1 * len(mine)), 1)
            assert (found[0], found[-1]) == (mine[0], mine[-1])
            assert len(found) < len(mine) / 2
    assert done == len(keys)


def test_ids_that_are_too_long_are_refused() -> None:
    long, slots = np.array([2**32], np.uint64), np.zeros(1, np.int64)
    for high in (Direct(), Adaptive(2)):
        buffer = Buffer(1)
        list(buffer.add(slots, long))
        flushed = buffer.flush(slots)
        with pytest.raises(BadInput, match=r"below 2\*\*32|are not from 0"):
            _ = high.take(slots, flushed) or high.summary(0)
    with pytest.raises(BadInput, match=r"below 2\*\*32"):
        list(LowSketch(1, Direct().layout).add(slots, long))
    with pytest.raises(BadInput, match="7 counters were given, and these parameters have 1792"):
        CountMinHierarchy().take_cells(np.zeros(7))


def test_weights_for_ranks_are_refused() -> None:
    for part in (Lite(1), Heavy(1), Medium(1)):
        with pytest.raises(BadParameter, match="count each value once"):
            list(part.add(np.zeros(1, np.int64), np.zeros(1, np.uint64), np.ones(1)))
    with pytest.raises(BadParameter, match="room must be a power of two"):
        Buffer(1, 100)
