"""What is wrong with a query is said with line, column, the text around and a caret, and with what was meant."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest

from wane._jit import DISABLED
from wane.errors import GsqlError
from wane.gsql import Table, compile
from wane.sources.pcap import SCHEMA

TABLES = {"TCP": SCHEMA, "UDP": SCHEMA, "log": pa.schema([("time", pa.int64()), ("host", pa.string())])}
GROUP = " from TCP group by time/60 as tb"


@pytest.mark.parametrize(
    ("text", "marked", "says"),
    [
        ("select tb, cont(*)" + GROUP, "cont", "no function 'cont'; did you mean 'count'"),
        ("select tb, count(*) decay expp(rate=1)" + GROUP, "expp", "did you mean exp?"),
        ("select tb, count(*) decay exp(half_lif=1)" + GROUP, "half_lif", "did you mean half_life?"),
        ("select tb, count(*) decay exp(half_life=-5m)" + GROUP, "-5m", "half_life must be a positive duration"),
        ("select tb, sum(lenn)" + GROUP, "lenn", "no column 'lenn' in 'TCP'; did you mean 'len'"),
        ("select tb, count(*) from TPC group by time/60 as tb", "TPC", "no table 'TPC'; did you mean 'TCP'"),
        ("select len, count(*)" + GROUP, "len", "neither a group nor inside of an aggregate; the groups are tb"),
        ("select tb, heavy(srcIP)" + GROUP, "heavy", "heavy needs phi; write heavy(srcIP, 0.01)"),
        ("select tb, heavy(srcIP, 2)" + GROUP, "heavy", "phi must be a number"),
        ("select tb, top(srcIP, 1.5)" + GROUP, "1.5", "k is a whole number"),
        ("select tb, top(srcIP, 3, 4)" + GROUP, "4", "takes no further argument"),
        ("select tb, top(srcIP, 3, epsilom=0.1)" + GROUP, "0.1", "no parameter 'epsilom'; did you mean 'epsilon'"),
        ("select tb, sum(*)" + GROUP, "*", "asked of a column"),
        ("select tb, sum(3)" + GROUP, "3", "the same for all rows"),
        ("select tb, count(distinct srcIP)" + GROUP, "count", "write distinct(srcIP)"),
        ("select tb, max(top(srcIP, 3))" + GROUP, "top", "top is an aggregate, and rows are single here"),
        ("select tb, top(srcIP, 3) * 2" + GROUP, "top", "gives a list"),
        ("select tb from TCP where count(*) > 1 group by time/60 as tb", "count", "use having"),
        ("select tb as x, sum(len) as x" + GROUP, "sum", "two columns of the answer are called 'x'"),
        ("select tb from TCP group by time/60 as tb, len as tb", "len", "two groups are called 'tb'"),
        ("select tb from TCP group by time/60 as tb order by tb", "tb", "order by is not part of GSQL"),
        ("select a.len from TCP a join UDP b on a.len = b.len", "UDP", "join is not part of GSQL"),
        ("select distinct len from TCP", "len", "select distinct is not part of GSQL"),
        ("select * from TCP group by time/60 as tb", "*", "* of groups is nothing"),
        (
            "select tb, sum(host) from log group by time/60 as tb",
            "sum",
            "column 'host' is string, and sum is asked of numbers",
        ),
        ("select tb, sum(host*2) from log group by time/60 as tb", "host", "numbers are needed here"),
        ("select time from log where host = 5", "host", "numbers are needed here"),
        ("select time from TCP where srcIP = 'here'", "'here'", "no address of IPv4"),
        ("select time from TCP where time > 'soon'", "'soon'", "the time"),
        ("select time from TCP where len = 'x' + 1", "'x'", "a number belongs here"),
        ("select x.time from TCP", "x", "'x' is not the table of this query"),
        ("select tb, case when len > 1 then 1 end" + GROUP, "when", "cannot be read"),
        ("select 1", "select", "a query names its table"),
        ("select tb, foo(" + GROUP, "", "cannot be read"),
        ("update TCP set len = 1", "update", "begins with select"),
        ("create view TCP as select len from TCP", "create", "there is a table or view 'TCP' already"),
        ("select 'x", "", "cannot be read"),
        ("", "", "there is no query"),
        ("int UDAF char(36) f(int)", "", "there is no query"),
        ("nit UDAF char(36) f(int); select len from TCP", "nit", "no type 'nit'; did you mean 'int'"),
        ("int UDAF char(x) f(int); select len from TCP", "x", "whole number of bytes"),
        ("int UDAF char(1) f(int); int UDAF char(1) f(int); select len from TCP", "", "declared twice"),
        (
            "int UDAF char(36) [low, high] approx_median(int); select tb, approx_median(len)" + GROUP,
            "int",
            "not declared",
        ),
        ("int EXTR nothing approx_quantile p(int; int); select tb, p(len, 5)" + GROUP, "int", "there is no nothing of"),
        ("select tb, count(*) as c" + GROUP + " having d > 1", "d", "no column 'd'"),
        ("select len from TCP)", ")", "closes nothing"),
        ("select tb, PRISAMP(srcIP)" + GROUP, "PRISAMP", "needs a weight; write PRISAMP(srcIP, exp(time % 60))"),
        ("select tb, PRISAMP(srcIP, exp(time % 50))" + GROUP, "time", "since the epoch's start"),
        ("select tb, PRISAMP(srcIP, len)" + GROUP, "len", "a weight is exp(x), exp(0.1*x), x, x*x or pow(x, 3)"),
        ("select tb, PRISAMP(srcIP, exp(-1*(time % 60)))" + GROUP, "1", "exp is asked of"),
        ("select tb, PRISAMP(srcIP, 1), count(*) decay poly(2)" + GROUP, "count", "whole seconds"),
    ],
)
def test_the_place_and_what_was_meant(text, marked, says):
    with pytest.raises(GsqlError) as caught:
        compile(text, TABLES)
    message = str(caught.value)
    first, line, caret = message.splitlines()
    assert says in first, message
    assert first.startswith(f"line {caught.value.line}, column {caught.value.column}: ")
    assert set(caret) <= {" ", "^"}
    assert line[caret.index("^") :].startswith(marked), message


def test_lines_and_columns_count_from_one():
    with pytest.raises(GsqlError) as caught:
        compile("select tb,\n   cuont(*)\nfrom TCP group by time/60 as tb", TABLES)
    assert (caught.value.line, caught.value.column) == (2, 4)
    assert str(caught.value).splitlines()[1] == "     cuont(*)"


def test_only_the_part_around_the_place_of_a_long_line_is_shown():
    text = "select tb, " + "count(*) + " * 50 + "cuont(*) + " + "count(*) + " * 50 + "1" + GROUP
    with pytest.raises(GsqlError) as caught:
        compile(text, TABLES)
    _, line, caret = str(caught.value).splitlines()
    assert len(line) < 140
    assert line[caret.index("^") :].startswith("cuont")


def test_a_stream_needs_a_column_that_grows_with_time():
    stream = {"TCP": Table(SCHEMA, bounded=False)}
    for text in ("select destIP, count(*) from TCP group by destIP", "select count(*) from TCP"):
        compile(text, TABLES)
        with pytest.raises(GsqlError, match="nothing would ever close a group of the stream; group by one that does"):
            compile(text, stream)
    compile("select tb, count(*) from TCP group by time/60 as tb", stream)
    view = "create view v as select {} as tb, len from TCP; select tb, count(*) from v group by tb"
    compile(view.format("time"), stream)
    with pytest.raises(GsqlError, match="grows with time"):
        compile(view.format("time % 60"), stream)  # which does not


def test_what_is_too_long_or_too_deep_is_refused():
    for text in (
        "select " + "(" * 5000 + "len" + ")" * 5000 + " from TCP",
        "select len from TCP where " + "not " * 20_000 + "len",
        "select " + "-" * 3000 + "len from TCP",
        "select " + "- " * 3000 + "len from TCP",
        "select " + "+".join(["len"] * 20_000) + " from TCP",
        "select len from TCP where " + " and ".join(["len = 1"] * 5000),
        "x" * 200_000,
    ):
        with pytest.raises(GsqlError):
            compile(text, TABLES)


def test_no_text_is_ever_run():
    for text in (
        "select tb, count(*) decay __import__('os').system('false')" + GROUP,
        "select tb, sum(eval('1'))" + GROUP,
        "select `__class__` from TCP",
    ):
        with pytest.raises(GsqlError):
            compile(text, TABLES)


# --- Fuzz

SEEDS = (
    "select tb, PRISAMP(srcIP, exp(time % 60)), sample(len, 100) from TCP group by time/60 as tb",
    "select tb, destIP, destPort, count(*) from TCP group by time/60 as tb, destIP, destPort",
    "select tb, sum(len*(time % 60)*(time % 60))/3600 from TCP group by time/60 as tb",
    "select tb, top(srcIP, 10) decay poly(2) as hot, quantile(len, 0.99) q from UDP where destPort in (80, 443) "
    "group by (time + 5)/60 as tb having count(*) decay exp(half_life=10s) > 2",
    "int UDAF char(36) [low_approx_med, high_approx_med] approx_median(int) vstring UDAF char(2800) low_approx_med(int)"
    " int UDAF char(36) high_approx_med(vstring) select tb, approx_median(len) from UDP group by time/60 as tb",
    "int EXTR percentile_fcn approx_quantile percentile(int; int) select tb, percentile(len, 95) from UDP "
    "group by time/60 as tb",
    "create view m as select tb, srcIP, median(len) as m from TCP group by time/60 as tb, srcIP; "
    "select tb, heavy(m, 0.1) from m group by tb",
    "select time, host from log where host = 'a' and not (time between 5 and 6) or host is null",
)
VOCABULARY = """
    select from where group by as having decay since and or not in between is null with create view UDAF EXTR
    ( ) ( ) , ; * / % + - = < > . [ ] ' " ` : -- /* */ :: -> $ @ # \\ \0 é 😀
    count sum top heavy PRISAMP sample quantile median distinct exp poly window none
    tb time len srcIP host TCP UDP log int
    0 1 60 0.5 1e999 10s -1 99999999999999999999 case when end union join order limit over cast interval
