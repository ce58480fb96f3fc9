"""A decay whose one question is known ahead: every item's weight is fixed, backward decay or forward.

A query by epoch is asked at the epoch's end, so that even a sliding window costs no more state than no decay there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wane.decay.base import Backward, Decay, Floats, Forward, Frame, Ints, split
from wane.errors import BadDecay, QueryInPast
from wane.times import instant, show, show_duration


@dataclass(frozen=True)
class Pinned(Forward):
    """A backward decay asked at one fixed time: ``g(n) = f(now - t_i) / f(0)``.

    Attributes:
        decay: The backward decay.
        now: The one instant at which it is asked.
    """

    decay: Decay
    now: int

    def __post_init__(self) -> None:
        if not isinstance(self.decay, Backward):
            raise BadDecay(f"{self.decay} is forward, and needs no fixed time; use it as it is, with its landmark")

    def __str__(self) -> str:
        return f"{self.decay} at {show_duration(self.now)}"

    def frame(self, near: int, landmark: int | None) -> Frame:
        """Ages are measured from the fixed time, so that they are 0 or less."""
        return Frame(self.now)

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """``f(-n)``, refused for an item newer than the fixed time."""
        if len(ages) and ages.max() > 0:
            raise QueryInPast(
                f"an item is {ages.max():g} s newer than the fixed time {show(self.now)} of {self}; pin it later"
            )
        assert isinstance(self.decay, Backward)
        return split(self.decay.of_age(-ages))

    def _origin(self, landmark: int | None) -> int:
        return self.now


def pinned(decay: Any, now: Any) -> Decay:
    """Fix the time at which a decay is asked, so that a summary for forward decays can take a backward one.

    >>> str(pinned("window(5m)", now=3600))
    'window(5m) at 1h'
    """
    from wane.decay.text import parse  # the text form reads `... at 1h` back, and so needs this module

    read = parse(decay)
    return read if isinstance(read, Forward) else Pinned(read, instant(now, "now"))
