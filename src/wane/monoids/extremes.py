"""Smallest and largest values, how often they are there, and what belongs to them."""

from __future__ import annotations

import math
from typing import Any

from wane.monoids.base import PAPER, Monoid
from wane.registry import MonoidSpec

Pair = tuple[float, float]

_LATTICE = frozenset({"commutative", "idempotent"})


class Max(Monoid):
    """The largest value; minus infinity over nothing, NaN while a NaN is there.

    >>> import wane
    >>> w = wane.DABA("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    identity = -math.inf

    @staticmethod
    def lift(v: float) -> float:
        """The value."""
        return v

    @staticmethod
    def combine(a: float, b: float) -> float:
        """The larger one."""
        return a if (a >= b) | (a != a) else b  # no branch to guess wrong

    @staticmethod
    def lower(a: float) -> float:
        """The largest."""
        return a


class Min(Monoid):
    """The smallest value; infinity over nothing, NaN while a NaN is there.

    >>> import wane
    >>> w = wane.DABA("min")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.query()
    3
    """

    identity = math.inf

    @staticmethod
    def lift(v: float) -> float:
        """The value."""
        return v

    @staticmethod
    def combine(a: float, b: float) -> float:
        """The smaller one."""
        return a if (a <= b) | (a != a) else b  # no branch to guess wrong

    @staticmethod
    def lower(a: float) -> float:
        """The smallest."""
        return a


class MinCount(Monoid):
    """The smallest value and how many times it is there; infinity, 0 times, over nothing.

    >>> import wane
    >>> w = wane.DABA("mincount")
    >>> for v in (3, 2, 5, 2):
    ...     w.insert(v)
    >>> w.query()
    (2, 2)
    """

    identity = (math.inf, 0)

    @staticmethod
    def lift(v: float) -> Pair:
        """The value, once."""
        return v, 1

    @staticmethod
    def combine(a: Pair, b: Pair) -> Pair:
        """The smaller one, or both counted together."""
        if a[0] < b[0] or a[0] != a[0]:
            return a
        if a[0] > b[0] or b[0] != b[0]:
            return b
        return a[0], a[1] + b[1]

    @staticmethod
    def lower(a: Pair) -> Pair:
        """Both."""
        return a


class ArgMax(Monoid):
    """What belongs to the largest value, the oldest one on ties; -1 over nothing. A NaN is never the largest.

    Items are pairs of a value and what belongs to it; :func:`wane.roll` pairs each value with its row.

    >>> import wane
    >>> w = wane.DABA("argmax")
    >>> w.insert((3, "a"))
    >>> w.insert((5, "b"))
    >>> w.insert((5, "c"))
    >>> w.query()
    'b'
    """

    identity = (math.nan, -1)

    @staticmethod
    def lift(pair: tuple[float, Any]) -> tuple[float, Any]:
        """The pair."""
        return pair

    @staticmethod
    def combine(a: tuple[float, Any], b: tuple[float, Any]) -> tuple[float, Any]:
        """The pair of the larger value."""
        return a if a[0] >= b[0] or b[0] != b[0] else b

    @staticmethod
    def lower(a: tuple[float, Any]) -> Any:
        """What belongs to it."""
        return a[1]


class ArgMin(ArgMax):
    """What belongs to the smallest value, the oldest one on ties; -1 over nothing. A NaN is never the smallest.

    Items are pairs of a value and what belongs to it; :func:`wane.roll` pairs each value with its row.

    >>> import wane
    >>> w = wane.DABA("argmin")
    >>> w.insert((3, "a"))
    >>> w.insert((5, "b"))
    >>> w.query()
    'a'
    """

    @staticmethod
    def combine(a: tuple[float, Any], b: tuple[float, Any]) -> tuple[float, Any]:
        """The pair of the smaller value."""
        return a if a[0] <= b[0] or b[0] != b[0] else b


Max.SPEC = MonoidSpec(
    name="max",
    make=Max,
    title="the largest value",
    guarantee="exact",
    space="one number",
    time="one comparison",
    paper=f"{PAPER}, Table 1",
    has=_LATTICE,
)
Min.SPEC = MonoidSpec(
    name="min",
    make=Min,
    title="the smallest value",
    guarantee="exact",
    space="one number",
    time="one comparison",
    paper=f"{PAPER}, Section 1",
    has=_LATTICE,
)
MinCount.SPEC = MonoidSpec(
    name="mincount",
    make=MinCount,
    title="the smallest value and how many times it is there",
    guarantee="exact",
    space="two numbers",
    time="two comparisons",
    paper=f"{PAPER}, Table 1",
    has=frozenset({"commutative"}),
)
ArgMax.SPEC = MonoidSpec(
    name="argmax",
    make=ArgMax,
    title="what belongs to the largest value",
    guarantee="exact; the oldest on ties",
    space="a number and what belongs to it",
    time="one comparison",
    paper=f"{PAPER}, Table 1",
    has=frozenset({"idempotent"}),
    items="pairs",
)
ArgMin.SPEC = MonoidSpec(
    name="argmin",
    make=ArgMin,
    title="what belongs to the smallest value",
    guarantee="exact; the oldest on ties",
    space="a number and what belongs to it",
    time="one comparison",
    paper=f"{PAPER}, Table 1",
    has=frozenset({"idempotent"}),
    items="pairs",
)
