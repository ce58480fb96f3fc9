"""Exact answers, from the papers' definitions alone, to hold summaries against.

Nothing here is shared with the library but the parameters of a decay: `g` and `f` are written down a second time,
over decimals of 60 digits whose exponents do not end, and times are ints of nanoseconds. So a million half-lives are
as exact as one. Slow is fine.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from wane import decay as decays
from wane.decay import Decay
from wane.testing.streams import Stream

SECOND = 10**9

USABLE = 2**400
"""Values and weights of this size or more are dropped and counted by every summary."""

_TINY = Decimal(2) ** -960
"""What a double may lose to underflow, beside the largest weight or value."""

_LEAST = Decimal(2) ** -1074
"""The least double above 0."""

_HUGE = Decimal(math.ldexp(2 - 2**-52, 1023))
_EXACT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_LN2 = _EXACT.ln(Decimal(2))


@dataclass(frozen=True, slots=True)
class Row:
    """One accepted row.

    Attributes:
        value: The item.
        time: Its instant, or None.
        weight: Its own weight times its decayed weight at now.
        own: Its own weight.
    """

    value: Any
    time: int | None
    weight: Decimal
    own: float


@dataclass(frozen=True)
class Exact:
    """An exact number, and what an error in it is measured against.

    Attributes:
        value: The number; NaN where the question has no answer.
        scale: What a relative error refers to.
        floor: An error that doubles cannot avoid, from underflow.
    """

    value: Decimal
    scale: Decimal = Decimal(0)
    floor: Decimal = Decimal(0)

    def accepts(self, answer: Any, tolerance: float) -> bool:
        """Whether an answer is right to `tolerance` of the scale."""
        if self.value.is_nan() or math.isnan(answer):
            return self.value.is_nan() and math.isnan(answer)
        with decimal.localcontext(_EXACT):
            if math.isinf(answer):
                return (self.value if answer > 0 else -self.value) > _HUGE * (1 - Decimal(tolerance))
            return abs(Decimal(answer) - self.value) <= Decimal(tolerance) * self.scale + self.floor + _LEAST

    def near(self, mine: Any, theirs: Any, tolerance: float) -> bool:
        """Whether two answers are within `tolerance` of the scale of each other."""
        if mine == theirs or (math.isnan(mine) and math.isnan(theirs)):
            return True
        if not (math.isfinite(mine) and math.isfinite(theirs)):
            return False
        with decimal.localcontext(_EXACT):
            return abs(Decimal(mine) - Decimal(theirs)) <= Decimal(tolerance) * self.scale + 2 * (self.floor + _LEAST)


@dataclass(frozen=True)
class Choice:
    """The items that may be the answer: one, but for ties that rounding may break either way; none for nothing."""

    allowed: frozenset[tuple[Any, int | None]]

    def accepts(self, answer: Any, tolerance: float) -> bool:
        """Whether an answer, a value with its time, is one of them."""
        return not self.allowed if answer is None else tuple(answer) in self.allowed

    def near(self, mine: Any, theirs: Any, tolerance: float) -> bool:
        """Whether both are."""
        return self.accepts(mine, tolerance) and self.accepts(theirs, tolerance)


@dataclass(frozen=True)
class Frequencies:
    """The weight of each item, and which of them a list of the heaviest must, may and must not name.

    Attributes:
        weights: By item.
        total: The sum of all.
        unit: What the weights of the answer are relative to: the total for shares, else 1.
        k: The length of the list, where that is what was asked.
        phi: The least share of the total, where that was asked.
    """

    weights: Mapping[Any, Decimal]
    total: Decimal
    unit: Decimal
    k: int | None = None
    phi: float | None = None

    def accepts(self, answer: Any, tolerance: float) -> bool:
        """Whether a list of items with weights and errors is right to `tolerance` of the total."""
        with decimal.localcontext(_EXACT):
            slack = self.total * Decimal("1e-11") + _LEAST + self.total * _TINY
            allowed = Decimal(tolerance) * self.total + slack
            found: dict[Any, Decimal] = {}
            for item, weight, error in answer:
                high, width = Decimal(weight) * self.unit, Decimal(error) * self.unit
                true = self.weights.get(item, Decimal(0))
                if item in found or not (high - width - slack <= true <= high + slack and width <= allowed):
                    return False
                found[item] = high
            if list(found.values()) != sorted(found.values(), reverse=True):
                return False
            others = [weight for item, weight in self.weights.items() if item not in found]
            if self.phi is not None:
                least = Decimal(self.phi) * self.total
                rules = [self.weights.get(item, Decimal(0)) >= least - allowed for item in found]
                return all(rules) and all(weight < least + slack for weight in others)
            assert self.k is not None
            if len(found) > self.k:
                return False
            last = min(found.values(), default=Decimal(0)) if len(found) == self.k else allowed
            return all(weight <= last + slack for weight in others)

    def near(self, mine: Any, theirs: Any, tolerance: float) -> bool:
        """Whether both are right."""
        return self.accepts(mine, tolerance) and self.accepts(theirs, tolerance)


@dataclass(frozen=True)
class Quantiles:
    """How much weight lies at and below each value, and which shares of it were asked for.

    Attributes:
        ranks: The values in order, each with the weight below it and the weight up to it.
        total: The sum of all.
        phis: The shares.
    """

    ranks: Sequence[tuple[Decimal, Decimal, Decimal]]
    total: Decimal
    phis: tuple[float, ...]

    def accepts(self, answer: Any, tolerance: float) -> bool:
        """Whether each value, of one or a list, has its rank within `tolerance` of the total."""
        values = answer if hasattr(answer, "__len__") else [answer]
        if not self.total:
            return all(math.isnan(value) for value in values)
        return len(values) == len(self.phis) and all(
            self._fits(value, phi, tolerance) for value, phi in zip(values, self.phis, strict=True)
        )

    def near(self, mine: Any, theirs: Any, tolerance: float) -> bool:
        """Whether both are right."""
        return self.accepts(mine, tolerance) and self.accepts(theirs, tolerance)

    def _fits(self, value: float, phi: float, tolerance: float) -> bool:
        if not math.isfinite(value):
            return False
        with decimal.localcontext(_EXACT):
            slack = self.total * (Decimal(tolerance) + Decimal("1e-9")) + _LEAST
            least = [row for row in self.ranks if row[0] <= Decimal(float(value))]
            at = least[-1] if least else None
            upto = at[2] if at else Decimal(0)
            below = (at[1] if at[0] == Decimal(float(value)) else at[2]) if at else Decimal(0)
            # The smallest value of at least that rank: it reaches it, and what is below it does not.
            return below - slack <= Decimal(phi) * self.total <= upto + slack


@dataclass(frozen=True)
class Counts:
    """A list of exact numbers."""

    each: tuple[Exact, ...]

    def accepts(self, answer: Any, tolerance: float) -> bool:
        """Whether each is right to `tolerance` of its scale."""
        pairs = zip(self.each, answer, strict=False)
        return len(answer) == len(self.each) and all(one.accepts(float(found), tolerance) for one, found in pairs)

    def near(self, mine: Any, theirs: Any, tolerance: float) -> bool:
        """Whether both are right."""
        return self.accepts(mine, tolerance) and self.accepts(theirs, tolerance)


Answer = Exact | Choice | Frequencies | Quantiles | Counts
Rows = Sequence[Row]


def rows(
    stream: Stream,
    decay: Decay,
    now: int | None = None,
    landmark: int | None = None,
    *,
    before: str = "error",
    numbers: bool = True,
) -> list[Row]:
    """The rows that a summary must accept, with their exact weights at `now`.

    Args:
        stream: The rows given.
        decay: The decay.
        now: The instant of the question; None where it does not matter.
        landmark: The landmark.
        before: The policy for rows before the landmark.
        numbers: Whether items are numbers or vectors, so that NaN, infinities and huge ones are dropped.
    """
    loads = [1.0] * len(stream) if stream.weights is None else stream.weights.tolist()
    found = []
    with decimal.localcontext(_EXACT):
        weigh = _weigher(decay, now, landmark)
        known: dict[int | None, Decimal] = {}
        for value, time, own in zip(stream.items.tolist(), stream.instants, loads, strict=True):
            lost = stream.times is not None and time is None
            parts = value if isinstance(value, list) else [value]
            if lost or (numbers and not all(abs(part) < USABLE for part in parts)) or not own < USABLE:
                continue
            at: int | None = time
            if at is not None and landmark is not None and at < landmark:
                if before == "error":
                    raise ValueError(f"{at} is before the landmark {landmark}; give an earlier one, or another policy")
                if before == "drop":
                    continue
                at = landmark
            if at not in known:
                known[at] = weigh(at)
            found.append(Row(value, at, known[at] * Decimal(own), own))
    return found


def decayed_count(given: Rows) -> Exact:
    """``C``, the sum of weights (Definition 5)."""
    with decimal.localcontext(_EXACT):
        weight = _sum(row.weight for row in given)
        return Exact(weight, weight, _TINY * _heaviest(given))


def decayed_sum(given: Rows) -> Exact:
    """``S``, the sum of weighted values (Definition 5); an error refers to the sum of their magnitudes."""
    return decayed_total(given, lambda value: value)


def decayed_mean(given: Rows) -> Exact:
    """``A = S / C`` (Definition 5); an error refers to the mean magnitude."""
    with decimal.localcontext(_EXACT):
        found = _mean(given)
        return Exact(Decimal("NaN")) if found is None else Exact(*found, _TINY * _largest(given))


def decayed_var(given: Rows) -> Exact:
    """``V = sum(w (v - A)^2) / C``, the variance with weights as probabilities (section IV.A).

    What doubles can give depends on how well they know the mean: with `M` the mean magnitude, and the mean off by some
    ulps `d` of it, `V` is off by ``2 d sqrt(V) + d^2``. So an error refers to ``V + M sqrt(V) + M^2 / 2^50``.
    """
    with decimal.localcontext(_EXACT):
        found = _mean(given)
        if found is None:
            return Exact(Decimal("NaN"))
        mean, size = found
        weight = _sum(row.weight for row in given)
        value = _sum(row.weight * (Decimal(row.value) - mean) ** 2 for row in given) / weight
        return Exact(value, value + size * value.sqrt() + size * size / 2**50, _TINY * _largest(given) ** 2)


def decayed_total(given: Rows, of: Callable[[Decimal], Decimal]) -> Exact:
    """The decayed sum of an expression of the value (Theorem 1), without the rows where it is no usable number."""
    with decimal.localcontext(_EXACT):
        parts = [(row.weight, part) for row in given if abs(part := of(Decimal(row.value))) < USABLE]
        value = _sum(weight * part for weight, part in parts)
        scale = _sum(weight * abs(part) for weight, part in parts)
        largest = max((abs(part) for _, part in parts), default=Decimal(0))
        return Exact(value, scale, _TINY * _heaviest(given) * max(largest, _largest(given)))


def smallest(given: Rows) -> Exact:
    """The smallest ``w v`` (Definition 6)."""
    return _extreme(given, min)


def largest(given: Rows) -> Exact:
    """The largest ``w v`` (Definition 6)."""
    return _extreme(given, max)


def smallest_item(given: Rows) -> Choice:
    """The item of the smallest ``w v``; of ties the newest, then the one of the largest value."""
    return _choice(given, -1)


def largest_item(given: Rows) -> Choice:
    """The item of the largest ``w v``; of ties the newest, then the one of the largest value."""
    return _choice(given, 1)


def heaviest_items(given: Rows, k: int) -> Frequencies:
    """The `k` items of the largest weight (Definition 7, with the weights themselves)."""
    return _frequencies(given, k=k)


def heavy_items(given: Rows, phi: float) -> Frequencies:
    """The items of ``phi C`` or more (Definition 7)."""
    return _frequencies(given, phi=phi)


def largest_shares(given: Rows, k: int) -> Frequencies:
    """The `k` items of the largest weight, as shares of the total."""
    found = _frequencies(given, k=k)
    return replace(found, unit=found.total)


def decayed_quantile(given: Rows, phi: float) -> Quantiles:
    """The smallest value whose rank is `phi` of the count (Definition 8)."""
    return decayed_quantiles(given, (phi,))


def decayed_quantiles(given: Rows, phis: Sequence[float]) -> Quantiles:
    """The same for several."""
    with decimal.localcontext(_EXACT):
        weights: dict[Decimal, Decimal] = {}
        for row in given:
            weights[Decimal(row.value)] = weights.get(Decimal(row.value), Decimal(0)) + row.weight
        ranks, below = [], Decimal(0)
        for value in sorted(weights):
            ranks.append((value, below, below + weights[value]))
            below += weights[value]
        return Quantiles(ranks, below, tuple(phis))


def decayed_rank(given: Rows, value: float) -> Exact:
    """``r_v``, the weight of values up to one (Definition 8); an error refers to all weight."""
    with decimal.localcontext(_EXACT):
        weight = _sum(row.weight for row in given if row.value <= value)
        return Exact(weight, _sum(row.weight for row in given), _TINY * _heaviest(given))


def decayed_cdf(given: Rows, value: float) -> Exact:
    """The rank of a value as a share of all weight."""
    with decimal.localcontext(_EXACT):
        rank = decayed_rank(given, value)
        return Exact(rank.value / rank.scale, Decimal(1), _TINY) if rank.scale else Exact(Decimal("NaN"))


def decayed_histogram(given: Rows, edges: Sequence[float]) -> Counts:
    """The weight of values above each edge and up to the next."""
    with decimal.localcontext(_EXACT):
        ranks = [decayed_rank(given, edge) for edge in edges]
        bins = itertools.pairwise(ranks)
        return Counts(tuple(Exact(b.value - a.value, a.scale, 2 * a.floor) for a, b in bins))


def distinct_weight(given: Rows) -> Exact:
    """``D``, the sum over distinct items of their largest weight (Definition 9)."""
    with decimal.localcontext(_EXACT):
        most: dict[Any, Decimal] = {}
        for row in given:
            most[row.value] = max(most.get(row.value, Decimal(0)), row.weight)
        weight = _sum(most.values())
        return Exact(weight, weight, _TINY * _heaviest(given))


ORACLES: Mapping[str, Callable[..., Answer]] = {
    "count": decayed_count,
    "sum": decayed_sum,
    "mean": decayed_mean,
    "var": decayed_var,
    "total": decayed_total,
    "min": smallest,
    "max": largest,
    "argmin": smallest_item,
    "argmax": largest_item,
    "top": heaviest_items,
    "heavy": heavy_items,
    "shares": largest_shares,
    "quantile": decayed_quantile,
    "quantiles": decayed_quantiles,
    "rank": decayed_rank,
    "cdf": decayed_cdf,
    "histogram": decayed_histogram,
    "distinct": distinct_weight,
}
"""The exact answer to each question, from rows with their weights and the question's arguments; ``total`` takes the
expression too."""


def _frequencies(given: Rows, **asked: Any) -> Frequencies:
    with decimal.localcontext(_EXACT):
        weights: dict[Any, Decimal] = {}
        for row in given:
            weights[row.value] = weights.get(row.value, Decimal(0)) + row.weight
        return Frequencies(weights, _sum(weights.values()), Decimal(1), **asked)


def _sum(numbers: Iterable[Decimal]) -> Decimal:
    return sum(numbers, Decimal(0))


def _mean(given: Rows) -> tuple[Decimal, Decimal] | None:
    """The mean and the mean magnitude, where anything has weight."""
    weight = _sum(row.weight for row in given)
    if not weight:
        return None
    values = [(row.weight, Decimal(row.value)) for row in given]
    return _sum(w * v for w, v in values) / weight, _sum(w * abs(v) for w, v in values) / weight


def _heaviest(given: Rows) -> Decimal:
    return Decimal(max((row.own for row in given), default=0.0))


def _largest(given: Rows) -> Decimal:
    return Decimal(max([1.0, *(abs(row.value) for row in given)]))


def _extreme(given: Rows, choose: Callable[[Iterable[Decimal]], Decimal]) -> Exact:
    if not given:
        return Exact(Decimal("NaN"))
    with decimal.localcontext(_EXACT):
        value = choose([row.weight * Decimal(row.value) for row in given])
        return Exact(value, abs(value))


def _choice(given: Rows, side: int) -> Choice:
    """The rows whose product is the extreme one, or within rounding of it.

    Rows of one weight and one value tie exactly, and so do products of 0: of those only the newest is right.
    """
    if not given:
        return Choice(frozenset())
    with decimal.localcontext(_EXACT):
        products = [side * row.weight * Decimal(row.value) for row in given]
        best = max(products)
        slack = abs(best) * Decimal("1e-12")
        tied: dict[Any, tuple[int, Any]] = {}
        for row, product in zip(given, products, strict=True):
            if product >= best - slack:
                alike = (row.weight, row.own, row.value) if best else None
                age = (-(2**80) if row.time is None else row.time, row.value)
                tied[alike] = max(tied.get(alike, age), age)
    return Choice(frozenset((value, None if time == -(2**80) else time) for time, value in tied.values()))


def _weigher(decay: Decay, now: int | None, landmark: int | None) -> Callable[[int | None], Decimal]:
    """Weight as a function of an item's instant: Definition 2 or 3."""
    if isinstance(decay, decays.NoDecay):
        return lambda _: Decimal(1)
    if isinstance(decay, decays.Pinned):
        now, decay = decay.now, decay.decay
    if isinstance(decay, decays.Exponential):  # forward and backward: any landmark gives the same weights
        rate = _LN2 * SECOND / decay.half_life if decay.half_life else Decimal(decay.rate or 0)
        return lambda time: _exp(rate, _seconds(time, now or 0))
    if isinstance(decay, decays.Forward):
        g, start = _g(decay), landmark or 0
        top = Decimal(1) if now is None else g(_seconds(now, start))
        return lambda time: g(_seconds(time, start)) / top if top else Decimal(0)
    if now is None:
        raise ValueError(f"{decay} has no weights without a now; give one")
    f, asked = _f(decay), now
    return lambda time: f(-_seconds(time, asked)) / f(Decimal(0))


