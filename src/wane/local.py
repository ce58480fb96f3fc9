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

import datetime as dt
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wane import states
from wane.errors import BadInput, BadParameter
from wane.expr import Expr
from wane.fn import Fn
from wane.grouped import How, Run, timecolumn
from wane.plan import Plan, build, check, explain, together
from wane.sources.base import Source, are_paths
from wane.sources.formats import open_source
from wane.sources.parquet import meaning
from wane.summaries.base import POLICIES
from wane.times import instant, ticks

if TYPE_CHECKING:
    from wane.gsql import Query

BATCH = 1 << 18
"""Rows of a batch, where the source does not say."""

_DEALT = 1 << 18
"""Rows that a thread takes at once."""


@dataclass(frozen=True)
class Grouped:
    """Rows with groups, waiting for what to ask; made by :func:`group`."""

    source: Any
    keys: tuple[str, ...]
    time: str | None
    every: Any
    slide: Any
    where: str | Expr | None
    before: str
    how: How

    def plan(self, *fns: Fn) -> Plan:
        """The plan of the query, checked as far as it can be without the source."""
        return build(fns, self.keys, time=self.time, every=self.every, slide=self.slide, where=self.where)

    def agg(self, *fns: Fn, now: Any = "latest", bounds: bool = False) -> pa.Table:
        """Ask, and compute: a table of epoch, keys and answers, ordered by epoch and keys.

        What was dropped is in the table's metadata, as JSON under ``wane`` (:func:`dropped` reads it).

        Args:
            fns: What is asked, from :mod:`wane.fn`.
            now: The time of the question where there are no epochs: a time, or ``"latest"``: the newest of the input.
            bounds: Whether each answer is followed by a column that says how far from the truth it may be, relative to
                the group's decayed count, and whether it is exact: ``{"error": 0.0, "exact": True}``. Groups of few
                rows are.
        """
        return _answers(self.source, [self.plan(*fns)], now, self.before, self.how, bounds)[0]

    def explain(self, *fns: Fn, run: bool = False) -> str:
        """How the query is run, and why: the two levels, the strategy and the bytes of each state, by a sample of rows.

        Args:
            fns: What is asked.
            run: Whether to run it, and say what was measured. A reader can be read once only: then with ``run=True``
                the sample is left out.
        """
        plan = self.plan(*fns)
        once = isinstance(self.source, pa.RecordBatchReader)
        sample = None
        if once:
            schema = self.source.schema
        else:
            schema, batches = read(self.source, plan.columns)
            sample = next(iter(batches), None)
        check(plan, schema)
        report = None
        if run:
            (done,) = _run(self.source, [plan], self.before, self.how)
            done.answers()
            report = done.report
        return explain(plan, schema, self.how, self.before, sample, report)

    def states(self, *fns: Fn) -> pa.Table:
        """The states behind the answers, one row a group: to keep, merge and ask later (:mod:`wane.states`)."""
        plan = self.plan(*fns)
        (run,) = _run(self.source, [plan], self.before, self.how, partials=True)
        return states.table(plan, run.schema, run.states(), _report(run, self.source))


def group(
    source: Any,
    *keys: str,
    every: Any = None,
    slide: Any = None,
    time: str | None = None,
    where: str | Expr | None = None,
    before: str = "error",
    **how: Any,
) -> Grouped:
    """Group rows by epochs and keys, to ask something of every group.

    Args:
        source: An Arrow table, record batch or reader, a pandas or polars frame, anything else with an Arrow stream,
            a :class:`wane.sources.Source`, or a path, a glob or a list of paths of files that one reads (Parquet, pcap,
            CSV).
        keys: Columns to group by; null is a key of its own.
        every: Epochs: the time column and a length, such as ``("time", "1 minute")``, and perhaps an offset.
        slide: From the start of one epoch to that of the next, where they overlap, such as ``"10s"``.
        time: The time column, where there are no epochs.
        where: An expression; rows for which it is not 0 are kept, such as ``"len > 100"``.
        before: What happens to a row before a landmark: ``"error"``, ``"drop"`` (counted) or ``"clamp"``.
        how: How it is run, such as ``threads=2`` or ``budget=64 << 20``: see :class:`wane.grouped.How`.
    """
    for key in keys:
        if not isinstance(key, str):
            raise BadParameter(f"a key is a column's name, got {key!r}; write group(table, 'destIP')")
    return Grouped(_opened(source), keys, time, every, slide, where, _policy(before), _how(how))


def several(source: Any, *plans: Plan, now: Any = "latest", before: str = "error", **how: Any) -> list[pa.Table]:
    """Several queries over one source, which is read once; gives the answers of each.

    Queries that group alike share what they have in common: keys, weights, and whole states.

    Args:
        source: As :func:`group` takes it.
        plans: The queries, as :meth:`Grouped.plan` or :func:`wane.plan.build` gives them.
        now: The time of the question for those without epochs.
        before: What happens to a row before a landmark.
        how: How they are run, as for :func:`group`.

    >>> import pyarrow as pa
    >>> from wane import fn
    >>> table = pa.table({"t": [10, 20, 70], "user": ["a", "b", "a"]})
    >>> users, minutes = group(table, "user").plan(fn.count()), group(table, every=("t", "1m")).plan(fn.count())
    >>> [answers["count"].to_pylist() for answers in several(table, users, minutes)]
    [[2.0, 1.0], [2.0, 1.0]]
    """
    if not plans:
        raise BadParameter("there is nothing to run; give one or more plans")
    return _answers(_opened(source), plans, now, _policy(before), _how(how))


