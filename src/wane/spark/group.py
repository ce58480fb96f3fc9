"""Groups of a DataFrame: the plan of a query as DataFrame operations, batch and streaming.

Batch: low level in `mapInArrow`, `repartition` by the groups, high level in `mapInArrow` over whole partitions.
Streaming by epoch: the same low level; then Spark's own watermark and window aggregation hold the partials until their
epoch is closed, and the high level completes it. Late partials are Spark's to judge, as it would have judged their
rows: a partial never crosses an epoch, and its event time is that of its newest row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- its name everywhere
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from wane.decay import Landmark, NoDecay, Pinned
from wane.errors import BadInput, BadParameter
from wane.expr import Call, Expr, Number
from wane.fn import Fn
from wane.grouped import timecolumn
from wane.grouped.engine import BUDGET
from wane.grouped.states import EPOCH, NEWEST
from wane.plan import Plan, build, check
from wane.spark import clocks, levels, session
from wane.spark.clocks import column
from wane.spark.expressions import kept
from wane.spark.native import Native
from wane.spark.scan import Scan
from wane.summaries.base import POLICIES
from wane.times import duration, instant


@dataclass(frozen=True)
class Grouped:
    """Rows with groups, waiting for what to ask; made by :func:`group`."""

    source: DataFrame | Scan
    keys: tuple[str, ...]
    time: str | None
    every: Any
    where: str | Expr | None
    before: str
    lateness: str | None
    budget: int

    def agg(self, *fns: Fn, now: Any = "latest") -> DataFrame:
        """Ask: a DataFrame of epoch, keys and answers, which computes nothing until it is used.

        Args:
            fns: What is asked, from :mod:`wane.fn`.
            now: The time of the question where there are no epochs: a time, or ``"latest"``: the newest of the input.
        """
        plan = build(fns, self.keys, time=self.time, every=self.every, where=self.where)
        at = None if isinstance(now, str) and now == "latest" else instant(now, "now")
        if at is not None and plan.every is not None:
            raise BadParameter(f"by epochs, now is the end of each; leave now={now!r} away, or leave every= away")
        if isinstance(self.source, Scan):
            check(plan, self.source.schema)
            session.check(self.source.spark)
            return self._scanned(plan, self.source, at)
        df = self.source
        missing = [name for name in plan.columns if name not in df.columns]
        if missing:
            raise BadInput(f"there is no column {missing[0]!r}; the columns are {', '.join(df.columns)}")
        # A batch without columns would not say how many rows it has.
        rows = df.select(*(column(name) for name in plan.columns), *([] if plan.columns else [F.lit(True)]))
        schema = to_arrow_schema(rows.schema, timezone="UTC")
        check(plan, schema)
        session.check(df.sparkSession)
        if plan.where is not None:
            rows, plan = rows.where(kept(plan.where, schema)), replace(plan, where=None)
        if df.isStreaming:
            return self._stream(plan, rows, schema)
        native = Native(plan, schema, self.before, at)
        if native.obstacle is None:
            return native.answers(rows)
        low = levels.low(plan, schema, self.before, self.budget)
        partials = levels.mapped(rows, low, levels.partial_schema(plan, schema))
        newest = None
        if plan.time is not None:
            newest = rows.agg(clocks.newest(plan.time, schema.field(plan.time).type).alias(levels.NOW))
        return self._completed(plan, partials, schema, at, newest)

    def _scanned(self, plan: Plan, scan: Scan, at: int | None) -> DataFrame:
        """The low level opens the files itself."""
        if scan.where is not None:
            both = scan.where if plan.where is None else Call("where", (scan.where, plan.where, Number(0)))
            plan = replace(plan, where=both)
            check(plan, scan.schema)

        exact = plan.time not in plan.keys  # keys travel through Spark

        def partials(plan: Plan) -> DataFrame:
            reader = scan.reader(plan.columns, plan.time, exact)
            low = levels.low(plan, reader.schema, self.before, self.budget, reader)
            return scan.tasks().mapInArrow(low, from_arrow_schema(levels.partial_schema(plan, reader.schema)))

        clock = replace(plan, keys=(), every=None, states=(), answers=())
        newest = partials(clock).agg(F.max(NEWEST).alias(levels.NOW)) if plan.time is not None else None
        return self._completed(plan, partials(plan), scan.reader(plan.columns, plan.time, exact).schema, at, newest)

    def _completed(
        self, plan: Plan, partials: DataFrame, schema: pa.Schema, at: int | None, newest: DataFrame | None
    ) -> DataFrame:
        """The high level over partials, a whole partition of groups at a time."""
        keyed = [*([EPOCH] if plan.every else []), *plan.keys]
        if at is None and newest is not None and _needs_now(plan):
            partials = partials.crossJoin(F.broadcast(newest))
        spread = partials.repartition(*(column(name) for name in keyed)) if keyed else partials.repartition(1)
        return levels.mapped(spread, levels.high(plan, schema, at), levels.answer_schema(plan, schema))

    def _stream(self, plan: Plan, rows: DataFrame, schema: pa.Schema) -> DataFrame:
        if plan.every is None or plan.time is None:
            raise BadParameter("a stream is asked by epochs; give every=(column, length)")
        if self.lateness is None:
            raise BadParameter(
                "a stream's epochs close when no row for them can come any more; say how late rows may be, with "
                "lateness='30s'"
            )
        if plan.every.length % 1000 or plan.every.offset % 1000:
            raise BadParameter(f"on Spark an epoch is a whole number of microseconds, got {plan.every}")
        delay = duration(self.lateness, "lateness")
        unit = timecolumn.unit_of(schema.field(plan.time).type)
        kinds = levels.partial_schema(plan, schema)
        stamp = pa.field(levels.EVENT_TIME, pa.timestamp("us", "UTC"))
        partials = levels.mapped(
            rows, levels.stamped(plan, schema, self.before, self.budget, unit), kinds.append(stamp)
        ).withWatermark(levels.EVENT_TIME, f"{delay // 1000} microseconds")
        step = plan.every.length // 1000
        # Spark wants an offset that is shorter than the window.
        length, offset = f"{step} microseconds", f"{plan.every.offset // 1000 % step} microseconds"
        together = F.struct(*(column(name) for name in kinds.names))
        closed = partials.groupBy(
            F.window(levels.EVENT_TIME, length, None, offset), *(column(name) for name in plan.keys)
        ).agg(F.collect_list(together).alias(levels.PARTIALS))
        answers = from_arrow_schema(levels.answer_schema(plan, schema))
        return closed.select(levels.PARTIALS).mapInArrow(levels.unpacked(plan, schema), answers)


def group(
    source: DataFrame | Scan,
    *keys: str,
    every: Any = None,
    time: str | None = None,
    where: str | Expr | None = None,
    before: str = "error",
    lateness: str | None = None,
    budget: int = BUDGET,
) -> Grouped:
    """Group rows by epochs and keys, to ask something of every group.

    Args:
        source: A DataFrame, batch or streaming, or files (:func:`wane.spark.scan`).
        keys: Columns to group by; null is a key of its own.
        every: Epochs: the time column and a length, such as ``("time", "1 minute")``, and perhaps an offset.
        time: The time column, where there are no epochs.
        where: An expression; rows for which it is not 0 are kept, such as ``"len > 100"``.
        before: What happens to a row before a landmark: ``"error"``, ``"drop"`` or ``"clamp"``. How many rows were
            dropped is not told on Spark yet; in one process it is (:func:`wane.local.dropped`).
        lateness: For a stream: how late a row may come, by the newest time seen, such as ``"30s"``.
        budget: About how many bytes of states a task keeps before it hands them on.
    """
    for key in keys:
        if not isinstance(key, str):
            raise BadParameter(f"a key is a column's name, got {key!r}; write group(df, 'destIP')")
    if before not in POLICIES:
        raise BadParameter(f"before must be one of {', '.join(POLICIES)}, got {before!r}")
    return Grouped(source, keys, time, every, where, before, lateness, budget)


def _needs_now(plan: Plan) -> bool:
    return plan.every is None and any(not isinstance(s.decay, (NoDecay, Landmark, Pinned)) for s in plan.states)
