"""A query run in one process: low levels side by side, and what is above them.

What a run gives depends on the rows, their order and the number of lanes, and not on which lane was faster: batches are
dealt out in turn, and what the low levels hand out is merged in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wane.errors import BadParameter
from wane.grouped.engine import HighLevel, LowLevel
from wane.grouped.measured import Measured
from wane.grouped.query import Plan


@dataclass(frozen=True)
class How:
    """How a query is run; nothing here changes what it answers, but for `shed`.

    Attributes:
        threads: How many low levels run side by side, each over its share of the batches.
        levels: 1 is no splitting: one low level answers by itself. 2 merges partials above the low levels, 3 merges
            those of each lane first. None chooses.
        budget: How many bytes the low levels may take together; None for no bound.
        cache: The strategy of a cache of groups (:mod:`wane.grouped.cache`), or None.
        slots: How many groups the cache holds.
        flush: ``"lazy"`` or ``"eager"``, for groups of epochs that are over.
        shed: The share of the groups that is kept; None for all.
    """

    threads: int = 1
    levels: int | None = None
    budget: int | None = None
    cache: str | None = None
    slots: int = 1 << 14
    flush: str = "lazy"
    shed: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 1024 or self.threads != int(self.threads):
            raise BadParameter(f"threads must be a whole number from 1, got {self.threads!r}; write threads=2")
        if self.levels not in (None, 1, 2, 3):
            raise BadParameter(f"levels must be 1, 2 or 3, got {self.levels!r}; leave it away to have it chosen")
        if self.budget is not None and not self.budget > 0:
            raise BadParameter(f"budget is a number of bytes, got {self.budget!r}; write budget=64 << 20")
        hands_out = self.threads > 1 or self.budget is not None or self.cache is not None or self.flush != "lazy"
        if self.levels == 1 and hands_out:
            raise BadParameter(
                "with levels=1 nothing is handed out, so there can be no budget=, cache=, flush='eager' or threads=; "
                "leave them away, or levels="
            )
        if self.levels is None:
            levels = 1 if not hands_out else 3 if self.threads > 1 and self.budget is not None else 2
            object.__setattr__(self, "levels", levels)

    @property
    def why(self) -> str:
        """Why there are so many levels."""
        return {
            1: "one process and no budget: nothing has to travel",
            2: "partials are merged as they come",
            3: "each thread's partials are merged by themselves first, since a budget makes many",
        }[self.levels or 1]


class Run:
    """One plan on its way through a source.

    Args:
        plan: The query.
        schema: The columns of its source.
        before: The policy for rows before a landmark.
        how: How it is run.
        partials: Whether states are asked for, and not answers.
    """

    def __init__(self, plan: Plan, schema: pa.Schema, before: str, how: How, partials: bool = False) -> None:
        self.plan = plan
        self.how = how
        split = how.levels != 1
        self._lows = [
            LowLevel(
                plan,
                schema,
                before,
                None if how.budget is None else how.budget // how.threads,
                cache=how.cache,
                slots=how.slots,
                flush=how.flush,
                shed=how.shed,
                partials=partials or split,
            )
            for _ in range(how.threads)
        ]
        self.schema = self._lows[0].schema
        self._partials: list[list[pa.RecordBatch]] = [[] for _ in self._lows]
        self._middle = [HighLevel(plan, schema, ordered=True) for _ in self._lows] if how.levels == 3 else []
        self._high = HighLevel(plan, schema, ordered=True)

    def take(self, lane: int, batch: pa.RecordBatch) -> None:
        """Add a batch to one of the low levels; lanes do not meet, so that each may have a thread."""
        for partials in self._lows[lane].update(batch):
            self._hand(lane, partials)

    def settle(self) -> None:
        """Merge what the lanes have handed out so far, which frees it."""
        for partials in self._partials:
            for batch in partials:
                self._high.update(batch)
            partials.clear()

    def answers(self, now: int | None = None, bounds: bool = False) -> pa.Table:
        """The answers over all rows, as :func:`wane.grouped.engine.answer` gives them."""
        if self.how.levels == 1:
            return self._lows[0].answers(now, bounds)
        self._finish()
        return self._high.answers(now, bounds)

    def states(self) -> list[pa.RecordBatch]:
        """Partials that hold all rows."""
        if self.how.levels == 1:
            return list(self._lows[0].flush())
        self._finish()
        return [self._high.merged()]

    @property
    def report(self) -> dict[str, Any]:
        """What was read, dropped, and measured."""
        dropped: dict[str, int] = {}
        low = Measured()
        for one in self._lows:
            low.add(one.measured)
            for reason, count in one.dropped.items():
                dropped[reason] = dropped.get(reason, 0) + count
        report: dict[str, Any] = {"rows": sum(one.rows for one in self._lows), "dropped": dropped}
        if self.how.shed is not None:
            report["shed"] = self.how.shed
        return report | {"measured": _measured(low, self._high.measured, self._middle)}

    def _finish(self) -> None:
        for lane, low in enumerate(self._lows):
            for partials in low.flush():
                self._hand(lane, partials)
        for middle in self._middle:
            self._high.update(middle.merged())
        self._middle = []
        self.settle()

    def _hand(self, lane: int, partials: pa.RecordBatch) -> None:
        if self._middle:
            self._middle[lane].update(partials)
        else:
            self._partials[lane].append(partials)


def _measured(low: Measured, high: Measured, middle: list[HighLevel]) -> Mapping[str, Any]:
    return {
        "rows": low.rows,
        "partials": low.partials,
        "ejections": low.ejections,
        "flushes": low.flushes,
        "passes": low.passes,
        "peak bytes": low.peak,
        "low seconds": low.seconds,
        "high seconds": high.seconds + sum(one.measured.seconds for one in middle),
    }
