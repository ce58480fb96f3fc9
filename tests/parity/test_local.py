"""The grouped engine against exact arithmetic in fractions, which shares no code with it."""

import datetime as dt
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wane import Moments, decay, fn, local
from wane.errors import BadInput, BadParameter, BadTime, BeforeLandmark, QueryInPast, Unsupported, WaneError
from wane.times import instant, ticks

SECOND = 10**9
EXACT = {
    "none": lambda *_: Fraction(1),
    "poly(2)": lambda age, length: Fraction(age) ** 2 / Fraction(length) ** 2,
    "polynomial(1, 0, 2)": lambda age, length: (1 + 2 * Fraction(age) ** 2) / (1 + 2 * Fraction(length) ** 2),
    "landmark": lambda age, _: Fraction(age > 0),
    "exp(half_life=10s)": lambda age, length: Fraction(2.0 ** (float(age - length) / 10)),
    "window(20s)": lambda age, length: Fraction(length - age < 20),
    "backward poly(1)": lambda age, length: 1 / (1 + Fraction(length - age)),
}
"""The weight of an item `age` seconds after the start of an epoch of `length` seconds, asked at its end."""


def trace(rows, seed=0, groups=7):
    rng = np.random.default_rng(seed)
    times = 1_763_500_000 * SECOND + rng.integers(0, 300 * SECOND, rows)
    return pa.table(
        {
            "time": pa.array(times).cast(pa.timestamp("ns", "UTC")),
            "key": pa.array(rng.integers(0, groups, rows)).cast(pa.string()),
            "value": pa.array(np.where(rng.random(rows) < 0.1, np.nan, rng.normal(3, 5, rows)), from_pandas=True),
        }
    )


