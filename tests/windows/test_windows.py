"""Every first-in-first-out window against a plain list, its invariants, and its combines, counted."""

from __future__ import annotations

import gc
import math
import random
import weakref

import numpy as np
import pytest

import wane
from wane import registry
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter, BadTime, EmptyWindow, Unsupported
from wane.monoids.base import Custom, monoid_of
from wane.testing.windows import ORACLES, WINDOW_LAWS, items_for, patterns
from wane.windows._compiled import Compiled
from wane.windows.base import E, F, Queue
from wane.windows.daba import A, B, L, R

FIFO = {name: spec for name, spec in registry.windows().items() if spec.fifo}
MONOIDS = ("sum", "max", "collect")
PRODUCT = [(spec, monoid) for spec in FIFO.values() for monoid in MONOIDS if spec.needs <= monoid_of(monoid).has]

every_window = pytest.mark.parametrize("spec", FIFO.values(), ids=FIFO)
every_pair = pytest.mark.parametrize(("spec", "monoid"), PRODUCT, ids=[f"{spec.name}-{m}" for spec, m in PRODUCT])


def filled(spec, *values, monoid=None):
    window = spec.make(monoid or ("sum" if spec.needs else "max"))
    for value in values:
        window.insert(value)
    return window


def counting(name):
    """A monoid that counts how often it combines."""
    plain, calls = monoid_of(name), [0]

    def combine(a, b):
        calls[0] += 1
        return plain.combine(a, b)

    return Custom(plain.lift, combine, plain.lower, plain.identity, plain.inverse, plain.has, name), calls


# --- The paper


@every_window
def test_the_papers_running_example(spec):
    """Figure 1: max over 2, 6, 3, 5, 3; then evicts and inserts in turn, the first of them of 1."""
    name = "sum" if spec.needs else "max"
    window, there = filled(spec, 2, 6, 3, 5, 3), [2, 6, 3, 5, 3]
    seen = [window.query()]
    for value in (1, 4, 0, 2):  # (a) to (i): nine states
        window.evict()
        there.pop(0)
        seen.append(window.query())
        assert seen[-1] == ORACLES[name](there)
        window.insert(value)
        there.append(value)
        seen.append(window.query())
        assert seen[-1] == ORACLES[name](there)
    if name == "max":
        assert seen == [6, 6, 6, 5, 5, 5, 5, 4, 4]  # without an inverse it comes down to 5 when 6 leaves, and then to 4
    assert len(window) == 5


# --- A plain list


@every_pair
@pytest.mark.parametrize("law", WINDOW_LAWS.values(), ids=WINDOW_LAWS)
def test_law(law, spec, monoid):
    whole = monoid != "max"
    items = [int(item) for item in items_for("any", 1200, 1)] if whole else items_for("numbers", 1200, 1)
    for ops in patterns(900, seed=2).values():
        law(lambda: spec.make(monoid), items, ops, ORACLES[monoid])


def test_a_law_finds_what_is_wrong():
    class Forgetful(wane.DABA):
        SPEC = wane.DABA.SPEC

        def _make(self):
            super()._make()
            self._replace(evict=lambda: None)

    for law in WINDOW_LAWS.values():
        with pytest.raises(AssertionError):
            law(lambda: Forgetful("max"), list(range(40, 0, -1)), [True, True, False] * 12, ORACLES["max"])


@pytest.mark.slow
@every_pair
def test_a_million_random_steps(spec, monoid):
    drive(spec, monoid, 20_000 if monoid == "collect" or spec.name == "recalc" else 1_000_000)


@every_pair
def test_thousands_of_random_steps_with_the_invariants(spec, monoid):
    drive(spec, monoid, 1000 if monoid == "collect" else 3000)


def drive(spec, monoid, steps):
    """Random inserts and evicts about sizes that change, among them 1921 and 519; sum and max kept by hand."""
    rng = random.Random(f"{spec.name} {monoid}")
    window, judge, there = spec.make(monoid), Judge(monoid), 0
    target = 0
    for step in range(steps):
        if step % 2500 == 0 or there == target:
            target = rng.choice(
                (0, 1, 2, 3, 17, 100, 519, 1921 if spec.name != "recalc" and monoid != "collect" else 64)
            )
        insert = there == 0 or rng.random() < (0.8 if there < target else 0.2)
        if insert:
            value = rng.randrange(1000)
            window.insert(value)
            judge.insert(value)
        else:
            window.evict()
            judge.evict()
        there += 1 if insert else -1
        assert window.query() == judge.query()
        assert len(window) == there
        if step < 3000:
            check_invariants(window)
    check_invariants(window)


