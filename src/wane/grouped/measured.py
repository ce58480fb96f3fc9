"""What a run was like: rows in, partials out, the memory in between, and the time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Measured:
    """What one low level, or several together, have done.

    Attributes:
        rows: Rows that came in.
        partials: Partials that went out.
        ejections: Those of them whose groups lost their place in the cache.
        flushes: How often everything was handed out.
        passes: How often reducing did not pay, so that rows went up as they were for a while.
        peak: The most bytes that states took.
        seconds: The time spent.
    """

    rows: int = 0
    partials: int = 0
    ejections: int = 0
    flushes: int = 0
    passes: int = 0
    peak: int = 0
    seconds: float = 0.0

    @property
    def reduction(self) -> float:
        """Rows for each partial."""
        return self.rows / self.partials if self.partials else float("inf")

    @contextlib.contextmanager
    def timed(self, rows: int = 0) -> Iterator[None]:
        """Count rows, and the time that passes inside."""
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began
        self.rows += rows

    def add(self, other: Measured) -> None:
        """Add what another has done beside it."""
        self.rows += other.rows
        self.partials += other.partials
        self.ejections += other.ejections
        self.flushes += other.flushes
        self.passes += other.passes
        self.peak += other.peak
        self.seconds += other.seconds
