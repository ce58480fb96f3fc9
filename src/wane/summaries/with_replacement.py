"""Sampling with replacement under decay: Theorem 5 of the forward-decay paper.

Each of `k` draws takes a row with its share of the decayed count. The paper's chain of coin tosses has the distribution
of a race: a row of weight `w` arrives in each draw after a random time of the exponential distribution of rate `w`, and
the first one is drawn. All `k` arrivals of one row are a Poisson process of rate ``k w`` whose points go to draws at
random, so that one random number says when the first of them comes; where that is after the last draw is decided, the
row is skipped. About ``k ln(k) w / W`` points of a row have to be looked at, `W` being the weight so far. The points
are a function of the row's hash, and the first one in each draw does not depend on the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints, share
from wane.errors import CorruptState
from wane.hashing import Hashes, scramble
from wane.registry import Equality, Spec
from wane.summaries._bottom import Take, log, one_each, read_weights, spliced
from wane.summaries._candidates import Wide, candidates, normal, unit
from wane.summaries._sampled import SEEDS, Draw, Rows, Sampler, Where
from wane.summaries.base import Batch, ldexp

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_NEVER = 2**62
"""The power of two of a time that has not come."""


@inline
def _before(mantissa: float, exponent: int, other: float, power: int) -> bool:
    """Whether a wide number is less than another."""
    return exponent < power or (exponent == power and mantissa < other)


@kernel("void(r_u8, r_f8, r_i8, int64, w_f8, w_i8, w_u8, w_i8, w_i8)", fuse=False)
def _race(
    hashes: Hashes,
    mantissas: Floats,
    exponents: Ints,
    first: int,
    times: Floats,
    powers: Ints,
    winners: Hashes,
    owners: Ints,
    met: Ints,
) -> None:
    """Let rows arrive in the draws; whoever comes first in one is its owner.

    Args:
        hashes: The rows' identities.
        mantissas: Their weights.
        exponents: The powers of two of these.
        first: The number of the first row.
        times: When each draw was decided, with
        powers: the powers of two, and
        winners: the identity and
        owners: the number of the row that it went to.
        met: Memory: the row by which a draw was met last.
    """
    k = times.shape[0]
    last, power, stale = 0.0, np.int64(0), k
    for i in range(hashes.shape[0]):
        if stale >= k // 4:  # the last draw of all, or one after it: that costs time only
            last, power, stale = times[0], powers[0], 0
            for j in range(1, k):
                if _before(last, power, times[j], powers[j]):
                    last, power = times[j], powers[j]
        rate = k * mantissas[i]
        passed = -log(1.0 - unit(hashes[i]))
        word = hashes[i]
        left = k
        while left > 0:
            fraction, shift = math.frexp(passed / rate)
            time, at = 2.0 * fraction, shift - 1 - exponents[i]
            if _before(last, power, time, at):
                break
            word += _GOLDEN
            draw = np.int64(((scramble(word) >> _HALF) * np.uint64(k)) >> _HALF)
            if met[draw] != first + i:  # of several points in a draw the first one counts
                met[draw] = first + i
                left -= 1
                same = at == powers[draw] and time == times[draw]
                if _before(time, at, times[draw], powers[draw]) or (same and hashes[i] <= winners[draw]):
                    times[draw], powers[draw] = time, at
                    winners[draw], owners[draw] = hashes[i], first + i
                    stale += 1
            word += _GOLDEN
            passed += -log(1.0 - unit(scramble(word)))


class WithReplacement(Sampler):
    """`k` independent draws of a row, each in proportion to its weight; a row may be drawn more than once.

    Exactly this distribution, in whatever order rows come. The share of any part of the weight is that of the draws
    that fall into it, with the binomial's error; what all rows weigh is estimated to ``1 / sqrt(k)`` of itself, and
    neither has a bias. 24 bytes for each row that is drawn, and its item. Some 10 ns a row in bulk. Takes any forward
    decay, or a backward one whose time is fixed.

    A row that weighs 0 is never drawn; one whose weight is infinite, NaN or over 2.6e120 is dropped and counted, and a
    negative one is an error. All others may differ as they like: 1e-300 beside 1e100 is no loss.

    Args:
        k: How many draws.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        seed: Chooses the random numbers. Parts that merge have seeds of their own; if rows have ids, one seed.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> drawn = WithReplacement(4, "exp(half_life=1m)", seed=7).update(["a", "b"], times=[0, 60])
    >>> drawn.items(), drawn.share(lambda item: item == "b")
    (['b', 'b', 'a', 'b'], 0.75)
    """

    def _begin(self) -> None:
        self._hashes = np.empty(0, np.uint64)  # of the rows that were drawn
        self._weights = Wide(np.empty(0), np.empty(0, np.int64))
        self._items: NDArray[Any] = np.empty(0, np.int64)
        self._arrivals = Wide(np.ones(self.k), np.full(self.k, _NEVER))
        self._owners = np.full(self.k, -1)

    def items(self) -> list[Any]:
        """The items drawn, `k` of them, or none where there is no row; they do not depend on now."""
        self._settle()
        found: list[Any] = self._items[self._owners].tolist() if len(self._items) else []
        return found

    def sample(self, now: Any = None, *, historical: bool = False) -> list[Draw]:
        """The rows drawn, each with its decayed weight and the part of the decayed count that it stands for."""
        drawn, every = self.items(), self.count(now, historical=historical)
        weight, exponent = self._now(now, historical)
        loads, power = share(*self._weights)
        owners = self._owners.tolist() if drawn else []
        scaled = [ldexp(float(loads[owner]) / weight, power - exponent) for owner in owners]
        return [Draw(item, own, every / self.k) for item, own in zip(drawn, scaled, strict=True)]

    def share(self, where: Where) -> float:
        """The share of the decayed count of rows for whose item a function gives true; NaN of nothing.

        Its variance is ``s (1 - s) / k``, and it does not depend on now.
        """
        drawn = self.items()
        return sum(bool(where(item)) for item in drawn) / self.k if drawn else math.nan

    def estimate(self, where: Where | None = None, now: Any = None, *, historical: bool = False) -> float:
        """The decayed weight of all rows for whose item a function gives true, without bias; from two draws on.

        Args:
            where: A function of an item; None for all.
            now: When.
            historical: Whether now may be before the newest item.
        """
        self._settle()
        weight, exponent = self._now(now, historical)
        if not len(self._items):
            return 0.0
        if self.k == 1:
            return math.nan
        times, power = share(*self._arrivals)
        part = 1.0 if where is None else self.share(where)
        return ldexp(part * (self.k - 1) / math.fsum(times) / weight, -power - exponent)

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count: :meth:`estimate` of all rows."""
        return self.estimate(None, now, historical=historical)

    def _limit(self) -> tuple[float, int] | None:
        """What a row's random number over its weight must stay under to matter."""
        if not len(self._items):
            return None
        last = np.lexsort(self._arrivals)[-1]
        return float(self._arrivals.mantissas[last]) * self.k, int(self._arrivals.exponents[last])

    def _add_rows(self, rows: Rows, batch: Batch) -> None:
        if not batch.size:
            return
        identities, room = self._identify(rows, batch.size), max(4 * self.k, 4096)
        for hashes, places, weights in candidates(self.decay, self.landmark, batch, identities, self._limit, room):
            self._add(hashes, weights, lambda chosen, places=places: rows.items.take(places[chosen]))  # type: ignore[misc]

    def _add(self, hashes: Hashes, weights: Wide, take: Take) -> None:
        """Let rows with their exact weights take part."""
        there = np.flatnonzero(weights.mantissas != 0)
        hashes, weights = hashes[there], weights.take(there)
        mine = len(self._hashes)
        every, loads = np.concatenate([self._hashes, hashes]), self._weights.joined(weights)
        lightness = normal(1 / loads.mantissas, -loads.exponents)
        rows: Callable[[Ints], NDArray[Any]] = lambda chosen: spliced(self._items, chosen, there, take)  # noqa: E731
        new = one_each(every, lightness, rows)
        new = new[new >= mine]
        winners = np.full(self.k, 2**64 - 1, np.uint64)
        if mine:
            winners = every[self._owners]
        numbers = self._owners.copy()
        _race(
            every[new], *loads.take(new), 2**40, *self._arrivals, winners, numbers, np.full(self.k, -1)
        )  # rows that are new go by numbers of their own
        fresh = numbers >= 2**40
        numbers[fresh] = new[numbers[fresh] - 2**40]
        kept, self._owners = np.unique(numbers, return_inverse=True)
        if len(every):
            order = np.argsort(every[kept])
            place = np.empty(len(kept), np.int64)
            place[order] = np.arange(len(kept))
            kept, self._owners = kept[order], place[self._owners]
            self._items = rows(kept)
            self._hashes, self._weights = every[kept], loads.take(kept)

    def _absorb(self, other: Self) -> None:
        self._meet(other)
        kept = other._items
        self._add(other._hashes, other._weights, lambda chosen: kept[chosen])

    def _write(self, writer: serde.Writer) -> None:
        super()._write(writer)
        items.write(writer, items.plain(self._items))
        writer.array(self._weights.mantissas).array(self._weights.exponents).array(self._hashes)

    def _read(self, reader: serde.Reader) -> None:
        super()._read(reader)
        kept, _ = items.parse(reader, unique=False)
        weights, hashes = read_weights(reader), reader.array(np.uint64)
        if not len(kept) == len(hashes) == len(weights.mantissas) <= self.k:
            raise CorruptState(f"the state has {len(kept)} rows, and at most {self.k} of one length fit")
        if (hashes[1:] <= hashes[:-1]).any() or (len(kept) and self._with_ids is None):
            raise CorruptState("the rows in the state are out of order, there twice, or of no stream")
        self._add(hashes, weights, lambda chosen: kept[chosen])
        if len(self._hashes) != len(hashes):
            raise CorruptState("a row in the state was not drawn")


SPEC = Spec(
    name="with_replacement",
    make=WithReplacement,
    version=1,
    title="independent draws in proportion to weight",
    questions=("count", "items"),
    timeless=("items",),
    guarantee="k independent draws, each of a row with its share of the decayed count",
    space="O(k): 24 bytes and an item for each of at most k rows",
    time="O(1) amortised, about 10 ns a row in bulk",
    paper="Forward Decay (ICDE 2009), Theorem 5",
    equality=Equality.IDENTICAL,
    numbered=True,
    bounds=lambda _: {"count": None},
    decays=frozenset({"forward"}),
    items="any",
    parameters=({"k": 5},),
    records={"sample": Draw},
    functions=("sample",),
    state_bytes=lambda p: 640 + 8 * SEEDS + 40 * p["k"],
)
WithReplacement.SPEC = SPEC
