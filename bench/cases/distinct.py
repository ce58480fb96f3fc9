"""Distinct ids under decay, against no decay and a sketch of the undecayed number."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from datasketches import hll_sketch

from bench.registered import START
from bench.runner import Comparison, Settings
from bench.streams import DECAY, skewed
from wane import Distinct


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare a column in bulk."""
    ids, times = skewed(settings)
    plain = ids.tolist()

    def ours(decay: str) -> float:
        return Distinct(0.05, decay, START).update(ids, times).distinct(now=times[-1])

    def hll() -> float:
        sketch = hll_sketch(12)
        update = sketch.update
        for item in plain:
            update(item)
        return float(sketch.get_estimate())

    without, theirs = "no decay", "datasketches hll, no decay, one by one"
    for decay in (DECAY, "poly(2)"):
        yield Comparison(
            what=f"distinct, epsilon 0.05, {decay}",
            ours=partial(ours, decay),
            work=len(ids),
            unit="ns/row",
            peers={without: partial(ours, "none")},
            target=15.0,
            ratios={without: 1.3} if decay == DECAY else {},
        )
    yield Comparison(
        what="distinct, epsilon 0.05, no decay",
        ours=partial(ours, "none"),
        work=len(ids),
        unit="ns/row",
        peers={theirs: hll},
        target=15.0,
        agree=0.2,
    )
