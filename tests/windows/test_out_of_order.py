"""Windows beyond first in, first out: a finger tree, bounded lateness, sources that drift, panes, several lengths."""

from __future__ import annotations

import bisect
import math
import random

import pytest

import wane
from wane import registry
from wane.errors import BadParameter, BadTime, EmptyWindow, TooLate, Unsupported
from wane.monoids.base import Custom, monoid_of
from wane.times import SECOND
from wane.windows.finger_tree import MOST

HARNESSED = {"finger_tree", "out_of_order", "sources", "panes", "nested"}


def test_every_window_has_a_harness():
    assert {name for name, spec in registry.windows().items() if not spec.fifo} == HARNESSED


def counting(name):
    plain, calls = monoid_of(name), [0]

    def combine(a, b):
        calls[0] += 1
        return plain.combine(a, b)

    return Custom(plain.lift, combine, plain.lower, plain.identity, plain.inverse, plain.has, name), calls


class Sorted:
    """Items in the order of their times, those of one time in the order they came."""

    def __init__(self):
        self.times, self.items = [], []

    def insert(self, item, time):
        at = bisect.bisect_right(self.times, time)
        self.times.insert(at, time)
        self.items.insert(at, item)

    def evict_until(self, time):
        count = bisect.bisect_left(self.times, time)
        del self.times[:count], self.items[:count]
        return count


# --- The finger tree


def check_tree(window):
    """Levels are whole under the highest, lists short, times in order, and each aggregate that of what is under it."""
    combine, identity = window.monoid.combine, window.monoid.identity

    def gather(tree, height):
        if height == 0:
            assert not tree.children
            return [tree]
        assert 4 <= len(tree.children) <= MOST
        leaves = [leaf for child in tree.children for leaf in gather(child, height - 1)]
        assert (tree.size, tree.first, tree.last) == (len(leaves), leaves[0].first, leaves[-1].last)
        assert tree.agg == whole(leaves)
        return leaves

    def whole(leaves):
        agg = identity
        for leaf in leaves:
            agg = combine(agg, leaf.agg)
        return agg

    sides = []
    for side in (window._left, window._right):
        assert len(side.levels) == len(side.sums)
        assert all(side.levels[:-1])
        levels = [[leaf for tree in level for leaf in gather(tree, h)] for h, level in enumerate(side.levels)]
        for h in range(len(levels)):
            inner = levels[h:] if side.left else levels[h:][::-1]
            assert side.sums[h] == whole([leaf for level in inner for leaf in level])
        sides.append([leaf for level in (levels if side.left else levels[::-1]) for leaf in level])
    times = [leaf.first for leaf in sides[0] + sides[1]]
    assert times == sorted(times)
    assert len(times) == len(window)