"""
WORDS = VOCABULARY.split()


def mutated(rng: random.Random) -> str:
    text = rng.choice(SEEDS)
    kind = rng.randrange(5)
    if kind == 0:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 30)))
    if kind == 4:  # most of which are right
        text = re.sub(r"\b\d+\b", lambda _: str(rng.choice([0, 1, 2, 5, 60, 3600])), text)
        return re.sub(r"\b(len|srcIP|destPort)\b", lambda _: rng.choice(["len", "ttl", "srcIP", "time", "flags"]), text)
    pieces = text.split(" ")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(pieces))
        if kind == 1:
            pieces[at] = rng.choice(WORDS)
        elif kind == 2:
            pieces.insert(at, rng.choice(WORDS))
        else:
            del pieces[at]
            pieces = pieces or [""]
    text = " ".join(pieces)
    if rng.random() < 0.4:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice([*"()'\",;*/%=.", "", "\0", "é"]) + text[at + rng.randrange(2) :]
    return text


def fuzz(count: int, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    planned = refused = 0
    for _ in range(count):
        text = mutated(rng)
        try:
            compile(text, TABLES)
            planned += 1
        except GsqlError as why:
            refused += why.line >= 1 and why.column >= 1
    assert planned + refused == count
    return planned, refused


def test_any_text_gives_a_plan_or_a_gsql_error():
    count = 200 if DISABLED else 2000
    planned, refused = fuzz(count, 1)
    assert planned > count / 50
    assert refused > count / 2


@pytest.mark.slow
def test_a_hundred_thousand_texts_give_a_plan_or_a_gsql_error():
    planned, refused = fuzz(100_000, 2)
    assert planned > 2000
    assert refused > 50_000
