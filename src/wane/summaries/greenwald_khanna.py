"""Quantiles without decay: the summary of Greenwald and Khanna, as "Holistic UDAFs at Streaming Speeds" merges it.

The state is a list of tuples (:mod:`wane.summaries._tuples`), of which none has ``gain + slack > 2 epsilon n``. So
for every rank there is a tuple whose value is within ``epsilon n`` of it (Greenwald and Khanna, Space-efficient online
computation of quantile summaries, 2001). New rows are sorted, many at once, and merged in as a summary of their own.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wane import serde
from wane.decay import Decay
from wane.decay.base import Floats
from wane.decay.weigh import CHUNK
from wane.errors import CorruptState
from wane.hashing import Hashes
from wane.registry import Equality, Spec
from wane.summaries import _tuples
from wane.summaries._ranking import ARGUMENTS, QUESTIONS, TIMELESS, Ranking, bounds
from wane.summaries._tuples import Tuples
from wane.summaries._varints import pack, unpack
from wane.summaries.base import Batch, fraction

_TOGETHER = 8 * CHUNK
"""Rows that are sorted together."""

_FINE = 8
"""How many times finer than need be new rows are thinned: what the merge adds to the slack is that much less."""

_ROOM = 4
"""Tuples times epsilon that are let be; more are compressed, where the bound allows it."""

_MOST = 2**62


class GreenwaldKhanna(Ranking):
    """Quantiles, ranks and histograms of values that do not decay, or all count the same after a landmark.

    Each rank is right to ``epsilon n``, where `n` is the number of values, in any order of arrival and after any
    merges: merging summaries of `m` and `n` values keeps ``epsilon (m + n)``. How large it becomes is not known for
    every order of merging, as the paper says; measured, it is ``4 / epsilon`` tuples of 24 bytes at most, and 12 bytes
    each on the wire, but twice as many after a balanced tree of 1000 merges. About 7 ns a row in bulk. Takes no decay
    and the landmark window, and no weights; :class:`QDigest` takes any.

    Values are numbers under 2.6e120, or with `bits` whole numbers below ``2**bits``; any other is dropped and counted.

    Args:
        epsilon: The error allowed in a rank, relative to the number of values.
        decay: ``"none"`` or ``"landmark"``.
        landmark: The time after which values count, under ``"landmark"``.
        bits: For whole numbers from 0, how many bits they may have, up to 64: then all of them are told apart.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> lengths = GreenwaldKhanna(0.01).update([4, 8, 3, 6, 4])
    >>> lengths.quantile([0.5, 0.9]).tolist(), lengths.rank(5), lengths.cdf(5)
    ([4.0, 8.0], 3.0, 0.6)
    """

    def __init__(
        self,
        epsilon: float = 0.01,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        bits: int | None = None,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, bits, before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-6)
        self._room = math.ceil(_ROOM / self.epsilon)
        self._tuples = _tuples.none()

    @property
    def tuples(self) -> int:
        """How many tuples there are."""
        self._settle()
        return len(self._tuples.keys)

    def take(self, tuples: Tuples) -> Self:
        """Merge in tuples of other values, of which none has gain and slack over ``2 epsilon n`` of them, or over 1."""
        self._settle()
        self.rows += int(tuples.gains.sum())
        self._take(tuples)
        return self

    @property
    def _limit(self) -> int:
        """What gain and slack of a tuple may come to."""
        return math.floor(2 * self.epsilon * self._total)

    def _keys_at(self, shares: Floats) -> Hashes:
        keys, gains, slacks = self._tuples
        least = np.cumsum(gains)
        most = least + slacks
        wanted = np.maximum(np.ceil(shares * self._total * (1 - 1e-15)), 1.0)
        # Of the tuples within epsilon n of a rank, of which there is one, the one that is surely nearest.
        return keys[[int(np.argmin(np.maximum(most - rank, rank - least))) for rank in wanted]]

    def _ranks_of(self, keys: Hashes, sides: NDArray[np.int8]) -> Floats:
        known, gains, slacks = self._tuples
        least = np.append(0, np.cumsum(gains))
        # As many as the least rank of the last tuple up to a key; less than the largest one of the first beyond it.
        most = np.append(least[1:] + slacks - 1, int(self._total))
        at = np.searchsorted(known, keys, "right")
        found = np.where(at, (least[at] + most[at]) / 2, 0.0)
        return np.where(sides < 0, 0.0, np.where(sides > 0, self._total, found))

    def _add_rows(self, values: Any, batch: Batch) -> None:
        room = min(batch.size, max(_TOGETHER, CHUNK))
        keys, loads = np.empty(room, np.uint64), np.empty(room)
        filled = 0
        for rows, weights, _ in self._weigh(batch):
            if filled + len(weights) > room:
                self._add_keys(keys[:filled])
                filled = 0
            filled = self._domain.enter(values[rows], weights, keys, loads, filled)
        self._add_keys(keys[:filled])

    def _add_keys(self, keys: Hashes) -> None:
        """Add rows by their keys; the array is used up."""
        if len(keys):
            keys.sort()
            self._take(_tuples.thinned(keys, max(math.floor(2 * self.epsilon * len(keys)) // _FINE, 1)))

    def _absorb(self, other: Self) -> None:
        self._take(other._tuples)

    def _take(self, tuples: Tuples) -> None:
        """Merge tuples of other values, of which none has more gain and slack than their own number allows."""
        self._total += int(tuples.gains.sum())
        both = _tuples.merge(self._tuples, tuples, self._limit)
        # As little as will do: tuples that stand for all they may leave no room to compress after another merge.
        limit = min(int(self._total) // self._room, self._limit)
        self._tuples = both
        while len(self._tuples.keys) > self._room:
            self._tuples = _tuples.compress(both, limit)
            if limit == self._limit:
                break
            limit = min(limit + limit // 4 + 1, self._limit)

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "bits": self.bits}

    def _write(self, writer: serde.Writer) -> None:
        keys, gains, slacks = self._tuples
        writer.uint(len(keys)).array(keys)
        for column in (gains, slacks):
            writer.blob(pack(column.astype(np.uint64)))

    def _read(self, reader: serde.Reader) -> None:
        count = reader.uint()
        keys = reader.array(np.uint64)
        gains, slacks = (unpack(reader.blob(), count) for _ in range(2))
        most = np.uint64(_MOST // max(count, 1))
        if len(keys) != count or (gains > most).any() or (slacks > most).any() or not gains.all():
            raise CorruptState(f"the state promises {count} tuples, and has others")
        self._tuples = Tuples(keys, gains.astype(np.int64), slacks.astype(np.int64))
        self._total = float(self._tuples.gains.sum())
        self._check()

    def _check(self) -> None:
        """Refuse what no stream leads to."""
        keys, gains, slacks = self._tuples
        if not len(keys):
            return
        total = int(self._total)
        least = np.cumsum(gains)
        most = least + slacks
        ordered = (keys[1:] >= keys[:-1]).all() and (most[1:] >= most[:-1]).all()
        inside = int(keys[-1]) < 2**self._domain.levels and most[-1] == total == self._total
        if not (ordered and inside and gains[0] == 1 and slacks[0] == 0):
            raise CorruptState("the tuples in the state are not in order, or not where its values are")
        if (gains + slacks).max() > max(self._limit, 1) or total > self.rows:
            raise CorruptState("a tuple in the state stands for too many values")


SPEC = Spec(
    name="gk",
    make=GreenwaldKhanna,
    version=1,
    title="quantiles and ranks by the summary of Greenwald and Khanna",
    questions=QUESTIONS,
    timeless=TIMELESS,
    arguments=ARGUMENTS,
    guarantee="each rank to epsilon n, after merges too",
    space="4 / epsilon tuples of 24 bytes as measured, after most merges too; 12 bytes each on the wire",
    time="O(log(1 / epsilon)) amortised, about 7 ns a row in bulk",
    paper="Holistic UDAFs at Streaming Speeds (SIGMOD 2004), section 4.1 and Figure 1",
    equality=Equality.GUARANTEED,
    bounds=lambda p: bounds(p["epsilon"]),
    decays=frozenset({"landmark"}),
    weighted=False,
    items="numbers",
    parameters=({"epsilon": 0.3}, {"epsilon": 0.02}),
    functions=("quantiles",),
    state_bytes=lambda p: 1024 + 24 * math.ceil(2 * _ROOM / p["epsilon"]),
)
GreenwaldKhanna.SPEC = SPEC