def drive_tree(seed, steps, checked):
    rng = random.Random(seed)
    window, exact, now = wane.FingerTree("collect"), Sorted(), 0
    for step in range(steps):
        draw = rng.random()
        if draw < 0.55 or not exact.times:
            now += rng.randrange(3)
            late = rng.randrange(1 + rng.choice([3, 30, 300, 3000])) if rng.random() < 0.4 else 0
            window.insert(step, now - late)
            exact.insert(step, now - late)
        elif draw < 0.97:
            assert window.oldest == exact.times[0] * SECOND
            window.evict()
            del exact.times[0], exact.items[0]
        else:
            time = rng.choice(exact.times) if rng.random() < 0.8 else now + rng.randrange(2)
            assert window.evict_until(time) == exact.evict_until(time)
        assert window.query() == exact.items
        assert len(window) == len(exact.items)
        if step % checked == 0:
            check_tree(window)


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_is_a_sorted_list(seed):
    drive_tree(seed, 400, checked=7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_tree_is_a_sorted_list_at_length(seed):
    drive_tree(seed, 5000, checked=50)


def test_an_item_d_places_late_costs_o_log_d():
    monoid, calls = counting("sum")
    window = wane.FingerTree(monoid)
    size = 1 << 13
    for i in range(size):
        window.insert(1, 2 * i)
    assert calls[0] <= 8 * size  # amortised constant in order
    for distance in [2**e for e in range(13)]:
        most = 0
        for _ in range(20):
            before = calls[0]
            window.insert(1, 2 * (size - distance) - 1)
            most = max(most, calls[0] - before)
        levels = 2 + math.log(distance, 4)
        # Each level is folded anew, MOST trees and one more, in the tree that grew and in the spine, twice on a split.
        assert most <= 3 * (MOST + 2) * levels, (distance, most)
    before = calls[0]
    assert window.query() == len(window)
    assert calls[0] - before == 1


def test_near_the_end_an_item_costs_less_than_in_the_middle():
    monoid, calls = counting("sum")
    window = wane.FingerTree(monoid)
    for i in range(20_000):
        window.insert(1, 2 * i)

    def cost(distance):
        before = calls[0]
        for _ in range(20):
            window.insert(1, 2 * (20_000 - distance) - 1)
        return (calls[0] - before) / 20

    costs = [cost(distance) for distance in (1, 64, 4096)]
    assert costs[0] < costs[1] < costs[2] < 10 * costs[0] + 100


def test_bulk_eviction_costs_o_log_n():
    for size in (1000, 16_000):
        monoid, calls = counting("sum")
        window = wane.FingerTree(monoid)
        for i in range(size):
            window.insert(1, i)
        before = calls[0]
        assert window.evict_until(size - 77) == size - 77
        assert calls[0] - before <= 2 * (MOST + 2) * (2 + math.log(size, 4))
        assert window.query() == 77
        assert window.evict_until(size) == 77
        assert window.query() == 0
        window.insert(1, 5)
        assert window.query() == 1


def test_a_tree_of_a_duration():
    window, exact, rng, newest = wane.FingerTree("collect", duration="30s"), Sorted(), random.Random(1), 0
    for i in range(300):
        time = newest + rng.choice([0, 1, 2, -3, -20, -40])
        newest = max(newest, time)
        window.insert(i, time)
        exact.insert(i, time)
        exact.evict_until(newest - 29)  # an age of just 30 is outside
        assert window.query() == exact.items
    assert window.query(now=newest + 30) == []


def test_a_tree_needs_times_and_something_to_evict():
    window = wane.FingerTree("max")
    with pytest.raises(BadTime, match="give insert"):
        window.insert(3)
    with pytest.raises(EmptyWindow, match="there is nothing to evict"):
        window.evict()
    with pytest.raises(BadParameter, match="longer than nothing"):
        wane.FingerTree("max", duration=0)
    assert window.query() == -math.inf


# --- Bounded lateness


@pytest.mark.parametrize("duration", [None, 40, 5])
def test_late_items_fall_into_their_place(duration):
    rng = random.Random(str(duration))
    window, exact, newest, refused = wane.OutOfOrder("collect", lateness="10s", duration=duration), Sorted(), 0, 0
    for i in range(800):
        time = newest + rng.choice([0, 0, 1, 2, -1, -5, -10, -11, -30]) if i else 0
        if newest - time > 10:
            with pytest.raises(TooLate, match="was promised at most 10s; raise lateness="):
                window.insert(i, time)
            refused += 1
        else:
            window.insert(i, time)
            exact.insert(i, time)
            newest = max(newest, time)
        assert window.refused == refused
        if duration is not None:
            exact.evict_until(newest - duration + 1)
        elif len(exact.items) > 60 and rng.random() < 0.7:
            window.evict()
            del exact.items[0], exact.times[0]
        assert window.query(now=newest) == exact.items
        assert len(window) == len(exact.items)
    assert refused > 50


def test_old_items_cost_what_they_cost_in_daba():
    monoid, calls = counting("sum")
    window = wane.OutOfOrder(monoid, lateness="8s", duration="1000s")
    for i in range(1500):
        window.insert(1, i)
    before = calls[0]
    for i in range(1500, 2500):
        window.insert(1, i)
        assert window.query() == 1000
    assert (calls[0] - before) / 1000 < 30  # whatever the size of the window


def test_bounded_lateness_is_checked():
    with pytest.raises(BadParameter, match="lateness must be 0 or longer"):
        wane.OutOfOrder("max", lateness="-1s")
    with pytest.raises(BadParameter, match="longer than nothing"):
        wane.OutOfOrder("max", lateness=1, duration=0)
    window = wane.OutOfOrder("max", lateness=0)
    with pytest.raises(BadTime, match="give insert"):
        window.insert(3)
    with pytest.raises(EmptyWindow):
        window.evict()
    window.insert(3, 1)
    window.evict()
    assert len(window) == 0


# --- Sources


@pytest.mark.parametrize("monoid", ["sum", "max"])
def test_sources_drift_apart(monoid):
    rng = random.Random(monoid)
    window = wane.Sources(monoid, duration="50s")
    clocks, there, newest = dict.fromkeys("abcdefghijk", 0), [], None
    right = {"sum": sum, "max": lambda values: max(values, default=-math.inf)}[monoid]
    for i in range(1500):
        source = rng.choice("abcdefghijk"[: 1 + i // 100])
        clocks[source] += rng.choice([0, 1, 5]) * (1 + "abcdefghijk".index(source))
        value = rng.randrange(100)
        window.insert(value, clocks[source], source=source)
        newest = clocks[source] if newest is None else max(newest, clocks[source])
        there = [(v, t) for v, t in [*there, (value, clocks[source])] if newest - t < 50]
        assert window.query() == right([v for v, _ in there])
        assert len(window) == len(there)
    assert window.query(now=newest + 50) == right([])


def test_sources_without_times_are_evicted_by_hand():
    window = wane.Sources("max")
    for value, source in ((9, "a"), (3, "a"), (5, "b")):
        window.insert(value, source=source)
    window.evict("a")
    assert window.query() == 5
    with pytest.raises(EmptyWindow, match="the source 'c' has no items"):
        window.evict("c")


def test_one_step_of_many_sources_combines_logarithmically():
    monoid, calls = counting("sum")
    window = wane.Sources(monoid, duration=100)
    for i in range(20_000):
        before = calls[0]
        window.insert(1, i // 256, source=i % 256)
        if i > 15_000 and i % 256:  # the first of a second lets all sources' oldest go
            assert calls[0] - before <= 3 + 1 + 8


def test_sources_are_checked():
    for monoid in ("collect", "first", "argmax"):
        with pytest.raises(Unsupported, match="Sources needs a monoid that is commutative"):
            wane.Sources(monoid)
    window = wane.Sources("sum", duration="1m")
    window.insert(1, 100, source="a")
    window.insert(1, 50, source="b")
    with pytest.raises(BadTime, match="99 is before 100 of the source 'a'"):
        window.insert(1, 99, source="a")
    with pytest.raises(BadTime, match="needs each item's time"):
        window.insert(1, source="a")
    with pytest.raises(BadParameter, match="longer than nothing"):
        wane.Sources("sum", duration=0)


# --- Panes


@pytest.mark.parametrize("monoid", ["sum", "collect"])
def test_panes_hold_whole_stretches(monoid):
    rng = random.Random(2)
    window, there, now = wane.Panes(monoid, duration="20s", every="5s"), [], 0
    for i in range(500):
        now += rng.choice([0, 1, 2, 3, 40 if i % 50 == 0 else 1])
        window.insert(i, now)
        there.append((i, now))
        end = now - now % 5 + 5
        kept = [v for v, t in there if t >= end - 20]
        assert window.query() == (sum(kept) if monoid == "sum" else kept)
        assert len(window) <= 4
    assert window.query(now=now + 25) == (0 if monoid == "sum" else [])


def test_an_item_combines_once_within_a_pane():
    monoid, calls = counting("sum")
    window = wane.Panes(monoid, duration="1h", every="1m")
    for _ in range(1000):
        window.insert(1, 1)
    assert calls[0] == 1000


def test_panes_are_checked():
    with pytest.raises(BadParameter, match="duration must be whole panes, got 7s of 2s each"):
        wane.Panes("sum", duration="7s", every="2s")
    with pytest.raises(BadParameter, match="every must be longer than nothing"):
        wane.Panes("sum", duration="7s", every="0s")
    window = wane.Panes("sum", duration="6s", every="2s")
    window.insert(1, 11)
    window.insert(1, 10)  # of the open pane
    with pytest.raises(BadTime, match="9 is before the pane from 10"):
        window.insert(1, 9)
    with pytest.raises(BadTime, match="give insert"):
        window.insert(1)
    with pytest.raises(Unsupported, match="nothing to evict by hand"):
        window.evict()


# --- Several lengths


@pytest.mark.parametrize("by", ["daba_lite", "TwoStacks", wane.Reactive])
def test_several_lengths_share_one_queue(by):
    rng = random.Random(4)
    rows, times = wane.Nested("collect", rows=[5, 1, 12], by=by), wane.Nested("collect", duration=["3s", "1m"], by=by)
    there, now = [], 0
    for i in range(300):
        now += rng.choice([0, 1, 2, 20])
        rows.insert(i)
        times.insert(i, now)
        there.append((i, now))
        values = [v for v, _ in there]
        assert rows.query() == {5: values[-5:], 1: values[-1:], 12: values[-12:]}
        assert list(rows.query()) == [5, 1, 12]
        assert times.query() == {
            "3s": [v for v, t in there if now - t < 3],
            "1m": [v for v, t in there if now - t < 60],
        }
        assert len(rows) == min(i + 1, 12)
    assert times.query(now=now + 60) == {"3s": [], "1m": []}


def test_a_length_more_costs_one_combine_more():
    monoid, calls = counting("max")
    window = wane.Nested(monoid, rows=[10, 100, 1000])
    for i in range(1500):
        window.insert(i)
    before = calls[0]
    window.query()
    assert calls[0] - before == 3 + 2


def test_several_lengths_are_checked():
    for arguments, words in (
        ({}, "give rows= or duration="),
        ({"rows": [1], "duration": [1]}, "give rows= or duration="),
        ({"rows": 5}, "several lengths are a list, got 5"),
        ({"duration": "5s"}, "several lengths are a list"),
        ({"rows": []}, "no length was given"),
        ({"rows": [0]}, "rows must be"),
        ({"rows": [1.5]}, "rows must be"),
        ({"duration": ["0s"]}, "got 0s"),
    ):
        with pytest.raises(BadParameter, match=words):
            wane.Nested("sum", **arguments)
    with pytest.raises(Unsupported, match="a first-in-first-out window is asked for"):
        wane.Nested("sum", rows=[1, 2], by="finger_tree")
    with pytest.raises(Unsupported, match="nothing to evict by hand"):
        wane.Nested("sum", rows=[1, 2]).evict()
    window = wane.Nested("sum", duration=["1s", "2s"])
    window.insert(1, 10)
    with pytest.raises(BadTime, match="9 is before 10"):
        window.insert(1, 9)
    with pytest.raises(BadTime, match="need each item's time"):
        window.insert(1)
