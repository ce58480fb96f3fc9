"""A decay whose one question is known ahead: every item's weight is fixed, backward decay or forward.

A query by epoch is asked at the epoch's end, so that even a sliding window costs no more state than no decay there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wane.decay.backward_decays import SlidingWindow
from wane.decay.base import Backward, Decay, Floats, Forward, Frame, Ints, split
from wane.errors import BadDecay, QueryInPast
from wane.times import SECOND, Nanoseconds, Ticks, instant, show, show_duration


@dataclass(frozen=True)
class Pinned(Forward):
    """A backward decay asked at one fixed time: ``g(n) = f(now - t_i) / f(0)``.

    Attributes:
        decay: The backward decay.
        now: The one instant at which it is asked, as nanoseconds (:func:`pinned` takes any form).
    """

    decay: Decay
    now: int

    def __post_init__(self) -> None:
        if not isinstance(self.decay, Backward):
            raise BadDecay(f"{self.decay} is forward, and needs no fixed time; use it as it is, with its landmark")

    def __str__(self) -> str:
        return f"{self.decay} at {show_duration(self.now)}"

    @property
    def behaviour(self) -> str:
        """That of the decay which is pinned."""
        return self.decay.behaviour

    @property
    def flat(self) -> bool:
        """That of a sliding window: in it or not."""
        return isinstance(self.decay, SlidingWindow)

    def frame(self, near: int, landmark: int | None) -> Frame:
        """Ages are measured from the fixed time, so that they are 0 or less; in a window from its edge."""
        if near > self.now:
            raise QueryInPast(
                f"an item of {show(near)} is newer than the fixed time of {self}, {show(self.now)}; pin it later"
            )
        return Frame(self._origin(landmark))

    def locate(self, times: Ticks, landmark: int | None) -> tuple[Floats, Ints]:
        """``f(now - t_i)``, refused for an item newer than the fixed time."""
        if len(times):
            self.frame(times.span()[1], landmark)
        return super().locate(times, landmark)

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """``f(-n)``; in a window of length `W`, ``f(W - n)``. Newer items are refused, by :meth:`frame` exactly."""
        late = ages.max(initial=-np.inf) * (1 - 2.0**-51) - self._length / SECOND
        if late > 0.5 / SECOND:
            raise QueryInPast(
                f"an item is {late:g} s newer than the fixed time of {self}, {show(self.now)}; pin it later"
            )
        if isinstance(self.decay, SlidingWindow):
            return split((ages > 0).astype(np.float64))
        assert isinstance(self.decay, Backward)
        return self.decay.wide_of_age(-ages)

    def weight(self, times: Any, now: Any = None, landmark: Any = None) -> Any:
        """``f(now - t_i) / f(0)``; `now` may be left out, and no other than the fixed one will do."""
        at = self.now if now is None else instant(now, "now")
        if at != self.now:
            raise QueryInPast(f"{self} was fixed for {show(self.now)}, and now={show(at)} is another time; pin it anew")
        return super().weight(times, Nanoseconds(at), landmark)

    @property
    def _length(self) -> int:
        return self.decay.length if isinstance(self.decay, SlidingWindow) else 0

    def _origin(self, landmark: int | None) -> int:
        return self.now - self._length


def pinned(decay: Any, now: Any) -> Decay:
    """Fix the time at which a decay is asked, so that a summary for forward decays can take a backward one.

    >>> str(pinned("window(5m)", now=3600))
    'window(5m) at 1h'
    """
    from wane.decay.text import parse  # the text form reads `... at 1h` back, and so needs this module

    read = parse(decay)
    return read if isinstance(read, Forward) else Pinned(read, instant(now, "now"))
