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

import glob
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from wane import states
from wane.errors import BadInput, BadParameter
from wane.expr import Expr
from wane.fn import Fn
from wane.grouped import How, Run
from wane.plan import Plan, build, check, explain, together
from wane.summaries.base import POLICIES
from wane.times import instant

BATCH = 1 << 18
"""Rows of a batch, where the source does not say."""

_FORMS = {"csv": "CSV", "parquet": "Parquet"}

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
        return states.table(plan, run.schema, run.states(), run.report)


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
            or a path, a glob or a list of paths of Parquet or CSV files.
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
    return Grouped(source, keys, time, every, slide, where, _policy(before), _how(how))


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
    return _answers(source, plans, now, _policy(before), _how(how))


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
        carried = {"wane": json.dumps(done.report)}
        for place, table in zip(places, one.split(answers), strict=True):
            found[place] = table.replace_schema_metadata(carried)
    return [found[place] for place in range(len(plans))]


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
    if isinstance(source, (str, os.PathLike)) or (isinstance(source, (list, tuple)) and source and _are_paths(source)):
        return _read_files(source, list(columns))
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
            "frame, or the path of Parquet or CSV files"
        )
    return source.schema, iter(source.to_batches(max_chunksize=BATCH))


def _read_files(source: Any, columns: list[str]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow.dataset as ds

    paths = [os.fspath(source)] if isinstance(source, (str, os.PathLike)) else [os.fspath(path) for path in source]
    found = [match for path in paths for match in (sorted(glob.glob(path)) if glob.has_magic(path) else [path])]
    missing = [path for path in found if not os.path.exists(path)]
    if missing or not found:
        raise BadInput(f"there is no file {(missing or paths)[0]!r}; give the path or glob of Parquet or CSV files")
    kinds = {_form(path) for path in found}
    if len(kinds) > 1:
        raise BadInput(
            f"the files {found[0]!r} and so on are of several kinds, {', '.join(sorted(kinds))}; read one kind"
        )
    (form,) = kinds
    try:
        data = ds.dataset(found[0] if len(found) == 1 else found, format=form)
        for fragment in data.get_fragments():  # a file without a column would read as nulls
            lacking = [
                name for name in columns if name in data.schema.names and name not in fragment.physical_schema.names
            ]
            if lacking:
                raise BadInput(f"{fragment.path!r} has no column {lacking[0]!r}, and other files have; leave it out")
    except (pa.ArrowException, OSError) as why:
        raise BadInput(f"{found[0]!r} or a file beside it cannot be read as {_FORMS[form]}: {why}") from why
    wanted = [name for name in columns if name in data.schema.names]
    return data.schema, _batches(data.to_batches(columns=wanted, batch_size=BATCH))


def _form(path: str) -> str:
    """The kind of a file, by its name; of a folder, by the first file in it."""
    if os.path.isdir(path):
        inside = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
        path = inside[0] if inside else path
    return "csv" if path.lower().endswith((".csv", ".csv.gz")) else "parquet"


def _batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of files; what is wrong with one is told when it is reached."""
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as why:
            raise BadInput(f"a file cannot be read: {why}") from why
        yield batch


def _are_paths(source: Iterable[Any]) -> bool:
    return all(isinstance(item, (str, os.PathLike)) for item in source)
