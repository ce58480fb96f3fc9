"""Decay chosen when the question is asked: time and space against the size of the stream, epsilon and the exponent.

The space is told in the words of each figure, as bytes of the state. What the papers say of the shape: windows cost
about ten times no decay, smooth decay about as much; their space is several times that of smooth decay, which grows in
proportion to the exponent of the polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.cases.quantiles import zipf_ids
from bench.registered import START
from bench.runner import Comparison, Settings
from wane import ExponentialHistogram, Moments, QDigest, RangeSketch, SmoothLadder, Wave

WEEK = 7 * 86400
SIZES = (100_000, 1_000_000)
ORDERS = ("in order", "shuffled")
DIGEST = 0.05
"""The error in ranks of digests, inside ladders and beside them."""


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare updates in bulk with those of the same answers without decay."""
    for size in sorted({settings.rows(size) for size in SIZES}):
        random = np.random.default_rng(settings.seed)
        times = START + np.sort(random.integers(0, WEEK, size))
        values = zipf_ids(random, size).astype(np.float64)
        orders = {"in order": times, "shuffled": random.permutation(times)}

        count = partial(_fed, Moments, values, None)
        for epsilon in (0.1, 0.01):
            for make in (ExponentialHistogram, Wave):
                run = partial(_fed, partial(make, epsilon), values, times)
                yield _compare(make.__name__, f"epsilon={epsilon}", "in order", size, run, {"no decay": count}, 30.0)
        for order, column in orders.items():
            for epsilon in (0.1, 0.05):
                run = partial(_fed, partial(RangeSketch, epsilon, horizon="7d"), values, column)
                yield _compare(
                    "RangeSketch, counts", f"epsilon={epsilon}", order, size, run, {"no decay": count}, 400.0
                )

        digest = partial(_fed, partial(QDigest, DIGEST, bits=16), values, None)
        for order, column in orders.items():
            for epsilon in (0.2, 0.1):
                sketch = partial(RangeSketch, epsilon, horizon="7d", values=(0, 2**16))
                run = partial(_fed, sketch, values, column)
                yield _compare("RangeSketch, values", f"epsilon={epsilon}", order, size, run, {"no decay": digest})
            for alpha in (1, 2, 4):
                ladder = partial(SmoothLadder, QDigest(DIGEST, bits=16), 0.1, f"backward poly({alpha})")
                run = partial(_fed, ladder, values, column)
                yield _compare("SmoothLadder of q-digests", f"exponent {alpha}", order, size, run, {"no decay": digest})


def _compare(
    name: str,
    parameters: str,
    order: str,
    size: int,
    run: Callable[[], Any],
    peers: dict[str, Callable[[], Any]],
    target: float | None = None,
) -> Comparison:
    """One figure, with the space in its words."""
    kilobytes = len(run().to_bytes()) / 1000
    beside = len(peers["no decay"]().to_bytes()) / 1000
    return Comparison(
        what=f"{name}, {parameters}, {size:,} rows {order}, {kilobytes:,.1f} kB (no decay {beside:,.1f})",
        ours=run,
        work=size,
        unit="ns/row",
        peers=peers,
        target=target,
    )


def _fed(make: Callable[[], Any], values: Any, times: Any) -> Any:
    made = make().update(values, None if times is None else times.view("datetime64[s]"))
    made._settle()
    return made
