"""Sums and extrema as plain columns: the answers of the engine, and no Python worker in the plan."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grouped_trace import ROWS, START, close, trace
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import wane.spark as ws
from wane import decay, fn, local
from wane.fn import Fn
from wane.plan import build
from wane.spark.native import Native
from wane.spark.weights import Age, weight

EVERY = ("time", "1 minute")
DECAYS = (
    "none",
    "exp(half_life=10s)",
    "exp(rate=0.3)",
    "poly(1)",
    "poly(2)",
    "poly(0.5)",
    "polynomial(1, 0, 2)",
    "landmark",
    "window(20s)",
    "backward poly(1.5)",
    "backward poly(2, unit=1m)",
    "superexp(half_life=20s)",
    "subpoly",
)
QUESTIONS = ("sum", "mean", "min", "max", "argmin", "argmax")


def asked(text: str, landmark: Any = None) -> list[Fn]:
    given = {"decay": text, "landmark": landmark}
    fns = [fn.count(**given).alias("rows"), fn.count("len", **given).alias("lens")]
    return [*fns, *(getattr(fn, question)("len", **given) for question in QUESTIONS)]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Values of either sign, missing, too large and not numbers; keys and times that are missing."""
    made = trace(1)
    random = np.random.default_rng(5)
    values = random.normal(0, 1, ROWS) * 10.0 ** random.integers(-3, 4, ROWS)
    values[random.random(ROWS) < 0.05] = np.nan
    values[:4] = [np.inf, -np.inf, 1e200, 0.0]
    times = pa.array(made.column("time").to_numpy(), pa.timestamp("us", "UTC"), mask=random.random(ROWS) < 0.02)
    made = made.set_column(0, "time", times).drop_columns(["len"])
    return made.append_column("len", pa.array(values, mask=random.random(ROWS) < 0.05))


@pytest.fixture(scope="module")
def rows(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table).cache()


def is_native(query: DataFrame, capsys: pytest.CaptureFixture[str]) -> bool:
    query.explain()
    return "ArrowEvalPython" not in (shown := capsys.readouterr().out) and "MapInArrow" not in shown


def require_alike(query: DataFrame, engine: pa.Table, *keys: str) -> None:
    mine, theirs = query.toArrow(), engine
    if keys:
        mine, theirs = (found.sort_by([(name, "ascending") for name in keys]) for found in (mine, theirs))
    one, two = mine.to_pylist(), theirs.to_pylist()
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert close(a, b), f"{a}\n{b}"


