"""Makes a plan of what a user asks for, checked in full before a row is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from wane import registry
from wane.decay import Backward, Forward
from wane.errors import BadInput, BadParameter, Unsupported
from wane.expr import Expr
from wane.fn import Fn
from wane.grouped.query import Answer, Every, Plan, State
from wane.times import PER_TICK, SECOND, duration


def build(
    fns: Sequence[Fn],
    keys: Sequence[str] = (),
    *,
    time: str | None = None,
    every: Any = None,
    where: str | Expr | None = None,
) -> Plan:
    """Make a plan, or say at once what is wrong with the query.

    Args:
        fns: The answers asked for.
        keys: The columns to group by.
        time: The column of event times, where there are no epochs.
        every: The epochs: ``(column, length)`` or ``(column, length, offset)``.
        where: Rows to keep, as an expression that is not 0 for them.
    """
    if not fns:
        raise BadParameter("nothing is asked for; write .agg(fn.count())")
    for fn in fns:
        if not isinstance(fn, Fn):
            raise BadParameter(f"an answer is described by wane.fn, got {fn!r}; write .agg(fn.count())")
    epochs = None
    if every is not None:
        if not isinstance(every, (tuple, list)) or len(every) not in (2, 3) or not isinstance(every[0], str):
            raise BadParameter(f'every is a column and a length, got {every!r}; write every=("time", "1 minute")')
        if time is not None and time != every[0]:
            raise BadParameter(f"every= names the time column {every[0]!r}, and time= names {time!r}; give one of them")
        time, epochs = (
            every[0],
            Every(duration(every[1], "every"), duration(every[2], "offset") if len(every) == 3 else 0),
        )
        if epochs.length <= 0:
            raise BadParameter(f"an epoch must be longer than 0, got {every[1]!r}; write every=(column, '1 minute')")
    names = [*(["epoch"] if epochs else []), *keys, *(fn.name for fn in fns)]
    for name in names:
        if names.count(name) > 1:
            raise BadParameter(f"two columns of the answer are called {name!r}; name one with .alias(...)")
    states: dict[State, int] = {}
    answers = []
    for fn in fns:
        state = _state(fn, time, epochs)
        answers.append(Answer(fn.name, states.setdefault(state, len(states)), fn.question, fn.arguments))
    kept = Expr.parse(where) if isinstance(where, str) else where
    return Plan(tuple(keys), time, epochs, kept, tuple(states), tuple(answers))


def check(plan: Plan, schema: pa.Schema) -> None:
    """Check a plan against the columns it will meet."""
    for name in plan.columns:
        if schema.get_field_index(name) < 0:
            raise BadInput(f"there is no column {name!r}, or more than one; the columns are {', '.join(schema.names)}")
    for expr in (plan.where, *(state.column for state in plan.states)):
        for name in () if expr is None else expr.columns:
            kind = schema.field(name).type
            if not (_is_number(kind) or pa.types.is_boolean(kind) or _is_time(kind)):
                raise BadInput(f"column {name!r} must hold numbers, and is {kind}; cast it first")
    for name in plan.keys:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise BadInput(f"column {name!r} is {kind}, and groups need plain values; take its fields apart first")
    if plan.time is not None:
        kind = schema.field(plan.time).type
        if not (_is_number(kind) or _is_time(kind)) or pa.types.is_decimal(kind):
            raise BadInput(f"column {plan.time!r} must hold times (timestamps, dates, or seconds), and is {kind}")
        tick = tick_of(kind)
        if plan.every is not None and (plan.every.length % tick or plan.every.offset % tick):
            raise BadParameter(
                f"epochs {plan.every} do not start at whole ticks of {plan.time!r}, which is {kind}; cast it to a "
                "finer unit"
            )


def tick_of(kind: pa.DataType) -> int:
    """Nanoseconds between two neighbouring values of a time column; floats of seconds go to the nanosecond."""
    if pa.types.is_timestamp(kind):
        return PER_TICK[kind.unit]
    if pa.types.is_date64(kind):
        return PER_TICK["ms"]
    return 1 if pa.types.is_floating(kind) else SECOND


def _state(fn: Fn, time: str | None, every: Every | None) -> State:
    decay = fn.decay
    spec = registry.lookup(fn.summary)
    if isinstance(decay, Forward) and "forward" not in spec.decays and decay.needs_landmark:
        able = registry.takers("forward")
        raise Unsupported(f"{fn.question} cannot be answered under {decay}; summaries that take it: {', '.join(able)}")
    if not isinstance(decay, Forward) and every is None:
        able = registry.takers("backward")
        raise Unsupported(
            f"{fn.question} under {decay} needs the time of the question: group by epochs with every=, or fix it with "
            f"wane.decay.pinned(..., now=...)" + (f", or use {', '.join(able)}" if able else "")
        )
    if fn.landmark is not None and not isinstance(decay, Forward):
        raise BadParameter(f"{decay} measures age back from now, and has no landmark; leave landmark= away")
    if str(decay) != "none" and time is None:
        raise BadParameter(f"{decay} weighs rows by time; name the column with time= or every=(column, length)")
    landmark = fn.landmark
    if isinstance(decay, Forward) and decay.needs_landmark and landmark is None and every is None:
        raise BadParameter(
            f"{decay} measures from a landmark; give landmark= in fn.{fn.question}, or group by epochs with every="
        )
    if isinstance(decay, Forward) and not decay.needs_landmark and isinstance(decay, Backward):
        landmark = None  # any landmark gives the same weights
    return State(fn.summary, fn.column, decay, landmark, fn.parameters)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
