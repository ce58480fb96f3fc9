"""Subtract on evict: one running aggregate, from which the oldest item is taken out by the monoid's inverse."""

from __future__ import annotations

import math
from typing import Any

from wane._jit import step
from wane.errors import BadInput
from wane.registry import WindowSpec
from wane.windows.base import MASK, PAPER, E, F, Queue, combine, identity, inverse


@step
def insert(p: Any, sums: Any, rings: Any, v: Any) -> None:
    """Keep the value and add it."""
    (vals,) = rings
    vals[p[E] & p[MASK]] = v
    sums[0] = combine(sums[0], v)
    p[E] += 1


@step
def evict(p: Any, sums: Any, rings: Any) -> None:
    """Take the oldest out; from nothing else nothing is left, and rounding errors end there."""
    (vals,) = rings
    sums[0] = combine(sums[0], inverse(vals[p[F] & p[MASK]]))
    p[F] += 1
    if p[F] == p[E]:
        sums[0] = identity


@step
def query(p: Any, sums: Any, rings: Any) -> Any:
    """The running aggregate."""
    return sums[0]


class SubtractOnEvict(Queue):
    """Adds what comes and subtracts what leaves (Figure 19): one combine an insert and an evict, none a query.

    For invertible monoids. Exact for ints. Sums of doubles keep the rounding of every item that passed, until the
    window is empty, so NaN and infinities, which nothing takes out again, are refused.

    >>> w = SubtractOnEvict("sum")
    >>> w.insert(3)
    >>> w.insert(5)
    >>> w.evict()
    >>> w.query()
    5
    >>> SubtractOnEvict("max")
    Traceback (most recent call last):
    wane.errors.Unsupported: SubtractOnEvict needs a monoid that is invertible (what was combined can be taken out \
again), and max is not; use DABALite or TwoStacksLite
    """

    insert_step, evict_step, query_step = insert, evict, query

    def _make(self) -> None:
        super()._make()
        insert, lift = self.insert, self.monoid.lift

        def insert_finite(item: Any) -> None:
            lifted = lift(item)
            for number in lifted if isinstance(lifted, tuple) else (lifted,):
                if isinstance(number, float) and not math.isfinite(number):
                    raise BadInput(
                        f"nothing takes {item!r} out of a {self.monoid.label} again; leave it out, or use DABALite"
                    )
            insert(item)

        self._replace(insert=insert_finite)


SPEC = SubtractOnEvict.SPEC = WindowSpec(
    name="subtract_on_evict",
    make=SubtractOnEvict,
    title="adds what comes and subtracts what leaves",
    guarantee="exact for ints; doubles keep the rounding of all that passed",
    space="n + 1",
    time="O(1): insert and evict one combine, query none",
    paper=f"{PAPER}, Figure 19",
    needs=frozenset({"invertible"}),
    steps=(1, 1, 0),
)
