"""What every window has in common: its monoid, how items come and go, and the queue that the algorithms work on.

An algorithm is a few *steps*, functions with open names, over ``(p, sums, rings)``: `p` holds positions, `sums` single
aggregates, `rings` columns of aggregates in which the item at position `i` has its place ``i & p[MASK]``. Closed over a
monoid's `combine` and `identity`, one text is a Python object's methods over lists, and a compiled loop over arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from wane._jit import Step
from wane.errors import BadParameter, BadTime, EmptyWindow, Unsupported
from wane.monoids.base import Monoid, check, monoid_of, require
from wane.registry import WindowSpec, windows
from wane.summaries.base import whole
from wane.times import duration, instant, show, show_duration

F, E, MASK = 0, 1, 2
"""Where `p` holds the positions of the front and of the end, and what makes a place of a position."""

SUMS = 3
"""How many single aggregates there are room for."""

LEAST = 16
"""The smallest queue: shorter ones are not worth shrinking to."""


def combine(a: Any, b: Any) -> Any:
    """Stands for the monoid's operator in the text of an algorithm."""
    raise NotImplementedError


def inverse(a: Any) -> Any:
    """Stands for the monoid's inverse in the text of an algorithm."""
    raise NotImplementedError


identity: Any = None
"""Stands for the monoid's identity in the text of an algorithm."""


class Window:
    """Items in a queue, with the aggregate over all of them.

    Without `rows` and `duration` its size is free: each item stays until it is evicted. With `rows` an item leaves
    when that many newer ones are there; with `duration`, when its age reaches it, as of the newest item or of `now`.

    Args:
        monoid: What it aggregates with: a name such as ``"max"``, one of :mod:`wane.monoids`, of :func:`wane.monoid`,
            or several, which share one queue.
        rows: How many items it holds at most.
        duration: How long items stay. Each then comes with its time, and times never go back.
    """

    SPEC: ClassVar[WindowSpec]

    monoid: Monoid

    def __init__(self, monoid: Any, *, rows: int | None = None, duration: Any = None) -> None:
        self.monoid = monoid_of(monoid)
        require(self.monoid, self.SPEC.needs, type(self).__name__, able(self.SPEC))
        self._make()
        if self.monoid.unchecked:
            self._try_first()
        if rows is not None and duration is not None:
            raise BadParameter("a window is of some rows or of some duration; give rows= or duration=, not both")
        if rows is not None:
            self._hold_rows(rows)
        if duration is not None:
            self._hold_duration(duration)

    def insert(self, item: Any, time: Any = None) -> None:
        """Put an item at the end; with its time where the window has a duration."""
        raise NotImplementedError

    def evict(self) -> None:
        """Take out the oldest item."""
        raise NotImplementedError

    def query(self, now: Any = None) -> Any:
        """The aggregate over all items, lowered; where the window has a duration, of those that are left at `now`."""
        raise NotImplementedError

    def __len__(self) -> int:
        """The number of items."""
        raise NotImplementedError

    def _make(self) -> None:
        """Set `insert`, `evict` and `query` for windows of free size."""
        raise NotImplementedError

    def _try_first(self) -> None:
        """Try a user's identity on the first item, since no sample could be lifted."""
        insert, tried = self.insert, False

        def try_and_insert(item: Any, *time: Any, **named: Any) -> None:
            nonlocal tried
            if not tried:
                check(self.monoid, [item])
                tried = True
            insert(item, *time, **named)

        self._replace(insert=try_and_insert)

    def _replace(self, **methods: Callable[..., Any]) -> None:
        """Set methods on the object: closures that know all they need are twice as fast as looking it up each time."""
        self.__dict__.update(methods)

    def _hold_rows(self, rows: Any) -> None:
        rows = whole(rows, "rows", 1)
        insert, evict, size = self.insert, self.evict, self.__len__
        full = False

        def insert_and_evict(item: Any) -> None:
            nonlocal full
            if full:
                evict()
            insert(item)
            if not full:
                full = size() == rows

        def evict_too() -> None:
            nonlocal full
            full = False
            evict()

        self._replace(insert=insert_and_evict, evict=evict_too)

    def _hold_duration(self, duration: Any) -> None:
        from collections import deque

        length = length_of(duration)
        insert, evict, query = self.insert, self.evict, self.query
        times: deque[int] = deque()
        newest: int | None = None

        def move(now: int, what: str) -> None:
            nonlocal newest
            if newest is not None and now < newest:
                raise BadTime(
                    f"{what} {show(now)} is before {show(newest)}, and a first-in-first-out window does not go back; "
                    "sort the items, or use FingerTree or OutOfOrder, which take late ones"
                )
            newest = now
            while times and now - times[0] >= length:
                times.popleft()
                evict()

        def insert_timed(item: Any, time: Any = None) -> None:
            if time is None:
                raise BadTime("a window of some duration needs each item's time; give insert(item, time)")
            at = instant(time)
            move(at, "an item's time")
            insert(item)
            times.append(at)

        def evict_timed() -> None:
            evict()
            times.popleft()

        def query_timed(now: Any = None) -> Any:
            if now is not None:
                move(instant(now), "now")
            return query()

        self._replace(insert=insert_timed, evict=evict_timed, query=query_timed)


