"""Samples of rows under decay, against no decay and a sketch that is given each weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from datasketches import var_opt_sketch

from bench.registered import START
from bench.runner import Comparison, Settings
from bench.streams import DECAY, skewed
from wane import BiasedReservoir, PrioritySample, Reservoir, WeightedReservoir, WithReplacement

K = 1000


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare a column in bulk; the weights of the sketch are made ahead, ours are not."""
    stream = skewed(settings)
    ids, times = stream
    pairs = list(zip(ids.tolist(), stream.weights().tolist(), strict=True))

    def ours(make: Any, decay: str) -> int:
        return len(make(K, decay, START).update(ids, times).items())

    def var_opt() -> int:
        sketch = var_opt_sketch(K)
        update = sketch.update
        for item, weight in pairs:
            update(item, weight)
        return int(sketch.num_samples)

    without, theirs = "no decay", "datasketches var_opt, weights given, one by one"
    for make, target in ((PrioritySample, 8.0), (WeightedReservoir, 8.0), (WithReplacement, None)):
        for decay in (DECAY, "poly(2)"):
            yield Comparison(
                what=f"{make.__name__} of {K}, {decay}",
                ours=partial(ours, make, decay),
                work=len(ids),
                unit="ns/row",
                peers={
                    without: partial(ours, make, "none"),
                    **({theirs: var_opt} if decay == DECAY and make is PrioritySample else {}),
                },
                target=target,
                ratios={without: 1.3} if decay == DECAY and target else {},
            )
    yield Comparison(
        what=f"Reservoir of {K}, by skips, no decay",
        ours=partial(ours, Reservoir, "none"),
        work=len(ids),
        unit="ns/row",
        peers={"BiasedReservoir, no decay": partial(ours, BiasedReservoir, "none")},
        target=2.0,
    )
