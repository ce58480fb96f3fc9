"""Count, sum, mean, variance, and any algebraic sum, under any forward decay: Definition 5 and Theorem 1.

The state is three weighted sums, all scaled by one power of two: the weights, the weighted values (each with the
rounding error it has lost so far), and the weighted squares about the mean. The textbook form of the variance,
``sum(v^2)/C - A^2``, cancels; squares about the mean do not, and merge by Chan's formula, with means taken to twice
the digits of a double. Values that come one by one wait until some dozens are there, and go the way of a column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wane import serde
from wane._jit import kernel
from wane.decay import Decay
from wane.decay.base import product
from wane.errors import BadParameter, CorruptState, UnknownName
from wane.expr import Expr
from wane.registry import Equality, Spec
from wane.summaries.base import LARGEST, Batch, Summary, ldexp, plus


@kernel("UniTuple(float64, 4)(r_f8, r_f8)", reorder=True)
def _chunk_sums(weights: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Sum of weights, mean, what it lacks times the weights, and weighted squares about it: two passes over a chunk."""
    total = weighted = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
        weighted += weights[i] * values[i]
    if total == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    mean = weighted / total
    squares = drift = 0.0
    for i in range(weights.shape[0]):
        off = values[i] - mean
        squares += weights[i] * off * off
        drift += weights[i] * off
    return total, mean, drift, max(squares - drift * drift / total, 0.0)


