"""What summaries do with odd arguments; that their answers are right is for the laws."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wane import Distinct, Extrema, Moments, SpaceSaving
from wane.decay import forward, pinned
from wane.errors import BadDecay, BadInput, BadParameter, BadTime, MergeRefused


@pytest.mark.parametrize("kind", [Extrema, Moments])
def test_a_missing_value_given_alone_is_dropped_and_counted(kind: Any) -> None:
    one = kind("exp(half_life=5m)").update(None, 5).update([None, 1.0], [6, 7])
    assert (one.rows, one.dropped) == (1, {"value": 2})


@pytest.mark.parametrize("nothing", [None, math.nan, pd.NA, pd.NaT, pa.scalar(None, pa.int64())], ids=repr)
def test_the_nulls_of_every_library_are_dropped_and_counted(nothing: Any) -> None:
    for made in (Moments(), Extrema(), SpaceSaving(0.1), Distinct(0.1)):
        found = made.update([nothing, 2.0]).update(nothing).update(pd.Series([2.0, nothing], dtype=object))
        assert (found.rows, found.dropped) == (2, {"value": 3})


@pytest.mark.parametrize("one", [np.array(5.0), np.float32(5), pa.scalar(5), pa.scalar(5.0), np.int8(5)], ids=repr)
def test_one_item_may_come_wrapped(one: Any) -> None:
    assert Moments().update(one).update(one, weights=one).sum() == 30
    assert SpaceSaving(0.1).update(one).top(1)[0].item == 5


@pytest.mark.parametrize(
    "texts",
    [
        pd.Series(["a", None, "a"], dtype="string"),
        pd.Series(["a", None, "a"], dtype="string[pyarrow]"),
        pd.Series(["a", None, "a"], dtype="category"),
        pl.Series(["a", None, "a"]),
        pl.Series(["a", None, "a"]).cast(pl.Categorical),
        pa.array(["a", None, "a"], pa.string_view()),
        [np.str_("a"), None, pa.scalar("a").as_py()],
    ],
    ids=lambda texts: str(getattr(texts, "dtype", getattr(texts, "type", type(texts)))),
)
def test_texts_of_any_library_are_items(texts: Any) -> None:
    found = SpaceSaving(0.1).update(texts)
    assert ([tuple(hit) for hit in found.top(2)], found.dropped) == ([("a", 2.0, 0.0)], {"value": 1})


def test_sparse_numbers_of_pandas_are_items() -> None:
    assert SpaceSaving(0.1).update(pd.Series([7, 0, 7], dtype="Sparse[int]")).top(1)[0].item == 7


def test_ids_beside_a_null_of_pandas_keep_every_digit() -> None:
    found = Distinct(0.1).update(pd.Series([2**60, 2**60 + 1, None], dtype="Int64"))
    assert found.distinct() == 2


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_times_are_no_items(unit: str) -> None:
    with pytest.raises(BadInput, match=f"items must be whole numbers, floats, texts or bytes, got dtype .*{unit}"):
        SpaceSaving(0.1).update(np.array(["2026-01-01"], f"datetime64[{unit}]"))


def test_a_smallest_value_of_nothing_has_no_sign() -> None:
    assert str(Extrema("poly(2)", landmark=100).update([4.0, -0.0], times=[100, 110]).min(now=110)) == "0.0"
    faded = Extrema("exp(half_life=1s)").update([-4.0, 4.0], times=[0, 10**6])
    assert str(faded.min(now=10**6)) == "-0.0"  # too small for a double, and below 0


@pytest.mark.parametrize("make", [Moments, Extrema, partial(SpaceSaving, 0.1), partial(Distinct, 0.1)])
@pytest.mark.parametrize("way", ["at once", "alone"])
def test_what_a_decay_cannot_weigh_is_refused_before_any_of_it_is_counted(make: Any, way: str) -> None:
    holed = forward(lambda n: math.nan if 5.0001 < n < 5.0002 else n + 1.0, name="with a hole")
    for decay, times in ((holed, [1.0, 5.00015, 9.0]), ("exp(half_life=1ns)", ["2026-01-01", "2049-01-01"])):
        made = make(decay, landmark=0)
        with pytest.raises((BadDecay, BadTime), match=r"gives nan at age 5\.0001|more than 2\*\*61 half-lives"):
            made.update([1.0] * len(times), times) if way == "at once" else made.update(1.0, times[1])
        assert (made.rows, made.newest, made.to_bytes()) == (0, None, make(decay, landmark=0).to_bytes())


@pytest.mark.parametrize("make", [Moments, Extrema, partial(SpaceSaving, 0.1), partial(Distinct, 0.1)])
def test_a_batch_of_nothing_has_no_time(make: Any) -> None:
    """Not even 1970, which is after the question here."""
    made = make(pinned("window(5m)", now=-60))
    made.update([], times=[]).update([None, 1.0], times=[-70, None])
    assert (made.rows, made.dropped) == (0, {"value": 1, "time": 1})


def test_the_name_of_a_sum_is_a_text() -> None:
    for sums in ({3: "v"}, {"a": "v", None: "v"}):
        with pytest.raises(BadParameter, match="the name of a sum is a text, got"):
            Moments(sums=sums)  # type: ignore[arg-type]


def test_landmarks_that_differ_are_told_as_times() -> None:
    with pytest.raises(MergeRefused, match=r"landmark differs: 2026-01-05T00:00:00Z here, 100\.5 there"):
        Moments("poly(2)", landmark="2026-01-05").merge(Moments("poly(2)", landmark=100.5))