@pytest.mark.parametrize("text", DECAYS)
def test_epochs_answer_as_the_engine_does(
    rows: DataFrame, table: pa.Table, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ws.group(rows, "port", every=EVERY).agg(*asked(text))
    assert is_native(found, capsys)
    require_alike(found, local.group(table, "port", every=EVERY).agg(*asked(text)), "epoch", "port")


@pytest.mark.parametrize("text", ["poly(2)", "polynomial(1, 0, 2)", "landmark", "none"])
@pytest.mark.parametrize("now", ["latest", "2026-01-01 00:05:00.0000005"])
def test_a_landmark_of_its_own(
    rows: DataFrame, table: pa.Table, text: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    landmark = None if text == "none" else "2026-01-01"
    found = ws.group(rows, "port", time="time").agg(*asked(text, landmark), now=now)
    assert is_native(found, capsys)
    require_alike(found, local.group(table, "port", time="time").agg(*asked(text, landmark), now=now), "port")
    by_epoch = ws.group(rows, "port", every=EVERY).agg(*asked(text, landmark))
    require_alike(by_epoch, local.group(table, "port", every=EVERY).agg(*asked(text, landmark)), "epoch", "port")


@pytest.mark.parametrize("text", ["exp(half_life=10s)", "exp(half_life=100ms)", "exp(rate=50)"])
def test_exponential_sums_over_any_span(
    rows: DataFrame, table: pa.Table, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """180 s are 1800 half-lives of 100 ms: more than a double holds, in several stretches."""
    sums = [fn.count(decay=text), fn.sum("len", decay=text), fn.mean("len", decay=text), fn.mean("ip"), fn.max("len")]
    for keys in (("ip",), ()):
        for now in ("latest", "2026-01-01 00:03:01"):
            found = ws.group(rows, *keys, time="time").agg(*sums, now=now)
            assert is_native(found, capsys)
            require_alike(found, local.group(table, *keys, time="time").agg(*sums, now=now), *keys)


def test_a_mean_a_million_half_lives_ago(spark: SparkSession) -> None:
    times = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=s) for s in (0, 1, 10**6, 10**8)]
    table = pa.table({"time": times, "user": [1, 1, 1, 2], "v": [4.0, 10.0, None, 1.0]})
    fns = (fn.count("v", decay="exp(half_life=1s)"), fn.mean("v", decay="exp(half_life=1s)"))
    found = ws.group(spark.createDataFrame(table), "user", time="time").agg(*fns).toArrow().sort_by("user")
    assert found.to_pylist() == [
        {"user": 1, "count_v": 0.0, "mean_v": pytest.approx(8.0, rel=1e-12)},
        {"user": 2, "count_v": pytest.approx(1.0, rel=1e-12), "mean_v": 1.0},
    ]


def test_filters_expressions_and_times_of_every_type(
    rows: DataFrame, table: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    fns = (fn.sum(fn.expr("len * (time % 60) ** 2 / 3600")), fn.count(decay="poly(1)"))
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.int64(), pa.int32(), pa.date32()):
        whole = table.column("time").cast(pa.timestamp("s", "UTC"), safe=False)
        times = whole.cast(pa.int64()).cast(kind) if pa.types.is_integer(kind) else whole.cast(kind, safe=False)
        cast = table.set_column(0, "time", times)
        df = rows.sparkSession.createDataFrame(cast)
        if kind == pa.timestamp("us"):
            df = df.withColumn("time", df.time.cast("timestamp_ntz"))
        every = ("time", "1 day") if pa.types.is_date(kind) else EVERY
        found = ws.group(df, "port", every=every, where="len > 0").agg(*fns)
        assert is_native(found, capsys), kind
        wanted = local.group(cast, "port", every=every, where="len > 0").agg(*fns)
        assert found.toArrow().schema.field("epoch").type == kind
        require_alike(found, wanted, "epoch", "port")


def test_the_newest_time_is_of_the_rows_that_are_kept(rows: DataFrame, table: pa.Table) -> None:
    for sums in ((fn.count(decay="exp(half_life=10s)"),), (fn.var("len", decay="exp(half_life=10s)"), fn.count())):
        found = ws.group(rows, "port", time="time", where="ip == 3").agg(*sums)
        require_alike(found, local.group(table, "port", time="time", where="ip == 3").agg(*sums), "port")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"fns": [fn.var("len")], "every": EVERY}, "var is no plain sum"),
        ({"fns": [fn.count(decay="exp(half_life=1ms)")], "every": EVERY}, "pass what a double holds"),
        ({"fns": [fn.count(decay="poly(30)")], "every": EVERY}, "pass what a double holds"),
        ({"fns": [fn.max("len", decay="exp(half_life=1s)")], "time": "time"}, "compared by powers of two"),
        (
            {"fns": [fn.count(decay=decay.forward(lambda n: n + 1.0, name="n + 1"))], "every": EVERY},
            "function of Python",
        ),
    ],
)
def test_what_plain_columns_cannot_do_goes_to_the_engine(
    rows: DataFrame, table: pa.Table, given: dict[str, Any], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    fns = given.pop("fns")
    schema = to_arrow_schema(rows.schema, timezone="UTC")
    assert why in (Native(build(fns, ("port",), **given), schema).obstacle or "")
    found = ws.group(rows, "port", **given).agg(*fns)
    assert not is_native(found, capsys)
    require_alike(
        found, local.group(table, "port", **given).agg(*fns), *(["epoch"] if "every" in given else []), "port"
    )


def test_rows_before_a_landmark_and_questions_before_a_row(rows: DataFrame, table: pa.Table) -> None:
    late = fn.count(decay="poly(2)", landmark=START + 60)
    with pytest.raises(PySparkException, match="rows are before the landmark"):
        ws.group(rows, "port", every=EVERY).agg(late).collect()
    for every in ({"every": EVERY}, {"time": "time"}):
        keys = ["epoch", "port"] if "every" in every else ["port"]
        for before in ("drop", "clamp"):
            if before == "clamp" and "every" in every:
                continue  # refused by both
            found = ws.group(rows, "port", before=before, **every).agg(late)
            require_alike(found, local.group(table, "port", before=before, **every).agg(late), *keys)
    with pytest.raises(PySparkException, match="is before the newest row"):
        ws.group(rows, time="time").agg(fn.count(decay="poly(2)", landmark=START), now=START + 60).collect()
    pinned = fn.count(decay=decay.pinned("window(5m)", now=START + 60))
    with pytest.raises(PySparkException, match="newer than the fixed time"):
        ws.group(rows, time="time").agg(pinned).collect()


def test_nothing_has_answers(rows: DataFrame, table: pa.Table, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("none", "exp(half_life=10s)"):
        fns = [fn.count(decay=text), fn.mean("len", decay=text), fn.max("len"), fn.argmax("len")]
        found = ws.group(rows, time="time", where="len > 1e100").agg(*fns)
        assert is_native(found, capsys)
        require_alike(found, local.group(table, time="time", where="len > 1e100").agg(*fns))


@pytest.mark.parametrize("text", DECAYS)
def test_weights_are_those_of_the_decay(spark: SparkSession, text: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    made = decay.parse(text)
    micros = [1, 10**3, 10**6, 19_999_999, 20_000_000, 59 * 10**6, 60 * 10**6]
    ages = spark.createDataFrame([(i,) for i in micros], "age long")
    column = weight(made, Age(F.col("age"), 1000))
    assert column is not None
    found = [row[0] for row in ages.select(column).collect()]
    for age, one in zip(micros, found, strict=True):
        if isinstance(made, decay.Backward) and not isinstance(made, decay.NoDecay):
            wanted = made.weight(0, now=dt.timedelta(microseconds=age).total_seconds())
        else:
            mantissa, power = made.point(age / 1e6)  # type: ignore[attr-defined]
            wanted = np.ldexp(mantissa, power)
        assert one == pytest.approx(wanted, rel=1e-13), age


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("keys", [(), ("time",)])
def test_the_zone_of_the_session_changes_nothing(new_york: SparkSession, kind: pa.DataType, keys: tuple[str]) -> None:
    """On 8 March 2026 there is no half past two in New York."""
    texts = ["2026-03-08 02:30:05", "2026-03-08 03:30:05", "2026-11-01 01:30:00", "1969-12-31 23:59:30.000001"]
    times = [dt.datetime.fromisoformat(text) for text in [*texts, "0001-01-01", "9999-12-31 23:59:59.999999"]]
    table = pa.table({"time": pa.array(times, pa.timestamp("us")).cast(kind), "v": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    # Of Arrow, times without a zone would be taken for those of the session's.
    plain = (table.to_pylist(), "time timestamp_ntz, v double")
    df = new_york.createDataFrame(table) if kind.tz else new_york.createDataFrame(*plain)
    sums = [fn.count(decay="landmark"), fn.sum(fn.expr("v * (time % 60)")), fn.mean(fn.expr("time % 1000"))]
    for fns in (sums, [*sums, fn.var("v")]):
        found = ws.group(df, *keys, every=EVERY).agg(*fns).toArrow()
        wanted = local.group(table, *keys, every=EVERY).agg(*fns)
        order = [("epoch", "ascending")]
        for a, b in zip(found.sort_by(order).to_pylist(), wanted.sort_by(order).to_pylist(), strict=True):
            stamps = ("epoch", *keys)
            assert [a.pop(name).replace(tzinfo=None) for name in stamps] == [
                b.pop(name).replace(tzinfo=None) for name in stamps
            ]
            assert close(a, b), f"{a}\n{b}"


@pytest.fixture(scope="module")
def few(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    table = pa.table({"time": [0, 10, 20, 100], "v": [1.0, 2.0, 3.0, 4.0]})
    return spark.createDataFrame(table), table


@pytest.mark.parametrize("text", ["exp(half_life=10s)", "none", "window(5m) at 200s"])
@pytest.mark.parametrize("given", [{"every": EVERY}, {"time": "time"}])
def test_a_landmark_that_only_says_which_rows_count(
    few: tuple[DataFrame, pa.Table], text: str, given: dict[str, Any]
) -> None:
    df, table = few
    asked = fn.count(decay=text, landmark=15)
    with pytest.raises(PySparkException, match="rows are before the landmark"):
        ws.group(df, **given).agg(asked).collect()
    for before in ("drop", "clamp"):
        wanted = local.group(table, before=before, **given).agg(asked)
        require_alike(ws.group(df, before=before, **given).agg(asked), wanted, *wanted.schema.names[:-1])


@pytest.mark.parametrize("text", ["poly(0.5)", "poly(1)", "polynomial(1, 0, 2)", "landmark"])
def test_what_is_asked_before_its_landmark(few: tuple[DataFrame, pa.Table], text: str) -> None:
    df, table = few
    asked = [fn.count(decay=text, landmark=70), fn.max("v", decay=text, landmark=70)]
    found = ws.group(df, every=EVERY, before="drop").agg(*asked)
    require_alike(found, local.group(table, every=EVERY, before="drop").agg(*asked), "epoch")
    late = [fn.count(decay=text, landmark=700), fn.sum("v", decay=text, landmark=700)]
    found = ws.group(df, time="time", before="drop").agg(*late)
    require_alike(found, local.group(table, time="time", before="drop").agg(*late))
    with pytest.raises(PySparkException, match="now=200 is before the landmark"):
        ws.group(df, time="time", before="drop").agg(*late, now=200).collect()


def test_a_fixed_time_is_the_only_one(few: tuple[DataFrame, pa.Table]) -> None:
    pinned = fn.count(decay=decay.pinned("window(5m)", now=200))
    assert ws.group(few[0], time="time").agg(pinned, now=200).collect() == [(4.0,)]
    with pytest.raises(PySparkException, match="was fixed for 200"):
        ws.group(few[0], time="time").agg(pinned, now=300).collect()


def test_no_small_value_underflows_beside_a_small_weight(spark: SparkSession) -> None:
    table = pa.table({"time": [1, 59], "v": [1e-290, 0.0]})
    fns = [fn.argmax("v", decay="exp(half_life=150ms)"), fn.max("v", decay="exp(half_life=150ms)")]
    found = ws.group(spark.createDataFrame(table), every=EVERY).agg(*fns)
    require_alike(found, local.group(table, every=EVERY).agg(*fns), "epoch")
    assert found.first()[1].value == 1e-290  # type: ignore[index]


@pytest.mark.parametrize("text", ["exp(rate=1e-19)", "exp(rate=1e-13)", "exp(rate=1e-30)"])
def test_half_lives_of_ages(rows: DataFrame, table: pa.Table, text: str) -> None:
    sums = [fn.count(decay=text), fn.mean("len", decay=text)]
    require_alike(ws.group(rows, time="time").agg(*sums), local.group(table, time="time").agg(*sums))


def test_stretches_at_the_end_of_all_times(spark: SparkSession) -> None:
    """Ticks over 2**53 are no doubles, and their stretches must be told exactly."""
    kind = pa.timestamp("us", "UTC")
    for text in ("exp(half_life=1s)", "exp(half_life=7ms)"):
        sums = [fn.count(decay=text), fn.mean("v", decay=text)]
        schema = pa.schema([("time", kind), ("v", pa.float64())])
        stretch = Native(build(sums, time="time"), schema)._stretch
        late = 250_000_000_000_000_000 // stretch * stretch
        stamps = pa.array([late - stretch, late - 1, late, late + 1], pa.int64()).cast(kind)
        table = pa.table({"time": stamps, "v": [1.0, 2.0, 3.0, 4.0]})
        found = ws.group(spark.createDataFrame(table), time="time").agg(*sums)
        require_alike(found, local.group(table, time="time").agg(*sums))


def test_a_time_that_is_not_a_number_is_not_the_newest(spark: SparkSession) -> None:
    table = pa.table({"time": [1.5, np.nan, 20.0, None, np.inf], "v": [1.0, 2.0, 3.0, 4.0, 5.0]})
    sums = [fn.count(decay="exp(half_life=10s)")]
    found = ws.group(spark.createDataFrame(table), time="time").agg(*sums)
    require_alike(found, local.group(table, time="time").agg(*sums))


def test_columns_of_any_name(spark: SparkSession) -> None:
    table = pa.table({"a time": [1, 2, 3], "a.b": ["x", "y", "x"], "c`d": [1.0, 2.0, 4.0], "e f": [1, 1, 1]})
    plain = [fn.sum("c`d", decay="poly(1)").alias("g.h"), fn.max(fn.expr("`c``d` * `e f`")).alias("i`j")]
    for fns in (plain, [*plain, fn.var("c`d").alias("k.l"), fn.top("c`d", 2)]):
        found = ws.group(spark.createDataFrame(table), "a.b", "e f", every=("a time", "1m"), where="`c``d` > 0")
        wanted = local.group(table, "a.b", "e f", every=("a time", "1m"), where="`c``d` > 0").agg(*fns)
        assert found.agg(*fns).columns == wanted.schema.names
        require_alike(found.agg(*fns), wanted, "a.b")