def _answers(
    source: Any, plans: Sequence[Plan], now: Any, before: str, how: How, bounds: bool = False
) -> list[pa.Table]:
    at = None if isinstance(now, str) and now == "latest" else instant(now, "now")
    if at is not None and all(plan.every is not None for plan in plans):
        raise BadParameter(f"by epochs, now is the end of each; leave now={now!r} away, or leave every= away")
    found: dict[int, pa.Table] = {}
    joined = together(plans)
    runs = _run(source, [one.plan for _, one in joined], before, how)
    for (places, one), done in zip(joined, runs, strict=True):
        answers = done.answers(None if one.plan.every is not None else at, bounds)
        carried = {"wane": json.dumps(_report(done, source))}
        for place, table in zip(places, one.split(answers), strict=True):
            found[place] = table.replace_schema_metadata(carried)
    return [found[place] for place in range(len(plans))]


def _report(run: Run, source: Any) -> dict[str, Any]:
    """What a run says of itself, with what its source could not read."""
    lost = dict(source.dropped) if isinstance(source, Source) else {}
    return {**run.report, "dropped": lost | dict(run.report["dropped"])}


def _run(source: Any, plans: Sequence[Plan], before: str, how: How, partials: bool = False) -> list[Run]:
    """All rows of the source through several plans."""
    columns = dict.fromkeys(name for plan in plans for name in plan.columns)
    schema, few = read(source, columns)
    batches = _gathered(few, list(columns))
    for plan in plans:
        check(plan, schema)
    runs = [Run(plan, schema, before, how, partials) for plan in plans]

    def feed(lane: int, batch: pa.RecordBatch) -> None:
        for one in runs:
            one.take(lane, batch)

    if how.threads == 1:
        for batch in batches:
            feed(0, batch)
            for one in runs:
                one.settle()
        return runs
    pieces = (batch.slice(at, _DEALT) for batch in batches for at in range(0, batch.num_rows, _DEALT))
    with ThreadPoolExecutor(how.threads) as threads:
        while dealt := list(itertools.islice(pieces, how.threads)):
            for done in [threads.submit(feed, lane, piece) for lane, piece in enumerate(dealt)]:
                done.result()
            for one in runs:
                one.settle()
    return runs


def _gathered(batches: Iterable[pa.RecordBatch], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Small batches put together, and of all only the columns that are read: a batch costs as much as 1000 rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        # Without columns, the number of rows would be lost.
        chosen = batch.select(columns) if columns and set(columns) <= set(batch.schema.names) else batch
        if held and (rows + batch.num_rows > BATCH or chosen.schema != held[0].schema):
            yield _joined(held)
            held, rows = [], 0
        held.append(chosen)
        rows += batch.num_rows
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _opened(source: Any) -> Any:
    """The source of paths; anything else is one by itself."""
    return open_source(source) if are_paths(source) else source


def _policy(before: str) -> str:
    if before not in POLICIES:
        raise BadParameter(f"before must be one of {', '.join(POLICIES)}, got {before!r}")
    return before


def _how(how: Mapping[str, Any]) -> How:
    known = [field.name for field in fields(How)]
    for name in how:
        if name not in known:
            raise BadParameter(f"there is no option {name!r}; the options are {', '.join(known)}")
    return How(**how)


def dropped(table: pa.Table) -> dict[str, int]:
    """How many rows an answer does not count, by reason."""
    report = json.loads((table.schema.metadata or {}).get(b"wane", b"{}"))
    found: dict[str, int] = report.get("dropped", {})
    return found


def shed(table: pa.Table) -> float | None:
    """The share of the groups that an answer holds, by the hash of their keys; None where it holds all."""
    found: float | None = json.loads((table.schema.metadata or {}).get(b"wane", b"{}")).get("shed")
    return found


def measured(table: pa.Table) -> dict[str, Any]:
    """What the run that gave an answer was like: rows, partials, ejections, peak bytes, seconds in each level."""
    found: dict[str, Any] = json.loads((table.schema.metadata or {}).get(b"wane", b"{}")).get("measured", {})
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
        source = _read_pandas(source, [name for name in columns if name in source.columns])
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


def _read_pandas(frame: Any, wanted: list[str]) -> pa.Table:
    if not wanted:  # without columns, the rows would not come along
        return pa.table({"": pa.nulls(len(frame))}).select([])
    try:
        table = pa.Table.from_pandas(frame[wanted], preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as why:
        raise BadInput(f"the pandas frame cannot be read: {why}; give its columns one type and a name each") from why
    for at, name in enumerate(wanted):
        if frame[name].dtype == object and meaning(table.schema.field(at).type):
            table = table.set_column(at, name, _times_of_objects(frame[name], table.schema.field(at).type))
    return table


def _times_of_objects(column: Any, kind: pa.DataType) -> pa.Array:
    """Times as Python objects: Arrow takes the type of the first, and would cut the others to it without a word."""
    if pa.types.is_date(kind) and not any(isinstance(time, dt.datetime) for time in column):
        return pa.array(column, kind, from_pandas=True)
    read = ticks(column, f"column {column.name!r}")
    tz, unit = (None, "us") if pa.types.is_date(kind) else (kind.tz, kind.unit)
    kind = pa.timestamp("ns" if read.unit == "ns" else unit, tz)
    return timecolumn.write(read.values, read.unit, kind, None if read.valid is None else ~read.valid)


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
