"""Independent sources: one DABA a source, under a tree that combines them."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import Any, cast

from wane.errors import BadTime, EmptyWindow
from wane.monoids.base import of_aggregates
from wane.registry import WindowSpec
from wane.times import instant, show
from wane.windows.base import PAPER, Window, length_of
from wane.windows.daba_lite import DABALite


class Sources(Window):
    """Streams that are in order each by itself, however far they drift from one another (Section 9).

    Each source has a DABA of its own; a complete tree over the sources keeps the aggregate of them all. For commutative
    monoids, since items of different sources are combined in no order. An insert or evict costs what it costs in DABA,
    and O(log s) combines for s sources.

    Args:
        monoid: What it aggregates with.
        duration: How long items stay, as of the newest item of any source; without it until they are evicted.

    >>> w = Sources("sum", duration="1m")
    >>> w.insert(1, 100, source="a")
    >>> w.insert(10, 40, source="b")
    >>> w.insert(100, 50, source="b")
    >>> w.query()
    101
    >>> Sources("collect")
    Traceback (most recent call last):
    wane.errors.Unsupported: Sources needs a monoid that is commutative (the order of its arguments does not matter), \
and collect is not; use FingerTree or OutOfOrder
    """

    def __init__(self, monoid: Any, *, duration: Any = None) -> None:
        self._length = None if duration is None else length_of(duration)
        super().__init__(monoid)

    def _make(self) -> None:
        self._inner = of_aggregates(self.monoid)
        self._windows: dict[Any, DABALite] = {}
        self._times: dict[Any, deque[int | None]] = {}
        self._last: dict[Any, int] = {}
        self._leaf: dict[Any, int] = {}
        self._oldest: list[tuple[int, int, Any]] = []  # a heap, where items leave by their age
        self._tree: list[Any] = [self.monoid.identity] * 2  # leaves in the second half, each other node over two
        self._newest: int | None = None

    def insert(self, item: Any, time: Any = None, *, source: Any = None) -> None:
        """Put an item at the end of its source."""
        at = None if time is None else instant(time)
        if at is None and self._length is not None:
            raise BadTime("a window of some duration needs each item's time; give insert(item, time, source=...)")
        if at is not None:
            if at < self._last.get(source, at):
                raise BadTime(
                    f"{show(at)} is before {show(self._last[source])} of the source {source!r}, which must be in order "
                    "by itself; give sources that are, or use FingerTree"
                )
            self._last[source] = at
            self._newest = at if self._newest is None else max(at, self._newest)
        if source not in self._windows:
            self._join(source)
        self._windows[source].insert(self.monoid.lift(item))
        if self._length is not None and not self._times[source]:
            heappush(self._oldest, (cast(int, at), self._leaf[source], source))
        self._times[source].append(at)
        self._climb(source)
        if self._length is not None:
            assert self._newest is not None
            self._expire(self._newest)

    def evict(self, source: Any = None) -> None:
        """Take out the oldest item of a source."""
        if not self._times.get(source):
            raise EmptyWindow(f"there is nothing to evict: the source {source!r} has no items; ask len() first")
        self._times[source].popleft()
        self._windows[source].evict()
        self._climb(source)

    def query(self, now: Any = None) -> Any:
        """The aggregate over all sources, lowered; where the window has a duration, of what is left at `now`."""
        if now is not None:
            self._expire(instant(now))
        return self.monoid.lower(self._tree[1])

    def __len__(self) -> int:
        """The number of items."""
        return sum(map(len, self._times.values()))

    def _join(self, source: Any) -> None:
        """Give a source a leaf; the tree doubles when all are taken."""
        leaves = len(self._tree) // 2
        if len(self._windows) == leaves:
            combine, identity = self.monoid.combine, self.monoid.identity
            grown = [identity] * (4 * leaves)
            grown[2 * leaves : 3 * leaves] = self._tree[leaves:]
            for node in range(2 * leaves - 1, 0, -1):
                grown[node] = combine(grown[2 * node], grown[2 * node + 1])
            self._tree = grown
        self._leaf[source] = len(self._windows)
        self._windows[source], self._times[source] = DABALite(self._inner), deque()

    def _climb(self, source: Any) -> None:
        """Combine anew on the way from a source's leaf to the root."""
        tree, combine = self._tree, self.monoid.combine
        node = len(tree) // 2 + self._leaf[source]
        tree[node] = self._windows[source].query()
        while node > 1:
            node >>= 1
            tree[node] = combine(tree[2 * node], tree[2 * node + 1])

    def _expire(self, now: int) -> None:
        """Let go what has grown too old, in any source."""
        if self._length is None:
            return
        while self._oldest and now - self._oldest[0][0] >= self._length:
            # An entry is never after the oldest item of its source, of which there is one while it has items.
            _, leaf, source = heappop(self._oldest)
            times = self._times[source]
            while times and now - cast(int, times[0]) >= self._length:
                times.popleft()
                self._windows[source].evict()
            self._climb(source)
            if times:
                heappush(self._oldest, (cast(int, times[0]), leaf, source))


SPEC = Sources.SPEC = WindowSpec(
    name="sources",
    make=Sources,
    title="one window over sources that drift apart without bound",
    guarantee="exact",
    space="as DABALite for each source, and 2s aggregates for s sources",
    time="as DABALite, and O(log s) combines for s sources",
    paper=f"{PAPER}, Section 9; Continuous Analytics over Discontinuous Streams (SIGMOD 2010)",
    needs=frozenset({"commutative"}),
    order="each source by itself",
    fifo=False,
    compiled=False,
)
