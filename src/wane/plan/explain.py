"""How a plan is run, and why, as text: levels, the strategy of each state, what a sample and a run have shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from wane.grouped import How, LowLevel
from wane.grouped.cache import STRATEGIES
from wane.grouped.hops import by_panes
from wane.grouped.query import Plan
from wane.times import show_duration

SAMPLE = 1 << 16
"""Rows of a sample."""


class Sample(NamedTuple):
    """What some rows have shown.

    Attributes:
        rows: How many there were.
        groups: The groups they are in.
        largest: The share of the rows that is in the largest group.
        state_bytes: The bytes that each state takes a group, on average.
        strategies: How each state is kept.
    """

    rows: int
    groups: int
    largest: float
    state_bytes: list[float]
    strategies: list[str]


def sampled(plan: Plan, schema: pa.Schema, before: str, rows: pa.RecordBatch) -> Sample:
    """Run some rows through a low level, and look at it."""
    low = LowLevel(plan, schema, before, budget=None)
    list(low.update(rows.slice(0, SAMPLE)))
    states = low.kept
    counts = states.counts
    size = max(states.size, 1)
    return Sample(
        min(rows.num_rows, SAMPLE),
        states.size,
        float(counts.max(initial=0)) / max(int(counts.sum()), 1),
        [pool.nbytes / size for pool in states.pools],
        [pool.strategy for pool in states.pools],
    )


def explain(
    plan: Plan,
    schema: pa.Schema,
    how: How,
    before: str = "error",
    rows: pa.RecordBatch | None = None,
    report: Mapping[str, Any] | None = None,
) -> str:
    """How a plan is run.

    Args:
        plan: The query.
        schema: The columns of its source.
        how: How it is asked to be run.
        before: The policy for rows before a landmark.
        rows: Some rows, from which sizes and cardinalities are estimated.
        report: What a run was like (:attr:`wane.grouped.Run.report`).
    """
    sample = sampled(plan, schema, before, rows if rows is not None else pa.RecordBatch.from_pylist([], schema))
    return "\n".join([str(plan), *_levels(plan, how, sample), *_states(plan, sample), *_run(report)])


def _levels(plan: Plan, how: How, sample: Sample) -> Iterator[str]:
    yield f"levels: {how.levels}, since {how.why}" + (f"; {how.threads} threads" if how.threads > 1 else "")
    if sample.rows:
        yield (
            f"sample: {sample.rows:,} rows, {sample.groups:,} groups, {sample.rows / max(sample.groups, 1):.1f} each, "
            f"{sample.largest:.1%} of them in the largest"
        )
    yield f"low level: {_low(how, sample)}; flush {how.flush}"
    panes = by_panes(plan)
    if panes is not plan and panes.every is not None and plan.every is not None:
        yield f"panes of {show_duration(panes.every.length)}, {plan.every.hops} to an epoch: no weight depends on it"
    elif plan.every is not None and plan.every.hops > 1:
        yield f"each row goes into its {plan.every.hops} epochs by itself: weights depend on the epoch"
    if how.shed is not None:
        yield f"shed: {how.shed:.1%} of the groups are kept, by a hash of their keys"
    high = "none: the low level answers" if how.levels == 1 else "merges the partials of each group, exact while small"
    yield f"high level: {high}"


def _low(how: How, sample: Sample) -> str:
    """The strategy of the low level, and why."""
    if how.cache is not None:
        return f"a cache of {how.slots:,} groups, {how.cache} ({STRATEGIES[how.cache].title}), as asked for"
    if how.budget is None:
        return "all groups are kept, since no budget is set"
    bytes_a_group = sum(sample.state_bytes) + 48
    fit = int(0.75 * how.budget / how.threads / bytes_a_group)
    room = f"a budget of {how.budget / 2**20:.4g} MB holds about {fit:,} of {bytes_a_group:,.0f} bytes"
    if sample.groups <= fit / 2:
        return f"all groups are kept, and handed out when the budget is used up: {room}"
    if sample.rows < 1.25 * sample.groups:
        return f"groups are kept on trial, else rows go up as they are: {room}, and rows hardly share groups"
    return f"all groups are kept, and handed out whenever the budget is used up: {room}, and rows share groups"


def _states(plan: Plan, sample: Sample) -> Iterator[str]:
    for i, state in enumerate(plan.states):
        wanted = ", ".join(answer.name for answer in plan.answers if answer.state == i)
        size = f"; {sample.state_bytes[i]:,.0f} bytes a group" if sample.groups else ""
        yield f"state {i} for {wanted}: {state.summary}: {sample.strategies[i]}{size}"


def _run(report: Mapping[str, Any] | None) -> Iterator[str]:
    if report is None:
        return
    run = report["measured"]
    partials = run["partials"]
    ratio = f"{run['rows'] / partials:.2f} rows each" if partials else "nothing was handed out"
    yield (
        f"measured: {run['rows']:,} rows in, {partials:,} partials out ({ratio}), {run['ejections']:,} ejections, "
        f"{run['flushes']:,} flushes, {run['passes']:,} times without reducing, at most {run['peak bytes']:,} bytes"
    )
    yield f"time: low level {run['low seconds']:.3f} s, high level {run['high seconds']:.3f} s"
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in report["dropped"].items() if count)
    yield f"dropped: {dropped or 'nothing'}"
