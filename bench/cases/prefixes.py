"""Heavy hitters by prefix among ids under decay, against no decay and a plain Count-Min sketch given each weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from datasketches import count_min_sketch

from bench.registered import START
from bench.runner import Comparison, Settings
from bench.streams import DECAY, skewed
from wane import CountMinHierarchy


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare a column in bulk: four lengths of prefix, against one sketch of the ids alone."""
    stream = skewed(settings)
    ids, times = stream
    plain = ids.tolist()
    weights = stream.weights().tolist()

    def ours(decay: str) -> float:
        made = CountMinHierarchy(decay=decay, landmark=START).update(ids, times)
        return made.heavy(0.05, now=times[-1])[0].weight

    def weighted() -> float:
        sketch = count_min_sketch(2, 256)
        update = sketch.update
        for item, weight in zip(plain, weights, strict=True):
            update(item, weight)
        return float(sketch.get_estimate(int(_heaviest)))

    def counted() -> float:
        sketch = count_min_sketch(2, 256)
        update = sketch.update
        for item in plain:
            update(item)
        return float(sketch.get_estimate(int(_heaviest)))

    _heaviest = CountMinHierarchy().update(ids).heavy(0.05)[0].item
    without, theirs = "no decay", "datasketches count_min, ids alone, weights given, one by one"
    for decay in (DECAY, "poly(2)"):
        yield Comparison(
            what=f"prefixes of 8, 16, 24 and 32 bits, {decay}",
            ours=partial(ours, decay),
            work=len(ids),
            unit="ns/row",
            peers={without: partial(ours, "none"), **({theirs: weighted} if decay == DECAY else {})},
            target=25.0,
            ratios={without: 1.3} if decay == DECAY else {},
        )
    alone = "datasketches count_min, ids alone, one by one"
    yield Comparison(
        what="prefixes of 8, 16, 24 and 32 bits, no decay",
        ours=partial(ours, "none"),
        work=len(ids),
        unit="ns/row",
        peers={alone: counted},
        target=25.0,
        agree=0.1,
    )
