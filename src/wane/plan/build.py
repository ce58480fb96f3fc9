"""Makes a plan of what a user asks for, checked in full before a row is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from wane import registry
from wane.decay import Forward, Pinned
from wane.errors import BadInput, BadParameter, Unsupported
from wane.expr import Column, Expr
from wane.fn import Fn
from wane.grouped.query import Answer, Every, Plan, State
from wane.times import PER_TICK, SECOND, duration

MOST_KEYS = 60
"""Key columns of a query; which of them are null is kept in one 64-bit word."""


def build(
    fns: Sequence[Fn],
    keys: Sequence[str] = (),
    *,
    time: str | None = None,
    every: Any = None,
    slide: Any = None,
    where: str | Expr | None = None,
) -> Plan:
    """Make a plan, or say at once what is wrong with the query.

    Args:
        fns: The answers asked for.
        keys: The columns to group by.
        time: The column of event times, where there are no epochs.
        every: The epochs: ``(column, length)`` or ``(column, length, offset)``.
        slide: From the start of one epoch to that of the next, where they overlap.
        where: Rows to keep, as an expression that is not 0 for them.
    """
    if not fns:
        raise BadParameter("nothing is asked for; write .agg(fn.count())")
    if time is not None and not isinstance(time, str):
        raise BadParameter(f"time is a column's name, got {time!r}; write time='time'")
    if where is not None and not isinstance(where, (str, Expr)):
        raise BadParameter(f"where is an expression, got {where!r}; write where='len > 100'")
    if len(keys) > MOST_KEYS:
        raise BadParameter(f"groups have at most {MOST_KEYS} keys, got {len(keys)}; put some of them into one column")
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
            Every(duration(every[1], "every"), duration(every[2], "offset") if len(every) == 3 else 0, _slide(slide)),
        )
        if not 0 < epochs.length < 2**61 or abs(epochs.offset) > 2**61:
            raise BadParameter(
                f"an epoch must be longer than 0 and shorter than 73 years, got {every[1]!r}; write "
                "every=(column, '1 minute')"
            )
        if not 0 < epochs.step <= epochs.length or epochs.length % epochs.step:
            raise BadParameter(
                f"an epoch is a whole number of slides, got {epochs}; write every=(column, '1 minute'), slide='10s'"
            )
    elif slide is not None:
        raise BadParameter(f"slide={slide!r} is from one epoch to the next; add every=(column, length)")
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
    for state in plan.states:
        if isinstance(state.column, Column) and registry.lookup(state.summary).items != "numbers":
            _check_values(state.column.name, schema, "items cannot be made of")
        if isinstance(state.ids, Column):
            _check_values(state.ids.name, schema, "rows cannot be told apart by")
    expressions = [state.column for state in plan.states if registry.lookup(state.summary).items == "numbers"]
    others = [expr for state in plan.states for expr in (state.column, state.ids)]
    expressions += [expr for expr in others if not isinstance(expr, Column)]
    for expr in (plan.where, *expressions):
        for name in () if expr is None else expr.columns:
            kind = schema.field(name).type
            if not (_is_number(kind) or pa.types.is_boolean(kind) or _is_time(kind)):
                raise BadInput(f"column {name!r} must hold numbers, and is {kind}; cast it first")
    for name in plan.keys:
        _check_values(name, schema, "groups cannot be made of")
    if plan.time is not None:
        kind = schema.field(plan.time).type
        if not (_is_number(kind) or _is_time(kind)) or pa.types.is_decimal(kind) or pa.types.is_float16(kind):
            raise BadInput(
                f"column {plan.time!r} must hold times (timestamps, dates, or seconds), and is {kind}; cast it"
            )
        tick = tick_of(kind)
        if plan.every is not None and (plan.every.step % tick or plan.every.offset % tick):
            raise BadParameter(
                f"epochs {plan.every} do not start at whole ticks of {plan.time!r}, which is {kind}; cast it to a "
                "finer unit"
            )


def _slide(slide: Any) -> int | None:
    return None if slide is None else int(duration(slide, "slide"))


def _check_values(name: str, schema: pa.Schema, what: str) -> None:
    """Check that the values of a column can be told apart (:mod:`wane.grouped.words`)."""
    kind = schema.field(name).type
    if not _is_key(kind.value_type if pa.types.is_dictionary(kind) else kind):
        raise BadInput(
            f"column {name!r} is {kind}, which {what}; cast it to a number, a text, bytes, a decimal or a time first"
        )


def tick_of(kind: pa.DataType) -> int:
    """Nanoseconds between two neighbouring values of a time column; floats of seconds go to the nanosecond."""
    if pa.types.is_timestamp(kind):
        return PER_TICK[kind.unit]
    if pa.types.is_date(kind):
        return 86400 * SECOND
    return 1 if pa.types.is_floating(kind) or pa.types.is_null(kind) else SECOND


def _state(fn: Fn, time: str | None, every: Every | None) -> State:
    decay = fn.decay
    spec = registry.lookup(fn.summary)
    if not isinstance(decay, Forward) and every is None:
        able = registry.takers("backward")
        raise Unsupported(
            f"{fn.question} under {decay} needs the time of the question: group by epochs with every=, or fix it with "
            f"wane.decay.pinned(..., now=...)" + (f", or use {', '.join(able)}" if able else "")
        )
    if "forward" not in spec.decays and not (decay if isinstance(decay, Forward) else Pinned(decay, 0)).flat:
        takers = [spec for spec in registry.specs().values() if "forward" in spec.decays]
        able = [spec.make.__name__ for spec in takers if fn.question in spec.functions]
        raise Unsupported(f"{spec.name} cannot be kept under {decay}; summaries that take it: {', '.join(able)}")
    if fn.landmark is not None and not isinstance(decay, Forward):
        raise BadParameter(f"{decay} measures age back from now, and has no landmark; leave landmark= away")
    if str(decay) != "none" and time is None:
        raise BadParameter(f"{decay} weighs rows by time; name the column with time= or every=(column, length)")
    landmark = fn.landmark
    if isinstance(decay, Forward) and decay.needs_landmark and landmark is None and every is None:
        raise BadParameter(
            f"{decay} measures from a landmark; give landmark= in fn.{fn.question}, or group by epochs with every="
        )
    return State(fn.summary, fn.column, decay, landmark, fn.parameters, fn.ids)


def _is_key(kind: pa.DataType) -> bool:
    types = pa.types
    plain = (
        types.is_integer, types.is_float32, types.is_float64, types.is_boolean, types.is_null, types.is_string,
        types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary, types.is_binary_view,
        types.is_fixed_size_binary, types.is_decimal128, types.is_decimal256, types.is_timestamp, types.is_date,
        types.is_time, types.is_duration,
    )  # fmt: skip
    return any(of(kind) for of in plain) and not isinstance(kind, pa.BaseExtensionType)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types  # an empty column of a frame has the type of nulls, and none of them is counted
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
