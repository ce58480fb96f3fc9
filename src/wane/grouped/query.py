"""What a query keeps and answers, as frozen values: the engine's orders.

Several answers over one state keep one state: a mean and a variance of one column under one decay are two questions
to one summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wane.decay import Decay
from wane.expr import Expr
from wane.times import show, show_duration


@dataclass(frozen=True)
class Every:
    """Epochs: tumbling buckets of event time, ``[offset + i * length, offset + (i + 1) * length)``, in UTC.

    Attributes:
        length: Nanoseconds.
        offset: Nanoseconds from 1970 to the start of some epoch.
    """

    length: int
    offset: int = 0

    def __str__(self) -> str:
        return f"every {show_duration(self.length)}" + (f" offset {show_duration(self.offset)}" if self.offset else "")


@dataclass(frozen=True)
class State:
    """One summary that is kept for every group.

    Attributes:
        summary: Its registered name.
        column: What it is fed with, or None for whole rows.
        decay: Its decay.
        landmark: Where a forward decay measures from; None is the epoch's start, where there are epochs.
        parameters: Its further parameters.
        ids: What tells rows apart, for a summary that takes it.
    """

    summary: str
    column: Expr | None
    decay: Decay
    landmark: int | None
    parameters: tuple[tuple[str, Any], ...] = ()
    ids: Expr | None = None

    def __str__(self) -> str:
        since = f" since {show(self.landmark)}" if self.landmark is not None else ""
        return f"{self.summary}({self.column if self.column is not None else '*'}) decay {self.decay}{since}"


@dataclass(frozen=True)
class Answer:
    """One column of the result: a question to one of the states."""

    name: str
    state: int
    question: str
    arguments: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Plan:
    """A whole query."""

    keys: tuple[str, ...]
    time: str | None
    every: Every | None
    where: Expr | None
    states: tuple[State, ...]
    answers: tuple[Answer, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source that the query reads."""
        needed = dict.fromkeys(self.keys)
        if self.time is not None:
            needed[self.time] = None
        expressions = [expr for state in self.states for expr in (state.column, state.ids)]
        for expr in (self.where, *expressions):
            if expr is not None:
                needed.update(dict.fromkeys(expr.columns))
        return tuple(needed)

    def __str__(self) -> str:
        lines = [
            f"group by {', '.join([*([f'{self.time} {self.every}'] if self.every else []), *self.keys]) or 'nothing'}"
        ]
        if self.where is not None:
            lines.append(f"where {self.where}")
        lines += [f"state {i}: {state}" for i, state in enumerate(self.states)]
        lines += [f"{answer.name} = {answer.question} of state {answer.state}" for answer in self.answers]
        return "\n".join(lines)
