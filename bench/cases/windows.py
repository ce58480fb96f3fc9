"""Sliding windows: columns against polars and pandas, steps from Python, and the experiments of the DABA paper."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray

import wane
from bench.registered import steps
from bench.runner import Comparison, Finding, Settings
from wane._jit import DISABLED, bits
from wane.monoids import Bloom
from wane.monoids.bits import Words
from wane.windows import ABA, DABA, DABACached, DABALite, Reactive, Recalc, TwoStacks, TwoStacksLite
from wane.windows._compiled import Compiled

ROWS = 20_000_000
WINDOW = 2**14

TABLE_1 = ("sum", "max", "mean", "gmean", "mincount", "stddev", "argmax", "bloom", "collect")
TABLE_2 = ("sum", "max", "mean", "gmean", "stddev", "argmax", "bloom")
FIGURE_18 = ("sum", "gmean", "bloom")

SIZES = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""At which windows break-even points are looked for."""


class BloomOfNumbers(Bloom):
    """The paper's filter over numbers: the same bits and the same combine, with a way in that compiles."""

    SPEC = replace(Bloom.SPEC, items="numbers", native=True)

    def __init__(self) -> None:
        super().__init__()
        self.compiled_lift = self.lift = _lift
        self.lower = _first_word


def _lift(v: float) -> Words:
    words = np.zeros(256, np.uint64)
    hashed = np.uint64(bits(v)) * np.uint64(0x9E3779B97F4A7C15)
    for i in range(4):
        place = (hashed >> np.uint64(14 * i)) & np.uint64(16383)
        words[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))
    return words


def _first_word(words: Words) -> Any:
    return words[0]


def comparisons(settings: Settings) -> Iterator[Comparison | Finding]:
    """Columns, steps from Python, then Table 1, Figure 18 and Table 2."""
    values = np.random.default_rng(settings.seed).normal(100, 15, settings.rows(ROWS))
    yield from columns(values)
    yield flatness(values, settings)
    yield from from_python(settings)
    monoids: dict[str, Any] = {"bloom": BloomOfNumbers()}
    yield from break_even(monoids, settings)
    yield from throughput(monoids, settings)
    yield from latency(monoids, settings)


def columns(values: NDArray[np.float64]) -> Iterator[Comparison]:
    """A whole column through one window."""
    series = {"polars": pl.Series(values), "pandas": pd.Series(values)}
    for agg in ("sum", "max"):
        peers: dict[str, Callable[[], Any]] = {
            "polars": partial(_polars, series["polars"], agg),
            "pandas": partial(_pandas, series["pandas"], agg),
        }
        for window in (DABALite, TwoStacksLite):
            yield Comparison(
                what=f"{agg} over {WINDOW} rows, {window.__name__}",
                ours=partial(_last, values, agg, window),
                work=len(values),
                unit="ns/row",
                peers=peers,
                target=6.0,
                ratios={"polars": 1 / 2, "pandas": 1 / 6} if agg == "max" else {},
                agree=1e-9,
            )


def _last(values: NDArray[np.float64], agg: str, window: Any) -> float:
    return float(wane.roll(values, rows=WINDOW, agg=agg, algorithm=window)[-1])


def _polars(series: Any, agg: str) -> float:
    return float(getattr(series, f"rolling_{agg}")(WINDOW, min_samples=1)[-1])


def _pandas(series: Any, agg: str) -> float:
    return float(getattr(series.rolling(WINDOW, min_periods=1), agg)().iloc[-1])


def flatness(values: NDArray[np.float64], settings: Settings) -> Finding:
    """How much more the dearest window costs than the cheapest, from 2^4 to 2^20 rows."""
    worst = 0.0
    for agg in ("sum", "max"):
        costs = [
            _best(lambda rows=2**e, agg=agg: wane.roll(values, rows=rows, agg=agg), settings)  # type: ignore[misc]
            for e in range(4, 21, 4)
        ]
        worst = max(worst, max(costs) / min(costs))
    return Finding("dearest window over the cheapest, 2^4 to 2^20 rows, sum and max", worst, "times", target=2.0)


def from_python(settings: Settings) -> Iterator[Comparison]:
    """One step at a time, from Python, beside the pass that recalculates."""
    items = np.random.default_rng(settings.seed).normal(100, 15, settings.calls(5000)).tolist()
    for window in (DABALite, DABACached, TwoStacksLite, DABA, TwoStacks, ABA):
        full = window("max")
        for _ in range(1000):
            full.insert(0.5)
        target = 1.5 if window in (DABALite, DABACached, TwoStacksLite) else None
        yield Comparison(
            what=f"insert, evict and query from Python, {window.__name__}",
            ours=partial(steps, full, items),
            work=len(items),
            unit="us/call",
            target=target,
        )


