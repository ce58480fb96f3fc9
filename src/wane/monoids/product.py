"""Several monoids computed together, over one queue of values."""

from __future__ import annotations

from typing import Any

from wane.errors import BadParameter
from wane.monoids.base import PAPER, Monoid, monoid_of
from wane.registry import MonoidSpec


class Product(Monoid):
    """Several monoids as one: a window keeps its values once, and answers a tuple (Section 9).

    It has what all of its parts have. Parts that take different kinds of items, such as numbers and pairs, are refused.

    Args:
        parts: Monoids, or their names.

    >>> import wane
    >>> w = wane.DABA(["max", "mean"])
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.query()
    (5, 4.0)
    """

    def __init__(self, *parts: Any) -> None:
        self.parts = tuple(monoid_of(part) for part in parts)
        if not self.parts:
            raise BadParameter("a product has at least one part; name them, as in Product('max', 'mean')")
        kinds = {part.items: part.label for part in self.parts if part.items != "any"}
        if len(kinds) > 1:
            (one, first), (other, second), *_ = kinds.items()
            raise BadParameter(
                f"{first} takes {one} and {second} takes {other}; keep them in windows of their own, or use wane.roll"
            )
        self.identity = tuple(part.identity for part in self.parts)
        lifts = [part.lift for part in self.parts]
        combines = [part.combine for part in self.parts]
        lowers = [part.lower for part in self.parts]
        self.lift = lambda v: tuple([lift(v) for lift in lifts])
        self.combine = lambda a, b: tuple([f(x, y) for f, x, y in zip(combines, a, b, strict=True)])
        self.lower = lambda a: tuple([lower(x) for lower, x in zip(lowers, a, strict=True)])
        if "invertible" in self.has:
            inverses: list[Any] = [part.inverse for part in self.parts]
            self.inverse = lambda a: tuple([inverse(x) for inverse, x in zip(inverses, a, strict=True)])
        self.unchecked = any(part.unchecked for part in self.parts)

    @property
    def label(self) -> str:
        """Its parts."""
        return f"({', '.join(part.label for part in self.parts)})"

    @property
    def has(self) -> frozenset[str]:
        """What all parts have."""
        return frozenset.intersection(*(part.has for part in self.parts))

    @property
    def items(self) -> str:
        """What its parts take."""
        return next((part.items for part in self.parts if part.items != "any"), "any")


Product.SPEC = MonoidSpec(
    name="product",
    make=Product,
    title="several monoids computed together",
    guarantee="as its parts",
    space="as its parts together",
    time="as its parts together",
    paper=f"{PAPER}, Section 9",
    has=frozenset(),
    native=False,
    parameters=(),
)