class Judge:
    """Sum, max and collect of a queue, by means that no window here uses: a running total, and a falling deque."""

    def __init__(self, name):
        from collections import deque

        self.name, self.items, self.total, self.falling = name, deque(), 0, deque()

    def insert(self, value):
        self.items.append(value)
        self.total += value
        while self.falling and self.falling[-1] < value:
            self.falling.pop()
        self.falling.append(value)

    def evict(self):
        value = self.items.popleft()
        self.total -= value
        if self.falling[0] == value:
            self.falling.popleft()

    def query(self):
        if self.name == "sum":
            return self.total
        return list(self.items) if self.name == "collect" else (self.falling[0] if self.falling else -math.inf)


# --- The invariants of Section 6.3, and of the windows that are related


def check_invariants(window):
    """What the places of the rings hold, and how long the sublists are."""
    p, combine, identity = window._p, window.monoid.combine, window.monoid.identity

    def ring(number, i):
        return window._rings[number][i & p[2]]

    def total(values):
        agg = identity
        for value in values:
            agg = combine(agg, value)
        return agg

    def values(first, last, number=0):
        return [ring(number, i) for i in range(first, last)]

    if isinstance(window, (wane.DABA, wane.DABACached, wane.DABALite)):
        f, left, r, a, b, e = (p[at] for at in (F, L, R, A, B, E))
        assert f <= left <= r <= a <= b <= e
        front, back = b - f, e - b
        assert (front == 0 and back == 0) or ((r - left) + (a - r) + (b - a) + 1 == front - back and r - left == a - r)
    if e_f(window) > 150:
        return  # the contents are quadratic to check
    if isinstance(window, (wane.DABA, wane.DABACached)):
        expected = [
            *(total(values(i, b)) for i in range(f, left)),
            *(total(values(i, r)) for i in range(left, r)),
            *(total(values(r, i + 1)) for i in range(r, a)),
            *(total(values(i, b)) for i in range(a, b)),
            *(total(values(b, i + 1)) for i in range(b, e)),
        ]
        assert values(f, e, 1) == expected
    if isinstance(window, wane.ABA):
        f, b, e = p[F], p[3], p[E]
        expected = [*(total(values(i, b)) for i in range(f, b)), *(total(values(b, i + 1)) for i in range(b, e))]
        assert f <= b <= e
        assert values(f, e, 1) == expected
    if isinstance(window, wane.TwoStacks):
        f, b, e = p[F], p[3], p[E]
        assert values(f, b, 1) == [total(values(i, b)) for i in range(f, b)]
        assert values(b, e, 3) == [total(values(b, i + 1, 2)) for i in range(b, e)]
    if isinstance(window, wane.Reactive):
        leaves, tree = window._rings
        size = p[2] + 1
        below = [*tree, *leaves]
        assert all(tree[node] == combine(below[2 * node], below[2 * node + 1]) for node in range(1, size))


def e_f(window):
    return window._p[E] - window._p[F]


def test_the_invariants_find_a_reversal_that_is_late():
    window = filled(wane.DABA.SPEC, *range(20))
    window._p[L] += 1
    with pytest.raises(AssertionError):
        check_invariants(window)


# --- Combines, counted


@pytest.mark.parametrize("name", [name for name, spec in FIFO.items() if spec.steps])
@pytest.mark.parametrize("pattern", ["random", "sawtooth", "thirds", "moving", "singles"])
def test_no_step_combines_more_often_than_the_spec_says(name, pattern):
    spec = FIFO[name]
    monoid, calls = counting("sum")
    window, most, there = spec.make(monoid), [0, 0, 0], 0
    for insert in patterns(4000, seed=3)[pattern]:
        before = calls[0]
        if insert:
            window.insert(1)
        else:
            window.evict()
        there += 1 if insert else -1
        kind = 0 if insert else 1
        most[kind] = max(most[kind], calls[0] - before)
        before = calls[0]
        assert window.query() == there
        most[2] = max(most[2], calls[0] - before)
        before = calls[0]
        window.query()
        if name == "daba_cached":
            assert calls[0] == before
    assert all(seen <= allowed for seen, allowed in zip(most, spec.steps, strict=True)), most
    if pattern in ("sawtooth", "thirds"):
        assert tuple(most) == spec.steps  # the bounds are met


@pytest.mark.parametrize("name", [name for name, spec in FIFO.items() if spec.average])
@pytest.mark.parametrize("size", [100, 1000])
def test_on_average_steps_combine_as_the_spec_says(name, size):
    """Theorem 9's averages, over whole reversals of a window that is never empty."""
    spec = FIFO[name]
    monoid, calls = counting("sum")
    window = spec.make(monoid)
    rounds = 8 * size
    totals = [0, 0, 0]
    for i in range(size + rounds):
        if i >= size:
            before = calls[0]
            window.evict()
            totals[1] += calls[0] - before
        before = calls[0]
        window.insert(1)
        if i >= size:
            totals[0] += calls[0] - before
            before = calls[0]
            window.query()
            totals[2] += calls[0] - before
    inserts, evicts, queries = (total / rounds for total in totals)
    expected = spec.average
    assert inserts + evicts == pytest.approx(expected[0] + expected[1], rel=0.03)
    assert queries == pytest.approx(expected[2], rel=0.03)