def break_even(monoids: dict[str, Any], settings: Settings) -> Iterator[Finding]:
    """Table 1: from which window on an algorithm is faster than recalculating, compiled; Collect as Python has it."""
    for name in TABLE_1[:1] if settings.quick else TABLE_1:
        recalc = {size: _round(Recalc, monoids.get(name, name), size, settings) for size in _sizes(name, settings)}
        for window in (Reactive, TwoStacks, ABA, DABA):
            at = float("inf")
            for size, cost in recalc.items():
                if _round(window, monoids.get(name, name), size, settings) < cost:
                    at = size
                    break
            yield Finding(f"Table 1: {name}, {window.__name__} breaks even with Recalc", at, "items (none: never)")


def _sizes(name: str, settings: Settings) -> tuple[int, ...]:
    if settings.quick or name == "collect":
        return SIZES[:3] if settings.quick else SIZES[:13]
    return SIZES


def throughput(monoids: dict[str, Any], settings: Settings) -> Iterator[Finding]:
    """Figure 18, above: millions of items a second by the size of the window."""
    for name in FIGURE_18[:1] if settings.quick else FIGURE_18:
        for window in (Recalc, Reactive, TwoStacks, ABA, DABA, DABACached, DABALite):
            most = 10 if window is Recalc else 12 if name == "bloom" else 20
            for e in range(0, 5 if settings.quick else most + 1, 4 if most == 20 else 2):
                seconds = _round(window, monoids.get(name, name), 2**e, settings)
                yield Finding(f"Figure 18: {name}, {window.__name__}, window 2^{e}", 1e-6 / seconds, "M items/s")


def latency(monoids: dict[str, Any], settings: Settings) -> Iterator[Finding]:
    """Table 2 and Figure 18, below: cycles of each round at a window of 2^14, the best of some runs of each."""
    rounds = 2000 if settings.quick else 1_000_000
    for name in TABLE_2[:1] if settings.quick else TABLE_2:
        worst = {}
        for window in (TwoStacks, ABA, DABA, DABACached, DABALite):
            count = min(rounds, 20_000 if name == "bloom" else rounds)
            size = 100 if settings.quick else 2**12 if name == "bloom" else WINDOW
            took = _latencies(window, monoids.get(name, name), size, count, settings)
            what = f"Table 2: {name}, {window.__name__}, window 2^{size.bit_length() - 1},"
            yield Finding(f"{what} average", float(took.mean()), "cycles")
            yield Finding(f"{what} deviation", float(took.std()), "cycles")
            worst[window] = float(took.max())
            yield Finding(f"{what} worst round", worst[window], "cycles")
        for window in (DABA, DABACached, DABALite):
            share = worst[window] / max(worst[TwoStacks], 1.0)
            yield Finding(
                f"Figure 18: {name}, worst round of {window.__name__} over Two-Stacks'", share, "times", target=0.5
            )


def _latencies(window: Any, monoid: Any, size: int, rounds: int, settings: Settings) -> NDArray[np.int64]:
    """The cycles of each round: of the same rounds again and again the least, since the rest is the machine's."""
    least = None
    values = np.random.default_rng(settings.seed).normal(100, 15, rounds)
    for _ in range(2 if settings.quick else 7):
        machine = _filled(window, monoid, size)
        took = machine.rounds(values)
        least = took if least is None else np.minimum(least, took)
    assert least is not None
    return least


def _filled(window: Any, monoid: Any, size: int) -> Compiled:
    machine = Compiled(window, monoid, size + 1)
    machine.script([True] * size, np.full(size, 0.5)) if not isinstance(monoid, BloomOfNumbers) else _fill(
        machine, size
    )
    return machine


def _fill(machine: Compiled, size: int) -> None:
    machine.script([True] * size, np.arange(size, dtype=float))


def _round(window: Any, monoid: Any, size: int, settings: Settings) -> float:
    """Seconds of one round of evict, insert and query."""
    if monoid == "collect" or DISABLED:
        full = window(monoid)
        for i in range(size):
            full.insert(float(i))
        items = [0.5] * settings.calls(2000)
        return _best(lambda: steps(full, items), settings) / len(items)
    machine = _filled(window, monoid, size)
    work = 200 if settings.quick else max(min(4_000_000 // (size if window is Recalc else 64), 200_000), 2000)
    if isinstance(monoid, BloomOfNumbers):
        work = max(work // 50, 100)
    values = np.random.default_rng(settings.seed).normal(
        100, 15, max(work, min(2 * size, 4_000_000) if window is not Recalc else work)
    )
    return _best(lambda: machine.pass_over(values), settings) / len(values)


def _best(run: Callable[[], Any], settings: Settings) -> float:
    """The least seconds of some runs, after one to compile."""
    run()
    best = float("inf")
    for _ in range(1 if settings.quick else 5):
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return best
