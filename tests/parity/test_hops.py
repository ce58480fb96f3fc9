"""Epochs that overlap against the same epochs asked for one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from grouped_trace import EXP, ROWS, SIMPLE, START, close, trace

from wane import fn, local, plan, states
from wane.errors import BadParameter, CorruptState
from wane.grouped import HighLevel, LowLevel
from wane.grouped.hops import by_panes

PANED = (
    fn.count(decay=EXP),
    fn.var("len"),
    fn.argmax("len", decay="poly(2)", landmark="2025-12-31"),
    fn.top("ip", 50, epsilon=0.01),
    fn.quantiles("len", [0.0, 0.5, 1.0]),
)


def one_by_one(table: pa.Table, fns: Any, length: int, slide: int, offset: int) -> dict[Any, Any]:
    """Each epoch by a query of its own, which tumbles, over its own rows."""
    found = {}
    for start in range(START - 600 + (offset - START) % slide, START + 600, slide):
        seconds = pc.cast(table["time"], pa.int64())
        inside = pc.and_(pc.greater_equal(seconds, start * 10**6), pc.less(seconds, (start + length) * 10**6))
        rows = table.filter(inside)
        if len(rows):
            for row in local.group(rows, "port", every=("time", length, start)).agg(*fns).to_pylist():
                found[row["epoch"], row["port"]] = row
    return found


@pytest.mark.parametrize(("length", "slide", "offset"), [(60, 20, 0), (60, 60, 7), (50, 10, 3)])
@pytest.mark.parametrize("fns", [SIMPLE, PANED], ids=["each", "panes"])
@pytest.mark.parametrize("how", [{}, {"threads": 2}, {"budget": 50_000}, {"cache": "second chance", "slots": 5}])
def test_every_epoch_has_its_answers(fns: Any, length: int, slide: int, offset: int, how: dict[str, Any]) -> None:
    table = trace(30, ROWS // 4)
    query = local.group(table, "port", every=("time", length, offset), slide=f"{slide}s", **how)
    assert (by_panes(query.plan(*fns)) != query.plan(*fns)) == (fns is PANED and length != slide)
    wanted = one_by_one(table, fns, length, slide, offset)
    rows = query.agg(*fns).to_pylist()
    assert len(rows) == len(wanted)
    for row in rows:
        assert close(row, wanted[row["epoch"], row["port"]]), (row, wanted[row["epoch"], row["port"]])


def test_partials_of_panes_go_up_in_any_order() -> None:
    table = trace(31)
    made = plan.build((fn.count(decay=EXP), fn.sum("len")), ("port",), every=("time", 60), slide=20)
    low = LowLevel(made, table.schema, budget=1)
    partials = [p for batch in table.to_batches(max_chunksize=500) for p in low.update(batch)]
    found = []
    for order in (partials, partials[::-1]):
        high = HighLevel(made, table.schema)
        for one in order:
            high.update(one)
        found.append(high.answers())
    assert found[0].equals(found[1])
    assert sum(found[0].column("count").to_pylist()) > 0


def test_states_of_epochs_that_overlap_are_kept_and_not_joined() -> None:
    table = trace(32)
    query = local.group(table, "port", every=("time", 60), slide=20)
    kept = query.states(fn.count(), fn.mean("len"))
    found = states.merge(kept).answer()
    assert all(map(close, found.to_pylist(), query.agg(fn.count(), fn.mean("len")).to_pylist()))
    with pytest.raises(BadParameter, match="every 1m slide 20s overlap"):
        states.merge(kept).over("2m")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": ("time", 60), "slide": 7}, "an epoch is a whole number of slides, got every 1m slide 7s"),
        ({"every": ("time", 60), "slide": 120}, "whole number of slides"),
        ({"every": ("time", 60), "slide": 0}, "whole number of slides"),
        ({"time": "time", "slide": 5}, "add every="),
    ],
)
def test_slides_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        local.group(trace(33, 10), **options).agg(fn.count())


def test_plans_are_text_and_back() -> None:
    for options in ({"every": ("time", "1m", "5s"), "slide": "20s"}, {"every": ("time", 60)}, {"time": "time"}):
        made = plan.build((*PANED, fn.sum(fn.expr("len * 2"), decay=EXP)), ("port", "host"), where="len > 3", **options)
        again = plan.Plan.from_json(made.to_json())
        assert again == made
        assert hash(again) == hash(made)
        assert str(again) == str(made)
    with pytest.raises(CorruptState, match="no whole number of slides"):
        plan.Plan.from_json(made.to_json().replace('"every": null', '"every": [60, 0, 7]'))