def test_a_step_of_two_stacks_combines_as_often_as_there_are_items():
    for window_class in (wane.TwoStacks, wane.ABA, wane.TwoStacksLite):
        monoid, calls = counting("sum")
        window = window_class(monoid)
        for _ in range(1000):
            window.insert(1)
        before = calls[0]
        window.evict()
        assert 990 <= calls[0] - before <= 1000


def test_a_tree_combines_logarithmically():
    monoid, calls = counting("sum")
    window = wane.Reactive(monoid)
    for _ in range(1000):
        window.insert(1)
    most = 0
    for _ in range(3000):
        before = calls[0]
        window.evict()
        window.insert(1)
        window.query()
        most = max(most, calls[0] - before)
    assert most <= 4 * 10 + 2


# --- Memory


@every_window
def test_no_memory_is_held_that_the_window_does_not_need(spec):
    if not issubclass(spec.make, Queue):
        pytest.fail("a window with another queue needs a test of its own")
    window = filled(spec, *range(5000))
    for left in (5000, 1000, 100, 3, 0):
        while len(window) > left:
            window.evict()
        places = {len(ring) for ring in window._rings}
        assert max(places) <= max(4 * left + 4, 16)
        if left == 0:
            assert len(places) == 1


@pytest.mark.parametrize("name", [name for name, spec in FIFO.items() if not spec.needs])
def test_what_has_left_is_let_go(name):
    class Item(frozenset):
        pass

    union = Custom(lambda item: item, lambda a, b: Item(a | b), len, Item(), None, frozenset(), "union")
    window = FIFO[name].make(union)
    first = Item([0])
    gone = weakref.ref(first)
    window.insert(first)
    for i in range(1, 40):
        window.insert(Item([i]))
    del first
    for _ in range(2):
        window.evict()
    gc.collect()
    assert gone() is None
    assert window.query() == 38


# --- Windows of some rows or of some duration


@every_window
def test_a_window_of_rows_holds_the_last_ones(spec):
    window, name = spec.make("sum" if spec.needs else "max", rows=7), "sum" if spec.needs else "max"
    values = items_for("any", 60, 4)
    for i, value in enumerate(values):
        window.insert(value)
        assert window.query() == ORACLES[name](values[max(i - 6, 0) : i + 1])
    window.evict()
    assert len(window) == 6
    window.insert(1)
    window.insert(2)
    assert len(window) == 7
    assert window.query() == ORACLES[name]([*values[-5:], 1, 2])


@every_window
def test_a_window_of_a_duration_holds_the_young_ones(spec):
    name = "sum" if spec.needs else "max"
    window, there = spec.make(name, duration="10s"), []
    times = np.cumsum([0, 1, 0, 9, 1, 3, 0, 20, 2, 2, 2, 2, 2, 2, 10]).tolist()
    for value, time in zip(items_for("any", len(times), 4), times, strict=True):
        window.insert(value, time)
        there = [(v, t) for v, t in [*there, (value, time)] if time - t < 10]  # an age of just 10 is outside
        assert window.query() == ORACLES[name]([v for v, _ in there])
    assert window.query(now=times[-1] + 9.5) == window.query()
    assert window.query(now=times[-1] + 10) == ORACLES[name]([])
    assert len(window) == 0


def test_times_do_not_go_back():
    window = wane.DABA("max", duration="1m")
    window.insert(3, 100)
    with pytest.raises(
        BadTime, match=r"an item's time 99 is before 100, and a first-in-first-out window does not go back"
    ):
        window.insert(4, 99)
    with pytest.raises(BadTime, match="now 98 is before 100"):
        window.query(now=98)
    with pytest.raises(BadTime, match="needs each item's time"):
        window.insert(4)
    window.insert(5, 100)
    assert (window.query(), len(window)) == (5, 2)


# --- Bad input


@every_window
def test_nothing_is_evicted_from_an_empty_window(spec):
    window = filled(spec)
    with pytest.raises(EmptyWindow, match=f"there is nothing to evict: the {spec.make.__name__} of .* is empty"):
        window.evict()
    window.insert(1)
    window.evict()
    with pytest.raises(IndexError):
        window.evict()
    window.insert(2)
    assert window.query() == 2


@every_window
def test_an_empty_window_answers_the_identity(spec):
    assert filled(spec).query() == (0 if spec.needs else -math.inf)