@functools.lru_cache(100_000)
def _exp(rate: Decimal, seconds: Decimal) -> Decimal:
    return (rate * seconds).exp()


def _seconds(time: int | None, origin: int) -> Decimal:
    if time is None:
        raise ValueError("an item without a time has no weight under this decay; give times")
    return Decimal(time - origin) / SECOND


@functools.lru_cache(64)
def _g(decay: Decay) -> Callable[[Decimal], Decimal]:
    """``g`` of the seconds since the landmark (section III); what was computed is kept, since powers are slow."""
    return functools.lru_cache(100_000)(_plain_g(decay))


def _plain_g(decay: Decay) -> Callable[[Decimal], Decimal]:
    if isinstance(decay, decays.Landmark):
        return lambda n: Decimal(n > 0)
    if isinstance(decay, decays.Poly):
        beta = Decimal(decay.beta)
        return lambda n: n**beta if n else Decimal(0)
    if isinstance(decay, decays.Polynomial):
        terms, unit = decay.coefficients, Decimal(decay.unit) / SECOND
        return lambda n: _sum(Decimal(c) * ((n / unit) ** k if k else 1) for k, c in enumerate(terms))
    if isinstance(decay, decays.CustomForward):
        return _users(decay)
    raise TypeError(f"there is no exact form of {decay}; add it to wane.testing.oracles")