def exact(table, weigh, length):
    """Every answer for every (epoch, key), in fractions."""
    found = {}
    times = table["time"].cast(pa.int64()).to_pylist()
    for t, key, value in zip(times, table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        epoch, into = divmod(t, length * SECOND)
        weight = weigh(Fraction(into, SECOND), length)
        group = found.setdefault((epoch * length * SECOND, key), {"rows": [], "count": Fraction(0)})
        group["count"] += weight
        if value is not None:
            group["rows"].append((weight, Fraction(value), t))
    for group in found.values():
        rows = group["rows"]
        total = sum(w for w, _, _ in rows)
        group["sum"] = sum(w * v for w, v, _ in rows)
        group["scale"] = sum(w * abs(v) for w, v, _ in rows)
        group["mean"] = group["sum"] / total if total else None
        group["var"] = sum(w * (v - group["mean"]) ** 2 for w, v, _ in rows) / total if total else None
        group["max"] = max((w * v for w, v, _ in rows), default=None)
        group["min"] = min((w * v for w, v, _ in rows), default=None)
    return found


def asked(name):
    return [
        fn.count(decay=name),
        fn.sum("value", decay=name).alias("sum"),
        fn.mean("value", decay=name).alias("mean"),
        fn.var("value", decay=name).alias("var"),
        fn.std("value", decay=name).alias("std"),
        fn.max("value", decay=name).alias("max"),
        fn.min("value", decay=name).alias("min"),
        fn.argmax("value", decay=name).alias("argmax"),
    ]


def close(ours, true, scale):
    return abs(Fraction(ours) - true) <= Fraction(1e-12) * scale


@pytest.mark.parametrize("name", EXACT)
def test_answers_by_epoch_equal_exact_arithmetic(name):
    table = trace(3000)
    oracle = exact(table, EXACT[name], 60)
    answers = local.group(table, "key", every=("time", "1 minute")).agg(*asked(name)).to_pylist()
    assert len(answers) == len(oracle)
    for row in answers:
        true = oracle[row["epoch"].value if hasattr(row["epoch"], "value") else _ns(row["epoch"]), row["key"]]
        assert close(row["count"], true["count"], true["count"])
        assert close(row["sum"], true["sum"], true["scale"])
        if true["mean"] is None:
            assert math.isnan(row["mean"])
            continue
        assert close(row["max"], true["max"], true["scale"])
        assert close(row["min"], true["min"], true["scale"])
        total = sum(w for w, _, _ in true["rows"])
        assert close(row["mean"], true["mean"], true["scale"] / total)
        assert close(row["var"], true["var"], true["var"] + abs(true["mean"]) ** 2)
        assert row["std"] == pytest.approx(math.sqrt(row["var"]))
        best = [v for w, v, _ in true["rows"] if w * v == true["max"]]
        assert true["max"] == 0 or Fraction(row["argmax"]["value"]) in best


def _ns(moment):
    return int(np.datetime64(moment.replace(tzinfo=None), "ns").astype(np.int64))


@pytest.mark.parametrize("name", EXACT)
def test_answers_do_not_depend_on_batches_or_order(name):
    table = trace(2000, seed=1)
    plain = local.group(table, "key", every=("time", "1 minute")).agg(*asked(name))
    shuffled = table.take(np.random.default_rng(2).permutation(len(table)))
    for size in (1, 97, 2000):
        reader = pa.RecordBatchReader.from_batches(table.schema, shuffled.to_batches(max_chunksize=size))
        again = local.group(reader, "key", every=("time", "1 minute")).agg(*asked(name))
        assert again.select(["epoch", "key"]) == plain.select(["epoch", "key"])
        for column in ("max", "min", "argmax"):
            assert again[column] == plain[column], column
        for column in ("count", "sum", "mean", "var", "std"):
            np.testing.assert_allclose(again[column].to_numpy(), plain[column].to_numpy(), rtol=1e-11, atol=1e-11)


def test_the_query_of_the_paper_gives_its_figure():
    # Section IV.A: sum(len * (time % 60)^2) / 3600 by minute
    table = pa.table({"time": [60, 65, 119, 120, 150], "len": [10, 20, 30, 40, 50]})
    ours = local.group(table, every=("time", 60)).agg(fn.sum("len", decay="poly(2)").alias("s")).to_pylist()
    spelled = [
        sum(n * (t % 60) ** 2 for t, n in rows) / 3600
        for rows in ([(60, 10), (65, 20), (119, 30)], [(120, 40), (150, 50)])
    ]
    assert [row["s"] for row in ours] == pytest.approx(spelled, rel=1e-14)
    assert [row["epoch"] for row in ours] == [60, 120]


def test_a_group_that_is_old_keeps_its_ratios():
    # One group stops a million half-lives before the other: its count is 0.0, its mean and variance are not.
    times = [0, 1, 2, 1_000_000]
    table = pa.table({"t": times, "k": ["old", "old", "old", "new"], "v": [1.0, 2.0, 4.0, 7.0]})
    name = "exp(half_life=1s)"
    fns = [fn.count(decay=name), fn.mean("v", decay=name).alias("mean"), fn.var("v", decay=name).alias("var")]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        new, old = local.group(table.take(order), "k", time="t").agg(*fns).to_pylist()
        assert (new["count"], new["mean"], new["var"]) == (1.0, 7.0, 0.0)
        assert old["count"] == 0.0
        weights = np.array([0.25, 0.5, 1.0])
        mean = (weights * [1, 2, 4]).sum() / weights.sum()
        assert old["mean"] == pytest.approx(mean, rel=1e-14)
        assert old["var"] == pytest.approx(
            (weights * (np.array([1, 2, 4]) - mean) ** 2).sum() / weights.sum(), rel=1e-13
        )


def test_an_old_product_that_underflows_does_not_beat_a_negative_one():
    table = pa.table({"t": [0, 1_000_000], "k": ["a", "a"], "v": [5.0, -1.0]})
    row = (
        local.group(table, "k", time="t")
        .agg(
            fn.max("v", decay="exp(half_life=1s)").alias("max"),
            fn.argmax("v", decay="exp(half_life=1s)").alias("argmax"),
            fn.min("v", decay="exp(half_life=1s)").alias("min"),
        )
        .to_pylist()[0]
    )
    assert row["argmax"] == {"value": 5.0, "time": 0}
    assert (row["max"], row["min"]) == (0.0, -1.0)
    both = pa.table({"t": [0, 1_000_000], "k": ["a", "a"], "v": [-5.0, -1.0]})
    row = local.group(both, "k", time="t").agg(fn.argmax("v", decay="exp(half_life=1s)").alias("argmax")).to_pylist()[0]
    assert row["argmax"] == {"value": -5.0, "time": 0}  # nearly 0, so the larger


def test_every_source_gives_the_same_answers(tmp_path):
    table = trace(1000)
    pq.write_table(table.slice(0, 400), tmp_path / "a.parquet")
    pq.write_table(table.slice(400), tmp_path / "b.parquet")
    fns = [fn.count(decay="poly(2)"), fn.mean("value", decay="poly(2)")]

    def run(source):
        return local.group(source, "key", every=("time", "1 minute")).agg(*fns)

    plain = run(table)
    sources = [
        table.combine_chunks().to_batches()[0],
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100)),
        table.to_pandas(),
        pl.from_arrow(table),
        str(tmp_path / "*.parquet"),
        [tmp_path / "a.parquet", tmp_path / "b.parquet"],
        tmp_path,
    ]
    for source in sources:
        again = run(source)
        assert again["count"].to_numpy() == pytest.approx(plain["count"].to_numpy(), rel=1e-12)
        assert again["mean_value"].to_numpy() == pytest.approx(plain["mean_value"].to_numpy(), rel=1e-12)
        assert again["key"].to_pylist() == plain["key"].to_pylist()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("us", "Asia/Tokyo"), pa.int64(), pa.float64(), pa.date32()]
)
def test_the_epoch_has_the_time_columns_own_type(kind):
    def column(days):
        seconds = pa.array([day * 86_400 for day in days])
        return seconds.cast(kind) if kind in (pa.int64(), pa.float64()) else seconds.cast(pa.timestamp("s")).cast(kind)

    answer = local.group(pa.table({"t": column([0, 1, 2, 3, 4])}), every=("t", "2d")).agg(fn.count())
    assert answer["epoch"].combine_chunks() == column([0, 2, 4])
    assert answer["count"].to_pylist() == [2.0, 2.0, 1.0]


