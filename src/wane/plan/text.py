"""A plan as JSON and back: what a table of states carries, so that it can be answered years later.

Everything in it is text or numbers: decays and expressions by their text forms, times in nanoseconds. What is read is
checked like a query that a user writes, since it may come from anywhere.
"""

from __future__ import annotations

import json
from typing import Any

from wane import registry
from wane.decay import parse
from wane.errors import BadParameter, CorruptState, WaneError
from wane.expr import Expr
from wane.grouped.query import Answer, Every, Plan, State
from wane.summaries import base

VERSION = 1


def to_json(plan: Plan) -> str:
    """A plan as text."""
    every = plan.every
    return json.dumps(
        {
            "version": VERSION,
            "keys": plan.keys,
            "time": plan.time,
            "every": None if every is None else [every.length, every.offset],
            "where": None if plan.where is None else str(plan.where),
            "states": [
                {
                    "summary": state.summary,
                    "column": None if state.column is None else str(state.column),
                    "decay": str(state.decay),
                    "landmark": state.landmark,
                    "parameters": dict(state.parameters),
                }
                for state in plan.states
            ],
            "answers": [[a.name, a.state, a.question, dict(a.arguments)] for a in plan.answers],
        }
    )


def from_json(text: str | bytes) -> Plan:
    """The plan that a text holds, or `CorruptState`."""
    try:
        read = json.loads(text)
        version = read["version"]
        if not isinstance(version, int) or version > VERSION:
            raise CorruptState(f"the plan has version {version!r}, this wane reads up to {VERSION}; upgrade wane")
        every, where = read["every"], read["where"]
        found = Plan(
            tuple(map(_text, read["keys"])),
            None if read["time"] is None else _text(read["time"]),
            None if every is None else Every(_whole(every[0], 1), _whole(every[1])),
            None if where is None else Expr.parse(where),
            tuple(_state(state) for state in read["states"]),
            tuple(
                Answer(_text(name), _whole(state, 0), _text(question), _named(arguments))
                for name, state, question, arguments in read["answers"]
            ),
        )
        for answer in found.answers:
            state = found.states[answer.state]
            spec = registry.lookup(state.summary)
            if answer.question not in spec.functions:
                raise BadParameter(f"{state.summary} does not answer {answer.question!r}")
            base.ask(spec.make(**dict(state.parameters)), answer.question, "latest", dict(answer.arguments))
    except CorruptState:
        raise
    except (WaneError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as why:
        raise CorruptState(f"the text {text[:60]!r} is no plan of wane's: {why}") from why
    return found


def _state(read: dict[str, Any]) -> State:
    column, landmark = read["column"], read["landmark"]
    return State(
        registry.lookup(read["summary"]).name,
        None if column is None else Expr.parse(column),
        parse(_text(read["decay"])),
        None if landmark is None else _whole(landmark),
        _named(read["parameters"]),
    )


def _named(values: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Parameters or arguments by name; JSON has lists where there were tuples."""
    return tuple(sorted((name, tuple(v) if isinstance(v, list) else v) for name, v in values.items()))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadParameter(f"the plan holds {value!r} where a text must be")
    return value


def _whole(value: Any, least: int = -(2**80)) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**80:
        raise BadParameter(f"the plan holds {value!r} where a whole number must be")
    return value
