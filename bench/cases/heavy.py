"""Heavy hitters among ids under decay, against no decay and a sketch that is given each weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from datasketches import frequent_items_sketch

from bench.registered import START
from bench.runner import Comparison, Settings
from bench.streams import DECAY, skewed
from wane import SpaceSaving

EPSILON = 0.001
LARGEST = 11
"""The sketch's map has 2**11 places, of which it fills three in four: as many counters as ours, and a half more."""


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare a column in bulk, weighted by decay and not."""
    stream = skewed(settings)
    ids, times = stream
    plain = ids.tolist()
    scaled = np.maximum(stream.weights() * 2**40, 1).astype(np.int64).tolist()

    def ours(decay: str) -> int:
        return int(SpaceSaving(EPSILON, decay, START).update(ids, times).top(1, now=times[-1])[0].item)

    def weighted() -> int:
        sketch = frequent_items_sketch(LARGEST)
        update = sketch.update
        for item, weight in zip(plain, scaled, strict=True):
            update(item, weight)
        return _heaviest(sketch)

    def counted() -> int:
        sketch = frequent_items_sketch(LARGEST)
        update = sketch.update
        for item in plain:
            update(item)
        return _heaviest(sketch)

    without, theirs = "no decay", "datasketches frequent_items, weights given, one by one"
    for decay in (DECAY, "poly(2)"):
        yield Comparison(
            what=f"the heaviest, epsilon {EPSILON}, {decay}",
            ours=partial(ours, decay),
            work=len(ids),
            unit="ns/row",
            peers={without: partial(ours, "none"), **({theirs: weighted} if decay == DECAY else {})},
            target=20.0,
            ratios={without: 1.3, theirs: 1 / 3} if decay == DECAY else {},
        )
    yield Comparison(
        what=f"the heaviest, epsilon {EPSILON}, no decay",
        ours=partial(ours, "none"),
        work=len(ids),
        unit="ns/row",
        peers={"datasketches frequent_items, one by one": counted},
        target=20.0,
        ratios={"datasketches frequent_items, one by one": 1 / 3},
    )


def _heaviest(sketch: frequent_items_sketch) -> int:
    from datasketches import frequent_items_error_type

    return int(sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)[0][0])
