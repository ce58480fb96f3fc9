"""Bounded lateness: a tree for what may still be joined by late items, DABA for what may not."""

from __future__ import annotations

from collections import deque
from typing import Any

from wane import times
from wane.errors import BadParameter, BadTime, TooLate
from wane.monoids.base import of_aggregates
from wane.registry import WindowSpec
from wane.times import instant, show, show_duration
from wane.windows.base import PAPER, Window, empty, length_of
from wane.windows.daba_lite import DABALite
from wane.windows.finger_tree import FingerTree, Tree


class OutOfOrder(Window):
    """Items that come late by a bounded time: the young ones in a tree, the old ones in DABA (Section 9).

    For any monoid: answers are those of the items in the order of their times. An item later than the bound is refused
    and counted (`refused`). Old items, which are nearly all, cost what they cost in DABA.

    Args:
        monoid: What it aggregates with.
        lateness: By how much an item may be older than the newest one before it.
        duration: How long items stay; without it until they are evicted.

    >>> w = OutOfOrder("collect", lateness="5s", duration="1m")
    >>> for item, time in (("a", 1), ("c", 4), ("b", 2), ("d", 9)):
    ...     w.insert(item, time)
    >>> w.query()
    ['a', 'b', 'c', 'd']
    >>> w.insert("late", 3)
    Traceback (most recent call last):
    wane.errors.TooLate: an item of 3 comes 6s after the newest, 9, and the window was promised at most 5s; raise \
lateness=, or leave it out (1 refused)
    """

    def __init__(self, monoid: Any, *, lateness: Any, duration: Any = None) -> None:
        self._lateness = times.duration(lateness, "lateness")
        if self._lateness < 0:
            raise BadParameter(f"lateness must be 0 or longer, got {show_duration(self._lateness)}")
        self._length = None if duration is None else length_of(duration)
        super().__init__(monoid)
        self.refused = 0

    def _make(self) -> None:
        inner = of_aggregates(self.monoid)
        self._young, self._old = FingerTree(inner), DABALite(inner)
        self._times: deque[int] = deque()  # of the old ones
        self._newest: int | None = None

    def insert(self, item: Any, time: Any = None) -> None:
        """Put an item in its place, unless it is too late."""
        if time is None:
            raise BadTime("items are put in the order of their times; give insert(item, time)")
        at = instant(time)
        if self._newest is not None and self._newest - at > self._lateness:
            self.refused += 1
            raise TooLate(
                f"an item of {show(at)} comes {show_duration(self._newest - at)} after the newest, "
                f"{show(self._newest)}, and the window was promised at most {show_duration(self._lateness)}; raise "
                f"lateness=, or leave it out ({self.refused} refused)"
            )
        self._young._place(Tree(at, self.monoid.lift(item)))
        if self._newest is None or at > self._newest:
            self._newest = at
            self._settle(at)

    def evict(self) -> None:
        """Take out the oldest item."""
        if self._times:
            self._times.popleft()
            self._old.evict()
        elif len(self._young):
            self._young.evict()
        else:
            raise empty(self)

    def query(self, now: Any = None) -> Any:
        """The aggregate over all items, lowered; where the window has a duration, of those that are left at `now`."""
        if now is not None:
            self._expire(instant(now))
        return self.monoid.lower(self.monoid.combine(self._old.query(), self._young.aggregate()))

    def __len__(self) -> int:
        """The number of items."""
        return len(self._times) + len(self._young)

    def _settle(self, now: int) -> None:
        """Move what no late item can come before any more."""
        while (oldest := self._young.oldest) is not None and now - oldest > self._lateness:
            self._times.append(oldest)
            self._old.insert(self._young.pop())
        self._expire(now)

    def _expire(self, now: int) -> None:
        if self._length is None:
            return
        while self._times and now - self._times[0] >= self._length:
            self._times.popleft()
            self._old.evict()
        if not self._times:
            self._young._expire(now - self._length + 1)


SPEC = OutOfOrder.SPEC = WindowSpec(
    name="out_of_order",
    make=OutOfOrder,
    title="takes items that are late by a bounded time",
    guarantee="exact; items later than the bound are refused and counted",
    space="as a tree of what came within the lateness, and DABALite of the rest",
    time="a tree's insert and evict, and DABALite's, for each item; query 2 combines more",
    paper=f"{PAPER}, Section 9; Flexible Time Management (PODS 2004)",
    order="by time, late by a bounded time",
    fifo=False,
    compiled=False,
    parameters=({"lateness": "5s"},),
)
