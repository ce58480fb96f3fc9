"""What a text of queries comes to: programs that any engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from wane.fn import Fn
from wane.grouped.query import Plan
from wane.gsql.classes import Call, Scratch
from wane.gsql.rows import Copy, Step
from wane.times import show_duration


@dataclass(frozen=True)
class Clock:
    """What makes a column's values grow with time.

    Attributes:
        tick: The nanoseconds from one value to the next; None for a column of times.
        offset: When 0 begins, in nanoseconds since 1970.
    """

    tick: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Table:
    """A table that queries may name.

    Attributes:
        schema: Its columns.
        time: Its column of times; by default ``time``, or else the first of a type of times.
        bounded: Whether it ends; a stream does not.
    """

    schema: pa.Schema
    time: str | None = None
    bounded: bool = True

    @property
    def clocks(self) -> Mapping[str, Clock]:
        """The columns that grow with time."""
        name = self.time or next((field.name for field in self.schema if field.name == "time"), None)
        name = name or next((field.name for field in self.schema if _is_time(field.type)), None)
        return {} if name is None else {name: Clock()}


@dataclass(frozen=True)
class Query:
    """One query: rows of a source, made ready, grouped, and answered.

    Attributes:
        name: The name of the view it is, or None.
        source: The table or view that it reads.
        before: What is done to rows first, or None.
        plan: Its groups and states, or None where it only chooses rows and columns.
        fns: What is asked of the groups.
        every: The epochs, as :func:`wane.plan.build` takes them, or None.
        time: The column of times, or None.
        timed: Whether its type is one of times, and not of numbers of seconds.
        scratch: The aggregates that are a user's own, where it has such; it has no plan then.
        after: What becomes of the answers; of the rows, where there are no groups.
        schema: The columns of its answer.
        clocks: Those of them that grow with time.
    """

    name: str | None
    source: str
    before: Step | None
    plan: Plan | None
    fns: tuple[Fn, ...]
    every: tuple[str, int, int] | None
    time: str | None
    timed: bool
    scratch: Scratch | None
    after: Step
    schema: pa.Schema
    clocks: Mapping[str, Clock]

    def __str__(self) -> str:
        lines = [f"{self.name or 'query'} from {self.source}"]
        if self.before is not None:
            lines += [f"  make {name} = {_value(value)}" for name, value in self.before.made]
        lines += [f"  {line}" for line in str(self.plan).splitlines()] if self.plan is not None else []
        if self.scratch is not None:
            lines.append(f"  group by {', '.join(self.scratch.keys) or 'nothing'}")
            lines += [f"  {_classes(call)}({', '.join(call.columns)})" for call in self.scratch.calls]
        lines += [f"  make {name} = {_value(value)}" for name, value in self.after.made]
        if self.after.where is not None:
            lines.append(f"  keep {self.after.where}")
        lines += [f"  {name}: {_value(value)}" for name, value in self.after.columns]
        lines += [
            f"  {name} grows with time, by 1 every {show_duration(clock.tick)}"
            for name, clock in self.clocks.items()
            if clock.tick is not None
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Program:
    """The queries of a text, in an order in which each comes after those it reads.

    Attributes:
        queries: The queries; those without a name are what is asked.
    """

    queries: tuple[Query, ...]

    @property
    def asked(self) -> tuple[Query, ...]:
        """The queries whose answers are wanted: those that are no views, or the last view if all are."""
        return tuple(query for query in self.queries if query.name is None) or self.queries[-1:]

    def to_spark_sql(self) -> str:
        """The last query as plain Spark SQL, which gives the same answers, where it is algebraic."""
        from wane.gsql.spark_sql import spark_sql

        return spark_sql(self)

    def __str__(self) -> str:
        return "\n".join(map(str, self.queries))


def _classes(call: Call) -> str:
    low = "" if call.low is None else f"{call.low.make.__name__} in {call.low.scratchpad} bytes, then "
    return low + call.high.make.__name__


def _value(value: object) -> str:
    if isinstance(value, Copy):
        return value.column
    fields = ", ".join(str(part) for part in vars(value).values())
    return f"{type(value).__name__.lower()}({fields})"


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
