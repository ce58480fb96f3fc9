"""Programs run in this process; what reads sources and what asks groups is given, since both are above this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from wane.gsql.classes import Scratch
from wane.gsql.program import Program, Query
from wane.gsql.rows import Step
from wane.sources.base import Source, are_paths
from wane.sources.formats import open_source

Read = Callable[[Any, Iterable[str]], tuple[pa.Schema, Iterator[pa.RecordBatch]]]
Ask = Callable[[Query, Any], pa.Table]


def lasting(name: str, source: Any, read: Read) -> Any:
    """The source of a table as one that can be read more than once, and tells its columns."""
    if are_paths(source):
        return open_source(source, name)
    if isinstance(source, (pa.Table, Source)):
        return source
    frame = type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns")
    schema, batches = read(source, source.columns if frame else ())
    return pa.Table.from_batches(list(batches), schema)


def run(program: Program, sources: Mapping[str, Any], read: Read, ask: Ask) -> Iterator[pa.Table]:
    """The answers of a program, one after the other, each with a report of what was dropped.

    Args:
        program: The queries.
        sources: What tables are, each to be read more than once.
        read: Gives the schema and the batches of a source, with the columns named.
        ask: Gives the groups' answers to a query, of rows that are a source or a reader.
    """
    views: dict[str, pa.Table] = {}
    for query in program.queries:
        source = views[query.source] if query.source in views else sources[query.source]
        answer = _answer(query, source, read, ask)
        if query.name is not None:
            views[query.name] = answer
        if query in program.asked:
            yield answer


def _answer(query: Query, source: Any, read: Read, ask: Ask) -> pa.Table:
    if query.scratch is not None and query.before is not None:
        return _by_classes(query, query.before, query.scratch, source, read)
    if query.plan is None:
        _, batches = read(source, query.after.needs)
        return _reported(query, [query.after(batch) for batch in batches], source, {})
    rows = source
    if query.before is not None:
        _, batches = read(source, query.before.needs)
        made = query.before.schema(_schema(source, query.before.needs))
        rows = pa.RecordBatchReader.from_batches(made, query.before.over(batches))
    answers = ask(query, rows)
    report = json.loads(answers.schema.metadata[b"wane"])
    return _reported(query, map(query.after, answers.combine_chunks().to_batches()), source, report)


def _by_classes(query: Query, before: Step, scratch: Scratch, source: Any, read: Read) -> pa.Table:
    """The answer of a query whose aggregates are a user's own classes."""
    _, batches = read(source, before.needs)
    schema = before.schema(_schema(source, before.needs))
    rows = scratch.high(schema)(scratch.low(schema)(before.over(batches)))
    answers = pa.Table.from_batches(rows, scratch.answers(schema))
    ordered = answers.sort_by([(key, "ascending") for key in scratch.keys]) if scratch.keys else answers
    return _reported(query, map(query.after, ordered.combine_chunks().to_batches()), source, {})


def _schema(source: Any, names: Iterable[str]) -> pa.Schema:
    return pa.schema([source.schema.field(name) for name in names])


def _reported(query: Query, batches: Iterable[pa.RecordBatch], source: Any, report: dict[str, Any]) -> pa.Table:
    """Batches as a table that says what was dropped."""
    made = pa.Table.from_batches(batches, query.schema)
    lost = dict(source.dropped) if isinstance(source, Source) else {}
    carried = {**report, "dropped": lost | report.get("dropped", {})}
    return made.replace_schema_metadata({"wane": json.dumps(carried)})