def test_epochs_have_an_offset_and_reach_before_1970():
    table = pa.table({"t": [-61, -1, 0, 29, 30]})
    answer = local.group(table, every=("t", "1m", "30s")).agg(fn.count())
    assert answer.to_pylist() == [
        {"epoch": -90, "count": 1.0},
        {"epoch": -30, "count": 3.0},
        {"epoch": 30, "count": 1.0},
    ]


def test_rows_that_cannot_be_counted_are_counted_as_dropped():
    table = pa.table(
        {"t": pa.array([1, None, 3, 4], pa.int64()), "v": pa.array([1.0, 2.0, None, float("nan")]), "u": [1, 2, 3, 4]}
    )
    answer = local.group(table, time="t").agg(fn.count(), fn.sum("v"), fn.sum("u"))
    assert answer.to_pylist() == [{"count": 3.0, "sum_v": 1.0, "sum_u": 8.0}]
    assert local.dropped(answer) == {"time": 1, "value of v": 2}


def test_the_policy_for_rows_before_a_landmark():
    table = pa.table({"t": [95, 100, 105, 110], "v": [1, 2, 3, 4]})
    ask = fn.sum("v", decay="poly(1)", landmark=100).alias("s")
    with pytest.raises(BeforeLandmark, match="1 rows are before the landmark 100"):
        local.group(table, time="t").agg(ask, now=110)
    kept = local.group(table, time="t", before="drop").agg(ask, now=110)
    assert kept.to_pylist() == [{"s": 3 * 0.5 + 4}]
    assert local.dropped(kept) == {"before_landmark": 1}
    assert local.group(table, time="t", before="clamp").agg(ask, now=110).to_pylist() == [{"s": 3 * 0.5 + 4}]


def test_now_is_the_newest_time_unless_it_is_given():
    table = pa.table({"t": [0, 10], "v": [1.0, 1.0]})
    ask = fn.count(decay="exp(half_life=10s)")
    assert local.group(table, time="t").agg(ask).to_pylist() == [{"count": 1.5}]
    assert local.group(table, time="t").agg(ask, now=20).to_pylist() == [{"count": 0.75}]
    with pytest.raises(QueryInPast, match="now=5 is before the newest row, 10"):
        local.group(table, time="t").agg(ask, now=5)


def test_where_keeps_the_rows_for_which_it_is_true():
    table = pa.table({"v": [1, 2, None, 4], "w": [1, 1, 1, 1]})
    assert local.group(table, where="v > 1").agg(fn.sum("w")).to_pylist() == [{"sum_w": 2.0}]