@functools.lru_cache(64)
def _f(decay: Decay) -> Callable[[Decimal], Decimal]:
    """``f`` of age in seconds (section II.A)."""
    return functools.lru_cache(100_000)(_plain_f(decay))


def _plain_f(decay: Decay) -> Callable[[Decimal], Decimal]:
    if isinstance(decay, decays.SlidingWindow):
        length = Decimal(decay.length) / SECOND
        return lambda a: Decimal(a < length)
    if isinstance(decay, decays.BackwardPoly):
        unit, alpha = Decimal(decay.unit) / SECOND, Decimal(decay.alpha)
        return lambda a: (a / unit + 1) ** -alpha
    if isinstance(decay, decays.SuperExponential):
        half = Decimal(decay.half_life or 0) / SECOND
        rate = _LN2 / half**2 if half else Decimal(decay.rate or 0)
        return lambda a: (-rate * a * a).exp()
    if isinstance(decay, decays.SubPoly):
        unit = Decimal(decay.unit) / SECOND
        return lambda a: 1 / (1 + (1 + a / unit).ln())
    if isinstance(decay, decays.CustomBackward):
        return _users(decay)
    raise TypeError(f"there is no exact form of {decay}; add it to wane.testing.oracles")


def _users(decay: decays.CustomForward | decays.CustomBackward) -> Callable[[Decimal], Decimal]:
    """A user's function is one of doubles: its own results are the definition."""
    unit = Decimal(decay.unit) / SECOND

    def users(n: Decimal) -> Decimal:
        found = decay.func(float(n / unit))
        return Decimal(found).exp() if decay.log else Decimal(found)

    return users
