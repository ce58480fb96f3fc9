"""The case that every registered thing has without a file: updates under each decay, against no decay."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wane
from bench.runner import Case, Comparison, Run, Settings
from wane.decay import parse
from wane.errors import Unsupported
from wane.registry import Card, MonoidSpec, Spec, WindowSpec
from wane.times import SECOND
from wane.windows import DABALite, FingerTree, OutOfOrder, Sources

DECAYS = ("landmark", "poly(2)", "exp(half_life=5m)", "backward poly(1.5)", "window(5m)")
"""Those that the thing takes are measured."""

ROWS = 1_000_000
CALLS = 5_000
SIZE = 100
"""How many items windows hold."""

START = 1_767_225_600
"""Seconds since 1970 at which streams begin."""

Make = Callable[[], Any]


def case_of(card: Card) -> Case:
    """The case of one registered thing."""
    if isinstance(card, MonoidSpec):
        return _case_of_monoid(card)
    if isinstance(card, WindowSpec):
        return _case_of_window(card)
    assert isinstance(card, Spec)
    return _case_of_summary(card)


def _case_of_monoid(spec: MonoidSpec) -> Case:
    def comparisons(settings: Settings) -> Iterator[Comparison]:
        rows, calls = settings.rows(ROWS), settings.calls(CALLS)
        values, times = stream("numbers", rows, settings.seed)
        for parameters in spec.parameters:
            monoid = spec.make(**parameters)
            few: list[Any] = values[:calls].tolist()
            if spec.items in ("pairs", "timed"):
                few = list(zip(few, range(calls), strict=True))
            with_what = f", {dict(parameters)}" if parameters else ""
            window = _full(DABALite(monoid), few)
            yield Comparison(
                what=f"insert, evict and query{with_what}", ours=partial(steps, window, few), work=calls, unit="us/call"
            )
            if spec.native:
                roll = partial(wane.roll, values, times, rows=SIZE, agg=monoid)
                yield Comparison(what=f"over a column{with_what}", ours=roll, work=rows, unit="ns/row")

    return comparisons


def _case_of_window(spec: WindowSpec) -> Case:
    def comparisons(settings: Settings) -> Iterator[Comparison]:
        calls = settings.calls(CALLS)
        few = stream("numbers", calls, settings.seed)[0].tolist()
        for parameters in spec.parameters:
            window = spec.make("sum", **parameters)
            if spec.fifo:
                ours = partial(steps, _full(window, few), few)
                yield Comparison(what="insert, evict and query", ours=ours, work=calls, unit="us/call")
            else:
                ours = partial(_timed_steps, window, few, itertools.count())
                yield Comparison(what="insert and query", ours=ours, work=calls, unit="us/call")

    return comparisons


def _full(window: Any, items: list[Any]) -> Any:
    for i in range(SIZE):
        window.insert(items[i % len(items)])
    return window


def steps(window: Any, items: list[Any]) -> int:
    """Move a window on by some items."""
    insert, evict, query = window.insert, window.evict, window.query
    for item in items:
        evict()
        insert(item)
        query()
    return len(window)


def _timed_steps(window: Any, items: list[Any], clock: Iterator[int]) -> int:
    for item in items:
        window.insert(item, next(clock))
        window.query()
        if len(window) > SIZE and isinstance(window, (FingerTree, OutOfOrder, Sources)):
            window.evict()
    return len(window)


def _case_of_summary(spec: Spec) -> Case:
    def comparisons(settings: Settings) -> Iterator[Comparison]:
        rows, calls = settings.rows(ROWS), settings.calls(CALLS)
        items, times = stream(spec.items, rows, settings.seed)
        few = list(zip(items[:calls].tolist(), (times[:calls].astype(np.int64) / SECOND).tolist(), strict=True))

        def in_bulk(make: Make) -> Run:
            return lambda: make().update(items, times).rows

        def one_by_one(make: Make) -> Run:
            return lambda: _one_by_one(make(), few)

        for parameters in spec.parameters:
            plain = _maker(spec, "none", parameters)
            makers = {decay: _maker(spec, decay, parameters) for decay in DECAYS}
            taken = {decay: make for decay, make in makers.items() if _takes(make)}
            for decay, make in (taken or {"none": plain}).items():
                to = f"{decay} {dict(parameters)}" if parameters else decay
                for what, run, work, unit in (
                    (f"update in bulk, {to}", in_bulk, rows, "ns/row"),
                    (f"update with one item, {to}", one_by_one, calls, "us/call"),
                ):
                    peers = {"no decay": run(plain)} if taken else {}
                    yield Comparison(what=what, ours=run(make), work=work, unit=unit, peers=peers, agree=0.0)

    return comparisons


def stream(items: str, rows: int, seed: int) -> tuple[NDArray[Any], NDArray[np.datetime64]]:
    """Items of a kind and their times, in order, over an hour."""
    random = np.random.default_rng(seed)
    times = START * SECOND + np.sort(random.integers(1, 3600 * SECOND, rows))
    if items == "vectors":
        return random.normal(100, 15, (rows, 2)), times.view("datetime64[ns]")
    column = random.normal(100, 15, rows) if items == "numbers" else random.zipf(1.2, rows).clip(max=10**6)
    return column, times.view("datetime64[ns]")


def _maker(spec: Spec, decay: str, parameters: Mapping[str, Any]) -> Make:
    landmark = {"landmark": START} if parse(decay).needs_landmark else {}
    return lambda: spec.make(decay=decay, **landmark, **parameters)


def _takes(make: Make) -> bool:
    try:
        make()
    except Unsupported:
        return False
    return True


def _one_by_one(summary: Any, few: list[tuple[Any, float]]) -> int:
    update = summary.update
    for item, time in few:
        update(item, time)
    rows: int = summary.rows
    return rows
