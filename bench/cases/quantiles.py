"""Quantiles of a column, decayed and not, against sketches that do not decay."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import datasketches
import numpy as np
from numpy.typing import NDArray

from bench.registered import START
from bench.runner import Comparison, Settings
from wane import GreenwaldKhanna, QDigest
from wane.decay.base import Floats
from wane.times import SECOND

ROWS = 5_000_000
EPSILON = 0.01
DECAY = "exp(half_life=5m)"


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare a column of skewed ids, and one of continuous doubles."""
    rows = settings.rows(ROWS)
    random = np.random.default_rng(settings.seed)
    times = (START * SECOND + random.integers(1, 3600 * SECOND, rows)).view("datetime64[ns]")
    columns = {
        "Zipf(1.2) over 50,000 ids": (zipf_ids(random, rows).astype(np.float64), 25.0),
        "continuous doubles": (random.normal(100, 15, rows), 35.0),
    }
    k = next(k for k in range(100, 2000, 10) if _kll_error(k) <= EPSILON)

    without, theirs = "no decay", f"datasketches KLL, k={k}, no decay"
    for name, (values, target) in columns.items():
        kll = partial(_kll, values, k)
        yield Comparison(
            what=f"median, {name}, {DECAY}",
            ours=partial(_ours, values, DECAY, times),
            work=rows,
            unit="ns/row",
            peers={without: partial(_ours, values, "none", times), theirs: kll},
            target=target,
            ratios={without: 1.3, theirs: 1.0},
        )
        yield Comparison(
            what=f"median by Greenwald-Khanna, {name}, no decay",
            ours=partial(_gk, values),
            work=rows,
            unit="ns/row",
            peers={theirs: kll},
            target=target,
            ratios={theirs: 1.0},
        )


def _ours(values: Floats, decay: str, times: Any) -> float:
    median: float = QDigest(EPSILON, decay).update(values, times).quantile(0.5)
    return median


def _gk(values: Floats) -> float:
    median: float = GreenwaldKhanna(EPSILON).update(values).quantile(0.5)
    return median


def _kll(values: Floats, k: int) -> float:
    sketch = datasketches.kll_doubles_sketch(k)
    sketch.update(values)
    return float(sketch.get_quantile(0.5))


def zipf_ids(random: np.random.Generator, rows: int, exponent: float = 1.2, ids: int = 50_000) -> NDArray[np.int64]:
    """Ids from 0, of which the k-th most frequent has weight ``k**-exponent``; which is which is random."""
    upto = np.cumsum(np.arange(1, ids + 1, dtype=np.float64) ** -exponent)
    ranks = np.searchsorted(upto, random.uniform(0, upto[-1], rows))
    return random.permutation(ids)[np.minimum(ranks, ids - 1)]


def _kll_error(k: int) -> float:
    return float(datasketches.kll_doubles_sketch(k).normalized_rank_error(False))
