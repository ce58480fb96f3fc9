"""What a user asks for: descriptions of answers, which compute nothing.

Every engine takes them and gives the same answers. A description is a frozen value; it says which question is put to
which summary, of which column, under which decay.

>>> from wane import fn
>>> print(fn.count(decay="exp(half_life=10s)").alias("hits"))
count() decay exp(half_life=10s) as hits
>>> print(fn.sum(fn.expr("len * 8"), decay="poly(2)"))
sum(len * 8) decay poly(2) as sum
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wane import registry
from wane.decay import Decay, parse
from wane.errors import BadParameter, UnknownName
from wane.expr import Column, Expr
from wane.summaries import base
from wane.times import Nanoseconds, instant, show


@dataclass(frozen=True)
class Fn:
    """One answer that is asked for; made by the functions of this module.

    Attributes:
        question: The question, which is a method of the summary that answers it.
        summary: The registered name of that summary.
        column: What it is asked of: an expression of columns, or None for whole rows.
        decay: How weight falls with time.
        landmark: The instant a forward decay measures from, where it is not the epoch's start.
        parameters: Further parameters of the summary, by name.
        arguments: Further arguments of the question, by name.
        name: The column of the answer.
        ids: What tells rows apart, for a sample that depends on rows alone.
    """

    question: str
    summary: str
    column: Expr | None
    decay: Decay
    landmark: int | None
    parameters: tuple[tuple[str, Any], ...]
    arguments: tuple[tuple[str, Any], ...]
    name: str
    ids: Expr | None = None

    def alias(self, name: str) -> Fn:
        """The same, with another name for the answer's column."""
        if not isinstance(name, str) or not name:  # type: ignore[redundant-expr]
            raise BadParameter(f"an alias is a text, got {name!r}; write .alias('hits')")
        return replace(self, name=name)

    def __str__(self) -> str:
        inside = [*([str(self.column)] if self.column is not None else []), *(f"{k}={v!r}" for k, v in self.arguments)]
        inside += [f"ids={self.ids}"] if self.ids is not None else []
        since = f" since {show(self.landmark)}" if self.landmark is not None else ""
        return f"{self.question}({', '.join(inside)}) decay {self.decay}{since} as {self.name}"


def expr(text: str) -> Expr:
    """An expression of columns, to ask something of: ``fn.sum(fn.expr("len * (time % 60)"))``; see :mod:`wane.expr`."""
    return Expr.parse(text)


