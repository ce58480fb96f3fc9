"""Summaries whose decay is chosen with the question: what they share, and the reduction of Cohen and Strauss.

What such a summary keeps does not depend on a decay. The one it is made with is only the default of its questions. A
question names any other, forward or backward, built in or a user's own, or a window.

A weight that never rises with age is a positive combination of windows: an item weighs the sum of the steps that the
weight makes between its own time and now. So an answer that is right to some share of itself in every window is right
to the same share under every decay (Cohen and Strauss, Maintaining time-decaying stream aggregates, 2003). A forward
decay at one `now` is such a weight as well: ``g(t_i - L) / g(now - L)``, and 0 before the landmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wane.decay import Backward, Decay, Forward, Pinned, SlidingWindow, parse
from wane.decay.base import Floats, Ints, share
from wane.errors import BadParameter, BadTime
from wane.summaries.base import Summary
from wane.times import PER_TICK, Nanoseconds, Ticks, instant, show

FARTHEST = 2**63 - 2**61
"""Instants under this, 219 years around 1970, are kept as 64-bit nanoseconds; what is later fits 64 bits as well."""


@dataclass(frozen=True, slots=True)
class Question:
    """When and under which decay something is asked.

    Attributes:
        decay: The decay.
        now: The instant.
        landmark: Where a forward decay measures from.
    """

    decay: Decay
    now: int
    landmark: int | None = None

    def weights(self, times: Ints) -> Floats:
        """The weights, from 0 to 1, of instants as nanoseconds; what is after now weighs like now.

        They never fall as times grow. What is before the landmark weighs nothing.
        """
        if not len(times):
            return np.empty(0)
        column = Ticks(np.minimum(times, self.now), "ns")
        if isinstance(self.decay, SlidingWindow):
            return self.decay.of_times(column, self.now)
        start = self.landmark if self.decay.needs_landmark else None
        if isinstance(self.decay, Forward) and self.decay.needs_landmark:
            assert start is not None
            if self.decay.at(self.now, start)[0] == 0:
                return np.zeros(len(times))
            column = Ticks(np.maximum(column.values, start), "ns")
        weights: Floats = self.decay.weight(
            column, Nanoseconds(self.now), None if start is None else Nanoseconds(start)
        )
        return weights if start is None else np.where(times < start, 0.0, weights)

    def scaled(self, times: Ints) -> tuple[Floats, int]:
        """:meth:`weights` as doubles that share a power of two, so that the largest is about 1, however faded."""
        column = Ticks(np.minimum(times, self.now), "ns")
        if isinstance(self.decay, SlidingWindow) or not len(times):
            return self.weights(times), 0
        if not isinstance(self.decay, Forward):
            assert isinstance(self.decay, Backward)
            return share(*self.decay.wide_of_age(-column.seconds_since(self.now)))
        start = self.landmark if self.decay.needs_landmark else None
        top, power = self.decay.at(self.now, start)
        if top == 0:
            return np.zeros(len(times)), 0
        if start is not None:
            column = Ticks(np.maximum(column.values, start), "ns")
        mantissas, exponents = self.decay.locate(column, start)
        if start is not None:
            mantissas = np.where(times < start, 0.0, mantissas)
        weights, shared = share(mantissas / top, exponents)
        return weights, shared - power

    @property
    def window(self) -> int | None:
        """The length of the window in nanoseconds, where one is asked for."""
        return self.decay.length if isinstance(self.decay, SlidingWindow) else None


class Between(NamedTuple):
    """Where the exact answer lies, for certain."""

    low: float
    high: float


class AnyDecay(Summary):
    """A summary whose decay is chosen with the question.

    `decay` and `landmark` are what questions are asked under unless they name others. Every item needs its time. What
    is asked about the past is refused: what came after a `now` cannot be told from what is before it any more.
    """

    _PAST: ClassVar[str] = "and what came since cannot be taken out again; ask at or after it"

    def _question(self, now: Any, decay: Any = None, window: Any = None, landmark: Any = None) -> Question:
        """Read and check what a question is asked with.

        Args:
            now: When.
            decay: A decay or its text form; the default is the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from; the default is the summary's own.
        """
        if window is not None and decay is not None:
            raise BadParameter(f"a question has a decay or a window, got decay={str(decay)!r} and window={window!r}")
        asked: Decay = self.decay if decay is None else parse(decay)
        if window is not None:
            asked = SlidingWindow(window)
        start = self.landmark if landmark is None else instant(landmark, "landmark")
        if asked.needs_landmark and start is None:
            raise BadParameter(f"{asked} measures from a landmark, and there is none; add landmark= to the question")
        at = self._when(now, asked, start)
        if at is None:
            empty = asked.now if isinstance(asked, Pinned) else start or 0
            at = empty if self.newest is None else self.newest
        if abs(at) >= FARTHEST:
            raise BadTime(f"now={show(at)} is too far from 1970: times are kept as 64-bit nanoseconds here")
        return Question(asked, at, start)

    @property
    def _timed(self) -> bool:
        return True

    def _clock(self) -> str:
        return "a decay that is chosen with the question"

    def _taken(self, decay: Decay) -> Any:
        return decay  # any at all: it weighs nothing before it is asked with

    def _weighable(self, unit: str, oldest: int, newest: int) -> None:
        """Refuse a batch with times that do not fit, and one that a forward decay, as the default, refuses."""
        if oldest <= -FARTHEST or newest >= FARTHEST:
            far = show(oldest if oldest <= -FARTHEST else newest)
            raise BadTime(f"a time of {far} is too far from 1970: times are kept as 64-bit nanoseconds here")
        if not isinstance(self.decay, Backward):
            super()._weighable(unit, oldest, newest)


def nanoseconds(times: Ticks) -> Ints:
    """Accepted times as nanoseconds."""
    per = PER_TICK[times.unit]
    return times.values if per == 1 else times.values * per


__all__ = ["FARTHEST", "AnyDecay", "Between", "Question", "nanoseconds"]