@pytest.mark.parametrize("monoid", ["max", "stddev", "collect", ["sum", "max"]])
def test_what_has_no_inverse_is_not_subtracted(monoid):
    with pytest.raises(Unsupported, match=r"SubtractOnEvict needs a monoid that is invertible .* is not; use DABALite"):
        wane.SubtractOnEvict(monoid)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rows": 0}, "rows must be a whole number of 1 or more, got 0"),
        ({"rows": True}, "rows must be"),
        ({"rows": 2.0}, "rows must be"),
        ({"duration": "0s"}, "longer than nothing, got 0s"),
        ({"duration": "-1s"}, "longer than nothing, got -1s"),
        ({"rows": 2, "duration": "1s"}, "not both"),
    ],
)
def test_lengths_are_checked_when_a_window_is_made(arguments, words):
    with pytest.raises(BadParameter, match=words):
        wane.DABA("max", **arguments)


def test_an_item_that_cannot_be_lifted_changes_nothing():
    window = filled(wane.DABA.SPEC, 1, 2, monoid="gmean")
    for bad in ("three", None):
        with pytest.raises(TypeError):
            window.insert(bad)
    assert len(window) == 2
    assert window.query() == pytest.approx(math.sqrt(2))
    with pytest.raises(BadInput, match="nothing takes inf out of a sum again"):
        wane.SubtractOnEvict("sum").insert(math.inf)


# --- Compiled


COMPILED = [*((spec, "sum") for spec in FIFO.values()), (FIFO["daba_lite"], "stddev")]


@pytest.mark.parametrize(("spec", "monoid"), COMPILED, ids=[f"{spec.name}-{m}" for spec, m in COMPILED])
def test_compiled_it_is_the_object(spec, monoid):
    """The same text: the same answers after every step."""
    items = [float(item) for item in items_for("any", 2000, 6)]
    for ops in patterns(400 if DISABLED else 1500, seed=7).values():
        window, coming, expected = spec.make(monoid), iter(items), []
        for insert in ops:
            if insert:
                window.insert(next(coming))
            else:
                window.evict()
            expected.append(window.query())
        machine = Compiled(spec.make, monoid, 1024)
        got = np.array(machine.script(ops, items).tolist(), float)
        assert got.tolist() == pytest.approx(np.array(expected, float).tolist(), rel=1e-12, nan_ok=True)
        assert len(machine) == len(window)


@pytest.mark.jit_only
@pytest.mark.slow
@pytest.mark.parametrize("spec", FIFO.values(), ids=FIFO)
def test_a_million_compiled_steps(spec):
    rng = np.random.default_rng(11)
    steps = 100_000 if spec.name == "recalc" else 1_000_000
    ops = np.ones(steps, bool)
    size = 0
    for i, draw in enumerate(rng.random(steps)):
        high = (i // 5000) % 2 == 0
        ops[i] = size == 0 or (size < 1023 and draw < (0.6 if high else 0.4))
        size += 1 if ops[i] else -1
    values = rng.integers(0, 1000, steps).astype(float)
    totals = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.cumsum(ops)
    exact = totals[ends] - totals[np.cumsum(~ops)]
    assert Compiled(spec.make, "sum", 1024).script(ops, values).tolist() == exact.tolist()


def test_a_script_stays_within_its_room():
    machine = Compiled(wane.DABA, "sum", 4)
    with pytest.raises(BadParameter, match="keeps from 0 to 4 items, and this one from -1"):
        machine.script([False], [])
    with pytest.raises(BadParameter, match="from 1 to 5"):
        machine.script([True] * 5, [1.0] * 5)
    with pytest.raises(BadParameter, match="inserts 2 values, and there are 1"):
        machine.script([True] * 2, [1.0])


# --- Nothing escapes


def test_every_file_is_listed():
    from pathlib import Path

    import wane.monoids
    import wane.windows

    for package in (wane.monoids, wane.windows):
        folder = package.__name__.rpartition(".")[2]
        there = {
            path.stem for path in Path(package.__path__[0]).glob("*.py") if path.stem != "base" and path.stem[0] != "_"
        }
        assert {f"wane.{folder}.{stem}" for stem in there} == set(registry.listed(folder).values())
        for name, module in registry.listed(folder).items():
            assert getattr(package, name).__module__ == module
            assert name in dir(package)
    with pytest.raises(AttributeError, match=r"'wane\.windows' has no attribute 'Daba'"):
        _ = wane.windows.Daba
    with pytest.raises(AttributeError, match=r"'wane\.monoids' has no attribute 'Maxx'"):
        _ = wane.monoids.Maxx


def test_windows_and_monoids_are_public():
    for name in registry.listed("windows"):
        assert getattr(wane, name) is getattr(wane.windows, name)
    assert {"DABA", "roll", "monoid", "monoids", "windows"} <= set(dir(wane))
