"""States are kept, merged, rolled up and asked later, with the answers that all rows together would have given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grouped_trace import HEAVY, SIMPLE, check_heavy, close, trace

from wane import fn, local, states
from wane.errors import BadParameter, CorruptState, MergeRefused

EVERY = ("time", "1 minute")
EXP = "exp(half_life=10s)"
ROLLED = (
    fn.count(decay=EXP),
    fn.var("len"),
    fn.max("len", decay="poly(2)", landmark="2026-01-01"),
    fn.top("ip", 3, epsilon=0.02, decay=EXP).alias("ips"),
)


def require_alike(mine: pa.Table, theirs: pa.Table) -> None:
    assert mine.schema.remove_metadata() == theirs.schema.remove_metadata()
    assert len(mine) == len(theirs)
    for a, b in zip(mine.to_pylist(), theirs.to_pylist(), strict=True):
        assert close(a, b), (a, b)


def parts(table: pa.Table, seed: int) -> list[pa.Table]:
    hands = np.random.default_rng(seed).integers(0, 3, len(table))
    return [table.filter(pa.array(hands == hand)) for hand in range(3)]


def test_states_of_parts_answer_as_the_whole(tmp_path: Path) -> None:
    table = trace(11)
    kept = []
    for i, part in enumerate(parts(table, 12)):
        pq.write_table(local.group(part, "port", every=EVERY).states(*SIMPLE, *HEAVY), tmp_path / f"{i}.parquet")
        kept.append(pq.read_table(tmp_path / f"{i}.parquet"))
    found = states.merge(*kept).answer()
    require_alike(found.select(found.schema.names[:-3]), local.group(table, "port", every=EVERY).agg(*SIMPLE))
    check_heavy(table, found)
    again = states.merge(states.merge(*kept[:2]).states(), kept[2])
    require_alike(again.answer().select(found.schema.names[:-3]), found.select(found.schema.names[:-3]))


def test_minutes_roll_up_where_the_decay_allows_it() -> None:
    table = trace(13)
    minutes = local.group(table, "port", every=EVERY).states(*ROLLED)
    found = states.merge(minutes).over("3m")
    wanted = local.group(table, "port", every=("time", "3m")).agg(*ROLLED)
    names = [name for name in wanted.schema.names if name != "ips"]
    require_alike(found.answer().select(names), wanted.select(names))
    assert len(found.states()) == len(wanted)
    # By hand, since the two need not agree but within the guarantee.
    hits = {row["port"]: row["ips"] for row in found.answer().to_pylist()}
    best = {row["port"]: row["ips"][0]["item"] for row in wanted.to_pylist()}
    assert all(hits[port][0]["item"] == item for port, item in best.items())


def test_epochs_that_rows_are_weighed_in_are_not_joined() -> None:
    minutes = local.group(trace(14), every=EVERY).states(fn.count(decay="poly(2)"))
    with pytest.raises(MergeRefused, match="by their place in an epoch every 1m"):
        states.merge(minutes).over("1h")
    plain = states.merge(local.group(trace(14), every=EVERY).states(fn.count()))
    with pytest.raises(BadParameter, match="epochs of 1m do not fill epochs every 90s"):
        plain.over("90s")
    with pytest.raises(BadParameter, match="do not fill epochs every 1h offset 30s"):
        plain.over("1h", "30s")
    with pytest.raises(BadParameter, match="have no epochs"):
        states.merge(local.group(trace(14)).states(fn.count())).over("1h")


def test_offsets_roll_up_to_the_epoch_that_holds_them() -> None:
    table = trace(15)
    minutes = local.group(table, every=("time", "1m", "30s")).states(fn.count())
    found = states.merge(minutes).over("3m", "90s").answer()
    require_alike(found, local.group(table, every=("time", "3m", "90s")).agg(fn.count()))


def test_now_may_come_later() -> None:
    table = trace(16)
    kept = local.group(table, "port", time="time").states(fn.count(decay=EXP))
    late = "2026-01-01 01:00"
    require_alike(
        states.merge(kept).answer(late), local.group(table, "port", time="time").agg(fn.count(decay=EXP), now=late)
    )


def test_what_is_no_table_of_states_is_refused() -> None:
    kept = local.group(trace(17), "port").states(fn.count(), fn.top("ip", 2))
    with pytest.raises(MergeRefused, match="different queries"):
        states.merge(kept, local.group(trace(17), "port").states(fn.count()))
    with pytest.raises(CorruptState, match="carries no plan"):
        states.merge(kept.replace_schema_metadata())
    with pytest.raises(CorruptState, match="its plan says"):
        states.merge(kept.drop_columns(["rows"]))
    with pytest.raises(BadParameter, match="nothing to merge"):
        states.merge()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 99}, "version 99"),
        ({"states": [{"summary": "nothing"}]}, "is no plan of wane's"),
        ({"every": [0, 0]}, "where a whole number must be"),
        ({"every": [True, 0]}, "where a whole number must be"),
        ({"answers": [["a", 7, "count", {}]]}, "is no plan of wane's"),
        ({"answers": [["a", 0, "__init__", {}]]}, "does not answer '__init__'"),
        ({"answers": [["a", 0, "top", {"k": -1}]]}, "is no plan of wane's"),
        ({"keys": [1]}, "where a text must be"),
        ({"where": "len >"}, "is no plan of wane's"),
    ],
)
def test_a_forged_plan_is_refused(change: dict[str, Any], words: str) -> None:
    kept = local.group(trace(18), "port", every=EVERY).states(fn.count())
    carried = json.loads(kept.schema.metadata[b"wane"])
    carried["plan"] = json.dumps({**json.loads(carried["plan"]), **change})
    with pytest.raises(CorruptState, match=words):
        states.merge(kept.replace_schema_metadata({b"wane": json.dumps(carried)}))


def test_what_was_dropped_stays_counted() -> None:
    rows = [pa.table({"t": [1, None], "v": [None, 2.0]}), pa.table({"t": [99, None, 101], "v": [1.0, 2.0, 3.0]})]
    asked = fn.sum("v", decay="poly(2)", landmark=100)
    kept = [local.group(some, every=("t", "1m"), before="drop").states(asked) for some in rows]
    merged = states.merge(*kept)
    for found in (merged.answer(), states.merge(merged.over("2m").states()).answer()):
        assert local.dropped(found) == {"time": 2, "value of v": 1, "before_landmark": 2}
        assert json.loads(found.schema.metadata[b"wane"])["rows"] == 5


@pytest.mark.parametrize("change", [{"rows": -1}, {"rows": "many"}, {"dropped": [1]}, {"dropped": {"time": True}}])
def test_a_forged_report_is_refused(change: dict[str, Any]) -> None:
    kept = local.group(trace(18), "port").states(fn.count())
    carried = {**json.loads(kept.schema.metadata[b"wane"]), **change}
    with pytest.raises(CorruptState, match="no counts"):
        states.merge(kept.replace_schema_metadata({b"wane": json.dumps(carried)}))


def test_forged_counters_are_refused() -> None:
    kept = local.group(trace(19), "port").states(fn.top("ip", 2, epsilon=0.5))
    at = kept.schema.get_field_index("s0_weights")
    longer = pa.array([[1.0] * 9] * len(kept), kept.schema.field(at).type)
    with pytest.raises(CorruptState, match="differ in length"):
        states.merge(kept.set_column(at, kept.schema.field(at), longer)).answer()
    forged = kept
    for name, value in (("s0_items", 1), ("s0_weights", 1.0), ("s0_errors", 0.0)):
        at = kept.schema.get_field_index(name)
        lists = pa.array([[value] * 9] * len(kept), kept.schema.field(at).type)
        forged = forged.set_column(at, kept.schema.field(at), lists)
    with pytest.raises(CorruptState, match="at most 2 of them fit"):
        states.merge(forged).answer()