@pytest.mark.parametrize("form", ["table", "batch", "reader", "pandas", "polars", "file"])
def test_rows_are_counted_where_no_column_is_read(form, tmp_path):
    table = pa.table({"v": [1, 2, None, 4]})
    pq.write_table(table, tmp_path / "rows.parquet")
    source = {
        "table": table,
        "batch": table.to_batches()[0],
        "reader": table.to_reader(),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "file": tmp_path / "rows.parquet",
    }[form]
    assert local.group(source).agg(fn.count()).to_pylist() == [{"count": 4.0}]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["b", "a"])])
def test_polars_categories_are_keys(kind):
    frame = pl.DataFrame({"k": pl.Series(["b", "a", None, "b"], dtype=kind), "v": [1, 2, 3, 4]})
    answer = local.group(frame, "k").agg(fn.sum("v").alias("s")).to_pylist()
    assert answer == [{"k": "a", "s": 2.0}, {"k": "b", "s": 5.0}, {"k": None, "s": 3.0}]


@pytest.mark.parametrize("values", [[1j, 2j], pd.arrays.SparseArray([1.0, 2.0])])
def test_a_frame_that_arrow_cannot_read_is_a_clear_error(values):
    with pytest.raises(BadInput, match="the pandas frame cannot be read"):
        local.group(pd.DataFrame({"v": values})).agg(fn.sum("v"))


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
@pytest.mark.parametrize(
    ("tick", "offset"),
    [(-(2**63) + 1, "0s"), (-(2**63) + 1, "1d"), (2**63 - 1, "-1d"), (-(2**63) + 1, "-1d")],
)
def test_epochs_at_the_ends_of_time_do_not_wrap_around(unit, tick, offset):
    table = pa.table({"t": pa.array([tick]).cast(pa.timestamp(unit))})
    with pytest.raises(BadTime, match=r"cannot be cut into epochs every 1d.* in 64 bits"):
        local.group(table, every=("t", "1d", offset)).agg(fn.count(decay="window(1d)"))
    later = pa.table({"t": pa.array([2**63 - 1]).cast(pa.timestamp(unit))})
    (start,) = local.group(later, every=("t", "1d")).agg(fn.count())["epoch"].cast(pa.int64()).to_pylist()
    assert 0 <= 2**63 - 1 - start < 86400 * {"ns": 10**9, "us": 10**6, "s": 1}[unit]


def test_an_empty_input_gives_no_groups():
    table = trace(0)
    answer = local.group(table, "key", every=("time", "1m")).agg(fn.count(), fn.argmax("value"))
    assert answer.num_rows == 0
    assert answer.column_names == ["epoch", "key", "count", "argmax_value"]


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame(columns=["t", "v"]),
        pl.DataFrame({"t": [], "v": []}),
        pa.table({"t": pa.nulls(2), "v": pa.nulls(2)}),
        pd.DataFrame({"t": [None], "v": [None]}),
    ],
    ids=["pandas", "polars", "nulls", "pandas nulls"],
)
def test_columns_of_nothing_but_nulls_are_an_empty_input(empty):
    asked = [fn.count("v", decay="exp(half_life=5s)"), fn.sum(fn.expr("v * 2")), fn.mean("v"), fn.argmax("v")]
    by_epoch = local.group(empty, every=("t", "100ms")).agg(*asked)
    assert (by_epoch.num_rows, by_epoch.column_names[0]) == (0, "epoch")
    answer = local.group(empty, time="t").agg(*asked)
    count, total, mean, argmax = answer.to_pylist()[0].values()
    assert (count, total, argmax) == (0, 0, None)
    assert math.isnan(mean)
    assert local.dropped(answer) == ({"time": len(empty)} if len(empty) else {})


def test_a_users_own_decay_runs_in_the_engine():
    g = decay.forward(lambda n: n * n, name="squared-in-engine")
    table = trace(500)
    query = local.group(table, "key", every=("time", "1m"))
    own = query.agg(fn.sum("value", decay=g).alias("s"))["s"].to_numpy()
    assert own == pytest.approx(query.agg(fn.sum("value", decay="poly(2)").alias("s"))["s"].to_numpy(), rel=1e-12)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_numbers_and_items_of_one_column_are_asked_in_one_query(kind):
    table = pa.table({"t": [105, 107, 103, 108, 104], "v": pa.array([4, 8, 3, 6, 4], kind)})
    asked = [fn.mean("v"), fn.top("v", 1), fn.max("v"), fn.distinct("v"), fn.quantiles("v", [0.5])]
    grouped = local.group(table, time="t")
    for order in (asked, asked[::-1]):
        together = grouped.agg(*order).to_pylist()[0]
        assert together == {name: value for one in order for name, value in grouped.agg(one).to_pylist()[0].items()}
    assert together["mean_v"] == 5
    assert together["top_v"] == [{"item": 4, "weight": 2.0, "error": 0.0}]


