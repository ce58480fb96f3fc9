"""The papers' queries, word for word, over a capture: against answers counted row by row."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wane import local
from wane._jit import DISABLED
from wane.errors import BadParameter, GsqlError
from wane.sources import Traffic, write

COUNT = """
select tb, destIP, destPort, count(*)
from TCP
group by time/60 as tb, destIP, destPort
"""
SUM = """
select tb, destIP, destPort,
sum(len*(time % 60)*(time % 60))/3600 from TCP
group by time/60 as tb, destIP, destPort
"""
MEDIAN = """
SELECT tb, sourceIP, median(length) FROM UDP
GROUP BY time/60 as tb, sourceIP
"""
DECLARED = """
int UDAF char(36) approx_median(int)
"""
SPLIT = """
int UDAF char(36) [low_approx_med, high_approx_med]
    approx_median(int)
vstring UDAF char(2800) low_approx_med(int)
int UDAF char(36) high_approx_med(vstring)
"""
EXTRACTOR = """
int EXTR percentile_fcn approx_quantile percentile(int; int)
"""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gsql") / "traffic.pcap"
    count = 2_000 if DISABLED else 20_000
    traffic = Traffic(rows=count, rate=count / 180, sources=30, destinations=40, late=0.1, repeated=0.01)
    write(path, traffic.batches())
    return path


@pytest.fixture(scope="module")
def packets(capture: Path) -> dict[str, Rows]:
    """The rows of each table, with whole seconds; plain Python from here on."""
    from wane.sources import Pcap

    found = {}
    for name in ("TCP", "UDP", "IP"):
        table = pa.Table.from_batches(Pcap(capture, name).batches())
        rows = table.set_column(0, "ns", table["time"].cast(pa.int64())).to_pylist()
        found[name] = [{**row, "time": row["ns"] // 10**9} for row in rows]
    return found


def grouped(rows: Rows, key: Callable[[dict[str, Any]], Any]) -> dict[Any, Rows]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def by_minute_and_server(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["time"] // 60, row["destIP"], row["destPort"]


def ask(text: str, capture: Path, **options: Any) -> pa.Table:
    return local.gsql(text, dict.fromkeys(("TCP", "UDP", "IP"), str(capture)), **options)


def rank_is_near(values: list[int], phi: float, found: float, epsilon: float = 0.01) -> bool:
    """Whether a value's ranks come within epsilon n of the one asked for."""
    below = sum(value < found for value in values)
    through = sum(value <= found for value in values)
    slack = epsilon * len(values) + 1
    return below - slack <= phi * len(values) <= through + slack


def test_counts_of_servers(capture, packets):
    table = ask(COUNT, capture)
    assert table.schema.names == ["tb", "destIP", "destPort", "count"]
    assert table.schema.field("tb").type == pa.int64()
    expected = {key: len(rows) for key, rows in grouped(packets["TCP"], by_minute_and_server).items()}
    found = {(row["tb"], row["destIP"], row["destPort"]): row["count"] for row in table.to_pylist()}
    assert found == expected
    assert len(found) == table.num_rows


def test_decayed_sums_spelled_out(capture, packets):
    table = ask(SUM, capture)
    found = {tuple(row.values())[:3]: row["sum"] for row in table.to_pylist()}
    groups = grouped(packets["TCP"], by_minute_and_server)
    assert found.keys() == groups.keys()
    for key, rows in groups.items():
        exact = sum(row["len"] * (row["time"] % 60) ** 2 for row in rows)
        assert found[key] == pytest.approx(exact / 3600, rel=1e-12)


