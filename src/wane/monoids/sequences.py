"""What depends on the order of items: all of them, the first and the last."""

from __future__ import annotations

import math
from typing import Any

from wane.monoids.base import PAPER, Monoid
from wane.registry import MonoidSpec


class Collect(Monoid):
    """All items, oldest first, as a list. Combining copies them: linear in the window, whatever the algorithm.

    >>> import wane
    >>> w = wane.DABA("collect")
    >>> w.insert("a")
    >>> w.insert("b")
    >>> w.query()
    ['a', 'b']
    """

    identity: tuple[Any, ...] = ()

    @staticmethod
    def lift(v: Any) -> tuple[Any, ...]:
        """One item."""
        return (v,)

    @staticmethod
    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """One after the other."""
        return a + b

    @staticmethod
    def lower(a: tuple[Any, ...]) -> list[Any]:
        """The list."""
        return list(a)


class First(Monoid):
    """The oldest item; NaN over nothing.

    >>> import wane
    >>> w = wane.DABA("first")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.query()
    3
    """

    identity = (math.nan, False)

    @staticmethod
    def lift(v: Any) -> tuple[Any, bool]:
        """The item, which is there."""
        return v, True

    @staticmethod
    def combine(a: tuple[Any, bool], b: tuple[Any, bool]) -> tuple[Any, bool]:
        """The older one that is there."""
        return a if a[1] else b

    @staticmethod
    def lower(a: tuple[Any, bool]) -> Any:
        """The item."""
        return a[0]


class Last(First):
    """The newest item; NaN over nothing.

    >>> import wane
    >>> w = wane.DABA("last")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.query()
    5
    """

    @staticmethod
    def combine(a: tuple[Any, bool], b: tuple[Any, bool]) -> tuple[Any, bool]:
        """The newer one that is there."""
        return b if b[1] else a


Collect.SPEC = MonoidSpec(
    name="collect",
    make=Collect,
    title="all items, in their order",
    guarantee="exact",
    space="O(n)",
    time="O(n): it copies",
    paper=f"{PAPER}, Table 1",
    has=frozenset(),
    items="any",
    native=False,
)
First.SPEC = MonoidSpec(
    name="first",
    make=First,
    title="the oldest item",
    guarantee="exact",
    space="one item",
    time="O(1)",
    paper=f"{PAPER}, Section 2.2",
    has=frozenset({"idempotent"}),
)
Last.SPEC = MonoidSpec(
    name="last",
    make=Last,
    title="the newest item",
    guarantee="exact",
    space="one item",
    time="O(1)",
    paper=f"{PAPER}, Section 2.2",
    has=frozenset({"idempotent"}),
)
