"""Streams that several cases share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.registered import START
from bench.runner import Settings
from wane.times import SECOND

ROWS = 5_000_000
IDS = 50_000
DECAY = "exp(half_life=5m)"


class Skewed(NamedTuple):
    """Ids of which few are frequent, with their times, in order over an hour."""

    ids: NDArray[np.int64]
    times: NDArray[np.datetime64]

    def weights(self) -> NDArray[np.float64]:
        """The decayed weights at the end, for those who cannot make them."""
        ages = (self.times[-1] - self.times) / np.timedelta64(300, "s")
        return np.asarray(np.exp2(-ages))


def skewed(settings: Settings, rows: int = ROWS) -> Skewed:
    """Rows of Zipf(1.2) over 50,000 ids."""
    random = np.random.default_rng(settings.seed)
    count = settings.rows(rows)
    odds = np.arange(1, IDS + 1) ** -1.2
    names = random.permutation(IDS * 20)[:IDS]
    ids = names[random.choice(IDS, count, p=odds / odds.sum())]
    times = START * SECOND + np.sort(random.integers(1, 3600 * SECOND, count))
    return Skewed(ids, times.view("datetime64[ns]"))