def test_the_decay_of_the_sugar_is_that_of_the_sum_spelled_out(capture, packets):
    text = SUM.replace("sum(len*(time % 60)*(time % 60))/3600", "sum(len) decay poly(2)")
    table = ask(text, capture)
    groups = grouped(packets["TCP"], by_minute_and_server)
    for row in table.to_pylist():
        rows = groups[tuple(row.values())[:3]]
        exact = math.fsum(one["len"] * (one["ns"] % (60 * 10**9) / 6e10) ** 2 for one in rows)
        assert row["sum_len"] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("before", "name"),
    [("", "median"), (DECLARED, "approx_median"), (SPLIT, "approx_median"), (DECLARED + ";", "approx_median")],
)
def test_medians_of_sources(capture, packets, before, name):
    table = ask(before + MEDIAN.replace("median", name), capture)
    assert table.schema.names == ["tb", "sourceIP", f"{name}_len"]
    groups = grouped(packets["UDP"], lambda row: (row["time"] // 60, row["srcIP"]))
    assert {tuple(row.values())[:2] for row in table.to_pylist()} == groups.keys()
    for tb, source, found in (row.values() for row in table.to_pylist()):
        assert rank_is_near([row["len"] for row in groups[tb, source]], 0.5, found)


def test_two_extractors_of_one_aggregate_compute_it_once(capture, packets):
    from wane.gsql import compile
    from wane.sources.pcap import SCHEMA

    text = (
        EXTRACTOR + "select tb, percentile(len, 95) as p95, percentile(len, 99) as p99 from IP group by time/60 as tb"
    )
    (query,) = compile(text, {"IP": SCHEMA}).queries
    assert len(query.plan.states) == 1
    groups = grouped(packets["IP"], lambda row: row["time"] // 60)
    table = ask(text, capture)
    assert table.num_rows == len(groups)
    for row in table.to_pylist():
        lengths = [one["len"] for one in groups[row["tb"]]]
        assert rank_is_near(lengths, 0.95, row["p95"])
        assert rank_is_near(lengths, 0.99, row["p99"])


def test_declared_and_extractor_need_no_semicolons(capture):
    text = SPLIT + EXTRACTOR + DECLARED.replace("approx_median", "other") + MEDIAN.replace("median", "other")
    with pytest.raises(GsqlError, match="'other' is declared, and bound to nothing"):
        ask(text, capture)
    assert ask(text, capture, bindings={"other": "mean"}).schema.names[-1] == "other_len"


def test_sugar(capture, packets):
    text = """
        select tb, count(*) decay exp(half_life=10s) as hits, top(srcIP, 3) decay poly(2) as hot,
               quantile(len, 0.9) as q, heavy(srcIP, 0.05) as heavy, distinct(srcIP) as sources
        from IP group by time/60 as tb
    """
    groups = grouped(packets["IP"], lambda row: row["time"] // 60)
    table = ask(text, capture)
    assert [row["tb"] for row in table.to_pylist()] == sorted(groups)
    for row in table.to_pylist():
        rows, end = groups[row["tb"]], (row["tb"] + 1) * 60
        exact = math.fsum(2.0 ** -((end * 10**9 - one["ns"]) / 1e10) for one in rows)
        assert row["hits"] == pytest.approx(exact, rel=1e-9)
        assert row["sources"] == len({one["srcIP"] for one in rows})  # few enough to be exact
        assert rank_is_near([one["len"] for one in rows], 0.9, row["q"])
        weights = defaultdict(float)
        for one in rows:
            weights[one["srcIP"]] += ((one["ns"] - row["tb"] * 60 * 10**9) / 6e10) ** 2
        best = sorted(weights, key=lambda address: -weights[address])[:3]
        assert [hit["item"] for hit in row["hot"]] == best
        counts = {address: len(hits) for address, hits in grouped(rows, lambda one: one["srcIP"]).items()}
        assert {hit["item"] for hit in row["heavy"]} == {
            address for address, hits in counts.items() if hits >= 0.05 * len(rows)
        }


def test_where_and_having(capture, packets):
    text = """
        select tb, destPort, sum(len) as bytes, avg(len), count(*) from IP
        where (destPort in (443, 80) and not len between 100 and 1000) or srcIP = '172.16.0.1' or protocol <> 6
        group by time/60 as tb, destPort having count(*) > 5 and bytes / count(*) < 700 and tb > 0
    """
    rows = [
        row
        for row in packets["IP"]
        if (row["destPort"] in (443, 80) and not 100 <= row["len"] <= 1000) or row["protocol"] != 6
    ]
    expected = {}
    for key, group in grouped(rows, lambda row: (row["time"] // 60, row["destPort"])).items():
        total = sum(row["len"] for row in group)
        if len(group) > 5 and total / len(group) < 700:
            expected[key] = (total, len(group))
    found = {(row["tb"], row["destPort"]): (row["bytes"], row["count"]) for row in ask(text, capture).to_pylist()}
    assert found == expected
    assert expected


def test_integer_division_and_other_groups(capture, packets):
    text = "select h, net, t, count(*) from IP group by (time + 30)/60/2 as h, srcIP/256*256 as net, time % 7 as t"
    expected = grouped(
        packets["IP"], lambda row: ((row["time"] + 30) // 60 // 2, row["srcIP"] // 256 * 256, row["time"] % 7)
    )
    table = ask(text, capture)
    assert {tuple(row.values())[:3]: row["count"] for row in table.to_pylist()} == {
        key: len(rows) for key, rows in expected.items()
    }
    assert table.schema.types[:3] == [pa.int64()] * 3


def test_one_query_over_another(capture, packets):
    """Heavy hitters among median lengths."""
    inner = "select tb, srcIP, median(len) as m, count(*) as c from UDP group by time/60 as tb, srcIP"
    forms = [
        f"create view medians as {inner}; select tb, heavy(m, 0.2) as h, sum(c) as n from medians group by tb",
        f"with medians as ({inner}) select tb, heavy(m, 0.2) as h, sum(c) as n from medians group by tb",
        f"select tb, heavy(m, 0.2) as h, sum(c) as n from ({inner}) as medians group by tb",
    ]
    medians = grouped(ask(inner, capture).to_pylist(), lambda row: row["tb"])
    for form in forms:
        table = ask(form, capture)
        assert {row["tb"] for row in table.to_pylist()} == medians.keys()
        for row in table.to_pylist():
            rows = medians[row["tb"]]
            counts = {m: len(group) for m, group in grouped(rows, lambda one: one["m"]).items()}
            assert {hit["item"] for hit in row["h"]} == {m for m, c in counts.items() if c >= 0.2 * len(rows)}
            assert row["n"] == sum(one["c"] for one in rows)
    assert sum(row["n"] for row in table.to_pylist()) == len(packets["UDP"])


def test_epochs_of_a_view_are_epochs(capture, packets):
    inner = "create view seconds as select t, count(*) as c from IP group by time as t;"
    table = ask(inner + "select tb, sum(c) decay poly(1) as s from seconds group by t/60 as tb", capture)
    groups = grouped(packets["IP"], lambda row: row["time"] // 60)
    for row in table.to_pylist():
        exact = math.fsum(one["time"] % 60 / 60 for one in groups[row["tb"]])
        assert row["s"] == pytest.approx(exact, rel=1e-9)


def test_rows_may_be_chosen_without_groups(capture, packets):
    text = "select time, srcIP as who, len*8 as bits, ttl from TCP where len > 1400 and flags is not null"
    table = ask(text, capture)
    rows = [row for row in packets["TCP"] if row["len"] > 1400]
    assert table.schema.names == ["time", "who", "bits", "ttl"]
    assert table["who"].to_pylist() == [row["srcIP"] for row in rows]
    assert table["bits"].to_pylist() == [row["len"] * 8 for row in rows]
    assert ask("select * from TCP where destPort < 0", capture).num_rows == 0


def test_several_queries_in_one_file(capture):
    tables = {"TCP": str(capture), "UDP": str(capture)}
    answers = local.gsql_all(COUNT + ";" + MEDIAN + "; -- the end", tables)
    assert [table.schema.names for table in answers] == [
        ["tb", "destIP", "destPort", "count"],
        ["tb", "sourceIP", "median_len"],
    ]
    with pytest.raises(BadParameter, match="has 2 queries"):
        local.gsql(COUNT + ";" + MEDIAN, tables)


def test_without_epochs_a_table_that_ends_is_asked_at_its_end(capture, packets):
    table = ask("select count(*) decay exp(half_life=10s) as hits, count(*) as n from IP", capture)
    newest = max(row["ns"] for row in packets["IP"])
    exact = math.fsum(2.0 ** -((newest - row["ns"]) / 1e10) for row in packets["IP"])
    assert table["hits"][0].as_py() == pytest.approx(exact, rel=1e-9)
    assert table["n"][0].as_py() == len(packets["IP"])
    later = ask("select count(*) decay exp(half_life=10s) as hits from IP", capture, now="2026-01-05T01:00:00Z")
    assert later["hits"][0].as_py() < 1e-50
    since = ask("select count(*) decay landmark since '2026-01-05T00:01:00Z' as hits from IP", capture, before="drop")
    assert since["hits"][0].as_py() == sum(row["ns"] >= 1_767_571_260 * 10**9 for row in packets["IP"])
    assert local.dropped(since)["before_landmark"] > 0


def test_the_last_nanosecond_of_a_minute_belongs_to_it():
    end = 1_767_225_660 * 10**9
    table = pa.table({"time": pa.array([end - 1, end], pa.timestamp("ns", "UTC")), "len": [1, 1]})
    asked = "select tb, sum(time % 60) as s, sum(len) as n from T group by time/60 as tb"
    assert [tuple(row.values())[1:] for row in local.gsql(asked, {"T": table}).to_pylist()] == [(59, 1), (0, 1)]


def test_texts_nulls_and_division_by_zero():
    table = pa.table(
        {
            "time": [0, 1, 2, 3, 61],
            "host": ["a", "b", None, "a", "c"],
            "kind": pa.array(["x", "y", "x", None, "x"]).dictionary_encode(),
            "v": [1.0, None, 3.0, 4.0, 5.0],
            "ok": [True, False, True, True, None],
        }
    )

    def count(where: str) -> float:
        found = local.gsql(f"select count(*) as n from T where {where}", {"T": table}).to_pylist()
        return found[0]["n"]

    assert count("host = 'a'") == 2
    assert count("host <> 'a'") == 2  # null is neither
    assert count("not host = 'a'") == 2
    assert count("host in ('a', 'c') and kind = 'x'") == 2
    assert count("'b' <= host") == 2
    assert count("v is null") == 1
    assert count("v is not null and ok") == 3
    assert count("not (v > 3)") == 2
    assert count("v <> 3") == 3
    assert count("v <> 3 or v is null") == 4
    answer = local.gsql("select tb, sum(v)/(count(*) - 1) as r from T group by time/60 as tb", {"T": table})
    assert answer["r"].to_pylist() == [pytest.approx(8 / 3), None]
    assert local.gsql("select time from T where host = 'a'", {"T": table})["time"].to_pylist() == [0, 3]


def test_sources_of_any_kind_are_tables(tmp_path):
    import pandas as pd
    import pyarrow.parquet as pq

    rows = pa.table({"time": [0, 61], "v": [1, 2]})
    pq.write_table(rows, tmp_path / "x.parquet")
    sources = [rows, rows.to_pandas(), rows.to_reader(), tmp_path / "x.parquet", str(tmp_path / "*.parquet")]
    assert isinstance(sources[1], pd.DataFrame)
    for source in sources:
        text = "select tb, sum(v) from T group by time/60 as tb; select count(*) from T"
        one, two = local.gsql_all(text, {"T": source})
        assert one["sum_v"].to_pylist() == [1.0, 2.0]
        assert two["count"].to_pylist() == [2.0]


# --- Samples

PRISAMP = """
select tb, PRISAMP(srcIP, exp(time % 60))
from TCP
group by time/60 as tb
"""


def test_a_priority_sample_of_every_minute(capture, packets):
    table = ask(PRISAMP, capture)
    assert table.schema.names == ["tb", "prisamp_srcIP"]
    groups = grouped(packets["TCP"], lambda row: row["time"] // 60)
    for row in table.to_pylist():
        rows = groups[row["tb"]]
        assert len(row["prisamp_srcIP"]) == min(100, len(rows))
        weights = {one["srcIP"]: set() for one in rows}
        for one in rows:
            weights[one["srcIP"]].add(round(one["time"] % 60))
        for draw in row["prisamp_srcIP"]:  # of whole seconds, as spelled out
            age = 60 + math.log(draw["weight"])
            assert age == pytest.approx(round(age), abs=1e-6)
            assert round(age) in weights[draw["item"]]


@pytest.mark.parametrize("streams", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("weight", ["exp((time % 60)/20)", "(time % 60)*(time % 60)", "1"])
def test_priority_samples_have_their_distribution(weight, streams):
    """Estimates of subset sums have no bias: their mean over seeds is near the exact weight, by its own variance."""
    seconds = list(range(1, 60))
    table = pa.table({"time": seconds, "item": [second % 3 for second in seconds]})
    g = {
        "exp((time % 60)/20)": lambda x: math.exp((x - 60) / 20),
        "(time % 60)*(time % 60)": lambda x: (x / 60) ** 2,
        "1": lambda _: 1.0,
    }[weight]
    weights = [g(second) for second in seconds]
    part = math.fsum(w for w, second in zip(weights, seconds, strict=True) if second % 3 == 0)
    estimates = []
    for seed in range(streams):
        text = f"select tb, PRISAMP(item, {weight}, 15, seed={seed}) as s from T group by time/60 as tb"
        (row,) = local.gsql(text, {"T": table}).to_pylist()
        assert len(row["s"]) == 15
        estimates.append(sum(draw["stands_for"] for draw in row["s"] if draw["item"] == 0))
    spread = math.sqrt(math.fsum(weights) * part / 14 / streams)  # the bound of the estimate's variance
    assert abs(sum(estimates) / streams - part) < 5 * spread


def test_samples_by_decay(capture, packets):
    table = ask("select tb, sample(srcIP, 20) decay exp(half_life=10s) as s from TCP group by time/60 as tb", capture)
    assert all(len(row["s"]) == 20 for row in table.to_pylist())
