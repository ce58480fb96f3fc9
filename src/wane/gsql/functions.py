"""The aggregates that queries may use, each with what it is asked as.

One entry makes a name known: how its arguments become a :class:`~wane.fn.Fn`, and which part of the answer is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wane import fn
from wane.expr import Expr
from wane.fn import Fn


class Arguments(Protocol):
    """What an aggregate was called with; each of these takes one argument, or says what is wrong with it."""

    decay: Any
    landmark: Any

    def column(self) -> Expr:
        """A column or an expression of columns."""

    def rows(self) -> Expr | None:
        """The same, or ``*``."""

    def number(self, name: str, example: str, default: float | None = None) -> float:
        """A number, by place or name."""

    def whole(self, name: str, example: str, default: int | None = None) -> int:
        """A whole number, by place or name."""

    def numbers(self, example: str) -> tuple[float, ...]:
        """All the numbers that are left."""

    def weight(self) -> Any:
        """A weight spelled out, ``exp(time % 60)``, as the decay that it is."""

    def seed(self) -> int:
        """The seed of random numbers, by name; 0 unless it is given."""

    def named(self, *names: str) -> dict[str, float]:
        """Those of some parameters that are given by name."""


@dataclass(frozen=True)
class Asked:
    """What an aggregate is asked as.

    Attributes:
        fn: The question.
        element: The place in the answer, where the answer is a list of which one element is meant.
    """

    fn: Fn
    element: int | None = None


Make = Callable[[Arguments], Asked]


def _plain(question: str) -> Make:
    def make(args: Arguments) -> Asked:
        column = args.rows() if question == "count" else args.column()
        return Asked(fn.ask(question, column, decay=args.decay, landmark=args.landmark))

    return make


def _top(args: Arguments) -> Asked:
    column, k = args.column(), args.whole("k", "top(srcIP, 10)", 10)
    return Asked(fn.top(column, k, decay=args.decay, landmark=args.landmark, **args.named("epsilon")))


def _heavy(args: Arguments) -> Asked:
    column, phi = args.column(), args.number("phi", "heavy(srcIP, 0.01)")
    return Asked(fn.heavy(column, phi, decay=args.decay, landmark=args.landmark, **args.named("epsilon")))


def _distinct(args: Arguments) -> Asked:
    more = args.named("epsilon", "delta")
    return Asked(fn.distinct(args.column(), decay=args.decay, landmark=args.landmark, **more))


def _quantiles(args: Arguments) -> Asked:
    column, epsilon = args.column(), _epsilon(args)
    phis = args.numbers("quantiles(len, 0.5, 0.99)")
    return Asked(fn.quantiles(column, phis, decay=args.decay, landmark=args.landmark, epsilon=epsilon))


def _quantile(args: Arguments) -> Asked:
    column, phi = args.column(), args.number("phi", "quantile(len, 0.99)")
    return _one_quantile(args, column, phi)


def _median(args: Arguments) -> Asked:
    return _one_quantile(args, args.column(), 0.5)


def _percentile(args: Arguments) -> Asked:
    column, percent = args.column(), args.number("percent", "percentile(len, 95)")
    return _one_quantile(args, column, percent / 100)


def _one_quantile(args: Arguments, column: Expr, phi: float) -> Asked:
    return Asked(fn.quantiles(column, (phi,), decay=args.decay, landmark=args.landmark, epsilon=_epsilon(args)), 0)


def _epsilon(args: Arguments) -> float:
    return args.named("epsilon").get("epsilon", 0.01)


def _sample(args: Arguments) -> Asked:
    column, k = args.column(), args.whole("k", "sample(srcIP, 100)", SAMPLE)
    return Asked(fn.sample(column, k, decay=args.decay, landmark=args.landmark, seed=args.seed()))


def _prisamp(args: Arguments) -> Asked:
    column, decay = args.column(), args.weight()
    k = args.whole("k", "PRISAMP(srcIP, exp(time % 60), 100)", SAMPLE)
    return Asked(fn.sample(column, k, decay=decay, seed=args.seed()))


SAMPLE = 100
"""Rows of a sample, unless the query says how many."""

AGGREGATES: dict[str, Make] = {
    **{name: _plain(name) for name in ("count", "sum", "mean", "var", "std", "min", "max")},
    "avg": _plain("mean"),
    "variance": _plain("var"),
    "stddev": _plain("std"),
    "top": _top,
    "heavy": _heavy,
    "distinct": _distinct,
    "quantile": _quantile,
    "quantiles": _quantiles,
    "median": _median,
    "sample": _sample,
    "prisamp": _prisamp,
}
"""Aggregates by the names that queries call them."""

BOUND: Mapping[str, str] = {"approx_median": "median", "approx_quantile": "quantiles"}
"""What declared names stand for, unless a query is told otherwise."""

EXTRACTORS: Mapping[tuple[str, str], Make] = {("percentile_fcn", "quantiles"): _percentile}
"""Functions of an aggregate's answer, by their names and the aggregate's."""
