"""Runs a query in this process, over Arrow, pandas and Parquet: no JVM.

>>> import pyarrow as pa
>>> from wane import fn, local
>>> table = pa.table({"t": [105, 107, 103, 108, 104], "v": [4, 8, 3, 6, 4]})
>>> asked = local.group(table, time="t").agg(fn.count(decay="poly(2)", landmark=100), fn.mean("v", decay="poly(2)",
...     landmark=100), now=110)
>>> [round(x, 2) for x in asked.to_pylist()[0].values()]
[1.63, 5.93]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wane import states
from wane.errors import BadInput, BadParameter
from wane.expr import Expr
from wane.fn import Fn
from wane.grouped import LowLevel
from wane.plan import Plan, build, check
from wane.sources.base import Source, are_paths
from wane.sources.formats import open_source
from wane.summaries.base import POLICIES
from wane.times import instant

if TYPE_CHECKING:
    from wane.gsql import Query

BATCH = 1 << 20
"""Rows of a batch, where the source does not say."""


@dataclass(frozen=True)
class Grouped:
    """Rows with groups, waiting for what to ask; made by :func:`group`."""

    source: Any
    keys: tuple[str, ...]
    time: str | None
    every: Any
    where: str | Expr | None
    before: str

    def plan(self, *fns: Fn) -> Plan:
        """The plan of the query, checked as far as it can be without the source."""
        return build(fns, self.keys, time=self.time, every=self.every, where=self.where)

    def agg(self, *fns: Fn, now: Any = "latest") -> pa.Table:
        """Ask, and compute: a table of epoch, keys and answers, ordered by epoch and keys.

        What was dropped is in the table's metadata, as JSON under ``wane`` (:func:`dropped` reads it).

        Args:
            fns: What is asked, from :mod:`wane.fn`.
            now: The time of the question where there are no epochs: a time, or ``"latest"``: the newest of the input.
        """
        plan = self.plan(*fns)
        at = None if isinstance(now, str) and now == "latest" else instant(now, "now")
        if at is not None and plan.every is not None:
            raise BadParameter(f"by epochs, now is the end of each; leave now={now!r} away, or leave every= away")
        engine = self._run(plan)
        return engine.answers(at).replace_schema_metadata({"wane": json.dumps(_report(engine, self.source))})

    def states(self, *fns: Fn) -> pa.Table:
        """The states behind the answers, one row a group: to keep, merge and ask later (:mod:`wane.states`)."""
        plan = self.plan(*fns)
        engine = self._run(plan)
        return states.table(plan, engine.schema, list(engine.flush()), _report(engine, self.source))

    def _run(self, plan: Plan) -> LowLevel:
        """All rows of the source in one low level."""
        schema, batches = read(self.source, plan.columns)
        check(plan, schema)
        engine = LowLevel(plan, schema, self.before, budget=None)
        for batch in batches:
            list(engine.update(batch))  # without a budget, nothing is handed out
        return engine


def group(
    source: Any,
    *keys: str,
    every: Any = None,
    time: str | None = None,
    where: str | Expr | None = None,
    before: str = "error",
) -> Grouped:
    """Group rows by epochs and keys, to ask something of every group.

    Args:
        source: An Arrow table, record batch or reader, a pandas or polars frame, anything else with an Arrow stream,
            a :class:`wane.sources.Source`, or a path, a glob or a list of paths of files that one reads (Parquet, pcap,
            CSV).
        keys: Columns to group by; null is a key of its own.
        every: Epochs: the time column and a length, such as ``("time", "1 minute")``, and perhaps an offset.
        time: The time column, where there are no epochs.
        where: An expression; rows for which it is not 0 are kept, such as ``"len > 100"``.
        before: What happens to a row before a landmark: ``"error"``, ``"drop"`` (counted) or ``"clamp"``.
    """
    for key in keys:
        if not isinstance(key, str):
            raise BadParameter(f"a key is a column's name, got {key!r}; write group(table, 'destIP')")
    if before not in POLICIES:
        raise BadParameter(f"before must be one of {', '.join(POLICIES)}, got {before!r}")
    return Grouped(open_source(source) if are_paths(source) else source, keys, time, every, where, before)


def _report(engine: LowLevel, source: Any) -> dict[str, Any]:
    lost = dict(source.dropped) if isinstance(source, Source) else {}
    return {"rows": engine.rows, "dropped": lost | dict(engine.dropped)}


def dropped(table: pa.Table) -> dict[str, int]:
    """How many rows an answer does not count, by reason."""
    report = json.loads((table.schema.metadata or {}).get(b"wane", b"{}"))
    found: dict[str, int] = report.get("dropped", {})
    return found


def read(source: Any, columns: Iterable[str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a source and its batches; of files, only the columns that are needed are read."""
    if isinstance(source, Source):
        return source.schema, source.batches(list(columns))
    if isinstance(source, pa.RecordBatchReader):
        return source.schema, iter(source)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        wanted = [name for name in columns if name in source.columns]
        try:
            # Without columns, the rows would not come along.
            rows = pa.table({"": pa.nulls(len(source))}).select([])
            source = pa.Table.from_pandas(source[wanted], preserve_index=False) if wanted else rows
        except (pa.ArrowException, TypeError, ValueError) as why:
            raise BadInput(
                f"the pandas frame cannot be read: {why}; give its columns one type and a name each"
            ) from why
    elif not isinstance(source, pa.Table) and hasattr(source, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowInvalid as why:
            raise BadInput(f"a {type(source).__name__} is no table of rows ({why}); give a table or a frame") from why
        return reader.schema, iter(reader)
    if not isinstance(source, pa.Table):
        raise BadInput(
            f"cannot read rows from a {type(source).__name__}; give an Arrow table or reader, a pandas or polars "
            "frame, or the path of Parquet, pcap or CSV files"
        )
    return source.schema, iter(source.to_batches(max_chunksize=BATCH))


def gsql(
    text: str,
    tables: Mapping[str, Any],
    *,
    bindings: Mapping[str, Any] | None = None,
    now: Any = "latest",
    before: str = "error",
) -> pa.Table:
    """Ask one query in GSQL (:mod:`wane.gsql`); gives its answer.

    Args:
        text: The query, and whatever declarations and views it needs.
        tables: What it may name: sources as :func:`group` takes them. A capture named ``TCP``, ``UDP`` or ``ICMP`` is
            that protocol's packets, and by any other name all of them.
        bindings: What declared aggregates stand for.
        now: The time of the question where there are no epochs: a time, or ``"latest"``.
        before: What happens to a row before a landmark: ``"error"``, ``"drop"`` (counted) or ``"clamp"``.
    """
    answers = gsql_all(text, tables, bindings=bindings, now=now, before=before)
    if len(answers) > 1:
        raise BadParameter(f"the text has {len(answers)} queries, and one is asked here; use local.gsql_all, or views")
    return answers[0]


def gsql_all(
    text: str,
    tables: Mapping[str, Any],
    *,
    bindings: Mapping[str, Any] | None = None,
    now: Any = "latest",
    before: str = "error",
) -> tuple[pa.Table, ...]:
    """Ask all queries of a text in GSQL; the arguments are those of :func:`gsql`, and views are no answers."""
    from wane.gsql import compile
    from wane.gsql.run import lasting, run

    def ask(query: Query, rows: Any) -> pa.Table:
        assert query.plan is not None
        asked = group(rows, *query.plan.keys, every=query.every, time=query.time, where=query.plan.where, before=before)
        return asked.agg(*query.fns, now="latest" if query.time is None or query.every is not None else now)

    sources = {name: lasting(name, source, read) for name, source in tables.items()}
    program = compile(text, {name: source.schema for name, source in sources.items()}, bindings)
    return tuple(run(program, sources, read, ask))