class Moments(Summary):
    """Decayed count, sum, mean, variance, and sums of any expression of the value.

    Exact but for rounding: to 1e-12 of the sum of `|weight * value|`, in any order of arrival, over any span. Constant
    space; about 2 ns a row in bulk. Takes any forward decay, or a backward one whose time is fixed.

    A value that is not a number under 2.6e120 is dropped and counted. An empty summary has count and sum 0, and mean
    and variance NaN. The variance is that of the weights as probabilities (Section IV.A): ``sum(w (v - A)^2) / C``.

    Args:
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        sums: Further sums, by name: expressions of the value `v` (:mod:`wane.expr`).
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> m = Moments("poly(2)", landmark=100, sums={"energy": "v ** 2"})
    >>> m.update([4, 8, 3, 6, 4], times=[105, 107, 103, 108, 104]).rows
    5
    >>> round(m.count(now=110), 2), round(m.sum(now=110), 2), round(m.mean(), 2)
    (1.63, 9.67, 5.93)
    """

    def __init__(
        self,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        sums: Mapping[str, str] | None = None,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        if sums is not None and not isinstance(sums, Mapping):
            raise BadParameter(f"sums are expressions by name, got {sums!r}; write sums={{'energy': 'v ** 2'}}")
        self._sums = {name: _expression(name, sums[name]) for name in sorted(sums, key=_name)} if sums else {}
        self._exponent = 0
        self._total = self._lost_total = 0.0
        self._weighted = self._lost_weighted = 0.0
        self._squares = 0.0
        self._extra = dict.fromkeys(self._sums, (0.0, 0.0))

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count `C`: the sum of weights."""
        self._settle()
        return self._normalised(self._total + self._lost_total, now, historical)

    def sum(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed sum `S`: the sum of weighted values."""
        self._settle()
        return self._normalised(self._weighted + self._lost_weighted, now, historical)

    def mean(self) -> float:
        """The decayed average `A = S / C`, which does not depend on now; NaN when nothing has weight."""
        self._settle()
        if not self._total:
            return math.nan
        return sum(_mean(self._total, self._lost_total, self._weighted, self._lost_weighted))

    def var(self) -> float:
        """The decayed variance; NaN when nothing has weight."""
        self._settle()
        total = self._total + self._lost_total
        return self._squares / total if total else math.nan

    def std(self) -> float:
        """The square root of the decayed variance."""
        return math.sqrt(self.var())

    def total(self, name: str, now: Any = None, *, historical: bool = False) -> float:
        """The decayed sum of the expression called `name`."""
        if name not in list(self._extra):
            raise UnknownName(f"no sum is called {name!r}; there are {', '.join(self._extra) or 'none'} (see sums=)")
        self._settle()
        return self._normalised(sum(self._extra[name]), now, historical)

    def _add_rows(self, values: NDArray[np.float64], batch: Batch) -> None:
        extras = {name: self._evaluate(name, expr, values) for name, expr in self._sums.items()}
        for rows, loads, exponent in self._weigh(batch):
            total, mean, drift, squares = _chunk_sums(loads, values[rows])
            by = self._meet(exponent, total)
            weighted, lost = product(total, mean)
            self._add(total, weighted, lost + drift, squares, by)
            for name, column in extras.items():
                self._add_extra(name, math.ldexp(float((loads * column[rows]).sum()), by))

    def _evaluate(self, name: str, expr: Expr, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """An expression of the values; where it is no usable number, the row is left out of this sum and counted."""
        found = expr.evaluate({"v": values})
        bad = ~(np.abs(found) < LARGEST)
        self._drop(f"sum {name}", int(bad.sum()))
        return np.where(bad, 0.0, found) if bad.any() else found

    def _add(self, total: float, weighted: float, lost: float, squares: float, by: int) -> None:
        """Add the sums of some rows, after a shift by a power of two (Chan's merge)."""
        total, weighted, lost, squares = (math.ldexp(number, by) for number in (total, weighted, lost, squares))
        if not total:
            return
        if self._total:
            mine = _mean(self._total, self._lost_total, self._weighted, self._lost_weighted)
            theirs = _mean(total, 0.0, weighted, lost)
            off = (theirs[0] - mine[0]) + (theirs[1] - mine[1])
            squares += self._squares + off * off * (total * (self._total / (self._total + total)))
        self._squares = squares
        self._total, self._lost_total = plus(self._total, self._lost_total, total)
        self._weighted, self._lost_weighted = plus(self._weighted, self._lost_weighted + lost, weighted)

    def _add_extra(self, name: str, number: float) -> None:
        self._extra[name] = plus(*self._extra[name], number)

    def _meet(self, exponent: int, total: float) -> int:
        """Bring the state to the larger of two powers of two; gives the shift that sums at `exponent` still need."""
        if not total:
            return 0
        if exponent > self._exponent or not self._total:
            self._rescale(exponent)
        return max(exponent - self._exponent, -3000)

    def _rescale(self, exponent: int) -> None:
        """Move the state to another power of two: exact, unless it becomes too small to matter."""
        by = max(self._exponent - exponent, -3000) if self._total else 0
        self._total = math.ldexp(self._total, by)
        self._lost_total = math.ldexp(self._lost_total, by)
        self._weighted = math.ldexp(self._weighted, by)
        self._lost_weighted = math.ldexp(self._lost_weighted, by)
        self._squares = math.ldexp(self._squares, by)
        self._extra = {name: (math.ldexp(a, by), math.ldexp(b, by)) for name, (a, b) in self._extra.items()}
        self._exponent = exponent

    def _scale(self, factor: float, exponent: int) -> None:
        self._settle()
        self._total, self._lost_total = self._total * factor, self._lost_total * factor
        self._weighted, self._lost_weighted = self._weighted * factor, self._lost_weighted * factor
        self._squares *= factor
        self._extra = {name: (a * factor, b * factor) for name, (a, b) in self._extra.items()}
        self._exponent += exponent

    def _normalised(self, scaled: float, now: Any, historical: bool) -> float:
        weight, exponent = self._now(now, historical)
        return ldexp(scaled / weight, self._exponent - exponent)

    def _absorb(self, other: Self) -> None:
        by = self._meet(other._exponent, other._total)
        self._add(other._total, other._weighted, other._lost_weighted, other._squares, by)
        self._lost_total += math.ldexp(other._lost_total, by)
        for name, pair in list(other._extra.items()):
            self._add_extra(name, math.ldexp(sum(pair), by))

    def _parameters(self) -> dict[str, Any]:
        return {"sums": {name: str(expr) for name, expr in self._sums.items()}}

    def _write(self, writer: serde.Writer) -> None:
        writer.int(self._exponent)
        for number in self._numbers():
            writer.float(number)

    def _read(self, reader: serde.Reader) -> None:
        self._exponent = reader.int()
        self._total, self._lost_total, self._weighted, self._lost_weighted, self._squares = (
            reader.finite() for _ in range(5)
        )
        self._extra = {name: (reader.finite(), reader.finite()) for name in self._sums}
        if self._total < 0 or self._total + self._lost_total < 0 or self._squares < 0:
            raise CorruptState("a sum of weights or of squares in the state is negative")

    def _numbers(self) -> Iterable[float]:
        yield from (self._total, self._lost_total, self._weighted, self._lost_weighted, self._squares)
        yield from chain.from_iterable(self._extra.values())


def _mean(total: float, lost_total: float, weighted: float, lost_weighted: float) -> tuple[float, float]:
    """The quotient of two sums, and what its rounding lost.

    Twice the digits of a double: values around 1e10 that differ by 1 keep their variance.
    """
    mean = weighted / total
    rounded, error = product(mean, total)
    return mean, ((weighted - rounded) - error + lost_weighted - mean * lost_total) / total


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise BadParameter(f"the name of a sum is a text, got {name!r}; write sums={{'energy': 'v ** 2'}}")
    return name


def _expression(name: str, text: str) -> Expr:
    expr = Expr.parse(text)
    unknown = [column for column in expr.columns if column != "v"]
    if unknown:
        raise BadParameter(f"the sum {name!r} uses {unknown[0]!r}, and only the value v is there; write it in v")
    return expr


SPEC = Spec(
    name="moments",
    make=Moments,
    version=1,
    title="count, sum, mean, variance and any algebraic sum",
    questions=("count", "sum", "mean", "var"),
    timeless=("mean", "var"),
    guarantee="exact, to 1e-12 of the sum of |weight * value|",
    space="O(1): 48 bytes of sums, 150 on the wire",
    time="O(1), about 2 ns a row in bulk",
    paper="Forward Decay (ICDE 2009), Definition 5 and Theorem 1; errata: the shifted form of the variance",
    equality=Equality.EQUAL,
    decays=frozenset({"forward"}),
    items="numbers",
    parameters=({}, {"sums": {"energy": "v ** 2"}}),
    functions=("count", "sum", "mean", "var", "std"),
    state_bytes=lambda parameters: 512 + sum(64 + 4 * len(n + e) for n, e in parameters.get("sums", {}).items()),
)
Moments.SPEC = SPEC
