"""Many groups at once: simple and heavy answers, and the caches and flushes of "Holistic UDAFs at Streaming Speeds"."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from bench.runner import Comparison, Settings
from wane import fn, local, plan
from wane.fn import Fn
from wane.grouped import LowLevel
from wane.grouped.cache import CachedGroups
from wane.sources.generator import Traffic

CASES = {
    "grouped-simple": "Decayed count and sum of 50,000 groups, against Arrow's undecayed ones",
    "grouped-heavy": "The ten heaviest sources of each of 25 groups",
    "grouped-many": "The ten heaviest sources and three quantiles of each of 50,000 groups",
    "grouped-caches": "The smallest cache without loss, by strategy (Table 1 of the paper)",
    "grouped-flushes": "What an overloaded high level loses under lazy and eager flush (Table 2 of the paper)",
}

ROWS = 20_000_000
EVERY = ("time", "1 minute")
DECAY = "exp(half_life=10s)"
WITHOUT = "no decay"

PACKETS = 620_000
"""Packets of an epoch: two seconds of the paper's generator."""
TAKEN = PACKETS // 10
"""Partials that the high level can take of them."""
LARGEST = 1 << 23
TICKS = 400
"""Looks at the high level in an epoch."""
BACKLOG = 20
"""Ticks of work that may wait before partials are lost."""


def grouped_simple(settings: Settings) -> Iterator[Comparison]:
    """Compare count and sum, in one thread and in as many as Arrow takes."""
    table = _trace(settings, 50_000)
    theirs = [("len", "sum"), ("len", "count")]

    def arrow(threads: bool) -> None:
        table.group_by("destIP", use_threads=threads).aggregate(theirs)

    for threads in (1, os.cpu_count() or 1):
        peer = f"pyarrow group_by, no decay, {'one thread' if threads == 1 else 'threads'}"
        yield Comparison(
            what=f"count and sum, {threads} thread{'s' * (threads > 1)}",
            ours=partial(_ask, table, "destIP", threads, fn.count(decay=DECAY), fn.sum("len", decay=DECAY)),
            work=len(table),
            unit="ns/row",
            peers={
                peer: partial(arrow, threads > 1),
                WITHOUT: partial(_ask, table, "destIP", threads, fn.count(), fn.sum("len")),
            },
            ratios={peer: 1.3, WITHOUT: 1.15},
        )
        if threads == (os.cpu_count() or 1):
            return


def grouped_heavy(settings: Settings) -> Iterator[Comparison]:
    """Compare heavy hitters, decayed and not."""
    table = _trace(settings, 50_000)
    few = np.asarray(table.column("destIP")) % 25
    table = table.append_column("few", pa.array(few))
    yield Comparison(
        what="top 10, one thread",
        ours=partial(_ask, table, "few", 1, fn.top("srcIP", 10, decay=DECAY)),
        work=len(table),
        unit="ns/row",
        peers={WITHOUT: partial(_ask, table, "few", 1, fn.top("srcIP", 10))},
        target=50.0,
        ratios={WITHOUT: 1.15},
    )


def grouped_many(settings: Settings) -> Iterator[Comparison]:
    """Compare heavy hitters and quantiles, decayed and not."""
    table = _trace(settings, 50_000)

    def both(decay: str) -> tuple[Fn, Fn]:
        return fn.top("srcIP", 10, decay=decay), fn.quantiles("len", [0.5, 0.95, 0.99], decay=decay)

    yield Comparison(
        what="top 10 and three quantiles, one thread",
        ours=partial(_ask, table, "destIP", 1, *both(DECAY)),
        work=len(table),
        unit="ns/row",
        peers={WITHOUT: partial(_ask, table, "destIP", 1, *both("none"))},
        target=1000 / 3,
        ratios={WITHOUT: 1.15},
    )


