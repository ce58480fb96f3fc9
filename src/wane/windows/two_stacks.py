"""Two-Stacks: a queue made of two stacks, each of which knows the aggregate from its bottom to every item."""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import MASK, PAPER, E, F, Queue, combine, identity

B = 3  # from here on items are on the back stack, before it on the front stack
VALID = 4  # whether sums[0] is the answer


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Push onto the back stack."""
    _, _, back_vals, back_aggs = rings
    e, mask = p[E], p[MASK]
    back_vals[e & mask] = v
    back_aggs[e & mask] = combine(back_aggs[(e - 1) & mask] if p[B] != e else identity, v)
    p[E] = e + 1
    p[VALID] = 0


@step
def flip(p: Any, sums: Any, rings: Any) -> None:
    """Turn the back stack over onto the empty front stack."""
    front_vals, front_aggs, back_vals, _ = rings
    mask, b = p[MASK], p[E]
    for i in range(b - 1, p[F] - 1, -1):
        v = back_vals[i & mask]
        front_vals[i & mask] = v
        front_aggs[i & mask] = combine(v, front_aggs[(i + 1) & mask] if i + 1 != b else identity)
    p[B] = b


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Pop from the front stack."""
    if p[F] == p[B]:
        flip(p, sums, rings)
    p[F] += 1
    p[VALID] = 0


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """Combine the tops of both, unless nothing has changed."""
    _, front_aggs, _, back_aggs = rings
    if p[VALID] == 0:
        front = front_aggs[p[F] & p[MASK]] if p[F] != p[B] else identity
        sums[0] = combine(front, back_aggs[(p[E] - 1) & p[MASK]] if p[B] != p[E] else identity)
        p[VALID] = 1
    return sums[0]


class TwoStacks(Queue):
    """A queue of two stacks (Section 4): `insert` pushes on one, `evict` pops from the other, which a flip refills.

    For any monoid. Amortised constant: an evict that flips combines as often as there are items. A query that follows
    another combines nothing.

    >>> w = TwoStacks("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    RINGS = 4
    POSITIONS = 2
    insert_step, evict_step, query_step = insert, evict, query


SPEC = TwoStacks.SPEC = WindowSpec(
    name="two_stacks",
    make=TwoStacks,
    title="a queue of two stacks",
    guarantee="exact",
    space="2n",
    time="amortised O(1): insert and evict one combine each, query one; worst case n",
    paper=f"{PAPER}, Section 4 and Figure 5",
    average=(1, 1, 1),
)
