"""Several lengths over one queue: the longest window keeps the items, and the shorter ones are its young part."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from wane.errors import BadParameter, BadTime, Unsupported
from wane.monoids.base import of_aggregates
from wane.registry import WindowSpec
from wane.summaries.base import whole
from wane.times import instant, show
from wane.windows.base import PAPER, Window, length_of, window_of


class Nested(Window):
    """Windows of several lengths over one stream, each item kept once (Section 9: young and old, for any number).

    The window between two lengths is one of its own: an item that grows too old for the first is evicted there and
    inserted into the next. An answer combines those up to its length, so each length costs one more combine.

    For any monoid. `query` gives a dict of answers, by the lengths as they were given.

    Args:
        monoid: What they aggregate with.
        rows: The lengths in rows.
        duration: Or the lengths in time; each item then comes with its time.
        by: The first-in-first-out window that does the work.

    >>> w = Nested("max", rows=[2, 4])
    >>> for v in (9, 6, 3, 5, 1):
    ...     w.insert(v)
    >>> w.query()
    {2: 5, 4: 6}
    """

    def __init__(
        self,
        monoid: Any,
        *,
        rows: Sequence[int] | None = None,
        duration: Sequence[Any] | None = None,
        by: Any = "daba_lite",
    ) -> None:
        if (rows is None) == (duration is None):
            raise BadParameter("windows are of some rows or of some duration; give rows= or duration=, as a list")
        self._timed = duration is not None
        given = rows if duration is None else duration
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise BadParameter(
                f"several lengths are a list, got {given!r}; for one length, use a window of that length"
            )
        lengths = {one: length_of(one) if self._timed else whole(one, "rows", 1) for one in given}
        if not lengths:
            raise BadParameter("no length was given; give rows= or duration= several")
        self._lengths = dict(sorted(lengths.items(), key=lambda pair: pair[1]))
        self._names = list(lengths)
        self._by = window_of(by)
        super().__init__(monoid)

    def _make(self) -> None:
        inner = of_aggregates(self.monoid)  # they move from one to the next, lifted once
        self._parts = [self._by(inner) for _ in self._lengths]
        self._items: list[deque[tuple[int, Any]]] = [deque() for _ in self._lengths]
        self._now: int | None = None

    def insert(self, item: Any, time: Any = None) -> None:
        """Put an item at the end of all windows."""
        if self._timed:
            if time is None:
                raise BadTime("windows of some duration need each item's time; give insert(item, time)")
            at = self._forward(instant(time), "an item's time")
        else:
            self._now = at = 0 if self._now is None else self._now + 1
        lifted = self.monoid.lift(item)
        self._age(at)
        self._items[0].append((at, lifted))
        self._parts[0].insert(lifted)

    def query(self, now: Any = None) -> dict[Any, Any]:
        """The answer for each length, by the lengths as they were given."""
        if now is not None and self._timed:
            self._age(self._forward(instant(now), "now"))
        combine, lower = self.monoid.combine, self.monoid.lower
        agg, found = None, {}
        for name, part in zip(self._lengths, self._parts, strict=True):
            mine = part.query()
            agg = mine if agg is None else combine(mine, agg)
            found[name] = lower(agg)
        return {name: found[name] for name in self._names}

    def evict(self) -> None:
        """Nothing is evicted by hand: items leave by their age."""
        raise Unsupported("items leave nested windows by their age; there is nothing to evict by hand")

    def __len__(self) -> int:
        """The number of items in the longest window."""
        return sum(map(len, self._items))

    def _forward(self, at: int, what: str) -> int:
        if self._now is not None and at < self._now:
            raise BadTime(
                f"{what} {show(at)} is before {show(self._now)}, and a first-in-first-out window does not go back; "
                "sort the items, or use FingerTree or OutOfOrder, which take late ones"
            )
        self._now = at
        return at

    def _age(self, now: int) -> None:
        """Move on what has grown too old for each window."""
        last = len(self._parts) - 1
        for i, length in enumerate(self._lengths.values()):
            items, part = self._items[i], self._parts[i]
            while items and now - items[0][0] >= length:
                item = items.popleft()
                part.evict()
                if i < last:
                    self._items[i + 1].append(item)
                    self._parts[i + 1].insert(item[1])


SPEC = Nested.SPEC = WindowSpec(
    name="nested",
    make=Nested,
    title="several lengths over one queue",
    guarantee="exact",
    space="as one window of the longest length",
    time="as one window for each length, and one combine more",
    paper=f"{PAPER}, Section 9",
    fifo=False,
    compiled=False,
    parameters=({"rows": (10, 100)},),
)
