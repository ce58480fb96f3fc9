"""Sums where rows come more than once: in bulk in each form, the questions, and merging."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.registered import START
from bench.runner import Comparison, Settings
from wane import DuplicateInsensitive
from wane.times import SECOND

EPSILON = 0.1
MAX_ID = 2**31 - 1
DECAYS = ("exp(half_life=5m)", "window(5m)", "backward poly(1.5)")


class Readings(NamedTuple):
    """Rows of an hour, each of which came twice on average."""

    values: NDArray[np.float64]
    times: NDArray[np.datetime64]
    weights: NDArray[np.float64]
    ids: NDArray[np.int64]

    def feed(self, one: DuplicateInsensitive, rows: Any = slice(None)) -> DuplicateInsensitive:
        one.update(self.values[rows], self.times[rows], self.weights[rows], ids=self.ids[rows])
        one.sum(now="latest")  # sees every row, so that none waits
        return one

    def distinct_sum(self) -> float:
        _, first = np.unique(self.ids, return_index=True)
        return float(self.weights[first].sum())


def readings(settings: Settings) -> Readings:
    """Half the rows come again, within some seconds."""
    random = np.random.default_rng(settings.seed)
    rows = settings.rows(1_000_000)
    sent = np.sort(random.integers(0, 3600 * SECOND, rows // 2))
    values, weights = random.normal(50, 10, len(sent)), random.integers(1, 1001, len(sent)).astype(np.float64)
    ids = random.choice(MAX_ID, len(sent), replace=False)
    which = np.concatenate([np.arange(len(sent))] * 2)
    which = which[np.argsort(np.append(sent, sent + random.integers(0, 10 * SECOND, len(sent))), kind="stable")]
    times = (START * SECOND + sent).view("datetime64[ns]")
    return Readings(values[which], times[which], weights[which], ids[which])


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare the forms with each other, and with a sum of distinct ids by sorting them."""
    given = readings(settings)
    rows = len(given.values)

    def make(**parameters: Any) -> DuplicateInsensitive:
        return DuplicateInsensitive(EPSILON, max_weight=1000, max_id=MAX_ID, **parameters)

    def bulk(**parameters: Any) -> float:
        return given.feed(make(**parameters)).sum(now="latest")

    sorting = "NumPy: the distinct ids, exactly, no decay"
    yield Comparison(
        what="any window or decay with the question, one copy",
        ours=bulk,
        work=rows,
        unit="us/row",
        peers={sorting: given.distinct_sum},
        target=1.5,
        agree=2 * EPSILON,
    )
    for decay in DECAYS:
        yield Comparison(
            what=f"fixed ahead to {decay}, one copy",
            ours=partial(bulk, decay=decay, fixed=True),
            work=rows,
            unit="us/row",
            peers={"any with the question": bulk},
            target=4.0,
        )

    def in_batches() -> float:
        one = make()
        for part in np.array_split(np.arange(rows), max(1, rows // 10_000)):
            one.update(given.values[part], given.times[part], given.weights[part], ids=given.ids[part])
        return one.sum(now="latest")

    yield Comparison(
        what="any with the question, in batches of 10,000",
        ours=in_batches,
        work=rows,
        unit="us/row",
        peers={"bulk": bulk},
    )
    north, south = (given.feed(make(), rows=part) for part in (slice(0, rows * 2 // 3), slice(rows // 3, rows)))
    yield Comparison(what="merge of overlapping parts", ours=lambda: north.copy().merge(south), work=1, unit="ms/call")
    whole, ahead = north.copy().merge(south), given.feed(make(decay=DECAYS[0], fixed=True))
    for decay in DECAYS:
        yield Comparison(
            what=f"sum under {decay}, chosen with the question",
            ours=partial(whole.sum, now="latest", decay=decay),
            work=1,
            unit="ms/call",
            peers={"fixed ahead": partial(ahead.sum, now="latest")} if decay == DECAYS[0] else {},
            agree=2 * EPSILON if decay == DECAYS[0] else None,
        )
