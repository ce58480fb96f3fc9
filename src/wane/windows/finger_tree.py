"""A finger tree of aggregates: items in the order of their times, however they come, cheap near the newest.

A B-tree that is held by its two ends, as FiBA is: each side is a spine of levels, from the fingers inwards, and level h
of a spine is a short list of trees of height h. In order the items are ``left[0], left[1], ..., right[1], right[0]``.
Each spine also keeps, for each level, the aggregate from its inner end up to that level, so that the last two of these
are the whole window. Trees of height h hold 4^h items or more, and no level under the highest is empty, so an item that
belongs d places before the newest is found within O(log d) levels, and only those are combined anew.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from wane.errors import BadTime
from wane.monoids.base import Monoid
from wane.registry import WindowSpec
from wane.times import instant
from wane.windows.base import Window, empty, length_of

LEAST, MOST = 4, 8
"""How many children a tree has; a list of a spine may have fewer."""


class Tree:
    """A tree of some height, or an item, which has no children; with its aggregate and its first and last times."""

    __slots__ = ("agg", "children", "first", "last", "size")

    def __init__(self, time: int, agg: Any) -> None:
        self.first = self.last = time
        self.agg = agg
        self.size = 1
        self.children: list[Tree] = []


class Spine:
    """One side: for each height a list of trees, and the aggregate from the inner end up to there."""

    def __init__(self, monoid: Monoid, left: bool) -> None:
        self.left = left
        self.combine, self.identity = monoid.combine, monoid.identity
        self.levels: list[list[Tree]] = [[]]
        self.sums: list[Any] = [monoid.identity]

    def trim(self) -> None:
        """Forget empty levels at the inner end."""
        while len(self.levels) > 1 and not self.levels[-1]:
            self.levels.pop()
            self.sums.pop()

    def renew(self, height: int) -> None:
        """Aggregate anew from this level out to the finger."""
        self.trim()
        for h in range(min(height, len(self.levels) - 1), -1, -1):
            inner = self.sums[h + 1] if h + 1 < len(self.sums) else self.identity
            if self.left:
                self.sums[h] = self.combine(fold(self.levels[h], self.combine, self.identity), inner)
            else:
                self.sums[h] = self.combine(inner, fold(self.levels[h], self.combine, self.identity))

    def bundle(self, height: int) -> int:
        """Where a level is too long, make a tree of its inner end and pass it on; gives the last level that changed."""
        level = self.levels[height]
        while len(level) > MOST:
            inner = level[-LEAST:] if self.left else level[:LEAST]
            level[:] = level[:-LEAST] if self.left else level[LEAST:]
            height += 1
            if height == len(self.levels):
                self.levels.append([])
                self.sums.append(self.identity)
            level = self.levels[height]
            level.insert(0 if self.left else len(level), grown(inner, self.combine, self.identity))
        return height


def fold(trees: list[Tree], combine: Any, identity: Any) -> Any:
    """The aggregate of some trees."""
    if not trees:
        return identity
    agg = trees[0].agg
    for tree in trees[1:]:
        agg = combine(agg, tree.agg)
    return agg


def grown(children: list[Tree], combine: Any, identity: Any) -> Tree:
    """A tree of some trees."""
    made = Tree(children[0].first, fold(children, combine, identity))
    made.children, made.last, made.size = children, children[-1].last, sum(child.size for child in children)
    return made


class FingerTree(Window):
    """Items in the order of their times, however late they come: a finger tree like FiBA, with bulk eviction.

    For any monoid. An item that comes in order costs amortised O(1) combines, one that belongs d places before the
    newest O(log d); a query costs one. `evict_until` takes out all items before a time in O(log n) steps.

    Args:
        monoid: What it aggregates with.
        duration: How long items stay, as of the newest; without it until they are evicted.

    >>> w = FingerTree("collect")
    >>> for item, time in (("a", 1), ("d", 9), ("c", 7), ("b", 3)):
    ...     w.insert(item, time)
    >>> w.query()
    ['a', 'b', 'c', 'd']
    >>> w.evict_until(7), w.query()
    (2, ['c', 'd'])
    """

    def __init__(self, monoid: Any, *, duration: Any = None) -> None:
        super().__init__(monoid)
        self._length = None if duration is None else length_of(duration)

    def _make(self) -> None:
        self._left, self._right = Spine(self.monoid, left=True), Spine(self.monoid, left=False)
        self._size = 0
        self._newest: int | None = None

    def insert(self, item: Any, time: Any = None) -> None:
        """Put an item in its place: behind those of its time and before later ones."""
        if time is None:
            raise BadTime("a tree keeps items in the order of their times; give insert(item, time)")
        at = instant(time)
        self._place(Tree(at, self.monoid.lift(item)))
        self._newest = at if self._newest is None else max(at, self._newest)
        if self._length is not None:
            self._expire(self._newest - self._length + 1)

    def evict(self) -> None:
        """Take out the oldest item."""
        self.pop()

    def pop(self) -> Any:
        """Take out the oldest item, and give its aggregate."""
        if not self._size:
            raise empty(self)
        changed = self._refill()
        oldest = self._left.levels[0].pop(0)
        self._size -= 1
        self._left.renew(max(changed, self._refill()))
        return oldest.agg

    def evict_until(self, time: Any) -> int:
        """Take out all items before a time; gives their number."""
        return self._expire(instant(time))

    def query(self, now: Any = None) -> Any:
        """The aggregate over all items, lowered; where the window has a duration, of those that are left at `now`."""
        if now is not None and self._length is not None:
            self._expire(instant(now) - self._length + 1)
        return self.monoid.lower(self.aggregate())

    def aggregate(self) -> Any:
        """The aggregate over all items."""
        return self.monoid.combine(self._left.sums[0], self._right.sums[0])

    def __len__(self) -> int:
        """The number of items."""
        return self._size

    @property
    def oldest(self) -> int | None:
        """The time of the oldest item, in nanoseconds."""
        for side in (self._left.levels, self._right.levels[::-1]):
            for level in side:
                if level:
                    return level[0].first
        return None

    # --- Placing

    def _place(self, item: Tree) -> None:
        """Find the lowest level from the right whose items begin at or before its time, else one from the left."""
        self._size += 1
        right, left = self._right, self._left
        if right.levels[0] and item.first >= right.levels[0][-1].last:
            self._append(item)
            return
        for side, heights in ((right, range(len(right.levels))), (left, range(len(left.levels) - 1, -1, -1))):
            for height in heights:
                level = side.levels[height]
                if level and item.first >= level[0].first:
                    self._put(side, height, item)
                    return
        lowest = next((height for height, level in enumerate(left.levels) if level), None)
        if lowest is not None:
            self._put(left, lowest, item)
        elif any(right.levels):
            self._put(right, len(right.levels) - 1, item)
        else:
            self._append(item)

    def _append(self, item: Tree) -> None:
        right = self._right
        right.levels[0].append(item)
        if len(right.levels[0]) <= MOST:
            right.sums[0] = right.combine(right.sums[0], item.agg)
        else:
            right.renew(right.bundle(0))

    def _put(self, side: Spine, height: int, item: Tree) -> None:
        """Put an item into one of the trees of a level; a tree that grew too wide becomes two."""
        level = side.levels[height]
        at = max(bisect_right(level, item.first, key=lambda tree: tree.first) - 1, 0)
        if height == 0:
            level.insert(bisect_right(level, item.first, key=lambda tree: tree.first), item)
        else:
            level[at : at + 1] = self._with(level[at], item)
        side.renew(side.bundle(height))

    def _with(self, tree: Tree, item: Tree) -> list[Tree]:
        """A tree with one more item, as one or two."""
        children = tree.children
        at = bisect_right(children, item.first, key=lambda child: child.first)
        if not children[0].children:
            children.insert(at, item)
        else:
            at = max(at - 1, 0)
            children[at : at + 1] = self._with(children[at], item)
        combine, identity = self.monoid.combine, self.monoid.identity
        parts = [children] if len(children) <= MOST else [children[:LEAST], children[LEAST:]]
        return [grown(part, combine, identity) for part in parts]

    # --- Taking out

    def _refill(self) -> int:
        """See to it that no level of the left under its highest is empty; gives the highest level that changed."""
        left, right = self._left.levels, self._right.levels
        changed = 0
        while True:
            self._left.trim()
            hole = next((height for height, level in enumerate(left) if not level), None)
            if hole is None:
                break
            if hole + 1 < len(left):
                left[hole].extend(left[hole + 1].pop(0).children)
                changed = max(changed, hole + 1)
                continue
            # All of the left is used up: its next tree is the oldest of the right, at the inner end of that.
            self._right.trim()
            top = len(right) - 1
            if not right[top]:
                break
            while len(left) < top:
                left.append([])
                self._left.sums.append(self.monoid.identity)
            if top == 0:
                left[0].extend(right[0])
                right[0].clear()
            else:
                left[top - 1].extend(right[top].pop(0).children)
            self._right.renew(top)
            changed = max(changed, top)
        return changed

    def _expire(self, time: int) -> int:
        """Take out all items before a time: whole trees at once, and those in which the time lies opened."""
        before = self._size
        while self._size:
            oldest = self.oldest
            if oldest is None or oldest >= time:
                break
            side, height = self._front()
            level = side.levels[height]
            tree = level.pop(0)
            if tree.last < time:
                self._size -= tree.size
            else:
                below = self._left.levels
                while len(below) < height:
                    below.append([])
                    self._left.sums.append(self.monoid.identity)
                below[height - 1][:0] = tree.children
        if self._size != before:
            self._refill()
            self._left.renew(len(self._left.levels) - 1)
            self._right.renew(len(self._right.levels) - 1)
        return before - self._size

    def _front(self) -> tuple[Spine, int]:
        """Where the oldest tree is."""
        for height, level in enumerate(self._left.levels):
            if level:
                return self._left, height
        right = self._right.levels
        return self._right, next(height for height in range(len(right) - 1, -1, -1) if right[height])


SPEC = FingerTree.SPEC = WindowSpec(
    name="finger_tree",
    make=FingerTree,
    title="takes items out of order, and evicts in bulk",
    guarantee="exact",
    space="n items and n / 3 inner nodes at most",
    time="O(log d) combines for an item d places late, amortised O(1) in order; query 1; bulk eviction O(log n)",
    paper="Optimal and General Out-of-Order Sliding-Window Aggregation (VLDB 2019), and its bulk eviction (VLDB 2023)",
    order="by time, in any order of arrival",
    fifo=False,
    compiled=False,
)
