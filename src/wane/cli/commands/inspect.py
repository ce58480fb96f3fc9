"""``wane inspect``: what a stored state is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from wane.errors import BadInput, CorruptState

EXAMPLE = "wane inspect latency.state"


def command(
    file: Annotated[str, typer.Argument(help="A summary's bytes, or a Parquet file of states.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a file of states holds, checked in full: any bytes are a state or an error."""
    path = Path(file)
    try:
        data = path.read_bytes()
    except OSError as why:
        raise BadInput(f"{file!r} cannot be read: {why}") from None
    found = _states(path) if data[:4] == b"PAR1" else _summary(data)
    if as_json:
        print(json.dumps(found, indent=2, default=str))
        return
    width = max(map(len, found))
    for fact, value in found.items():
        first, *rest = str(value).splitlines() or [""]
        print(f"{fact.ljust(width)}  {first}")
        for line in rest:
            print(f"{' ' * width}  {line}")


def _summary(data: bytes) -> dict[str, Any]:
    """The facts of one summary."""
    from wane.registry import specs
    from wane.summaries.base import from_bytes

    state = from_bytes(data)
    spec = next(spec for spec in specs().values() if spec.make is type(state))
    return {
        "summary": spec.name,
        "title": spec.title,
        "state": repr(state),
        "decay": str(state.decay),
        "rows": state.rows,
        "dropped": dict(state.dropped),
        "bytes": len(data),
        "guarantee": spec.guarantee,
        "questions": ", ".join(spec.questions),
    }


def _states(path: Path) -> dict[str, Any]:
    """The facts of a table of states."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from wane import states

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as why:
        raise CorruptState(f"{str(path)!r} is a broken Parquet file: {why}") from None
    plan, schema = states.read_plan(table)
    states.merge(table)
    return {
        "states": "a table of states, one row a group",
        "plan": str(plan),
        "columns of the rows": ", ".join(f"{field.name} {field.type}" for field in schema),
        "groups": table.num_rows,
        "bytes": path.stat().st_size,
    }