def test_two_questions_to_one_summary_keep_one_state():
    plan = local.group(trace(1), "key", every=("time", "1m")).plan(
        fn.mean("value", decay="poly(2)"),
        fn.var("value", decay="poly(2)"),
        fn.mean("value").alias("plain"),
        fn.max("value"),
    )
    assert [str(state) for state in plan.states] == [
        "moments(value) decay poly(2)",
        "moments(value) decay none",
        "extrema(value) decay none",
    ]
    assert [answer.state for answer in plan.answers] == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("ask", "options", "error", "says"),
    [
        (lambda: [fn.sum("nothing")], {}, BadInput, "there is no column 'nothing'"),
        (lambda: [fn.sum("key")], {}, BadInput, "column 'key' must hold numbers, and is string"),
        (lambda: [fn.count(decay="poly(2)")], {"time": "time"}, BadParameter, "poly\\(2\\) measures from a landmark"),
        (lambda: [fn.count(decay="poly(2)")], {}, BadParameter, "weighs rows by time; name the column"),
        (lambda: [fn.count(decay="window(5m)")], {"time": "time"}, Unsupported, "needs the time of the question"),
        (lambda: [fn.count(decay="expo")], {}, BadParameter, "did you mean exp"),
        (lambda: [fn.count(), fn.count()], {}, BadParameter, "two columns of the answer are called 'count'"),
        (lambda: [fn.count().alias("key")], {}, BadParameter, "called 'key'"),
        (list, {}, BadParameter, "nothing is asked for"),
        (lambda: ["count"], {}, BadParameter, "an answer is described by wane.fn"),
        (lambda: [fn.count()], {"every": "1m"}, BadParameter, "every is a column and a length"),
        (lambda: [fn.count()], {"every": ("time", "-1m")}, BadParameter, "an epoch must be longer than 0"),
        (lambda: [fn.count()], {"every": ("value", "1m"), "time": "time"}, BadParameter, "give one of them"),
        (lambda: [fn.count()], {"every": ("key", "1m")}, BadInput, "must hold times"),
        (lambda: [fn.sum(5)], {}, BadParameter, "asked of a column's name"),
        (lambda: [fn.sum(None)], {}, BadParameter, "sum needs a column"),
    ],
)
def test_a_wrong_query_is_refused_when_it_is_built(ask, options, error, says):
    with pytest.raises(error, match=says):
        local.group(trace(3), "key", **options).agg(*ask())


def test_a_wrong_source_is_refused(tmp_path):
    with pytest.raises(BadInput, match="there is no file"):
        local.group(tmp_path / "none.parquet").agg(fn.count())
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        local.group(tmp_path / "bad.parquet").agg(fn.count())
    with pytest.raises(BadInput, match="cannot read rows from a int"):
        local.group(5).agg(fn.count())


def test_the_pandas_index_and_zone_survive():
    frame = pd.DataFrame({"t": pd.date_range("2026-01-01", periods=3, freq="30s", tz="Europe/Paris"), "v": [1, 2, 3]})
    answer = local.group(frame, every=("t", "1m")).agg(fn.sum("v"))
    assert answer["sum_v"].to_pylist() == [3.0, 3.0]
    assert answer.schema.field("epoch").type.tz == "Europe/Paris"


@pytest.mark.parametrize("name", ["superexp(half_life=1s)", "backward poly(400)", "exp(half_life=50ms)"])
def test_weights_under_a_double_keep_their_ratios(name):
    table = pa.table({"t": [0.0, 1.0, 2.0], "v": [1.0, 5.0, -3.0]})
    asks = [fn.mean("v", decay=name).alias("mean"), fn.argmax("v", decay=name).alias("argmax")]
    row = local.group(table, every=("t", "60s")).agg(*asks).to_pylist()[0]
    fixed = decay.pinned(name, now=60) if name != "exp(half_life=50ms)" else name
    assert row["mean"] == pytest.approx(Moments(fixed).update([1.0, 5.0, -3.0], [0.0, 1.0, 2.0]).mean(), rel=1e-9)
    assert row["argmax"] == {"value": 5.0, "time": 1.0}


