"""Decayed count, sum and mean of a column, against the ways they are computed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import polars as pl

from bench.registered import stream
from bench.runner import Comparison, Settings
from wane import Moments
from wane.times import SECOND

ROWS = 5_000_000
CALLS = 20_000
HALF_LIFE = 300
DECAY = f"exp(half_life={HALF_LIFE}s)"
ALPHA = math.log(2) / HALF_LIFE


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare a column in bulk, and one value at a time."""
    rows, calls = settings.rows(ROWS), settings.calls(CALLS)
    values, times = stream("numbers", rows, settings.seed)
    now = times[-1]
    frame = pl.DataFrame({"v": values, "t": times})
    series, index = pd.Series(values), pd.Series(times)

    def ours() -> tuple[float, float]:
        made = Moments(DECAY).update(values, times)
        return made.count(now=now), made.sum(now=now)

    def undecayed() -> tuple[float, float]:
        made = Moments().update(values)
        return made.count(), made.sum()

    def numpy() -> tuple[float, float]:
        weights = np.exp((times - now).astype(np.float64) * (ALPHA / SECOND))
        return float(weights.sum()), float(weights @ values)

    def polars() -> tuple[float, float]:
        age = (pl.col("t") - pl.lit(now)).dt.total_nanoseconds()
        weighed = frame.lazy().select("v", w=(age * (ALPHA / SECOND)).exp())
        found = weighed.select(count=pl.col("w").sum(), sum=(pl.col("w") * pl.col("v")).sum()).collect()
        return float(found["count"][0]), float(found["sum"][0])

    yield Comparison(
        what=f"count and sum, {DECAY}, datetime64[ns]",
        ours=ours,
        work=rows,
        unit="ns/row",
        peers={"NumPy by hand": numpy, "polars by hand": polars},
        target=3.0,
        agree=1e-9,
    )
    yield Comparison(
        what=f"all of Moments, {DECAY}, datetime64[ns]",
        ours=ours,
        work=rows,
        unit="ns/row",
        peers={"no decay, no times": undecayed},
        target=3.0,
    )
    yield Comparison(
        what=f"mean, {DECAY}, datetime64[ns]",
        ours=lambda: Moments(DECAY).update(values, times).mean(),
        work=rows,
        unit="ns/row",
        peers={"pandas ewm, last row": lambda: _pandas(series, index)},
        target=3.0,
        agree=1e-9,
    )

    few = list(zip(values[:calls].tolist(), (times[:calls].astype(np.int64) / SECOND).tolist(), strict=True))

    def one_by_one(decay: str) -> float:
        made = Moments(decay)
        update = made.update
        for value, time in few:
            update(value, time)
        return made.mean()

    def by_hand() -> float:
        total = weighted = newest = 0.0
        for value, time in few:
            fade = math.exp(-ALPHA * (time - newest))
            total, weighted, newest = total * fade + 1.0, weighted * fade + value, time
        return weighted / total

    yield Comparison(
        what=f"one value at a time, and the mean, {DECAY}",
        ours=lambda: one_by_one(DECAY),
        work=calls,
        unit="us/call",
        peers={"Python by hand, in order only, no variance": by_hand},
        target=3.0,
        agree=1e-9,
    )
    yield Comparison(
        what=f"one value at a time, {DECAY}",
        ours=lambda: one_by_one(DECAY),
        work=calls,
        unit="us/call",
        peers={"no decay": lambda: one_by_one("none")},
        target=3.0,
    )


def _pandas(series: pd.Series, index: pd.Series) -> float:
    means = series.ewm(halflife=f"{HALF_LIFE}s", times=index).mean()  # type: ignore[arg-type]  # the stubs lag behind
    return float(means.iloc[-1])