class Queue(Window):
    """A window whose algorithm is written as steps over a ring queue.

    The rings double when they are full, and halve when three quarters are empty, which combines nothing: at most four
    places an item are held, and what left the window is let go at once.

    A class says how many rings it has, how many positions beside the front and the end, and its steps.
    """

    RINGS: ClassVar[int] = 1
    POSITIONS: ClassVar[int] = 0
    insert_step: ClassVar[Step]
    evict_step: ClassVar[Step]
    query_step: ClassVar[Step]
    rebuild_step: ClassVar[Step | None] = None
    """What must be done after the rings were moved."""

    def _make(self) -> None:
        monoid = self.monoid
        given = open_names(monoid)
        insert_step, evict_step, query_step = (
            step.closed(given) for step in (self.insert_step, self.evict_step, self.query_step)
        )
        lift, lower, nothing = monoid.lift, monoid.lower, monoid.identity
        p = positions(self, LEAST)
        sums: list[Any] = [nothing] * SUMS
        rings: tuple[list[Any], ...] = tuple([nothing] * LEAST for _ in range(self.RINGS))
        self._p, self._sums, self._rings = p, sums, rings
        move = self._move
        held = rings if self.rebuild_step is None else rings[:1]  # whose places are those of items

        def insert(item: Any) -> None:
            if p[E] - p[F] > p[MASK]:
                move(2 * (p[MASK] + 1))
            insert_step(p, sums, rings, lift(item))

        def evict() -> None:
            front, end = p[F], p[E]
            if front == end:
                raise empty(self)
            evict_step(p, sums, rings)
            place = front & p[MASK]
            for ring in held:
                ring[place] = nothing
            if p[MASK] >= LEAST and 4 * (end - front) <= p[MASK]:
                move((p[MASK] + 1) // 2)

        def query() -> Any:
            return lower(query_step(p, sums, rings))

        self._replace(insert=insert, evict=evict, query=query)

    def __len__(self) -> int:
        """The number of items."""
        return int(self._p[E] - self._p[F])

    def _move(self, size: int) -> None:
        """Give the rings another size, every item to its new place; the lists themselves stay the same."""
        p, old = self._p, self._p[MASK]
        for ring in self._rings:
            moved = [self.monoid.identity] * size
            for i in range(p[F], p[E]):
                moved[i & (size - 1)] = ring[i & old]
            ring[:] = moved
        p[MASK] = size - 1
        if self.rebuild_step is not None:
            self.rebuild_step.closed(open_names(self.monoid))(p, self._sums, self._rings)


def positions(window: type[Queue] | Queue, size: int) -> list[int]:
    """The positions of an empty queue with room for `size` items, a power of two."""
    return [0, 0, size - 1] + [0] * window.POSITIONS


def open_names(monoid: Monoid) -> dict[str, Any]:
    """What the open names of an algorithm's text stand for."""
    inverses = {} if monoid.inverse is None else {"inverse": monoid.inverse}
    return {"combine": monoid.combine, "identity": monoid.identity, **inverses}


def length_of(given: Any, what: str = "duration") -> int:
    """Read how long a window is, in nanoseconds."""
    length = duration(given, what)
    if length <= 0:
        raise BadParameter(f"{what} must be longer than nothing, got {show_duration(length)}")
    return length


def empty(window: Any) -> EmptyWindow:
    """The error of evicting from an empty window."""
    return EmptyWindow(
        f"there is nothing to evict: the {type(window).__name__} of {window.monoid.label} is empty; ask len() first"
    )


def able(spec: WindowSpec) -> str:
    """Windows that need nothing of a monoid, for messages that say what to use instead."""
    return "DABALite or TwoStacksLite" if spec.fifo else "FingerTree or OutOfOrder"


def window_of(given: Any) -> type[Window]:
    """Read the class of a first-in-first-out window: itself, or its name."""
    found = given
    if isinstance(given, str):
        by_class = {spec.make.__name__: spec.make for spec in windows().values()}
        spec = windows().get(given)
        found = spec.make if spec is not None else by_class.get(given)
    if not (isinstance(found, type) and issubclass(found, Window) and found.SPEC.fifo):
        names: Sequence[str] = [spec.make.__name__ for spec in windows().values() if spec.fifo]
        raise Unsupported(f"a first-in-first-out window is asked for, got {given!r}; there are {', '.join(names)}")
    return found


PAPER = "Constant-Time Sliding Window Aggregation (IBM Research Report)"
LITE = "In-Order Sliding-Window Aggregation in Worst-Case Constant Time (VLDB Journal 2021)"