@pytest.mark.parametrize("unit", ["s", "us"])
def test_epochs_beyond_what_nanoseconds_hold(unit):
    times = pa.array([10_413_792_005], pa.timestamp("s")).cast(pa.timestamp(unit))  # the year 2300
    answer = local.group(pa.table({"t": times}), every=("t", "1 minute")).agg(fn.count())
    assert answer["epoch"].cast(pa.timestamp("s")).cast(pa.int64()).to_pylist() == [10_413_792_000]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_float_times_have_whole_epochs(kind):
    table = pa.table({"t": pa.array([-61.0, 70.0, 1_763_500_032.0]).cast(kind)})
    answer = local.group(table, every=("t", 60)).agg(fn.count())
    assert answer["epoch"].to_pylist() == [-120.0, 60.0, 1_763_499_980.0 + 40]
    assert answer.schema.field("epoch").type == pa.float64()


def test_epochs_of_days_start_at_whole_days():
    days = pa.table({"t": pa.array([18_262], pa.date32())})
    with pytest.raises(BadParameter, match="do not start at whole ticks of 't', which is date32"):
        local.group(days, every=("t", "1d", "6h")).agg(fn.count())


def test_an_epoch_label_that_does_not_fit_is_an_error():
    with pytest.raises(BadInput, match="cast it to a wider type"):
        local.group(pa.table({"t": pa.array([5], pa.uint8())}), every=("t", 60, 30)).agg(fn.count())


@pytest.mark.parametrize("name", ["exp(half_life=10s)", "none"])
def test_a_landmark_is_held_where_the_decay_needs_none(name):
    table = pa.table({"t": [95, 105]})
    ask = fn.count(decay=name, landmark=100)
    with pytest.raises(BeforeLandmark):
        local.group(table, time="t").agg(ask)
    assert local.group(table, time="t", before="drop").agg(ask)["count"][0].as_py() == pytest.approx(1.0, rel=1e-12)
    clamped = local.group(table, time="t", before="clamp").agg(ask)["count"][0].as_py()
    assert clamped == pytest.approx(Moments(name, 100, before="clamp").update([1, 1], [95, 105]).count(now=105))


def test_a_question_before_the_landmark_is_refused():
    table = pa.table({"t": [5, 65]})
    ask = fn.count(decay="polynomial(1, 0, 2)", landmark=100)
    with pytest.raises(QueryInPast, match="before the landmark"):
        local.group(table, time="t", before="clamp").agg(ask, now=70)
    with pytest.raises(QueryInPast, match="end of epochs before its landmark"):
        local.group(table, every=("t", 60), before="clamp").agg(ask)
    by_epoch = local.group(table, every=("t", 60), before="drop").agg(ask)
    assert by_epoch["count"].to_pylist() == [0.0, 0.0]
    assert local.dropped(by_epoch) == {"before_landmark": 2}
    with pytest.raises(BadInput, match="lies between two ticks"):
        local.group(table, time="t", before="clamp").agg(fn.count(decay="poly(1)", landmark=0.5))


def test_a_pinned_decay_and_epochs_have_their_own_now():
    table = pa.table({"t": [10, 20]})
    with pytest.raises(QueryInPast, match="was fixed for 35"):
        local.group(table, time="t").agg(fn.count(decay=decay.pinned("window(5m)", 35)), now=1000)
    with pytest.raises(BadParameter, match="by epochs, now is the end of each"):
        local.group(table, every=("t", 60)).agg(fn.count(), now=1000)


@pytest.mark.parametrize("name", ["none", "exp(half_life=20s)"])
@pytest.mark.parametrize("mean", [0.0, 1e4, 1e8, 1e10])
def test_the_variance_of_values_far_from_zero(mean, name):
    rng = np.random.default_rng(1)
    values, times = mean + rng.normal(size=500), np.arange(500) * 0.37
    weights = [Fraction(w) for w in (np.ones(500) if name == "none" else 2.0 ** ((times - times[-1]) / 20))]
    exact_values = [Fraction(v) for v in values]
    total = sum(weights)
    middle = sum(w * v for w, v in zip(weights, exact_values, strict=True)) / total
    true = float(sum(w * (v - middle) ** 2 for w, v in zip(weights, exact_values, strict=True)) / total)
    grouped = local.group(pa.table({"t": times, "v": values}), time="t").agg(fn.var("v", decay=name))
    assert grouped["var_v"][0].as_py() == pytest.approx(true, rel=1e-12)
    one, merged = Moments(name), Moments(name)
    for value, time in zip(values.tolist(), times.tolist(), strict=True):
        one.update(value, time)
        merged.merge(Moments(name).update([value], [time]))
    assert one.var() == pytest.approx(true, rel=1e-12)
    assert merged.var() == pytest.approx(true, rel=1e-12)


