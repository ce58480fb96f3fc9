"""Expressions mean the same to Spark as to NumPy, at every corner of IEEE 754; what is no usable number is NaN."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from wane.expr import FUNCTIONS, OPERATORS, Expr
from wane.spark.expressions import translate

CORNERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.5,
    3.75,
    7.0,
    1e120,
    -1e120,
    1e300,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    None,
]
TEXTS = [
    *(f"a {operator} b" for operator in OPERATORS),
    *(f"{name}({', '.join('abc'[:arity])})" for name, arity in FUNCTIONS.items()),
    "-a",
    "a ** 3",
    "(a ** 3) % b",
    "b % (a ** 3)",
    "log(a ** 3) - (a / b)",
    "min(a / b, b / a) < 1 / a",
    "where(a == a, a, 0)",
    "len * (time % 60) ** 2 / 3600 + log(a * a + 1)",
]


@pytest.fixture(scope="module")
def corners(spark: SparkSession) -> DataFrame:
    a, b = zip(*itertools.product(CORNERS, CORNERS), strict=True)
    size = len(a)
    table = pa.table(
        {
            "i": range(size),
            "a": pa.array(a, pa.float64()),
            "b": pa.array(b, pa.float64()),
            "c": pa.array([3.0] * size),
            "len": pa.array([40 + i % 7 for i in range(size)]),
            "time": pa.array(np.datetime64("2026-01-01", "us") + np.arange(size)),
        }
    )
    return spark.createDataFrame(table).cache()


def test_every_operator_and_function_at_every_corner(corners: DataFrame) -> None:
    named = {f"x{i}": text for i, text in enumerate(TEXTS)}
    schema = to_arrow_schema(corners.schema, timezone="UTC")
    found = corners.select("i", *(translate(Expr.parse(text), schema).alias(name) for name, text in named.items()))
    mine = {name: column.to_numpy() for name, column in zip(found.columns, found.toArrow().sort_by("i"), strict=True)}
    table = corners.toArrow().sort_by("i")
    columns = {name: table.column(name).to_numpy() for name in ("a", "b", "c", "len")}
    columns |= {name: np.where(np.abs(columns[name]) < 2.0**400, columns[name], np.nan) for name in ("a", "b")}
    columns["time"] = table.column("time").cast(pa.timestamp("us")).to_numpy().astype(np.int64) / 1e6
    for name, text in named.items():
        wanted = Expr.parse(text).evaluate(columns)
        same = np.isclose(mine[name], wanted, rtol=1e-14, atol=0, equal_nan=True)
        where = np.flatnonzero(~same)
        shown = [(columns["a"][i], columns["b"][i], mine[name][i], wanted[i]) for i in where[:5]]
        assert same.all(), (text, shown)