def count(column: str | Expr | None = None, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The decayed number of rows or, given a column, of the rows in which it is there (Definition 5)."""
    return ask("count", column, decay=decay, landmark=landmark)


def sum(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The decayed sum of a column or expression (Definition 5, Theorem 1)."""
    return ask("sum", column, decay=decay, landmark=landmark)


def mean(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The decayed average (Definition 5)."""
    return ask("mean", column, decay=decay, landmark=landmark)


def var(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The decayed variance, weights taken as probabilities (section IV.A)."""
    return ask("var", column, decay=decay, landmark=landmark)


def std(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The square root of the decayed variance."""
    return ask("std", column, decay=decay, landmark=landmark)


def min(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The smallest decayed value (Definition 6)."""
    return ask("min", column, decay=decay, landmark=landmark)


def max(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The largest decayed value (Definition 6)."""
    return ask("max", column, decay=decay, landmark=landmark)


def argmin(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The item with the smallest decayed value: its own value, and its time."""
    return ask("argmin", column, decay=decay, landmark=landmark)


def argmax(column: str | Expr, *, decay: str | Decay = "none", landmark: Any = None) -> Fn:
    """The item with the largest decayed value: its own value, and its time."""
    return ask("argmax", column, decay=decay, landmark=landmark)


def top(
    column: str | Expr,
    k: int = 10,
    *,
    epsilon: float = 0.001,
    decay: str | Decay = "none",
    landmark: Any = None,
) -> Fn:
    """The `k` heaviest items of a column, each with its decayed weight and error (Theorem 2).

    Weights are right to `epsilon` of the group's decayed count; items may be of any type.
    """
    return ask("top", column, decay=decay, landmark=landmark, parameters={"epsilon": epsilon}, k=k)


def heavy(
    column: str | Expr,
    phi: float,
    *,
    epsilon: float = 0.001,
    decay: str | Decay = "none",
    landmark: Any = None,
) -> Fn:
    """Every item of at least `phi` of the group's decayed count, and none under ``phi - epsilon`` (Definition 7)."""
    return ask("heavy", column, decay=decay, landmark=landmark, parameters={"epsilon": epsilon}, phi=phi)


def quantiles(
    column: str | Expr,
    phis: Sequence[float],
    *,
    epsilon: float = 0.01,
    decay: str | Decay = "none",
    landmark: Any = None,
) -> Fn:
    """Several quantiles of a column, as a list, each of a rank within `epsilon` of the one asked for (Theorem 3)."""
    return ask("quantiles", column, decay=decay, landmark=landmark, parameters={"epsilon": epsilon}, phis=tuple(phis))


def distinct(
    column: str | Expr,
    *,
    epsilon: float = 0.05,
    delta: float = 0.05,
    decay: str | Decay = "none",
    landmark: Any = None,
) -> Fn:
    """The decayed number of distinct items, right to `epsilon` of it with odds of ``1 - delta`` (Theorem 4).

    Each item weighs what its newest row does (Definition 9): without decay, it is how many there are.
    """
    return ask("distinct", column, decay=decay, landmark=landmark, parameters={"epsilon": epsilon, "delta": delta})


SAMPLES = {
    "priority": "priority",
    "weighted": "weighted_reservoir",
    "with_replacement": "with_replacement",
    "uniform": "reservoir",
}
"""The methods of :func:`sample`, and the summaries behind them."""


def sample(
    column: str | Expr,
    k: int = 100,
    *,
    method: str = "priority",
    ids: str | Expr | None = None,
    seed: int = 0,
    decay: str | Decay = "none",
    landmark: Any = None,
) -> Fn:
    """A sample of `k` rows of each group: their items, each with its weight and the weight that it stands for.

    The sum of ``stands_for`` over some rows estimates, without bias, what all such rows of the group weigh (section V).
    With `ids` the sample is a function of the rows; without, another reading of the same rows may draw others.

    Args:
        column: The items.
        k: How many rows.
        method: ``"priority"`` (for estimates), ``"weighted"`` (without replacement), ``"with_replacement"``, or
            ``"uniform"``, which takes no decay but a landmark or sliding window.
        ids: A column that tells rows apart.
        seed: Chooses the random numbers.
        decay: How weight falls with time.
        landmark: Where a forward decay measures from, if not the epoch's start.
    """
    if method not in list(SAMPLES):
        raise BadParameter(f"method must be one of {', '.join(SAMPLES)}, got {method!r}")
    parameters = {"k": k, "seed": seed}
    return ask(
        "sample", column, decay=decay, landmark=landmark, parameters=parameters, summary=SAMPLES[method], ids=ids
    )


def ask(
    question: str,
    column: str | Expr | None = None,
    *,
    decay: str | Decay = "none",
    landmark: Any = None,
    parameters: Mapping[str, Any] | None = None,
    summary: str | None = None,
    ids: str | Expr | None = None,
    **arguments: Any,
) -> Fn:
    """Describe any question that a registered summary answers, also one from another package.

    Args:
        question: The question.
        column: What it is asked of.
        decay: How weight falls with time.
        landmark: Where a forward decay measures from.
        parameters: Further parameters of the summary.
        summary: The registered name of the summary, where several answer the question.
        ids: A column that tells rows apart, for a summary that takes ids.
        arguments: Further arguments of the question.
    """
    known = registry.specs().values()
    able = [spec for spec in known if question in spec.functions and summary in (None, spec.name)]
    if not able:
        every = sorted({name for spec in registry.specs().values() for name in spec.functions})
        raise UnknownName(f"no summary answers {question!r}; the questions are {', '.join(every)}")
    if not (column is None or isinstance(column, (str, Expr))):
        raise BadParameter(f"{question} is asked of a column's name or of fn.expr(...), got {column!r}")
    if column is None and question not in _OF_ROWS:
        raise BadParameter(f"{question} needs a column; write fn.{question}('len')")
    # What a summary refuses, it refuses here, and not later in a worker.
    base.ask(able[0].make(**(parameters or {})), question, "latest", arguments)
    if not (ids is None or isinstance(ids, (str, Expr))):
        raise BadParameter(f"ids= is a column's name or fn.expr(...), got {ids!r}")
    target = Column(column) if isinstance(column, str) else column
    label = target.name if isinstance(target, Column) else None
    return Fn(
        question=question,
        summary=able[0].name,
        column=target,
        decay=parse(decay),
        landmark=None if landmark is None else int(Nanoseconds(instant(landmark, "landmark"))),
        parameters=tuple(sorted((parameters or {}).items())),
        arguments=tuple(sorted(arguments.items())),
        name=f"{question}_{label}" if label else question,
        ids=Column(ids) if isinstance(ids, str) else ids,
    )


_OF_ROWS = ("count",)
"""Questions that can be asked of rows, without a column."""
