"""Two-Stacks Lite: Two-Stacks in one queue, where an item in front gives its place to the aggregate from it on."""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import LITE, MASK, E, F, Queue, combine, identity

B = 3  # before it places hold aggregates up to it, from it on values, whose aggregate is sums[0]


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Put the value at the end, and add it to the aggregate of the back."""
    (ring,) = rings
    ring[p[E] & p[MASK]] = v
    sums[0] = combine(sums[0], v)
    p[E] += 1


@step
def flip(p: Any, sums: Any, rings: Any) -> None:
    """Make front of the back: aggregates from each item to the end, in place of the items."""
    (ring,) = rings
    mask = p[MASK]
    for i in range(p[E] - 2, p[F] - 1, -1):
        ring[i & mask] = combine(ring[i & mask], ring[(i + 1) & mask])
    p[B] = p[E]
    sums[0] = identity


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Step over the oldest."""
    if p[F] == p[B]:
        flip(p, sums, rings)
    p[F] += 1


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine front and back."""
    (ring,) = rings
    return combine(ring[p[F] & p[MASK]] if p[F] != p[B] else identity, sums[0])


class TwoStacksLite(Queue):
    """Two-Stacks with one queue and one sum: the least memory, and on average the least time.

    For any monoid. Amortised constant: an evict that flips combines as often as there are items. In bulk
    (:func:`wane.roll`) a pass over the array does the same without keeping a queue of values.

    >>> w = TwoStacksLite("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    POSITIONS = 1
    insert_step, evict_step, query_step = insert, evict, query


SPEC = TwoStacksLite.SPEC = WindowSpec(
    name="two_stacks_lite",
    make=TwoStacksLite,
    title="a queue of two stacks in one, with the least memory",
    guarantee="exact",
    space="n + 1",
    time="amortised O(1): insert, evict and query one combine each; worst case n",
    paper=LITE,
    average=(1, 1, 1),
)
