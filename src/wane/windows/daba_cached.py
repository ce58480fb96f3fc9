"""DABA with the caching of Figure 17: what does not change during a reversal is combined once.

While l_L and l_R shrink, R and B stay where they are, and so does the aggregate from R to B: `sums[1]`, which the flip
sets.
"""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import MASK, PAPER, E, F, Queue, combine, identity
from wane.windows.daba import A, B, L, R

VALID = 7  # whether sums[0] is the answer


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Push at the back, and go on with the reversal."""
    vals, aggs = rings
    e, mask = p[E], p[MASK]
    vals[e & mask] = v
    aggs[e & mask] = combine(aggs[(e - 1) & mask] if p[B] != e else identity, v)
    p[E] = e + 1
    p[VALID] = 0
    fixup(p, sums, rings)


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Pop at the front, and go on with the reversal."""
    p[F] += 1
    p[VALID] = 0
    fixup(p, sums, rings)


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine both ends, unless nothing has changed."""
    _, aggs = rings
    if p[VALID] == 0:
        front = aggs[p[F] & p[MASK]] if p[F] != p[B] else identity
        sums[0] = combine(front, aggs[(p[E] - 1) & p[MASK]] if p[B] != p[E] else identity)
        p[VALID] = 1
    return sums[0]


@step
def fixup(p: Any, sums: Any, rings: Any) -> None:
    """One step of the reversal, which makes the size invariants of Section 6.3 hold again."""
    vals, aggs = rings
    if p[F] == p[B]:  # at most one item, which is at the back: it becomes the front
        p[L] = p[R] = p[A] = p[B] = p[E]
        return
    mask = p[MASK]
    if p[L] == p[B]:  # flip: front and back become l_L and l_R
        p[L] = p[F]
        p[A] = p[B] = p[E]
        sums[1] = aggs[(p[A] - 1) & mask]
    if p[L] == p[R]:  # a free ride: everything goes up to B already
        p[L] += 1
        p[R] += 1
        p[A] += 1
    else:
        left, last = p[L], p[A] - 1
        aggs[left & mask] = combine(aggs[left & mask], sums[1])
        aggs[last & mask] = combine(vals[last & mask], aggs[p[A] & mask] if p[A] != p[B] else identity)
        p[L] = left + 1
        p[A] = last


class DABACached(Queue):
    """DABA with the caching of Figure 17: the fewest combines of all that are constant in the worst case.

    At most 3 combines an insert, 2 an evict, 1 a query; on average 2, 1 and 1 (Theorem 9).

    >>> w = DABACached("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    RINGS = 2
    POSITIONS = 5
    insert_step, evict_step, query_step = insert, evict, query


SPEC = DABACached.SPEC = WindowSpec(
    name="daba_cached",
    make=DABACached,
    title="DABA with caching: constant time with the fewest combines",
    guarantee="exact",
    space="2n + 2",
    time="O(1): insert at most 3 combines, evict 2, query 1; on average 2, 1 and 1",
    paper=f"{PAPER}, Theorem 9 and Figure 17",
    steps=(3, 2, 1),
    average=(2, 1, 1),
)
