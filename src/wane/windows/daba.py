"""DABA, the de-amortised banker's aggregator: the flip of ABA, done a little at every insert and evict.

The queue is ``F <= L <= R <= A <= B <= E`` (Figure 10). In front of L and from A to B, `aggs` go from each item up to
B; from L to R up to R; from R to A from R up to each item; from B on from B up to each item. Every insert and evict
shrinks l_L and l_R by one, or, once they are empty, lets L, R and A go on freely, so that the work is done exactly when
the next flip is due, which moves three positions and nothing else.
"""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import MASK, PAPER, E, F, Queue, combine, identity

L, R, A, B = 3, 4, 5, 6


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Push at the back, and go on with the reversal."""
    vals, aggs = rings
    e, mask = p[E], p[MASK]
    vals[e & mask] = v
    aggs[e & mask] = combine(aggs[(e - 1) & mask] if p[B] != e else identity, v)
    p[E] = e + 1
    fixup(p, sums, rings)


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Pop at the front, and go on with the reversal."""
    p[F] += 1
    fixup(p, sums, rings)


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine both ends."""
    _, aggs = rings
    front = aggs[p[F] & p[MASK]] if p[F] != p[B] else identity
    return combine(front, aggs[(p[E] - 1) & p[MASK]] if p[B] != p[E] else identity)


@step
def fixup(p: Any, sums: Any, rings: Any) -> None:
    """One step of the reversal, which makes the size invariants of Section 6.3 hold again."""
    vals, aggs = rings
    if p[F] == p[B]:  # at most one item, which is at the back: it becomes the front
        p[L] = p[R] = p[A] = p[B] = p[E]
        return
    if p[L] == p[B]:  # flip: front and back become l_L and l_R
        p[L] = p[F]
        p[A] = p[B] = p[E]
    if p[L] == p[R]:  # a free ride: everything goes up to B already
        p[L] += 1
        p[R] += 1
        p[A] += 1
    else:
        mask, left, last = p[MASK], p[L], p[A] - 1
        whole_a = aggs[p[A] & mask] if p[A] != p[B] else identity
        whole_r = aggs[last & mask]
        aggs[left & mask] = combine(combine(aggs[left & mask], whole_r), whole_a)
        aggs[last & mask] = combine(vals[last & mask], whole_a)
        p[L] = left + 1
        p[A] = last


class DABA(Queue):
    """The de-amortised banker's aggregator (Section 6): constant time for any monoid, in the worst case.

    At most 4 combines an insert, 3 an evict, 1 a query (Theorem 8). :class:`wane.DABACached` needs one less, and
    :class:`wane.DABALite` half the memory.

    >>> w = DABA("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    RINGS = 2
    POSITIONS = 4
    insert_step, evict_step, query_step = insert, evict, query


SPEC = DABA.SPEC = WindowSpec(
    name="daba",
    make=DABA,
    title="the de-amortised banker's aggregator: constant time in the worst case",
    guarantee="exact",
    space="2n",
    time="O(1): insert at most 4 combines, evict 3, query 1",
    paper=f"{PAPER}, Section 6 and Figure 14",
    steps=(4, 3, 1),
    average=(2.5, 1.5, 1),
)
