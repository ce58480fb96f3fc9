"""Panes: a window that moves by whole stretches, and keeps one aggregate for each instead of the items."""

from __future__ import annotations

from collections import deque
from typing import Any

from wane.errors import BadParameter, BadTime, Unsupported
from wane.monoids.base import of_aggregates
from wane.registry import WindowSpec
from wane.times import instant, show, show_duration
from wane.windows.base import PAPER, Window, length_of, window_of


class Panes(Window):
    """A window over stretches of time: items of one stretch are combined as they come, and leave together (Section 8).

    For any monoid. Space is the number of panes, not of items. The window holds the panes that a time of at most
    `duration` before the end of the newest pane lies in: panes begin at multiples of `every` since 1970, and a pane
    leaves when it has become `duration` old as a whole.

    Args:
        monoid: What it aggregates with.
        duration: How long the window is, a multiple of `every`.
        every: How long a pane is.
        by: The first-in-first-out window that keeps the panes.

    >>> w = Panes("sum", duration="3h", every="1h")
    >>> for hour in range(5):
    ...     w.insert(1, 3600 * hour)
    ...     w.insert(10, 3600 * hour + 60)
    >>> w.query(), len(w)
    (33, 3)
    """

    def __init__(self, monoid: Any, *, duration: Any, every: Any, by: Any = "daba_lite") -> None:
        self._length, self._every = length_of(duration), length_of(every, "every")
        if self._length % self._every:
            raise BadParameter(
                f"duration must be whole panes, got {show_duration(self._length)} of {show_duration(self._every)} "
                "each; choose an every= that divides it"
            )
        self._by = window_of(by)
        super().__init__(monoid)

    def _make(self) -> None:
        self._panes = self._by(of_aggregates(self.monoid))
        self._starts: deque[int] = deque()  # of the panes that are closed
        self._open: int | None = None
        self._agg = self.monoid.identity

    def insert(self, item: Any, time: Any = None) -> None:
        """Add an item to the pane of its time."""
        if time is None:
            raise BadTime("panes are stretches of time; give insert(item, time)")
        self._move(instant(time), "an item's time")
        self._agg = self.monoid.combine(self._agg, self.monoid.lift(item))

    def query(self, now: Any = None) -> Any:
        """The aggregate over all panes, lowered; of those that are left at `now`."""
        if now is not None:
            self._move(instant(now), "now")
        return self.monoid.lower(self.monoid.combine(self._panes.query(), self._agg))

    def evict(self) -> None:
        """Nothing is evicted by hand: panes leave by their age."""
        raise Unsupported("panes leave by their age; there is nothing to evict by hand")

    def __len__(self) -> int:
        """The number of panes."""
        return len(self._starts) + (self._open is not None)

    def _move(self, now: int, what: str) -> None:
        """Close the open pane when its time is over, and let old ones go."""
        start = now - now % self._every
        if self._open is not None and start < self._open:
            raise BadTime(
                f"{what} {show(now)} is before the pane from {show(self._open)}, and panes do not go back; sort the "
                "items, or use FingerTree, which takes late ones"
            )
        if start != self._open:
            if self._open is not None:
                self._panes.insert(self._agg)
                self._starts.append(self._open)
            self._open, self._agg = start, self.monoid.identity
        while self._starts and start + self._every - self._starts[0] > self._length:
            self._starts.popleft()
            self._panes.evict()


SPEC = Panes.SPEC = WindowSpec(
    name="panes",
    make=Panes,
    title="moves by whole stretches of time, and keeps one aggregate for each",
    guarantee="exact, at the granularity of panes",
    space="one aggregate a pane",
    time="one combine an item, and those of the window once a pane",
    paper=f"{PAPER}, Section 8; No Pane, No Gain (SIGMOD Record 2005)",
    fifo=False,
    compiled=False,
    parameters=({"duration": "10s", "every": "2s"},),
)