def test_time_in_an_expression_is_seconds():
    table = pa.table({"time": pa.array([1_763_500_000_000_000_005], pa.timestamp("ns")), "v": [2]})
    answer = local.group(table).agg(fn.sum(fn.expr("v * (time % 60)")).alias("s"))
    assert answer["s"].to_pylist() == [2 * (1_763_500_000 % 60)]


def test_no_rows_at_all_are_one_group_without_keys():
    answer = local.group(pa.table({"v": pa.array([], pa.float64())})).agg(fn.count(), fn.mean("v"), fn.argmax("v"))
    row = answer.to_pylist()[0]
    assert row["count"] == 0.0
    assert math.isnan(row["mean_v"])
    assert row["argmax_v"] is None


def test_a_null_is_counted_once_however_many_answers_miss_it():
    table = pa.table({"v": pa.array([None, 1.0])})
    answer = local.group(table).agg(fn.mean("v"), fn.max("v"), fn.sum("v"))
    assert local.dropped(answer) == {"value of v": 1}


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: local.group(pa.table({"k": pa.array([1.5], pa.float16())}), "k").agg(fn.count()), "cannot be made of"),
        (lambda: local.group(pa.table({"k": [[1]]}), "k").agg(fn.count()), "cannot be made of"),
        (lambda: local.group(pa.table({"v": [1]}), *"v" * 61).agg(fn.count()), "at most 60 keys"),
        (lambda: local.group(pa.table({"v": [1]}), every=("v", "100000 w")).agg(fn.count()), "shorter than 73 years"),
        (lambda: local.group(pa.table({"v": [1]}), where=5).agg(fn.count()), "where is an expression"),
        (lambda: local.group(pa.table({"v": [1]}), time=5).agg(fn.count()), "time is a column's name"),
        (lambda: local.group(pd.DataFrame([[1, 2]], columns=["a", "a"]), "a").agg(fn.count()), "cannot be read"),
        (lambda: local.group(pd.DataFrame({"a": [1, "x"]}), "a").agg(fn.count()), "cannot be read"),
        (lambda: local.group(pa.chunked_array([[1]])).agg(fn.count()), "no table of rows"),
        (lambda: local.group(pd.Series([1])).agg(fn.count()), "cannot read rows from a Series"),
        (lambda: fn.count().alias(5), "an alias is a text"),
        (lambda: Moments(sums="v"), "sums are expressions by name"),
        (lambda: Moments().update(["1"]), "items must be numbers"),
        (lambda: Moments().update(pa.array(["1"])), "items must be numbers"),
        (lambda: Moments().update(np.array(["1", 2], object)), "hold texts"),
        (lambda: Moments().update([10**400]), "that a double can hold"),
        (lambda: Moments().update([1], None, [10**400]), "that a double can hold"),
        (lambda: Moments().update(pa.table({"a": [1]})), "one of its columns"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(use, says):
    with pytest.raises(WaneError, match=says):
        use()


@pytest.mark.parametrize(
    "items",
    [
        np.ma.array([1.0, 2.0, 1e9], mask=[0, 0, 1]),
        pd.array([1, 2, None], "Int64"),
        pa.array([1, 2, None], pa.decimal128(5, 2)),
        pa.array([1, 2, None]).dictionary_encode(),
        [1, 2, None],
    ],
)
def test_missing_numbers_of_every_kind_are_dropped_and_counted(items):
    summary = Moments().update(items)
    assert (summary.sum(), summary.rows, summary.dropped) == (3.0, 2, {"value": 1})


def test_large_ints_with_a_null_are_read():
    assert Moments().update(pa.array([2**60 + 1, None])).sum() == 2.0**60


def test_files_that_do_not_fit_each_other_are_named(tmp_path):
    pq.write_table(pa.table({"k": ["a"], "v": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": [1]}), tmp_path / "b.parquet")
    with pytest.raises(BadInput, match=r"b\.parquet' has no column 'k'"):
        local.group(tmp_path, "k").agg(fn.count())
    pq.write_table(pa.table({"k": ["b"], "v": ["text"]}), tmp_path / "b.parquet")
    with pytest.raises(BadInput, match="cannot be read as Parquet: Failed to parse"):
        local.group(tmp_path, "k").agg(fn.sum("v"))


NAIVE, EAST = dt.datetime(2026, 1, 1, 0, 0, 5), dt.timezone(dt.timedelta(hours=5))
AWARE = NAIVE.replace(tzinfo=EAST)


@pytest.mark.parametrize("times", [[NAIVE, AWARE], [AWARE, NAIVE], [None, NAIVE, AWARE], [NAIVE.date(), AWARE]])
def test_a_frame_does_not_mix_times_with_and_without_a_zone(times):
    frame = pd.DataFrame({"t": pd.Series(times, dtype=object)})
    with pytest.raises(BadTime, match="'t' mix times with and without a time zone; give all of them a zone"):
        local.group(frame, every=("t", "1d")).agg(fn.count())


@pytest.mark.parametrize(
    "times",
    [
        [AWARE, AWARE.astimezone(dt.UTC), None],
        [NAIVE.date(), NAIVE, pd.NaT],
        [pd.Timestamp("2026-01-01 00:00:00.000000001"), pd.Timestamp("2026-01-01 00:00:00.000000002"), None],
    ],
    ids=["zones", "dates", "nanoseconds"],
)
def test_a_frame_of_time_objects_keeps_every_time(times):
    frame = pd.DataFrame({"t": pd.Series(times, dtype=object)})
    found = local.group(frame, "t", time="t").agg(fn.argmax("t"), fn.count())
    known = sorted({instant(time) for time in times[:2]})
    assert (instants(found["t"]), sum(found["count"].to_pylist())) == (known, 2)
    assert local.dropped(found) == {"time": 1}


def test_dates_in_a_frame_stay_dates():
    frame = pd.DataFrame({"t": [NAIVE.date(), None]})
    assert local.group(frame, "t").agg(fn.count())["t"].to_pylist() == [NAIVE.date(), None]


def instants(column):
    found = ticks(column)
    return [value * found.per_tick for value in found.values.tolist()]


@pytest.mark.parametrize("first", [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date64()])
@pytest.mark.parametrize("second", [pa.int64(), pa.timestamp("us"), pa.timestamp("us", "+05:00"), pa.date32()])
def test_files_whose_times_differ_in_meaning_are_named(first, second, tmp_path):
    day = pa.array([NAIVE.date()])
    for name, kind in (("a", first), ("b", second)):
        column = pa.array([86400]) if pa.types.is_integer(kind) else day.cast(pa.timestamp("us")).cast(kind)
        pq.write_table(pa.table({"t": column}), tmp_path / f"{name}.parquet")
    grouped = local.group(tmp_path, every=("t", "1d"))
    same = str(first)[:4] == str(second)[:4] and ("tz" in str(first)) == ("tz" in str(second))
    if same:
        assert sum(grouped.agg(fn.count())["count"].to_pylist()) == 2
        return
    with pytest.raises(
        BadInput, match=r"column 't' is .* in '.*b\.parquet', and .* in another file; write all of them"
    ):
        grouped.agg(fn.count())


def test_a_folder_without_files_says_so(tmp_path):
    with pytest.raises(BadInput, match="there is no file in"):
        local.group(tmp_path).agg(fn.count())


def test_a_state_is_not_read_under_another_function_of_its_name(tmp_path):
    make = "import wane, sys\ng = wane.decay.forward(lambda n: n ** {power}, name='x')\n"
    write = "sys.stdout.buffer.write(wane.Moments(g, 0).update([1.0], [5.0]).to_bytes())"
    read = "print(wane.from_bytes(sys.stdin.buffer.read()).count(now=10))"

    def run(code, given=b""):
        return subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=False)

    state = run(make.format(power=2) + write).stdout
    assert run(make.format(power=2) + read, state).stdout.strip() == b"0.25"
    wrong = run(make.format(power=3) + read, state)
    assert wrong.returncode == 1
    assert b"another function than the state was made with" in wrong.stderr
