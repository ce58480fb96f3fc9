"""The q-digest against exact ranks, its rule about nodes, its size, and its speed-minded parts."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from weighing import END, START, WEIGHTS, draw, weights_of

import wane
from wane import QDigest
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter, CorruptState
from wane.summaries import _nodes, q_digest
from wane.summaries._nodes import Nodes, compress, gather, merge
from wane.summaries._varints import pack, unpack
from wane.times import SECOND, Ticks

ROWS = 2_000 if DISABLED else 20_000
PHIS = np.linspace(0, 1, 21)


def values(shape: str, rng: np.random.Generator, rows: int = ROWS) -> np.ndarray:
    """Values of a named shape; the last two are made to hurt a digest."""
    ids = rng.permutation(50_000)
    made = {
        "zipf 0.8": lambda: ids[(rng.random(rows) ** 5 * 50_000).astype(int)].astype(float),
        "zipf 1.2": lambda: np.minimum(rng.zipf(1.2, rows), 50_000).astype(float),
        "zipf 2": lambda: np.minimum(rng.zipf(2.0, rows), 50_000).astype(float),
        "uniform": lambda: rng.uniform(-1, 1, rows),
        "sorted": lambda: np.sort(rng.normal(100, 15, rows)),
        "reversed": lambda: np.sort(rng.lognormal(0, 3, rows))[::-1].copy(),
        "one item": lambda: np.full(rows, 7.25),
        "all magnitudes": lambda: np.exp(rng.uniform(-250, 250, rows)) * rng.choice([-1, 1], rows),
        "single bits": lambda: np.ldexp(1.0, rng.integers(-300, 300, rows)) * (1 + np.ldexp(1.0, rng.integers(-52, 0))),
        "bisecting": lambda: 0.5 + np.cumprod(np.full(rows, 0.998)) * np.resize([1, -1], rows),
    }
    return made[shape]()


SHAPES = (
    "zipf 0.8", "zipf 1.2", "zipf 2", "uniform", "sorted", "reversed", "one item", "all magnitudes", "single bits",
    "bisecting",
)  # fmt: skip


def rank_error(found: np.ndarray, phis: np.ndarray, data: np.ndarray, weights: np.ndarray) -> float:
    """How far the ranks of some values are from what was asked, as a share of all weight."""
    order = np.argsort(data, kind="stable")
    data, upto = data[order], np.append(0.0, np.cumsum(weights[order]))
    upto /= upto[-1]
    high = upto[np.searchsorted(data, found, "right")]
    low = upto[np.searchsorted(data, found, "left")]
    return float(max((phis - high).max(), (low - phis).max()))


def judge(seed: int) -> None:
    """One stream of each shape, under a decay, in batches and merged from parts, within the bound and the limit."""
    rng = np.random.default_rng(seed)
    place, name, weighted = draw(seed, len(SHAPES))
    epsilon = (0.1, 0.01, 0.03)[seed % 3]
    shape, decay = SHAPES[place], WEIGHTS[name][0]
    data = values(shape, rng)
    times = START + rng.integers(0, 3600, len(data)).astype(float)
    own = rng.pareto(1.5, len(data)) if weighted else np.ones(len(data))
    weights = weights_of(name, times, own)
    parts = [QDigest(epsilon, decay, landmark=START) for _ in range(4)]
    for part in np.array_split(rng.permutation(len(data)), 11):
        one = parts[int(rng.integers(4))].update(data[part], times[part], own[part])
        assert one.nodes <= 3 * 64 / epsilon
    whole = parts[0].copy().merge(parts[1]).merge(wane.from_bytes(parts[2].merge(parts[3]).to_bytes()))
    assert whole.nodes <= 3 * 64 / epsilon
    at_once = QDigest(epsilon, decay, landmark=START).update(data, times, own)
    for digest in (at_once, whole):
        assert rank_error(digest.quantiles(PHIS), PHIS, data, weights) <= epsilon * (1 + 1e-9), (shape, decay)
        probes = np.append(rng.choice(data, 20), [data.min(), data.max(), 0.0])
        exact = np.array([weights[data <= probe].sum() for probe in probes])
        found = digest.rank(probes, now=END)
        assert np.abs(found - exact).max() <= epsilon * weights.sum() * (1 + 1e-9), (shape, decay)
        assert digest.cdf(probes) == pytest.approx(found / weights.sum(), abs=1e-9)
        light = digest._nodes.loads[digest._nodes.levels > 0]
        assert (light <= digest._share * digest._total * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(6 if DISABLED else 30))
def test_ranks_are_within_epsilon(seed):
    judge(seed)


@pytest.mark.slow
def test_ranks_are_within_epsilon_over_many_streams():
    for seed in range(1000, 1300):
        judge(seed)


def test_the_limit_holds_while_items_come_one_by_one():
    digest = QDigest(0.4, bits=8)
    rng = np.random.default_rng(3)
    for value in rng.integers(0, 256, 1000).tolist():
        digest.update(value, 0)
        assert digest.nodes <= 3 * 8 / 0.4


def test_a_chain_of_merges_keeps_the_bound():
    rng = np.random.default_rng(5)
    seen, digest = [], QDigest(0.05)
    for i in range(60):
        data = rng.normal(i % 7, 1 + i % 3, int(rng.integers(1, 900)))
        seen.append(data)
        digest = QDigest(0.05).update(data).merge(digest) if i % 2 else digest.merge(QDigest(0.05).update(data))
        assert digest.nodes <= 3 * 64 / 0.05
    every = np.concatenate(seen)
    assert rank_error(digest.quantiles(PHIS), PHIS, every, np.ones(len(every))) <= 0.05


def test_skewed_data_needs_few_nodes_and_few_bytes():
    rng = np.random.default_rng(1)
    ids = QDigest(0.01).update(np.minimum(rng.zipf(2.0, ROWS), 10**6).astype(float))
    bound = 3 * 64 / 0.01
    assert ids.nodes < bound / 20
    assert len(ids.to_bytes()) < 16 * bound / 50
    smooth = QDigest(0.01).update(rng.normal(100, 15, ROWS))
    assert smooth.nodes < bound / 2
    assert len(smooth.to_bytes()) < 16 * bound / 4


def test_few_values_are_exact():
    data = np.array([5.0, -3.0, 5.0, 1e100, -0.0, 0.0, 5e-324, 2.5])
    digest = QDigest(0.01).update(data)
    for k, value in enumerate(np.sort(data)):
        assert digest.quantile((k + 1) / 8) == value
        assert digest.rank(value) == (data <= value).sum()


def test_paper_example():
    digest = QDigest(0.01, "poly(2)", landmark=100).update([4, 8, 3, 6, 4], times=[105, 107, 103, 108, 104])
    weights = {3: Fraction(9), 4: Fraction(25 + 16), 6: Fraction(64), 8: Fraction(49)}
    total = sum(weights.values())
    for value in weights:
        below = sum(weight for other, weight in weights.items() if other <= value)
        assert digest.rank(value, now=110) == pytest.approx(float(below / 100))
        assert digest.quantile(float(below / total) - 1e-9) == value


def test_decay_forgets_the_old():
    digest = QDigest(0.01, "exp(half_life=1m)")
    digest.update(np.arange(1000.0), np.full(1000, 0))
    digest.update(np.arange(5000.0, 6000.0), np.full(1000, 3600))
    assert 5485 <= digest.quantile(0.5) <= 5515
    assert digest.rank(999, now=3600) < 1e-9
    far = 3600 + 60 * 5_000_000
    digest.update([1.0], [far])
    assert digest.quantiles([0.0, 0.5, 1.0])[1] == 1.0
    assert digest.count(now=far) == 1.0


def test_forms_of_questions():
    digest = QDigest(0.01).update([1.0, 2.0, 3.0, 4.0])
    assert digest.quantile(0.5) == 2.0
    assert type(digest.quantile(0.5)) is float
    assert digest.quantile([0.5, 1]).tolist() == [2.0, 4.0]
    assert digest.quantiles(np.array([0.25])).tolist() == [1.0]
    assert digest.rank(np.arange(8.0)[::2]).tolist() == [0.0, 2.0, 4.0, 4.0]  # strided
    assert digest.rank([1.5, 4.0, math.inf, -math.inf]).tolist() == [1.0, 4.0, 4.0, 0.0]
    assert digest.cdf([2, 3]).tolist() == [0.5, 0.75]
    assert digest.cdf(2) == 0.5
    assert digest.histogram([0, 2, 2, 4]).tolist() == [2.0, 0.0, 2.0]
    assert digest.histogram([-math.inf, math.inf]).tolist() == [4.0]


def test_nothing_has_no_quantiles():
    for empty in (QDigest(), QDigest(bits=8), QDigest().update([]), QDigest().update([3.0], weights=[0.0])):
        assert math.isnan(empty.quantile(0.5))
        assert np.isnan(empty.quantile([0, 1])).all()
        assert math.isnan(empty.cdf(1))
        assert empty.rank(5) == 0.0


@pytest.mark.parametrize("phi", [-0.1, 1.1, math.nan, "half", None, True])
def test_a_bad_phi_is_refused(phi):
    with pytest.raises(BadParameter, match="phi must be a number from 0 to 1"):
        QDigest().update([1.0]).quantile(phi)


def test_other_bad_arguments_are_refused():
    for bits in (0, 65, 2.5, "8", True):
        with pytest.raises(BadParameter, match="bits must be a whole number"):
            QDigest(bits=bits)
    for epsilon in (0, 1, -1, math.nan, "0.1", True):
        with pytest.raises(BadParameter, match="epsilon must be a number"):
            QDigest(epsilon)
    digest = QDigest().update([1.0])
    for edges in ([1], [2, 1], [1, math.nan]):
        with pytest.raises(BadParameter, match="edges must be two numbers or more in order"):
            digest.histogram(edges)
    for of in (digest, QDigest(bits=8).update([1])):
        with pytest.raises(BadInput, match="must be a number, got nan"):
            of.rank(math.nan)


@pytest.mark.parametrize("bits", [1, 7, 32, 53, 63, 64])
def test_whole_numbers_are_exact_to_the_last_bit(bits):
    rng = np.random.default_rng(bits)
    top = 2**bits
    data = sorted({0, top - 1, top // 2, *(int(v) % top for v in rng.integers(0, 2**63, 40)), max(top - 2, 0)})
    digest = QDigest(0.01, bits=bits).update(np.array(data, np.uint64))
    for given in (data, pa.array(data, pa.uint64()), pa.array([None, *data], pa.uint64())):
        other = QDigest(0.01, bits=bits).update(given)
        assert other._nodes.highs.tolist() == digest._nodes.highs.tolist()
        assert other.dropped == ({"value": 1} if len(given) > len(data) else {})
    phis = [(k + 1) / len(data) for k in range(len(data))]
    assert digest.quantiles(phis).tolist() == data
    for k, value in enumerate(data):
        assert digest.rank(value) == k + 1
    assert type(digest.quantile(1.0)) is int
    assert QDigest.from_bytes(digest.to_bytes()).quantiles(phis).tolist() == data


def test_what_is_no_whole_number_of_the_domain_is_dropped():
    digest = QDigest(bits=8).update([0, 255, 256, -1, 2**64 - 1])
    assert (digest.rows, digest.dropped) == (2, {"value": 3})
    digest.update(np.array([1.0, 1.5, -1.0, math.nan, math.inf, 256.0]))
    assert (digest.rows, digest.dropped) == (3, {"value": 8})
    digest.update([None, 7, 2**70, -(2**70), 3.0, 2**63])
    assert (digest.rows, digest.dropped) == (5, {"value": 12})
    for value in (300, -4, 1.5):
        digest.update(value, 0)
    assert (digest.rows, digest.dropped) == (5, {"value": 15})
    with pytest.raises(BadInput):
        digest.update(["a"])
    assert digest.rank([-1, 0.5, 300]).tolist() == [0.0, 1.0, 5.0]


def test_weights_of_every_kind():
    digest = QDigest(0.01).update(
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], weights=[1e-200, 0.0, 1e100, math.inf, math.nan, 1e300]
    )
    assert digest.dropped == {"weight": 3}
    assert digest.quantile(0.5) == 3.0
    assert digest.quantile(0.0) == 1.0
    with pytest.raises(BadInput, match="a weight must be 0 or more"):
        digest.update([1.0], weights=[-1.0])


def test_chunks_of_other_powers_meet_in_one_buffer(monkeypatch):
    rng = np.random.default_rng(2)
    data, times = rng.normal(0, 1, 600), np.sort(rng.integers(0, 10**6, 600))
    ticks = Ticks(times, "s")
    whole = QDigest(0.05, "exp(half_life=1m)").update(data, ticks)
    for chunk, together in ((7, 64), (64, 64), (600, 64)):
        monkeypatch.setattr("wane.decay.weigh.CHUNK", chunk)
        monkeypatch.setattr(q_digest, "CHUNK", chunk)
        monkeypatch.setattr(q_digest, "_TOGETHER", together)
        for order in (slice(None), slice(None, None, -1), rng.permutation(600)):
            one = QDigest(0.05, "exp(half_life=1m)").update(data[order], Ticks(times[order], "s"))
            assert one.count(now=10**6) == pytest.approx(whole.count(now=10**6), rel=1e-12)
            weights = np.exp2((times - times.max()) / 60)
            assert rank_error(one.quantiles(PHIS), PHIS, data, weights) <= 0.05 * (1 + 1e-9)


# --- Its parts


def by_hand(keys: list[int], loads: list[float], limit: float) -> None:
    """Hold `gather` to what it says, by plain Python."""
    nodes = gather(np.array(keys, np.uint64), np.array(loads), limit)
    weights: dict[int, float] = {}
    for key, load in zip(keys, loads, strict=True):
        weights[key] = weights.get(key, 0.0) + load
    ends = list(zip(nodes.lows.tolist(), nodes.highs.tolist(), strict=True))
    assert all(a[1] < b[0] for a, b in pairwise(ends))
    for (low, high), level, load in zip(ends, nodes.levels.tolist(), nodes.loads.tolist(), strict=True):
        assert high - low == 2**level - 1
        assert load == pytest.approx(sum(w for key, w in weights.items() if low <= key <= high))
        assert level == 0 or load <= limit
    assert nodes.loads.sum() == pytest.approx(sum(loads))


@pytest.mark.parametrize("seed", range(12))
def test_gather(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 400))
    for top in (1, 2, 50, 2**20, 2**63):
        keys = rng.integers(0, top, size).astype(np.uint64) * np.uint64(2 if top == 2**63 else 1)
        loads = rng.pareto(1, size) + 1e-3
        for share in (1e-6, 1e-3, 0.05, 0.7):
            by_hand(keys.tolist(), loads.tolist(), float(loads.sum() * share))
    by_hand([0, 2**64 - 1, 2**63, 2**63 - 1], [1.0] * 4, 0.0)
    by_hand([0, 2**64 - 1, 2**63, 2**63 - 1], [1.0] * 4, 5.0)


def random_nodes(rng: np.random.Generator, size: int, levels: int, heaviest: float) -> Nodes:
    """Nodes of any levels, which may lie under each other."""
    picked = rng.integers(0, levels + 1, size)
    keys = rng.integers(0, 2**levels, size)
    made = sorted(
        {(int(key | ((1 << level) - 1)), int(level)) for key, level in zip(keys.tolist(), picked.tolist(), strict=True)}
    )
    return Nodes(
        np.array([high for high, _ in made], np.uint64),
        np.array([level for _, level in made], np.uint8),
        rng.uniform(0, heaviest, len(made)) + 1e-9,
    )


@pytest.mark.parametrize("seed", range(40))
def test_compress(seed):
    rng = np.random.default_rng(seed)
    levels = int(rng.integers(1, 12))
    nodes = random_nodes(rng, int(rng.integers(1, 300)), levels, 1.0)
    limit = float(rng.choice([1.0, 1.5, 4.0, 1e9]))
    left = compress(nodes, limit)
    total = nodes.loads.sum()
    assert left.loads.sum() == pytest.approx(total)
    assert len(left.highs) <= 4 * total / limit + 1
    assert (left.loads[left.levels > 0] <= limit).all()
    where = list(zip(left.highs.tolist(), left.levels.tolist(), strict=True))
    assert where == sorted(set(where))
    assert (left.highs & _nodes.spans(left.levels) == _nodes.spans(left.levels)).all()
    # Weights only move up: what is under any node of the tree can only become less.
    for level in range(levels + 1):
        for low in range(0, 2**levels, 1 << level):
            high = low + (1 << level) - 1
            under = [(n.lows >= low) & (n.highs <= high) for n in (nodes, left)]
            assert left.loads[under[1]].sum() <= nodes.loads[under[0]].sum() + 1e-9


def test_merge_adds_up():
    rng = np.random.default_rng(8)
    for _ in range(20):
        a, b = (random_nodes(rng, int(rng.integers(0, 40)), 5, 1.0) for _ in range(2))
        both = merge(a, b)
        wanted: dict[tuple[int, int], float] = {}
        for nodes in (a, b):
            for high, level, load in zip(*(column.tolist() for column in nodes), strict=True):
                wanted[high, level] = wanted.get((high, level), 0.0) + load
        found = list(zip(both.highs.tolist(), both.levels.tolist(), strict=True))
        assert found == sorted(wanted)
        assert both.loads.tolist() == pytest.approx([wanted[place] for place in found])


def test_varints():
    numbers = np.array([0, 1, 127, 128, 2**14, 2**35 - 1, 2**63, 2**64 - 1], np.uint64)
    data = pack(numbers)
    assert unpack(data, len(numbers)).tolist() == numbers.tolist()
    assert pack(np.array([5, 300], np.uint64)) == b"\x05\xac\x02"
    assert unpack(b"", 0).tolist() == []
    for bad, count in (
        (data[:-1], 8),
        (data + b"\0", 8),
        (b"\x80" * 12, 1),
        (b"\xff" * 9 + b"\x02", 1),
        (b"\x80\0", 1),
    ):
        with pytest.raises(CorruptState):
            unpack(bad, count)
    with pytest.raises(CorruptState, match="promises 10"):
        unpack(b"\0", 10**1)


def test_a_forged_state_that_breaks_the_rule_is_refused():
    digest = QDigest(0.05).update(np.random.default_rng(1).normal(0, 1, 5000))
    nodes = digest._nodes
    heavy = nodes.loads.copy()
    heavy[np.argmax(nodes.levels > 0)] += 0.01 * digest._total
    for forged in (
        nodes._replace(loads=heavy),
        nodes._replace(loads=-nodes.loads),
        nodes._replace(highs=nodes.highs[::-1]),
    ):
        digest._nodes = forged
        with pytest.raises(CorruptState):
            QDigest.from_bytes(digest.to_bytes())


def test_batches_of_a_day_apart_merge_across_powers():
    a = QDigest(0.02, "exp(half_life=5m)").update(np.arange(100.0), np.zeros(100))
    b = QDigest(0.02, "exp(half_life=5m)").update(np.arange(100.0, 200.0), np.full(100, 86400))
    for one in (a.copy().merge(b), b.copy().merge(a)):
        assert one.count(now=86400) == pytest.approx(100)
        assert 145 <= one.quantile(0.5) <= 155
        assert one.newest == 86400 * SECOND
