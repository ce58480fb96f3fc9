"""DABA Lite: DABA in one queue, where an item gives its place to an aggregate as soon as only that is needed.

The queue is ``F <= L <= R <= A <= B <= E`` as in DABA. In front of L and from A to B places hold aggregates from each
item up to B, from L to R up to R; from R to A and from B on they hold the values themselves. Two sums stand for the
aggregates that DABA keeps there: ``sums[0]`` from B to E, ``sums[1]`` from R to B.
"""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import LITE, MASK, E, F, Queue, combine, identity
from wane.windows.daba import A, B, L, R


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Put the value at the end, add it to the aggregate of the back, and go on with the reversal."""
    (ring,) = rings
    ring[p[E] & p[MASK]] = v
    sums[0] = combine(sums[0], v)
    p[E] += 1
    fixup(p, sums, rings)


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Step over the oldest, and go on with the reversal."""
    p[F] += 1
    fixup(p, sums, rings)


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine front and back."""
    (ring,) = rings
    return combine(ring[p[F] & p[MASK]] if p[F] != p[B] else identity, sums[0])


@step
def fixup(p: Any, sums: Any, rings: Any) -> None:
    """One step of the reversal, which makes the size invariants of DABA hold again."""
    (ring,) = rings
    if p[F] == p[B]:  # at most one item, which is at the back: it becomes the front
        p[L] = p[R] = p[A] = p[B] = p[E]
        sums[0] = identity
        return
    if p[L] == p[B]:  # flip: front and back become l_L and l_R
        p[L] = p[F]
        p[A] = p[B] = p[E]
        sums[1] = sums[0]
        sums[0] = identity
    if p[L] == p[R]:  # a free ride: everything goes up to B already
        p[L] += 1
        p[R] += 1
        p[A] += 1
    else:
        mask, left, last = p[MASK], p[L], p[A] - 1
        ring[left & mask] = combine(ring[left & mask], sums[1])
        if p[A] != p[B]:
            ring[last & mask] = combine(ring[last & mask], ring[p[A] & mask])
        p[L] = left + 1
        p[A] = last


class DABALite(Queue):
    """DABA with one queue and two sums: constant time in the worst case, with half of its memory.

    For any monoid. At most 3 combines an insert, 2 an evict, 1 a query.

    >>> w = DABALite("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    POSITIONS = 4
    insert_step, evict_step, query_step = insert, evict, query


SPEC = DABALite.SPEC = WindowSpec(
    name="daba_lite",
    make=DABALite,
    title="DABA in one queue: constant time in the worst case, with half the memory",
    guarantee="exact",
    space="n + 2",
    time="O(1): insert at most 3 combines, evict 2, query 1; on average 2, 1 and 1",
    paper=LITE,
    steps=(3, 2, 1),
    average=(2, 1, 1),
)
