"""Sums, counts, and what is lowered from them: means and the standard deviation."""

from __future__ import annotations

import math

from wane.monoids.base import PAPER, Monoid
from wane.registry import MonoidSpec

Pair = tuple[float, float]
Triple = tuple[float, float, float]

_GROUP = frozenset({"commutative", "invertible"})


class Sum(Monoid):
    """The sum of all values.

    Exact for ints in Python; doubles are rounded at each step, and a NaN is there until it leaves the window.

    >>> import wane
    >>> w = wane.DABA("sum")
    >>> w.insert(2)
    >>> w.insert(6)
    >>> w.query()
    8
    """

    identity = 0

    @staticmethod
    def lift(v: float) -> float:
        """The value."""
        return v

    @staticmethod
    def combine(a: float, b: float) -> float:
        """Their sum."""
        return a + b

    @staticmethod
    def lower(a: float) -> float:
        """The sum."""
        return a

    @staticmethod
    def inverse(a: float) -> float:
        """The negative."""
        return -a


class Count(Sum):
    """The number of items.

    >>> import wane
    >>> w = wane.DABA("count")
    >>> w.insert(2)
    >>> w.insert(6)
    >>> w.query()
    2
    """

    @staticmethod
    def lift(v: float) -> float:
        """One."""
        return 1


def _add(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _negative(a: Pair) -> Pair:
    return -a[0], -a[1]


class ArithmeticMean(Monoid):
    """The mean of all values; NaN over nothing.

    >>> import wane
    >>> w = wane.DABA("mean")
    >>> w.insert(2)
    >>> w.insert(6)
    >>> w.query()
    4.0
    """

    identity = (0, 0)
    combine = staticmethod(_add)
    inverse = staticmethod(_negative)

    @staticmethod
    def lift(v: float) -> Pair:
        """The value, and one."""
        return v, 1

    @staticmethod
    def lower(a: Pair) -> float:
        """The sum over the count."""
        return a[0] / a[1] if a[1] else math.nan


class GeometricMean(Monoid):
    """The geometric mean of values of 0 or more; NaN over nothing, and while a negative value is there.

    >>> import wane
    >>> w = wane.DABA("gmean")
    >>> w.insert(2)
    >>> w.insert(8)
    >>> round(w.query(), 9)
    4.0
    """

    identity = (0.0, 0)
    combine = staticmethod(_add)
    inverse = staticmethod(_negative)

    @staticmethod
    def lift(v: float) -> Pair:
        """The logarithm, and one."""
        if v > 0:
            return math.log(v), 1
        return (-math.inf if v == 0 else math.nan), 1

    @staticmethod
    def lower(a: Pair) -> float:
        """The exponential of the mean logarithm."""
        return math.exp(a[0] / a[1]) if a[1] else math.nan


class SampleStdDev(Monoid):
    """The standard deviation of a sample, over n - 1; NaN over fewer than two values.

    Kept as count, mean and squares about the mean: the textbook form cancels, this one does not.

    >>> import wane
    >>> w = wane.DABA("stddev")
    >>> for v in (2, 4, 4, 4, 5, 5, 7, 9):
    ...     w.insert(v)
    >>> round(w.query() ** 2, 9)
    4.571428571
    """

    identity = (0.0, 0.0, 0.0)

    @staticmethod
    def lift(v: float) -> Triple:
        """One value at its own mean."""
        return 1.0, v, 0.0

    @staticmethod
    def combine(a: Triple, b: Triple) -> Triple:
        """Chan's merge."""
        if a[0] == 0.0:
            return b
        if b[0] == 0.0:
            return a
        n, off = a[0] + b[0], b[1] - a[1]
        share = b[0] / n
        return n, a[1] + off * share, a[2] + b[2] + off * off * (a[0] * share)

    @staticmethod
    def lower(a: Triple) -> float:
        """The root of the squares over n - 1."""
        return math.sqrt(a[2] / (a[0] - 1.0)) if a[0] > 1.0 else math.nan


Sum.SPEC = MonoidSpec(
    name="sum",
    make=Sum,
    title="the sum of all values",
    guarantee="exact for ints, rounded at each step for doubles",
    space="one number",
    time="one addition",
    paper=f"{PAPER}, Table 1",
    has=_GROUP,
    bits=False,
)
Count.SPEC = MonoidSpec(
    name="count",
    make=Count,
    title="the number of items",
    guarantee="exact",
    space="one number",
    time="one addition",
    paper=f"{PAPER}, Section 2.2",
    has=_GROUP,
)
ArithmeticMean.SPEC = MonoidSpec(
    name="mean",
    make=ArithmeticMean,
    title="the mean of all values",
    guarantee="exact, but for rounding",
    space="two numbers",
    time="two additions",
    paper=f"{PAPER}, Table 1",
    has=_GROUP,
    bits=False,
)
GeometricMean.SPEC = MonoidSpec(
    name="gmean",
    make=GeometricMean,
    title="the geometric mean of all values",
    guarantee="exact, but for rounding",
    space="two numbers",
    time="two additions; a logarithm to lift, an exponential to lower",
    paper=f"{PAPER}, Table 1",
    has=_GROUP,
    bits=False,
)
SampleStdDev.SPEC = MonoidSpec(
    name="stddev",
    make=SampleStdDev,
    title="the standard deviation of a sample",
    guarantee="exact, but for rounding; no cancellation",
    space="three numbers",
    time="a division and some additions",
    paper=f"{PAPER}, Table 1; Chan, Golub and LeVeque (1979) for the merge",
    has=frozenset({"commutative"}),
    bits=False,
)
