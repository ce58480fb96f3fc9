"""ABA, the amortised banker's aggregator: Two-Stacks in place, in two queues that share their positions."""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import MASK, PAPER, E, F, Queue, combine, identity

B = 3  # before it `aggs` go from each item up to it, from it on they go from it up to each item
VALID = 4  # whether sums[0] is the answer


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Push at the back."""
    vals, aggs = rings
    e, mask = p[E], p[MASK]
    vals[e & mask] = v
    aggs[e & mask] = combine(aggs[(e - 1) & mask] if p[B] != e else identity, v)
    p[E] = e + 1
    p[VALID] = 0


@step
def flip(p: Any, sums: Any, rings: Any) -> None:
    """Turn the aggregates round in place; the values stay."""
    vals, aggs = rings
    mask, i = p[MASK], p[E] - 1
    aggs[i & mask] = vals[i & mask]
    while i != p[F]:
        i -= 1
        aggs[i & mask] = combine(vals[i & mask], aggs[(i + 1) & mask])
    p[B] = p[E]


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Pop at the front."""
    if p[F] == p[B]:
        flip(p, sums, rings)
    p[F] += 1
    p[VALID] = 0


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine both ends, unless nothing has changed."""
    _, aggs = rings
    if p[VALID] == 0:
        front = aggs[p[F] & p[MASK]] if p[F] != p[B] else identity
        sums[0] = combine(front, aggs[(p[E] - 1) & p[MASK]] if p[B] != p[E] else identity)
        p[VALID] = 1
    return sums[0]


class ABA(Queue):
    """The amortised banker's aggregator (Section 5): a flip turns aggregates round in place and copies no values.

    For any monoid. Amortised constant: an evict that flips combines as often as there are items. A query that follows
    another combines nothing.

    >>> w = ABA("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    RINGS = 2
    POSITIONS = 2
    insert_step, evict_step, query_step = insert, evict, query


SPEC = ABA.SPEC = WindowSpec(
    name="aba",
    make=ABA,
    title="the amortised banker's aggregator",
    guarantee="exact",
    space="2n",
    time="amortised O(1): insert and evict one combine each, query one; worst case n",
    paper=f"{PAPER}, Section 5 and Figure 7",
    average=(1, 1, 1),
)
