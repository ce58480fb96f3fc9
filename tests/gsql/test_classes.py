"""Declared aggregates that are Python classes of a user's own, at both levels."""

from __future__ import annotations

import struct
from collections import defaultdict

import pyarrow as pa
import pytest
import udafs

from wane import local
from wane.errors import BadInput, GsqlError
from wane.gsql import Table, compile
from wane.sources import Traffic

SPLIT = """
int UDAF char(36) [low_approx_med, high_approx_med]
    approx_median(int)
vstring UDAF char(2800) low_approx_med(int)
int UDAF char(36) high_approx_med(vstring)
"""
BINDINGS = {"low_approx_med": udafs.LowMedian, "high_approx_med": udafs.HighMedian}
EXTRACTED = """
int UDAF char(36) approx_quantile(int)
int EXTR percentile_fcn approx_quantile percentile(int; int)
select tb, percentile(len, 50) as a, percentile(len, 99) as b, percentile(ttl, 50) as t from T group by time/60 as tb
"""
ASKED = "select tb, srcIP, approx_median(len) as m from T where len > 50 group by time/60 as tb, srcIP having m < 1450"


@pytest.fixture(scope="module")
def traffic() -> pa.Table:
    return Traffic(rows=4000, rate=30, sources=10).table()


def groups(table: pa.Table) -> dict[tuple[int, int], list[int]]:
    found = defaultdict(list)
    for row in table.to_pylist():
        if row["len"] > 50:
            found[int(row["time"].timestamp()) // 60, row["srcIP"]].append(row["len"])
    return found


@pytest.mark.parametrize("size", [2800, 36, 8])
def test_both_levels_together_are_exact_whatever_the_scratchpad(traffic, size):
    answer = local.gsql(SPLIT.replace("2800", str(size)) + ASKED, {"T": traffic}, bindings=BINDINGS)
    expected = {key: sorted(values)[(len(values) - 1) // 2] for key, values in groups(traffic).items()}
    found = {(row["tb"], row["srcIP"]): row["m"] for row in answer.to_pylist()}
    assert found == {key: median for key, median in expected.items() if median < 1450}
    assert answer.schema.field("m").type == pa.int64()


def test_the_scratchpad_is_a_real_limit_at_the_low_level(traffic):
    bindings = {**BINDINGS, "low_approx_med": udafs.Careless}
    with pytest.raises(struct.error, match="buffer"):
        local.gsql(SPLIT.replace("2800", "100") + ASKED, {"T": traffic}, bindings=bindings)


def test_low_level_memory_is_bounded(traffic, monkeypatch):
    from wane.gsql import classes

    monkeypatch.setattr(classes, "BUDGET", 4000)
    answer = local.gsql(SPLIT + ASKED, {"T": traffic}, bindings=BINDINGS)
    monkeypatch.undo()
    assert answer.equals(local.gsql(SPLIT + ASKED, {"T": traffic}, bindings=BINDINGS))


def test_an_aggregate_that_is_not_split_runs_at_the_high_level():
    table = pa.table({"time": [0, 1, 2, 61], "len": [5, None, 7, 1]})
    declared = "int UDAF char(36) mid(int); int EXTR pick mid p(int; int);"
    text = declared + "select tb, p(len, 0) as m from T group by time/60 as tb"
    answer = local.gsql(text, {"T": table}, bindings={"mid": udafs.Sorted, "pick": udafs.percentile})
    assert answer["m"].to_pylist() == [5, 1]


def test_two_extractors_of_one_aggregate_compute_it_once(traffic):
    table = traffic.append_column("ttl", traffic["destPort"])
    bindings = {"approx_quantile": udafs.Sorted, "percentile_fcn": udafs.percentile}
    (query,) = compile(EXTRACTED, {"T": table.schema}, bindings).queries
    assert len(query.scratch.calls) == 2
    udafs.Sorted.made = 0
    answer = local.gsql(EXTRACTED, {"T": table}, bindings=bindings)
    assert udafs.Sorted.made == 2 * answer.num_rows
    by_minute = defaultdict(list)
    for row in traffic.to_pylist():
        by_minute[int(row["time"].timestamp()) // 60].append(row["len"])
    for row in answer.to_pylist():
        lengths = sorted(by_minute[row["tb"]])
        assert (row["a"], row["b"]) == (udafs.percentile(lengths, 50), udafs.percentile(lengths, 99))


def test_without_epochs_and_over_views(traffic):
    text = SPLIT + "select approx_median(len) as m from T"
    lengths = sorted(traffic["len"].to_pylist())
    answer = local.gsql(text, {"T": traffic}, bindings=BINDINGS)
    assert answer["m"].to_pylist() == [lengths[(len(lengths) - 1) // 2]]
    view = "create view s as select t, sum(len) as n from T group by time as t; "
    answer = local.gsql(
        SPLIT + view + "select tb, approx_median(n) as m from s group by t/60 as tb",
        {"T": traffic},
        bindings={**BINDINGS, "low_approx_med": Floats},
    )
    assert answer.num_rows == 3


class Floats(udafs.LowMedian):
    """Takes doubles for integers."""

    def iterate(self, pad: memoryview, value: float) -> None:
        super().iterate(pad, int(value))


class Texts(udafs.LowMedian):
    """Gives something else than bytes."""

    def output(self, pad: memoryview) -> str:
        return "state"


class Idle:
    """Does nothing at all."""


@pytest.mark.parametrize(
    ("text", "bindings", "says"),
    [
        (SPLIT + ASKED, {"low_approx_med": udafs.LowMedian}, "'high_approx_med' is bound to no class"),
        (SPLIT + ASKED, {**BINDINGS, "low_approx_med": Idle}, "has no method 'initialize'"),
        (SPLIT + ASKED, {**BINDINGS, "low_approx_med": udafs.HighMedian}, "has no method 'flushme'"),
        (SPLIT + ASKED.replace("(len)", "(len, 5)"), BINDINGS, "takes 1 arguments, as declared, got 2"),
        (SPLIT + ASKED.replace("(len)", "(len) decay poly(2)"), BINDINGS, "weighs rows itself"),
        (SPLIT + ASKED.replace("as m", "as m, count(*)"), BINDINGS, "do not share a query"),
        (EXTRACTED, {"approx_quantile": udafs.Sorted}, "'percentile_fcn' is bound to no function"),
    ],
)
def test_what_is_wrong_is_said(text, bindings, says):
    schema = Traffic(rows=1).table().schema.append(pa.field("ttl", pa.int16()))
    with pytest.raises(GsqlError, match=says):
        compile(text, {"T": Table(schema)}, bindings)


def test_a_low_level_gives_bytes(traffic):
    with pytest.raises(BadInput, match=r"Texts.output gave a str"):
        local.gsql(SPLIT + ASKED, {"T": traffic}, bindings={**BINDINGS, "low_approx_med": Texts})
