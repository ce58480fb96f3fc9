"""KMeans: what its centres cost on all points, against k-means that sees them all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import wane
from wane import KMeans
from wane.errors import BadInput, BadParameter

ROWS = 12_000


def cost(points: np.ndarray, weights: np.ndarray, centres: np.ndarray) -> float:
    return float((weights * ((points[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1)).sum())


def k_means(points: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator) -> float:
    """The cost of Lloyd's algorithm on all points, the best of several starts by k-means++."""
    best = np.inf
    for _ in range(3):
        centres = points[[rng.choice(len(points), p=weights / weights.sum())]]
        for _ in range(k - 1):
            away = weights * ((points[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1)
            centres = np.vstack([centres, points[rng.choice(len(points), p=away / away.sum())]])
        for _ in range(25):
            nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
            for j in range(k):
                own = nearest == j
                if weights[own].sum():
                    centres[j] = np.average(points[own], axis=0, weights=weights[own])
        best = min(best, cost(points, weights, centres))
    return best


DECAYS = {
    "none": lambda age, _: np.ones(len(age)),
    "exp(half_life=5m)": lambda age, _: np.exp2(-age / 300),
    "poly(2)": lambda age, since: (since / (since + age)) ** 2,
}


def stream(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Clusters that differ in size and in width, and move as time passes; or points that have none."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(1, 3600, ROWS))
    k = int(rng.integers(2, 6))
    dimensions = int(rng.integers(1, 4))
    if seed % 5 == 4:
        return rng.normal(0, 1, (ROWS, dimensions)), times, k
    middles = rng.normal(0, 20, (k, dimensions))
    which = rng.choice(k, ROWS, p=rng.dirichlet(np.ones(k)))
    spread = rng.uniform(0.1, 3, k)[which][:, None]
    drift = (times / 3600)[:, None] * rng.normal(0, 5, (k, dimensions))[which]
    return middles[which] + drift + spread * rng.normal(0, 1, (ROWS, dimensions)), times, k


def judge(seeds: range) -> None:
    for seed in seeds:
        points, times, k = stream(seed)
        name = list(DECAYS)[seed % 3]
        weights = DECAYS[name](times.max() - times, times)
        parts = np.array_split(np.random.default_rng(seed).permutation(ROWS), 3)
        one = KMeans(k, points.shape[1], name, 0)
        for rows in parts:
            one.merge(KMeans(k, points.shape[1], name, 0).update(points[rows], times[rows]))
        right = k_means(points, weights, k, np.random.default_rng(seed))
        ours = cost(points, weights, one.centres())
        assert ours <= 1.1 * right, (seed, name, ours / right)
        assert one.cost(now=times.max()) == pytest.approx(ours, rel=0.25)
        assert one.count(now=times.max()) == pytest.approx(weights.sum(), rel=1e-9)


@pytest.mark.jit_only
def test_centres_cost_about_what_k_means_on_all_points_does() -> None:
    judge(range(20))


@pytest.mark.slow
def test_centres_cost_about_what_k_means_on_all_points_does_over_many_streams() -> None:
    judge(range(100, 300))


def test_vectors_come_in_any_form() -> None:
    points = [[1.0, 2.0], [3.0, 4.0], [50.0, 60.0]]
    plain = KMeans(2).update(np.array(points))
    forms = [points, [tuple(point) for point in points], pa.array(points), pa.array(points, pa.list_(pa.float32(), 2))]
    for form in (*forms, np.array(points, object), np.array(points, np.int32), np.asfortranarray(points)):
        assert KMeans(2).update(form).to_bytes() == plain.to_bytes()
    one = KMeans(2)
    for point in points:
        one.update(point)
    assert one.to_bytes() == plain.to_bytes()
    assert one.centres().tolist() == [[2.0, 3.0], [50.0, 60.0]]
    gone = KMeans(2).update([[1, np.nan], None, [2, 3], [np.inf, 1], [1e300, 0]])
    assert (gone.rows, gone.dropped) == (1, {"value": 4})


def test_an_idle_one_keeps_its_centres_and_new_points_outweigh_it() -> None:
    one = KMeans(1, 1, "exp(half_life=1s)").update([[1.0], [3.0]], [0, 0])
    assert (one.centres().tolist(), one.cost(now=10**6)) == ([[2.0]], 0.0)
    one.update([[10.0]], [10**6])
    assert wane.from_bytes(one.to_bytes()).centres().tolist() == [[10.0]]


def test_the_state_stays_small() -> None:
    one = KMeans(3, room=50)
    for seed in range(20):
        one.update(np.random.default_rng(seed).normal(0, 1, (1000, 2)))
    assert len(one.to_bytes()) < 11 * 50 * 24 + 600


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"k": 0}, {"dimensions": 0}, {"k": 8, "room": 31}, {"room": 2**21}, {"seed": -1}):
        with pytest.raises(BadParameter):
            KMeans(**wrong)
    for bad in ([[1.0, 2.0, 3.0]], [[1.0], [1.0, 2.0]], [["a", "b"]], np.zeros((2, 2, 2)), ["x"], pa.array([1.0, 2.0])):
        with pytest.raises(BadInput, match="vectors of 2 numbers each"):
            KMeans(2).update(bad)
