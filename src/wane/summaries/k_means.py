"""Decayed clustering: weighted k-means over a coreset, as an example of what else forward decay can do.

A coreset is a small set of weighted points on which any `k` centres cost about what they cost on all points. It is
made by sensitivity sampling (Feldman and Langberg, 2011): `k` seeds are found by k-means++, and points are drawn by
their share of the cost of these seeds and of the weight of their cluster, each with its weight over its odds. The union
of two coresets is one of the union, so that blocks of rows are reduced and merged like the digits of a counter: `n`
rows are in at most ``log2(n / room)`` coresets. A row's weight is ``g(t_i - L)``; any forward decay will do.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import serde
from wane._jit import kernel
from wane.decay import Decay
from wane.decay.base import Floats, Ints, share
from wane.errors import BadInput, BadParameter, CorruptState
from wane.hashing import Hashes, hash_column, hash_range
from wane.registry import Equality, Spec
from wane.summaries._candidates import exact_weights
from wane.summaries._sampled import seed_of
from wane.summaries.base import LARGEST, Batch, Summary, ldexp, whole

_MOST_NUMBERS = 1 << 20
_LEVELS = 64
_ROUNDS = 30
_FAINT = 1e-290
_ENOUGH = 1e-4
"""The relative gain in cost under which centres stay where they are."""


class Coreset(NamedTuple):
    """Weighted points; the weights are ``weights * 2**exponent``."""

    points: NDArray[np.float64]
    weights: Floats
    exponent: int

    def scaled(self) -> Floats:
        """The points in one row."""
        return self.points.ravel()


@kernel("void(r_f8, int64, r_f8, w_i8, w_f8)", reorder=True)
def _assign(points: Floats, dimensions: int, centres: Floats, nearest: Ints, distances: Floats) -> None:
    """The nearest centre of each point, and the square of its distance."""
    count = centres.shape[0] // dimensions
    for i in range(nearest.shape[0]):
        best, chosen = np.inf, 0
        for j in range(count):
            total = 0.0
            for d in range(dimensions):
                off = points[i * dimensions + d] - centres[j * dimensions + d]
                total += off * off
            if total < best:
                best, chosen = total, j
        nearest[i] = chosen
        distances[i] = best


class KMeans(Summary):
    """The centres of `k` clusters of points under decay, and what they cost: the sum of ``w |x - c|^2``.

    The centres cost at most about 10 percent more, on all points with their decayed weights, than those that k-means
    finds for all of them: measured, not proven, for the default `room`. Memory for ``room log2(n / room)`` points at
    most. Some 300 ns a row in bulk for few dimensions and clusters. Takes any forward decay, or a backward one whose
    time is fixed.

    Items are vectors of numbers, all of one length: an array of two dimensions, or lists. One with a number that is
    missing, infinite or 2.6e120 or more is dropped and counted.

    Args:
        k: How many clusters.
        dimensions: The length of the vectors.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        room: The points of a coreset; the error falls with its square root.
        seed: Chooses the random numbers. Summaries merge if it is the same.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> groups = KMeans(2, 1, "exp(half_life=1m)").update([[1.0], [3.0], [11.0]], times=[0, 60, 60])
    >>> groups.centres().round(2).tolist(), round(groups.cost(now=60), 2)
    ([[2.33], [11.0]], 1.33)
    """

    def __init__(
        self,
        k: int = 8,
        dimensions: int = 2,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        room: int = 1000,
        seed: int = 0,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.k = whole(k, "k", 1)
        self.dimensions = whole(dimensions, "dimensions", 1)
        self.room = whole(room, "room", 1)
        if self.room < 4 * self.k or self.room * self.dimensions > _MOST_NUMBERS:
            raise BadParameter(
                f"room must be at least 4 k = {4 * self.k} points, and {_MOST_NUMBERS} numbers at most, got {room!r} "
                f"points of {self.dimensions} numbers"
            )
        self.seed = seed_of(seed)
        self._block = self._none()  # rows that are not yet as many as a coreset
        self._levels: list[Coreset] = []  # coresets of 2**i blocks, or of none

    def centres(self) -> NDArray[np.float64]:
        """The centres of the clusters in their order, `k` at most, one in each row; they do not depend on now."""
        return self._clusters()[0]

    def cost(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed sum of the squares of the distances to :meth:`centres`, as the coreset has it; NaN of nothing."""
        weight, exponent = self._now(now, historical)
        _, cost, power = self._clusters()
        return ldexp(cost / weight, power - exponent)

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count of all points."""
        self._settle()
        weight, exponent = self._now(now, historical)
        every = self._joined()
        return ldexp(math.fsum(every.weights) / weight, every.exponent - exponent)

    def _clusters(self) -> tuple[NDArray[np.float64], float, int]:
        """The centres, their cost, and its power of two."""
        self._settle()
        every = self._joined()
        if not len(every.weights):
            return np.empty((0, self.dimensions)), math.nan, 0
        best: tuple[float, Floats] = (math.inf, np.empty(0))
        for attempt in range(4):
            cost, centres = _lloyd(every, _seeds(every, self.k, self._random(every, attempt)), self.dimensions)
            if cost < best[0] or not len(best[1]):
                best = (cost, centres)
        found = best[1].reshape(-1, self.dimensions)
        return found[np.lexsort(found.T[::-1])], best[0], every.exponent

    def _random(self, of: Coreset, attempt: int) -> Floats:
        """Random numbers under 1 that belong to some points: a function of these, of the seed and of the attempt."""
        content = int(hash_column(of.scaled(), self.seed).sum(dtype=np.uint64)) ^ attempt
        words: Hashes = hash_range(0, self.k + self.room + 1, content)
        return np.asarray((words >> np.uint64(11)) * 2.0**-53)

    def update(self, items: Any, times: Any = None, weights: Any = None) -> Self:
        """Add points: one, or a column of them, with their times and perhaps weights; gives the summary itself."""
        column = hasattr(times, "__len__") and not isinstance(times, str)
        if not column and isinstance(items, (list, tuple, np.ndarray)) and len(items) and _is_number(items[0]):
            items, times, weights = ([one] if one is not None else None for one in (items, times, weights))
        return super().update(items, times, weights)

    def _column(self, given: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        points = _vectors(given, self.dimensions)
        good = (np.abs(points) < LARGEST).all(axis=1)
        return points, None if bool(good.all()) else np.asarray(good)

    def _add_rows(self, points: NDArray[np.float64], batch: Batch) -> None:
        weights = exact_weights(self.decay, self.landmark, batch, np.arange(batch.size))
        there = np.flatnonzero(weights.mantissas)
        start = 0
        while start < len(there):
            rows = there[start : start + self.room - len(self._block.weights)]
            self._block = _join(self._block, Coreset(points[rows], *share(*weights.take(rows))))
            start += len(rows)
            if len(self._block.weights) == self.room:
                full, self._block = self._block, self._none()
                self._carry(full, 0)

    def _carry(self, found: Coreset, level: int) -> None:
        """Put a coreset in its place, and where one is there already, reduce both to one of the next level."""
        while level < len(self._levels) and len(self._levels[level].weights):
            found = self._reduced(_join(self._levels[level], found))
            self._levels[level] = self._none()
            level = min(level + 1, _LEVELS - 1)
        while level >= len(self._levels):
            self._levels.append(self._none())
        self._levels[level] = found

    def _reduced(self, of: Coreset) -> Coreset:
        """A coreset of `room` points; the sum of weights stays."""
        if len(of.weights) <= self.room:
            return of
        random = self._random(of, 0)
        centres = _seeds(of, self.k, random)
        nearest, distances = _nearest(of, centres, self.dimensions)
        loads = of.weights * distances
        cost, total = loads.sum(), np.bincount(nearest, of.weights)
        # What a point may be of any clustering's cost: its part of this one's, and of its cluster.
        odds = of.weights / total[nearest] / len(total) + (loads / cost if cost else 0.0)
        odds /= odds.sum()
        steps = np.cumsum(odds)
        # Evenly spread draws: each point comes as often as it should, to one.
        drawn = np.searchsorted(steps / steps[-1], (np.arange(self.room) + random[-1]) / self.room, "right")
        rows, counts = np.unique(np.minimum(drawn, len(odds) - 1), return_counts=True)
        weights = of.weights[rows] * counts / (self.room * odds[rows])
        weights *= of.weights.sum() / weights.sum()
        return Coreset(of.points[rows], weights, of.exponent)

    def _joined(self) -> Coreset:
        """All points as one coreset."""
        every = self._block
        for level in self._levels:
            every = _join(every, level)
        return every

    def _none(self) -> Coreset:
        return Coreset(np.empty((0, self.dimensions)), np.empty(0), 0)

    def _absorb(self, other: Self) -> None:
        levels, block = list(other._levels), other._block  # other may be this one
        for level, found in enumerate(levels):
            if len(found.weights):
                self._carry(found, level)
        both = _join(self._block, block)
        self._block = Coreset(both.points[: self.room - 1], both.weights[: self.room - 1], both.exponent)
        if len(both.weights) >= self.room:
            self._block = Coreset(both.points[self.room :], both.weights[self.room :], both.exponent)
            self._carry(Coreset(both.points[: self.room], both.weights[: self.room], both.exponent), 0)

    def _parameters(self) -> dict[str, Any]:
        return {"k": self.k, "dimensions": self.dimensions, "room": self.room, "seed": self.seed}

    def _write(self, writer: serde.Writer) -> None:
        writer.uint(len(self._levels))
        for one in (self._block, *self._levels):
            writer.int(one.exponent).array(one.weights).array(one.scaled())

    def _read(self, reader: serde.Reader) -> None:
        count = reader.uint()
        if count > _LEVELS:
            raise CorruptState(f"the state has {count} coresets, and at most {_LEVELS} of them can be")
        found = [self._read_coreset(reader) for _ in range(count + 1)]
        self._block, self._levels = found[0], found[1:]
        if len(self._block.weights) >= self.room:
            raise CorruptState("the block of rows in the state is full")

    def _read_coreset(self, reader: serde.Reader) -> Coreset:
        exponent, weights, numbers = reader.int(), reader.array(np.float64), reader.array(np.float64)
        if len(weights) > self.room or len(numbers) != len(weights) * self.dimensions:
            raise CorruptState(f"a coreset in the state has {len(weights)} weights and {len(numbers)} numbers")
        if not ((weights >= 0) & (weights < 2.0**80)).all() or abs(exponent) > 2**62:
            raise CorruptState("a weight in the state is no usable number")
        if not (np.abs(numbers) < LARGEST).all():
            raise CorruptState("a point in the state is no usable vector")
        return Coreset(numbers.reshape(-1, self.dimensions), weights, exponent)


def _vectors(given: Any, dimensions: int) -> NDArray[np.float64]:
    """Read a column of vectors; what is missing becomes NaN."""
    rule = f"items must be vectors of {dimensions} numbers each"
    if type(given).__module__.partition(".")[0] == "pyarrow":
        given = given.to_pylist()
    elif hasattr(given, "to_list") and not isinstance(given, np.ndarray):
        given = given.to_list()
    if isinstance(given, (list, tuple)):
        given = [[math.nan] * dimensions if one is None else one for one in given]
    try:
        points = np.asarray(given)
        points = points.astype(np.float64) if points.dtype.kind in "iufbO" else points
    except (TypeError, ValueError) as why:
        raise BadInput(f"{rule}: {why}") from None
    if not len(points) and points.ndim == 1:
        return np.empty((0, dimensions))
    if points.dtype != np.float64 or points.ndim != 2 or points.shape[1] != dimensions:
        raise BadInput(f"{rule}, got an array of {points.dtype} and shape {points.shape}; pass one row for each")
    return np.ascontiguousarray(points)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _join(one: Coreset, other: Coreset) -> Coreset:
    """The union of two; what is too light beside the heaviest to be told from 0 goes."""
    if not len(one.weights) or not len(other.weights):
        return one if len(one.weights) else other
    exponent = max(one.exponent, other.exponent)
    weights = np.concatenate([np.ldexp(c.weights, max(c.exponent - exponent, -3000)) for c in (one, other)])
    return Coreset(np.concatenate([one.points, other.points]), weights, exponent)


def _nearest(of: Coreset, centres: Floats, dimensions: int) -> tuple[Ints, Floats]:
    nearest, distances = np.empty(len(of.weights), np.int64), np.empty(len(of.weights))
    _assign(of.scaled(), dimensions, centres, nearest, distances)
    return nearest, distances


def _seeds(of: Coreset, k: int, random: Floats) -> Floats:
    """`k` points by k-means++: each drawn by its weight times the square of its distance to those before."""
    dimensions = of.points.shape[1]
    loads, chosen = of.weights, np.empty(0)
    distances = np.full(len(of.weights), math.inf)
    for draw in range(k):
        total = float(loads.sum())
        if not total > _FAINT and draw:
            break
        at = min(int(np.searchsorted(np.cumsum(loads), random[draw] * total, "right")), len(loads) - 1)
        chosen = np.append(chosen, of.points[at])
        distances = np.minimum(distances, _nearest(of, of.points[at].copy(), dimensions)[1])
        loads = of.weights * distances
    return chosen


def _lloyd(of: Coreset, centres: Floats, dimensions: int) -> tuple[float, Floats]:
    """Move centres to the means of what is nearest to them, until that gains little; gives the cost and the centres."""
    cost = math.inf
    for _ in range(_ROUNDS):
        nearest, distances = _nearest(of, centres, dimensions)
        now = float((of.weights * distances).sum())
        if not now < cost * (1 - _ENOUGH):
            break
        cost, count = now, len(centres) // dimensions
        totals = np.bincount(nearest, of.weights, count)
        sums = np.array([np.bincount(nearest, of.weights * column, count) for column in of.points.T]).T
        moved = np.divide(
            sums, totals[:, None], out=centres.reshape(-1, dimensions).copy(), where=totals[:, None] > _FAINT
        )
        centres = np.ascontiguousarray(moved).ravel()
    return min(cost, now), centres


SPEC = Spec(
    name="kmeans",
    make=KMeans,
    version=1,
    title="clusters by k-means over a coreset",
    questions=("count", "cost", "centres"),
    timeless=("centres",),
    guarantee="centres that cost about what k-means on all points does; within 10 percent in the tests",
    space="O(room log(n / room)) points",
    time="O(k) distances a row, about 300 ns in bulk for few dimensions",
    paper="Forward Decay (ICDE 2009), section IV, on other holistic aggregates; Feldman and Langberg (2011)",
    equality=Equality.GUARANTEED,
    bounds=lambda _: {"count": 1e-9, "cost": None, "centres": None},
    decays=frozenset({"forward"}),
    items="vectors",
    parameters=({"k": 2, "dimensions": 2, "room": 64},),
    state_bytes=lambda p: 512 + (_LEVELS + 1) * (64 + 8 * p["room"] * (p["dimensions"] + 1)),
)
KMeans.SPEC = SPEC
