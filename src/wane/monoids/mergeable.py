"""Any mergeable summary as a monoid: a sliding top-k, quantile or distinct count, without ever subtracting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wane.errors import BadParameter
from wane.monoids.base import PAPER, Monoid
from wane.registry import MonoidSpec


class Mergeable(Monoid):
    """A summary as a monoid: lifting an item makes a summary of it, combining merges two into a new one.

    Works with anything that has `update`, `merge` and `copy`, such as :class:`wane.SpaceSaving`,
    :class:`wane.QDigest` and :class:`wane.Distinct`. An answer has the bound that the summary keeps through merges. An
    item may be a column of them, and combining costs as much as merging: with many items, let each one inserted be
    those of a stretch of time (:class:`wane.Panes`).

    Args:
        make: Makes an empty summary.
        ask: Puts the question to a summary; by default the answer is the summary itself.

    >>> import wane
    >>> top = wane.monoids.Mergeable(lambda: wane.SpaceSaving(epsilon=0.1), ask=lambda s: [e.item for e in s.top(1)])
    >>> w = wane.DABA(top)
    >>> w.insert(["a", "a", "a"])
    >>> w.insert(["b", "b", "c"])
    >>> w.query()
    ['a']
    >>> w.evict()
    >>> w.query()
    ['b']
    """

    def __init__(self, make: Callable[[], Any], ask: Callable[[Any], Any] | None = None) -> None:
        if not callable(make):
            raise BadParameter(f"make must make an empty summary, got {make!r}; write lambda: wane.SpaceSaving(...)")
        empty = make()
        for method in ("update", "merge", "copy"):
            if not hasattr(empty, method):
                raise BadParameter(f"a mergeable has {method}(), and a {type(empty).__name__} has not; give a summary")
        self.identity = empty
        self.lift = lambda item: make().update(item)
        self.combine = lambda a, b: a.copy().merge(b)
        self.lower = ask or _itself


def _itself(summary: Any) -> Any:
    return summary


Mergeable.SPEC = MonoidSpec(
    name="mergeable",
    make=Mergeable,
    title="any mergeable summary",
    guarantee="the summary's own bound",
    space="one summary an item",
    time="one merge",
    paper=f"{PAPER}, Section 2.2",
    has=frozenset({"commutative"}),
    items="any",
    native=False,
    parameters=(),
)
