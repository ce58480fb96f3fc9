"""Decayed distinct count, the dominance norm: Definition 9 and Theorem 4 of the forward-decay paper.

Each distinct item weighs what its heaviest row weighs, and the answer is the sum of these weights. The state is a
sample of the distinct items, drawn by their hashes: the `k` items of the smallest ``hash / weight``
(:mod:`wane.summaries._bottom`), and the next such value `c`. An item of weight `w` is in the sample with the odds
``min(1, c w)``, so that each one there stands for ``max(w, 1 / c)`` (Duffield, Lund and Thorup, Priority sampling for
estimation of arbitrary subset sums, 2007). The paper names another structure of the same cost; this one also answers
for any part of the items, and its state is a function of the set of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane.decay import Decay
from wane.decay.base import Floats
from wane.items import Items
from wane.registry import Equality, Spec
from wane.summaries._bottom import Bottom, uniform
from wane.summaries._candidates import doubles, normal
from wane.summaries.base import Batch, Summary, fraction, ldexp, whole


class Interval(NamedTuple):
    """Where the true answer lies, with the confidence that was asked for."""

    low: float
    high: float


class Distinct(Summary):
    """The decayed number of distinct items: the sum, over distinct items, of the weight of the heaviest row.

    Without decay that is how many distinct items there are. Right to `epsilon` of itself with a probability of at least
    ``1 - delta``, and exact while fewer than `k` items have been seen. Repetition changes nothing, nor does order: the
    same set of rows gives the same bytes. ``k = 2 + (z / epsilon)**2 (1 + epsilon)`` items are kept, with `z` the
    normal quantile of ``delta / 2``: 1616 of them by default, of 24 bytes each and their own size. Some 6 ns a row in
    bulk. Takes any forward decay, or a backward one whose time is fixed.

    Items are whole numbers, floats, texts or bytes, equal as they are in Python; they are told apart by 64-bit hashes.

    Args:
        epsilon: The relative error allowed.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        delta: The probability allowed for a larger error.
        seed: Chooses the hashes. Summaries merge if it is the same.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> seen = Distinct(0.05, "exp(half_life=1m)")
    >>> seen.update(["a", "b", "a", "c"], times=[0, 60, 60, 120]).distinct(now=120)
    2.0
    >>> seen.distinct(now=120, where=lambda user: user != "c")
    1.0
    """

    def __init__(
        self,
        epsilon: float = 0.05,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        delta: float = 0.05,
        seed: int = 0,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-4, "what it costs is in proportion to its inverse squared")
        self.delta = fraction(delta, "delta", 1e-12, "it is the probability of a larger error")
        self.seed = whole(seed, "seed", 0)
        self._bottom = Bottom(size(self.epsilon, self.delta), uniform)

    def distinct(
        self, now: Any = None, *, where: Callable[[Any], Any] | None = None, historical: bool = False
    ) -> float:
        """The decayed number of distinct items, or of those for which the function `where` gives true."""
        return self._answer(now, where, historical)[0]

    estimate = distinct

    def interval(
        self, now: Any = None, *, where: Callable[[Any], Any] | None = None, historical: bool = False
    ) -> Interval:
        """An interval around :meth:`distinct` that holds the true one with a probability of about ``1 - delta``.

        It is as wide as the sample says: for a part of the items, relatively wider.
        """
        return Interval(*self._answer(now, where, historical)[1:])

    def _answer(self, now: Any, where: Callable[[Any], Any] | None, historical: bool) -> tuple[float, float, float]:
        """The estimate and both ends of its interval."""
        self._settle()
        weight, exponent = self._now(now, historical)
        sampled = len(self._bottom)
        limit = self._bottom.threshold()
        one = normal(np.array([1.0 if limit is None else 1 / limit[0]]), np.array([0 if limit is None else -limit[1]]))
        (weights, (least,)), shared = doubles(self._bottom.weights.take(slice(sampled)), one)
        least = 0.0 if limit is None else least
        if where is not None:
            weights = weights[np.array([bool(where(item)) for item in self._bottom.items[:sampled].tolist()], np.bool_)]
        answers = estimated(weights, least, NormalDist().inv_cdf(1 - self.delta / 2))
        low, middle, high = (ldexp(answer / weight, shared - exponent) for answer in answers)
        return middle, low, high

    def _column(self, given: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        column = items.read(given, self.seed)
        return column, column.valid

    def _add_rows(self, given: Items, batch: Batch) -> None:
        self._bottom.feed(self.decay, self.landmark, batch, given.hash, given.take)

    def _scale(self, factor: float, exponent: int) -> None:
        self._settle()
        before, self._bottom = self._bottom, Bottom(self._bottom.k, uniform)
        weights = normal(before.weights.mantissas * factor, before.weights.exponents + exponent)
        self._bottom.add(before.hashes, weights, lambda rows: before.items[rows])

    def _absorb(self, other: Self) -> None:
        theirs = other._bottom
        kept = theirs.items
        self._bottom.add(theirs.hashes, theirs.weights, lambda rows: kept[rows])

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "seed": self.seed}

    def _write(self, writer: serde.Writer) -> None:
        self._bottom.write(writer, hashes=False)

    def _read(self, reader: serde.Reader) -> None:
        self._bottom.read(reader, self.seed)


def size(epsilon: float, delta: float) -> int:
    """How many items keep the error under `epsilon` with a probability of ``1 - delta``.

    Of all weights equal ones are the hardest (Szegedy, The DLT priority sampling is essentially optimal, 2006). Then
    the estimate is `D k` over a number of the gamma distribution of ``k + 1``, which is near the normal one. Its skew
    costs a factor under ``1 + epsilon``: so says its distribution function for epsilon to 0.5 and delta to 0.001.
    """
    return 2 + math.ceil((NormalDist().inv_cdf(1 - delta / 2) / epsilon) ** 2 * (1 + epsilon))


def estimated(weights: Floats, least: float, z: float) -> tuple[float, float, float]:
    """The sum that a priority sample stands for: the low end of its interval, the estimate, the high end.

    Args:
        weights: Those of the sample.
        least: What each of them stands for at least.
        z: The half-width of the interval, in standard deviations.
    """
    known = math.fsum(weights)
    middle = math.fsum(np.maximum(weights, least))
    variance = math.fsum(least * np.maximum(least - weights, 0.0))
    # The score interval: that of the Poisson distribution where nothing was found, of the normal one where much was.
    half = z * math.sqrt(variance + (least * z) ** 2 / 4)
    centre = middle + least * z**2 / 2
    return min(max(known, centre - half), middle), middle, centre + half


SPEC = Spec(
    name="distinct",
    make=Distinct,
    version=1,
    title="distinct items under decay, by a sample of them",
    questions=("distinct",),
    timeless=(),
    guarantee="relative error epsilon with probability 1 - delta; exact for up to k distinct items",
    space="O(1 / epsilon^2): 24 bytes and an item for each of k = 2 + (z / epsilon)^2 (1 + epsilon)",
    time="O(1) amortised, about 6 ns a row in bulk",
    paper="Forward Decay (ICDE 2009), Definition 9 and Theorem 4; Priority sampling (JACM 2007) as its estimator",
    equality=Equality.IDENTICAL,
    bounds=lambda p: {} if size(p["epsilon"], p["delta"]) > 1000 else {"distinct": None},
    decays=frozenset({"forward"}),
    items="any",
    parameters=({"epsilon": 0.05, "delta": 0.05}, {"epsilon": 0.6, "delta": 0.3}),
    functions=("distinct",),
    state_bytes=lambda p: 512 + 32 * (size(p["epsilon"], p["delta"]) + 1),
)
Distinct.SPEC = SPEC
