"""Expressions of columns (:mod:`wane.expr`) as Spark columns of doubles, with the same values.

Spark's own arithmetic differs where IEEE 754 has infinities and NaN: it gives null or an error for a division by zero
and for the logarithm of a negative number, and takes NaN for equal to itself and for the largest number of all. Here
missing values are NaN from the leaves on, and every operator is spelled out where the two differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- its name everywhere

from wane import expr
from wane.errors import Unsupported
from wane.expr import Expr
from wane.spark.clocks import column, is_time, seconds
from wane.summaries.base import LARGEST

_NAN, _INF = math.nan, math.inf


def number(name: str, schema: pa.Schema) -> Column:
    """A column as doubles, NaN where there is no number that can be used; times as seconds since 1970."""
    kind = schema.field(name).type
    value = seconds(name, kind) if is_time(kind) else column(name).cast("double")
    return F.when(F.abs(value) < LARGEST, value).otherwise(_NAN)


def translate(tree: Expr, schema: pa.Schema) -> Column:
    """An expression over columns of some types as a Spark column of doubles."""
    if isinstance(tree, expr.Number):
        return F.lit(tree.value)
    if isinstance(tree, expr.Column):
        return number(tree.name, schema)
    parts = [translate(part, schema) for part in tree.parts]
    if isinstance(tree, expr.Negate):
        return -parts[0]
    if isinstance(tree, expr.Binary):
        return _OPERATORS[tree.operator](*parts)
    if isinstance(tree, expr.Call):
        return _FUNCTIONS[tree.function](*parts)
    raise Unsupported(f"{tree!r} cannot be told to Spark; compute it beforehand as a column")


def kept(tree: Expr, schema: pa.Schema) -> Column:
    """Whether a row passes a filter: the expression is a number other than 0."""
    value = translate(tree, schema)
    return (value != 0.0) & ~F.isnan(value)


def _there(*columns: Column) -> Column:
    known = ~F.isnan(columns[0])
    for other in columns[1:]:
        known = known & ~F.isnan(other)
    return known


def _comparison(compare: Callable[[Column, Column], Column], unordered: float = 0.0) -> Callable[..., Column]:
    """1 or 0; NaN is neither less nor more than anything, and unequal to everything."""
    return lambda a, b: F.when(_there(a, b), compare(a, b).cast("double")).otherwise(unordered)


def _divide(a: Column, b: Column) -> Column:
    """A quotient; over 0 an infinity with the sign of both, or NaN."""
    # 1 / -0.0 is minus infinity: Spark tells the zeros apart by their text only.
    sign = F.signum(a) * F.when(b.cast("string") == "-0.0", -1.0).otherwise(1.0)
    over_zero = F.when(F.isnan(a) | (a == 0.0), _NAN).otherwise(sign * _INF)
    return F.when(b == 0.0, over_zero).otherwise(a / F.when(b == 0.0, 1.0).otherwise(b))


def _remainder(a: Column, b: Column) -> Column:
    """The rest that has the sign of the divisor, as in Python."""
    divisor = F.when(b == 0.0, 1.0).otherwise(b)
    rest = a % divisor
    other = (rest != 0.0) & ((rest < 0.0) != (divisor < 0.0))
    signed = F.when(other & _there(rest, divisor), rest + divisor).otherwise(rest)
    return F.when((b == 0.0) | F.isnan(a), _NAN).otherwise(signed)


def _power(a: Column, b: Column) -> Column:
    """A power; of NaN to 0, and of 1 to NaN, it is 1, which Java sees otherwise."""
    # Java's pow gives NaN for 1 ** NaN and for (+-1) ** (+-inf), where C gives 1.
    one = (a == 1.0) | (b == 0.0) | ((F.abs(a) == 1.0) & (F.abs(b) == _INF))
    return F.when(one, 1.0).otherwise(F.pow(a, b))


def _log(scale: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """A logarithm: minus infinity of 0, NaN under it, where Spark has null."""
    return lambda a: (
        F.when(a > 0.0, scale(F.when(a > 0.0, a).otherwise(1.0))).when(a == 0.0, -_INF).otherwise(F.lit(_NAN))
    )


def _least(a: Column, b: Column) -> Column:
    return F.when(_there(a, b), F.least(a, b)).otherwise(_NAN)


def _greatest(a: Column, b: Column) -> Column:
    return F.when(_there(a, b), F.greatest(a, b)).otherwise(_NAN)


def _round(cut: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """Spark rounds doubles to whole numbers of 64 bits, which the large ones are already."""
    return lambda a: F.when(F.abs(a) < 2.0**52, cut(F.when(F.abs(a) < 2.0**52, a).otherwise(0.0))).otherwise(a)


def _where(condition: Column, yes: Column, no: Column) -> Column:
    return F.when(F.isnan(condition), _NAN).when(condition != 0.0, yes).otherwise(no)


_OPERATORS: Mapping[str, Callable[[Column, Column], Column]] = {
    "==": _comparison(lambda a, b: a == b),
    "!=": _comparison(lambda a, b: a != b, 1.0),
    "<": _comparison(lambda a, b: a < b),
    "<=": _comparison(lambda a, b: a <= b),
    ">": _comparison(lambda a, b: a > b),
    ">=": _comparison(lambda a, b: a >= b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "**": _power,
}
_FUNCTIONS: Mapping[str, Callable[..., Column]] = {
    "log": _log(F.ln),
    "log2": _log(F.log2),
    "log10": _log(F.log10),
    "exp": F.exp,
    "sqrt": F.sqrt,
    "abs": F.abs,
    "floor": _round(lambda a: F.floor(a).cast("double")),
    "ceil": _round(lambda a: F.ceil(a).cast("double")),
    "pow": _power,
    "min": _least,
    "max": _greatest,
    "where": _where,
}