def grouped_caches(settings: Settings) -> Iterator[Comparison]:
    """Search the smallest cache whose partials the high level can take, for each number of groups of Table 1."""
    packets = settings.rows(PACKETS)
    for groups in (2_000, 5_000, 10_000, 20_000, 40_000):
        keys = np.random.default_rng(settings.seed).integers(0, groups * packets // PACKETS + 1, packets)
        direct, second, lru = (
            partial(_smallest, keys, strategy, packets // 10) for strategy in ("direct", "second chance", "lru")
        )
        yield Comparison(
            what=f"{groups:,} groups: second chance",
            ours=second,
            work=1,
            unit="slots",
            peers={"direct mapped": direct, "least recently used": lru},
            ratios={"direct mapped": 1.0},
            counted=True,
        )


def grouped_flushes(settings: Settings) -> Iterator[Comparison]:
    """Count the partials lost in three epochs, for each number of groups and queries of Table 2."""
    for groups, queries in ((50_000, 2), (25_000, 3), (12_000, 5)):
        lazy, eager = (partial(_lost, settings, groups, queries, flush) for flush in ("lazy", "eager"))
        yield Comparison(
            what=f"{groups:,} groups, {queries} queries: lazy flush",
            ours=lazy,
            work=1,
            unit="% lost",
            peers={"eager flush": eager},
            ratios={"eager flush": 1.0},
            counted=True,
        )


def _trace(settings: Settings, groups: int) -> pa.Table:
    rows = settings.rows(ROWS)
    traffic = Traffic(rows=rows, rate=rows / 60, destinations=groups, seed=settings.seed)
    return traffic.table().select(["time", "srcIP", "destIP", "len"])


def _ask(table: pa.Table, key: str, threads: int, *fns: Fn) -> int:
    return int(local.group(table, key, every=EVERY, threads=threads).agg(*fns).num_rows)


def _smallest(keys: np.ndarray[tuple[int], np.dtype[np.int64]], strategy: str, taken: int) -> int:
    """The smallest cache that gives no more partials than can be taken, to a twentieth."""
    column = pa.array(keys)

    def partials(slots: int) -> int:
        cache = CachedGroups([pa.field("k", pa.int64())], strategy, slots, epochs=False)
        given = 0
        for start in range(0, len(column), 1 << 16):
            piece = column.slice(start, 1 << 16)
            cache.ids([piece], len(piece))
            given += len(cache.gone)
            cache.forget()
        return given + len(cache.live)  # what is left goes up at the end of the epoch

    low, high = 1, 2
    while high < LARGEST and partials(high) > taken:
        low, high = high, 2 * high
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (middle, high) if partials(middle) > taken else (low, middle)
    return high


def _lost(settings: Settings, groups: int, queries: int, flush: str) -> float:
    """The share of partials, in percent, that come while the high level has too much waiting."""
    epochs = 3
    rows = settings.rows(PACKETS)
    scale = rows / PACKETS
    known = int(groups * scale)
    random = np.random.default_rng(settings.seed)
    made = plan.build([fn.count(), fn.min("len"), fn.max("len")], ("srcIP",), every=("time", 10))
    schema = pa.schema([("time", pa.int64()), ("srcIP", pa.int64()), ("len", pa.int64())])
    lows = [
        LowLevel(made, schema, budget=None, cache="second chance", slots=max(8 * known, 1), flush=flush)
        for _ in range(queries)
    ]
    tick = rows // TICKS
    # The high level is fast enough for what comes on average, and half as much again.
    speed = 1.5 * known * queries / TICKS
    waiting = lost = given = 0.0
    for step in range(epochs * TICKS):
        times = np.full(tick, step * 10 // TICKS)
        columns = [times, random.integers(0, known + 1, tick), random.integers(40, 1500, tick)]
        batch = pa.record_batch([pa.array(column) for column in columns], schema)
        coming = sum(partials.num_rows for low in lows for partials in low.update(batch))
        given += coming
        waiting = max(waiting + coming - speed, 0.0)
        over = max(waiting - BACKLOG * speed, 0.0)
        lost += over
        waiting -= over
    return 100 * lost / max(given, 1.0)
