"""Heavy hitters under any forward decay: weighted SpaceSaving, Theorem 2 of the forward-decay paper.

A counter holds an item, an upper bound of its weight, and by how much that may be too high. `missed` is the most that
any item without a counter can weigh. A short list of distinct items with exact weights (:mod:`wane.summaries._tally`)
is added at once: an item that has no counter yet enters with its weight plus `missed`, and then only the heaviest
counters stay. Two summaries merge in the same way. That is the paper's algorithm, which adds one item at a time and
gives it the counter of the lightest, with the additions taken in larger steps:

* No counter is under `missed`, and the counters sum to no more than the weight `C` of the whole stream: whoever enters
  brings `missed` with it, and pushes out a counter of at least that.
* So after `m` counters are full, ``missed <= C / m``; this is the error of every answer.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from wane import items, serde
from wane.decay import Decay, NoDecay
from wane.decay.base import Floats
from wane.errors import CorruptState
from wane.items import Items
from wane.registry import Equality, Spec
from wane.summaries._tally import Tally, heaviest, scaled, shift
from wane.summaries.base import Batch, Summary, fraction, ldexp, plus, whole

_LONGEST = 8192
"""Distinct items that are collected before they are added: their table stays in the cache."""

_ROUNDING = 1e-12
"""What rounding may take from a sum of weights, relative to it."""


class Hit(NamedTuple):
    """An item with its weight.

    Attributes:
        item: The item.
        weight: Its decayed weight, or a little more.
        error: By how much `weight` may be too high: the true one is from ``weight - error`` to ``weight``.
    """

    item: Any
    weight: float
    error: float


class SpaceSaving(Summary):
    """Heavy hitters: the items with the largest decayed weight.

    With ``ceil(1 / epsilon)`` counters each answer is right to `epsilon` of the decayed count `C` of all items, in any
    order of arrival, over any span, after any merges: :meth:`heavy` gives every item of ``phi C`` or more and none
    under ``(phi - epsilon) C``. 32 bytes a counter for items of 8 bytes; about 10 ns a row in bulk. Takes any forward
    decay, or a backward one whose time is fixed.

    Items are whole numbers, floats, texts or bytes, equal as they are in Python; texts are told apart by 64-bit hashes.
    A missing item (None, NaN) is dropped and counted, and one of weight 0 leaves no trace.

    Args:
        epsilon: The error allowed, relative to the decayed count.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> hot = SpaceSaving(0.01, "exp(half_life=1m)")
    >>> hot.update(["a", "b", "b", "c"], times=[0, 0, 0, 60]).top(2, now=60)
    [Hit(item='b', weight=1.0, error=0.0), Hit(item='c', weight=1.0, error=0.0)]
    """

    def __init__(
        self, epsilon: float = 0.001, decay: str | Decay = "none", landmark: Any = None, *, before: str = "error"
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-7)
        self._room = math.ceil(1 / self.epsilon)
        self._exponent = 0
        self._total = self._lost = 0.0  # the decayed count, and what its rounding lost
        self._missed = 0.0
        self._highs = np.empty(0)
        self._errors = np.empty(0)
        self._keys = np.empty(0, np.uint64)
        self._items: Any = np.empty(0, np.int64)

    def top(self, k: int = 10, now: Any = None, *, historical: bool = False) -> list[Hit]:
        """The `k` heaviest items, heaviest first; each weight is right to its error, which is at most `epsilon C`.

        An item that is not there weighs at most as much as the last one that is.
        """
        self._settle()
        weight, exponent = self._now(now, historical)
        return [
            Hit(item, ldexp(high / weight, self._exponent - exponent), ldexp(error / weight, self._exponent - exponent))
            for item, high, error in self._heaviest(k)
        ]

    def shares(self, k: int = 10) -> list[Hit]:
        """:meth:`top` with weights as shares of the decayed count, which do not depend on now."""
        self._settle()
        total = self._total + self._lost
        return [Hit(item, high / total, error / total) for item, high, error in self._heaviest(k)]

    def heavy(self, phi: float, now: Any = None, *, historical: bool = False) -> list[Hit]:
        """Every item that weighs ``phi C`` or more, and none that weighs less than ``(phi - epsilon) C``."""
        share = fraction(phi, "phi", self.epsilon, "epsilon, since lighter items may have no counter")
        self._settle()
        least = share * (self._total + self._lost) * (1 - _ROUNDING)
        return self.top(int((self._highs >= least).sum()), now, historical=historical)

    def estimate(self, item: Any, now: Any = None, *, historical: bool = False) -> Hit:
        """The weight of one item, which may have no counter: then it is from 0 to its error."""
        self._settle()
        found = np.flatnonzero(self._keys == items.read([item]).hashes[0])
        high, error = (self._highs[found[0]], self._errors[found[0]]) if len(found) else (self._missed, self._missed)
        weight, exponent = self._now(now, historical)
        by = self._exponent - exponent
        return Hit(item, ldexp(float(high) / weight, by), ldexp(float(error) / weight, by))

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count `C` of all items."""
        self._settle()
        weight, exponent = self._now(now, historical)
        return ldexp((self._total + self._lost) / weight, self._exponent - exponent)

    def _heaviest(self, k: int) -> list[tuple[Any, float, float]]:
        best = np.lexsort((self._keys, -self._highs))[: whole(k, "k", 0)]
        return list(
            zip(self._items[best].tolist(), self._highs[best].tolist(), self._errors[best].tolist(), strict=True)
        )

    def _add_rows(self, given: Items, batch: Batch) -> None:
        table = Tally(min(batch.size, max(_LONGEST, 4 * self._room)))
        plain = batch.weights is None and isinstance(self.decay, NoDecay)
        for rows, weights, exponent in self._weigh(batch):
            loads = None if plain else weights
            start = rows.start
            while start < rows.stop:
                part = slice(start, rows.stop)
                start += table.add(
                    given.hashes[part], None if loads is None else loads[start - rows.start :], start, exponent
                )
                if start < rows.stop:
                    self._add_table(table, given)
        self._add_table(table, given)

    def _add_table(self, table: Tally, given: Items) -> None:
        """Add what a table holds, and empty it."""
        if not len(table):
            return
        by = self._meet(table.exponent)
        weights = scaled(table.sums, by)
        self._total, self._lost = plus(self._total, self._lost, float(weights.sum()))
        rows = table.rows
        self._enter(table, weights, np.zeros(len(table)), 0.0, lambda chosen: given.take(rows[chosen]))
        table.clear()

    def _absorb(self, other: Self) -> None:
        if not other._total:
            return
        by = self._meet(other._exponent)
        self._total, self._lost = plus(self._total, self._lost + shift(other._lost, by), shift(other._total, by))
        table = Tally(max(len(other._keys), 1))
        table.add(other._keys, np.ones(len(other._keys)))  # the keys differ: its places are theirs
        highs, errors, kept = scaled(other._highs, by), scaled(other._errors, by), other._items
        self._enter(table, highs, errors, shift(other._missed, by), lambda chosen: kept[chosen])

    def _enter(self, table: Tally, highs: Floats, errors: Floats, missed: float, take: Any) -> None:
        """Add distinct items, of which any that is not among them weighs at most `missed`.

        Args:
            table: The items' keys.
            highs: Their weights, or a little more.
            errors: By how much those may be too high.
            missed: What an item that is not there may weigh.
            take: Gives the items themselves at some places.
        """
        at = table.find(self._keys)
        both = at >= 0
        fresh = np.ones(len(highs), np.bool_)
        fresh[at[both]] = False
        all_highs = np.append(self._highs + np.where(both, highs[at], missed), highs[fresh] + self._missed)
        all_errors = np.append(self._errors + np.where(both, errors[at], missed), errors[fresh] + self._missed)
        all_keys = np.append(self._keys, table.keys[fresh])
        self._missed += missed
        stay = heaviest(all_highs, all_keys, self._room)
        if not stay.all():
            self._missed = max(self._missed, float(all_highs[~stay].max()))
        mine = len(self._keys)
        self._items = items.join(self._items[stay[:mine]], take(np.flatnonzero(fresh)[stay[mine:]]))
        self._highs, self._errors, self._keys = all_highs[stay], all_errors[stay], all_keys[stay]

    def _meet(self, exponent: int) -> int:
        """Bring the state to the larger of two powers of two; gives the shift that weights at `exponent` still need."""
        if exponent > self._exponent or not self._total:
            by = self._exponent - exponent
            self._total, self._lost, self._missed = (shift(x, by) for x in (self._total, self._lost, self._missed))
            self._highs, self._errors = scaled(self._highs, by), scaled(self._errors, by)
            self._exponent = exponent
        return max(exponent - self._exponent, -3000)

    def _scale(self, factor: float, exponent: int) -> None:
        self._settle()
        self._total, self._lost, self._missed = self._total * factor, self._lost * factor, self._missed * factor
        self._highs, self._errors = self._highs * factor, self._errors * factor
        self._exponent += exponent

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _write(self, writer: serde.Writer) -> None:
        order = np.lexsort((self._keys, -self._highs))
        writer.int(self._exponent).float(self._total).float(self._lost).float(self._missed)
        items.write(writer, items.plain(self._items[order]))
        writer.array(self._highs[order]).array(self._errors[order])

    def _read(self, reader: serde.Reader) -> None:
        self._exponent = reader.int()
        self._total, self._lost, self._missed = (reader.finite() for _ in range(3))
        self._items, self._keys = items.parse(reader)
        self._highs, self._errors = reader.array(np.float64), reader.array(np.float64)
        if not len(self._items) == len(self._highs) == len(self._errors) <= self._room:
            raise CorruptState(f"the state has {len(self._items)} counters, and at most {self._room} of one length fit")
        total = self._total + self._lost
        possible = (self._errors >= 0) & (self._errors <= self._highs) & (self._highs >= self._missed)
        if not (possible.all() and 0 <= self._missed <= total and self._highs.sum() <= total * (1 + 1e-9)):
            raise CorruptState("the counters in the state do not fit its count")
        if (len(self._items) < self._room and self._missed) or (total and not len(self._items)):
            raise CorruptState("the state has lost counters")


SPEC = Spec(
    name="spacesaving",
    make=SpaceSaving,
    version=1,
    title="heavy hitters by weighted SpaceSaving",
    questions=("count", "top", "heavy", "shares"),
    timeless=("shares",),
    arguments={"top": {"k": 3}, "heavy": {"phi": 0.3}, "shares": {"k": 3}},
    guarantee="each weight to epsilon C; all items of phi C or more, none under (phi - epsilon) C",
    space="O(1 / epsilon): 32 bytes a counter, 24 on the wire, for items of 8 bytes",
    time="O(1) amortised, about 10 ns a row in bulk",
    paper="Forward Decay (ICDE 2009), Theorem 2",
    equality=Equality.GUARANTEED,
    bounds=lambda p: {"count": 1e-12, **dict.fromkeys(("top", "heavy", "shares"), p["epsilon"])},
    decays=frozenset({"forward"}),
    items="any",
    parameters=({"epsilon": 0.2}, {"epsilon": 0.01}),
    functions=("top", "heavy"),
    state_bytes=lambda p: 512 + 32 * math.ceil(1 / p["epsilon"]),
)
SpaceSaving.SPEC = SPEC
