"""Reactive: a flat complete tree over a ring of leaves, each node the aggregate of its two children."""

from __future__ import annotations

from typing import Any

from wane._jit import step
from wane.registry import WindowSpec
from wane.windows.base import MASK, E, F, Queue, combine, identity


@step
def below(rings: Any, size: Any, node: Any) -> Any:
    """The aggregate of a node: inner ones go by 1 to size - 1, leaves follow."""
    leaves, tree = rings
    return leaves[node - size] if node >= size else tree[node]


@step
def climb(p: Any, rings: Any, place: Any) -> None:
    """Combine anew on the way from a leaf to the root."""
    _, tree = rings
    size = p[MASK] + 1
    node = (place + size) >> 1
    while node >= 1:
        tree[node] = combine(below(rings, size, 2 * node), below(rings, size, 2 * node + 1))
        node >>= 1


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Set a leaf."""
    leaves, _ = rings
    place = p[E] & p[MASK]
    leaves[place] = v
    p[E] += 1
    climb(p, rings, place)


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Empty a leaf."""
    leaves, _ = rings
    place = p[F] & p[MASK]
    leaves[place] = identity
    p[F] += 1
    climb(p, rings, place)


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """The root, or where the ring has turned round, the leaves from the front on before those up to the end."""
    leaves, tree = rings
    size = p[MASK] + 1
    front, end = p[F] & p[MASK], p[E] & p[MASK]
    if p[F] == p[E] or front < end or end == 0:
        return tree[1]
    old, young = leaves[front], leaves[end - 1]
    left, right = front + size, end - 1 + size
    while left > 1:
        if left & 1 == 0:
            old = combine(old, below(rings, size, left + 1))
        if right & 1 == 1:
            young = combine(below(rings, size, right - 1), young)
        left >>= 1
        right >>= 1
    return combine(old, young)


@step
def rebuild(p: Any, sums: Any, rings: Any) -> None:
    """Combine every inner node anew."""
    _, tree = rings
    size = p[MASK] + 1
    for node in range(size - 1, 0, -1):
        tree[node] = combine(below(rings, size, 2 * node), below(rings, size, 2 * node + 1))


class Reactive(Queue):
    """The reactive aggregator over a flat tree: O(log n) combines for each insert, evict and query.

    For any monoid. What the field used before DABA, kept to compare with.

    >>> w = Reactive("max")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    """

    RINGS = 2
    insert_step, evict_step, query_step, rebuild_step = insert, evict, query, rebuild


SPEC = Reactive.SPEC = WindowSpec(
    name="reactive",
    make=Reactive,
    title="a flat tree of aggregates",
    guarantee="exact",
    space="2n",
    time="O(log n) combines for insert, evict and query",
    paper="General Incremental Sliding-Window Aggregation (VLDB 2015)",
)
