"""Recalculate from scratch: every query combines all items. The baseline, and right for the smallest windows."""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import MASK, PAPER, E, F, Queue, combine, identity


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Keep the value."""
    (vals,) = rings
    vals[p[E] & p[MASK]] = v
    p[E] += 1


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Forget the oldest."""
    p[F] += 1


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine them all."""
    (vals,) = rings
    agg = identity
    for i in range(p[F], p[E]):
        agg = combine(agg, vals[i & p[MASK]])
    return agg


class Recalc(Queue):
    """Recalculates from scratch (Figure 20): `query` combines all items, `insert` and `evict` nothing.

    For any monoid. The fastest below a few dozen items.

    >>> w = Recalc("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    insert_step, evict_step, query_step = insert, evict, query


SPEC = Recalc.SPEC = WindowSpec(
    name="recalc",
    make=Recalc,
    title="recalculates from scratch",
    guarantee="exact",
    space="n",
    time="query n combines, insert and evict none",
    paper=f"{PAPER}, Figure 20",
)
