"""What summaries of streams in order share: what comes late, buckets of time, answers from them, and merging.

A bucket is a stretch of time, both ends included, and the weight of the items in it, some of which are at either end.
All that is known of its items is the stretch. Half of it is counted at each end: then of every window only the bucket
over its edge is uncertain, by half its weight. That is the estimate of Datar, Gionis, Indyk and Motwani (Maintaining
stream statistics over sliding windows, 2002), and by steps of the weight, of Cohen and Strauss, for any decay.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane._jit import kernel
from wane.decay import Decay
from wane.decay.base import Floats, Ints
from wane.errors import BadInput, BadParameter
from wane.summaries._any_decay import FARTHEST, AnyDecay, Between, nanoseconds
from wane.summaries.base import fraction
from wane.times import Ticks, show

LATE = ("error", "drop")


class Buckets(NamedTuple):
    """Buckets in the order of time; those of one instant have ends that are the same.

    Attributes:
        lows: The time of the oldest item in each.
        highs: The time of the newest.
        loads: The weight of each.
    """

    lows: Ints
    highs: Ints
    loads: Floats

    @property
    def exact(self) -> bool:
        """Whether the time of every item is known."""
        return bool((self.lows == self.highs).all())

    def halves(self) -> tuple[Ints, Floats]:
        """Half of each bucket at each end, in the order of time."""
        times = np.concatenate([self.lows, self.highs])
        order = np.argsort(times, kind="stable")
        return times[order], np.concatenate([self.loads, self.loads])[order] / 2


@kernel("void(r_i8, int64, w_b1)")
def _punctual(times: Ints, latest: int, keep: NDArray[np.bool_]) -> None:
    """Which rows are no older than all before them."""
    for i in range(times.shape[0]):
        keep[i] = times[i] >= latest
        latest = max(latest, times[i])


class InOrder(AnyDecay):
    """A summary of rows that come in the order of their times, with a relative error in every window.

    Args:
        epsilon: The error allowed, relative to the answer.
        decay: The decay of questions that name none.
        landmark: The landmark of questions that name none.
        late: What happens to an item older than one before it: ``"error"`` refuses the update, ``"drop"`` drops it and
            counts it.
        before: The policy for items before the landmark.
    """

    def __init__(
        self,
        epsilon: float = 0.01,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        late: str = "error",
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-6)
        if late not in LATE:
            raise BadParameter(f"late must be one of {', '.join(LATE)}, got {late!r}")
        self.late = late
        self._merged = 0.0  # the error that merging has left in what was merged

    @property
    def error(self) -> float:
        """What answers are right to, relatively: `epsilon`, and more after merging states that were not exact."""
        return (1 + self._merged) * (1 + self.epsilon) - 1

    @abstractmethod
    def _counted(self) -> Buckets:
        """The buckets of the weights."""

    def count(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> float:
        """The decayed count `C`: the sum of weights; under a window, the weight of what is in it."""
        return self._decayed(self._counted(), now, decay, window, landmark)

    def interval(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> Between:
        """Where the decayed count lies for certain, as long as nothing was merged."""
        question = self._question(now, decay, window, landmark)
        lows, highs, loads = self._counted()
        return Between(float(loads @ question.weights(lows)), float(loads @ question.weights(highs)))

    def _decayed(self, buckets: Buckets, now: Any, decay: Any, window: Any, landmark: Any) -> float:
        question = self._question(now, decay, window, landmark)
        weights = question.weights(buckets.lows) + question.weights(buckets.highs)
        return float((buckets.loads * 0.5) @ weights)

    def _admit(
        self, column: Ticks, keep: NDArray[np.bool_] | None, size: int, dropped: dict[str, int]
    ) -> tuple[Ticks, NDArray[np.bool_] | None]:
        self._settle()  # what waits is older
        oldest, newest = column.span()
        if oldest <= -FARTHEST or newest >= FARTHEST:
            return column, keep  # which is refused next
        times = nanoseconds(column)
        punctual = np.empty(len(times), np.bool_)
        _punctual(times, -FARTHEST if self.newest is None else self.newest, punctual)
        if punctual.all():
            return column, keep
        if self.late == "error":
            late = int(times[np.argmin(punctual)])
            raise BadInput(
                f"{int((~punctual).sum())} of {size} items are older than one before them, the first at {show(late)}; "
                f"sort them by time, use late='drop', or use RangeSketch, which takes any order"
            )
        dropped["late"] = int((~punctual).sum())
        keep = np.ones(size, np.bool_) if keep is None else keep
        keep[np.flatnonzero(keep)[~punctual]] = False
        return column.take(punctual), keep

    def _too_late(self, at: int) -> bool:
        return self.newest is not None and at < self.newest

    def _note_merge(self, other: Self, exact: bool) -> None:
        """Note what is lost when buckets become points: nothing where they are points, else the error there was."""
        both = max(self._merged, other._merged)
        self._merged = both if exact else max(self.error, other.error)

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "late": self.late}


def together(mine: Buckets, theirs: Buckets) -> tuple[Ints, Floats]:
    """The halves of two lots of buckets in the order of time, as if each were items of their own."""
    times, loads = (np.concatenate(pair) for pair in zip(mine.halves(), theirs.halves(), strict=True))
    order = np.argsort(times, kind="stable")
    return times[order], loads[order]


ABSENT = {
    "order_does_not_matter": "rows come in the order of their times; RangeSketch takes any order",
    **dict.fromkeys(
        (
            "merge_is_commutative",
            "merge_is_associative",
            "merge_is_concatenation",
            "merge_with_itself_doubles",
            "answers_are_right_after_merging",
        ),
        "a merge puts half of each bucket at either end, and so adds its error to theirs: a merged summary is right to "
        "its .error, which its own tests judge",
    ),
}
"""The laws that do not hold where rows must come in order."""

__all__ = ["ABSENT", "Buckets", "InOrder", "together"]
