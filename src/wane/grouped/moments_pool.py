"""The moments of all groups in one array; the arithmetic is that of :class:`wane.summaries.moments.Moments`.

A group's five sums and its power of two lie together in eight words, a line of the cache: a row costs one look into
memory. The array is seen as doubles (`sums`) and as ints (`powers_of`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane._jit import inline, kernel
from wane.decay.base import Floats, Ints
from wane.grouped.arrays import grown
from wane.grouped.clock import Asked, Clock
from wane.grouped.pool import Ids, Pool, unweighted
from wane.grouped.query import Answer

TOTAL, LOST_TOTAL, WEIGHTED, LOST_WEIGHTED, SQUARES = range(5)
_WIDTH = 8
_EXPONENT = 5
_PARTS = 5
_NAMES = ("total", "lost_total", "weighted", "lost_weighted", "squares")


@inline
def power_of_two(exponent: int) -> float:
    """``2**exponent``, 0 where that is too small for a double."""
    if exponent < -1074:
        return 0.0
    power = 1.0
    while exponent < -1000:
        power *= 2.0**-1000
        exponent += 1000
    small: float = power * 2.0**exponent
    return small


@inline
def _meet(sums: Floats, powers_of: Ints, group: int, exponent: int) -> float:
    """Bring a group to the larger of two powers of two; gives the factor for a weight at `exponent`."""
    at = group * 8
    if exponent > powers_of[group * 8 + 5] or sums[at] == 0.0:
        if sums[at] != 0.0:
            factor = power_of_two(powers_of[group * 8 + 5] - exponent)
            for j in range(5):
                sums[at + j] *= factor
        powers_of[group * 8 + 5] = exponent
        return 1.0
    scale: float = power_of_two(exponent - powers_of[group * 8 + 5])
    return scale


@inline
def plus(sums: Floats, at: int, number: float) -> None:
    """Neumaier's summation: the rounding error goes to the place after the sum."""
    total = sums[at]
    new = total + number
    if abs(total) >= abs(number):
        sums[at + 1] += (total - new) + number
    else:
        sums[at + 1] += (number - new) + total
    sums[at] = new


@inline
def _lost(a: float, b: float, product: float) -> float:
    """The error of a rounded product (Dekker)."""
    c = 134217729.0 * a
    high_a = c - (c - a)
    c = 134217729.0 * b
    high_b = c - (c - b)
    low_a = a - high_a
    low_b = b - high_b
    error: float = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return error


@kernel("void(w_f8, w_i8, r_i8, r_f8, r_i8)")
def _count(sums: Floats, powers_of: Ints, ids: Ids, weights: Floats, powers: Ints) -> None:
    """Add weights to their groups."""
    for row in range(ids.shape[0]):
        if weights[row] == 0.0:
            continue
        group = ids[row]
        weight = weights[row]
        if powers[row] != powers_of[group * 8 + 5] or sums[group * 8] == 0.0:
            weight *= _meet(sums, powers_of, group, powers[row])
        plus(sums, group * 8, weight)


@kernel("void(w_f8, w_i8, r_i8, r_f8, r_i8, r_f8)")
def _sum(sums: Floats, powers_of: Ints, ids: Ids, weights: Floats, powers: Ints, values: Floats) -> None:
    """Add weights and weighted values."""
    for row in range(ids.shape[0]):
        if weights[row] == 0.0:
            continue
        group = ids[row]
        weight = weights[row]
        if powers[row] != powers_of[group * 8 + 5] or sums[group * 8] == 0.0:
            weight *= _meet(sums, powers_of, group, powers[row])
        plus(sums, group * 8, weight)
        plus(sums, group * 8 + 2, weight * values[row])


@kernel("void(w_f8, w_i8, r_i8, r_f8, r_i8, r_f8)")
def _squares(sums: Floats, powers_of: Ints, ids: Ids, weights: Floats, powers: Ints, values: Floats) -> None:
    """Add weights, weighted values, and weighted squares about the mean (West's update)."""
    for row in range(ids.shape[0]):
        if weights[row] == 0.0:
            continue
        group = ids[row]
        weight = weights[row]
        at = group * 8
        if powers[row] != powers_of[group * 8 + 5] or sums[at] == 0.0:
            weight *= _meet(sums, powers_of, group, powers[row])
        total = sums[at]
        if total != 0.0:
            # The mean to twice the digits of a double, as wane.summaries.moments has it.
            mean = sums[at + 2] / total
            product = mean * total
            rest = (sums[at + 2] - product) - _lost(mean, total, product) + sums[at + 3] - mean * sums[at + 1]
            off = (values[row] - mean) - rest / total
            sums[at + 4] += weight * off * off * (total / (total + weight))
        product = weight * values[row]
        plus(sums, at, weight)
        plus(sums, at + 2, product)
        sums[at + 3] += _lost(weight, values[row], product)


@kernel("void(w_f8, w_i8, r_i8, r_i8, r_f8)")
def _merge(sums: Floats, powers_of: Ints, ids: Ids, powers: Ints, parts: Floats) -> None:
    """Add states, five sums each, to those of their groups (Chan's merge)."""
    for row in range(ids.shape[0]):
        more = parts[row * 5]
        if more == 0.0:
            continue
        group = ids[row]
        at = group * 8
        scale = 1.0
        if powers[row] != powers_of[group * 8 + 5] or sums[at] == 0.0:
            scale = _meet(sums, powers_of, group, powers[row])
        more *= scale
        weighted = parts[row * 5 + 2] * scale
        lost = parts[row * 5 + 3] * scale
        squares = parts[row * 5 + 4] * scale
        total = sums[at]
        if total != 0.0 and more != 0.0:
            mean = sums[at + 2] / total
            product = mean * total
            rest = (sums[at + 2] - product) - _lost(mean, total, product) + sums[at + 3] - mean * sums[at + 1]
            their_mean = weighted / more
            product = their_mean * more
            their_lost = parts[row * 5 + 1] * scale
            their_rest = (weighted - product) - _lost(their_mean, more, product) + lost - their_mean * their_lost
            off = (their_mean - mean) + (their_rest / more - rest / total)
            squares += off * off * (more * (total / (total + more)))
        sums[at + 4] += squares
        plus(sums, at, more)
        sums[at + 1] += parts[row * 5 + 1] * scale
        plus(sums, at + 2, weighted)
        sums[at + 3] += lost


class MomentsPool(Pool):
    """Sums of weights, of weighted values and of weighted squares, each group at its own power of two.

    The count of all rows is that of a column's rows as long as no value of the column was missing: until then a pool
    for the one *follows* that for the other (:meth:`follow`), and costs nothing.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._own = np.zeros(0)
        self._leader: MomentsPool | None = None
        self._squared = bool(self.questions & {"var", "std"})
        self._kept = _NAMES[: 5 if self._squared else 2 if self.state.column is None else 4]

    @property
    def strategy(self) -> str:
        """How the states are kept."""
        if self._leader is not None:
            return "none of its own: until a value is missing, the column's rows are all rows"
        return "sums in one line of the cache, since they are a few numbers"

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        if self._leader is None:
            self._own = grown(self._own, groups * _WIDTH)

    def follow(self, leader: MomentsPool) -> None:
        """Count the rows that another one counts."""
        self._leader = leader

    def part(self) -> None:
        """Count rows by itself from now on."""
        assert self._leader is not None
        self._own = self._leader._sums.copy()
        self._own.reshape(-1, _WIDTH)[:, WEIGHTED:_EXPONENT] = 0.0
        self._leader = None

    def update(self, ids: Ids, clock: Clock | None, values: Floats | None) -> None:
        """Add a batch, by the cheapest pass that the questions allow."""
        for rows, weights, powers in unweighted(len(ids)) if clock is None else clock.sums(self.state):
            if values is None:
                _count(self._sums, self._powers, ids[rows], weights, powers)
            elif self._squared:
                _squares(self._sums, self._powers, ids[rows], weights, powers, values[rows])
            else:
                _sum(self._sums, self._powers, ids[rows], weights, powers, values[rows])

    def exact(self, groups: Ids) -> NDArray[np.bool_]:
        """All of them."""
        return np.ones(len(groups), np.bool_)

    def clear(self, groups: Ids) -> None:
        """Forget some groups."""
        if self._leader is None:
            self._own.reshape(-1, _WIDTH)[groups] = 0.0

    @property
    def nbytes(self) -> int:
        """The memory that all groups take."""
        return self._own.nbytes

    @property
    def _sums(self) -> Floats:
        return self._own if self._leader is None else self._leader._sums

    @property
    def _powers(self) -> Ints:
        """The array as ints."""
        return self._sums.view(np.int64)

    def _exponents(self, groups: Ids) -> Ints:
        """The powers of two of some groups."""
        return np.ascontiguousarray(self._powers.reshape(-1, _WIDTH)[groups, _EXPONENT])

    def fields(self) -> list[pa.Field]:
        """The power of two and the sums that the questions need."""
        return [pa.field("exponent", pa.int64()), *(pa.field(name, pa.float64()) for name in self._kept)]

    def partials(self, groups: Ids) -> list[pa.Array]:
        """The groups' states."""
        sums = self._sums.reshape(-1, _WIDTH)[groups]
        return [
            pa.array(self._exponents(groups)),
            *(pa.array(np.ascontiguousarray(sums[:, i])) for i in range(len(self._kept))),
        ]

    def absorb(self, ids: Ids, columns: list[pa.Array]) -> None:
        """Add states to those of the groups, one after the other."""
        parts = np.zeros((len(ids), _PARTS))
        for i, column in enumerate(columns[1:]):
            parts[:, i] = column.to_numpy(zero_copy_only=False)
        _merge(self._sums, self._powers, ids, columns[0].to_numpy().astype(np.int64), parts.reshape(-1))

    def answer(self, answer: Answer, groups: Ids, when: Asked) -> pa.Array:
        """Ratios as they are; counts and sums divided by the weight of now."""
        sums = self._sums.reshape(-1, _WIDTH)[groups]
        total = sums[:, TOTAL] + sums[:, LOST_TOTAL]
        weighted = sums[:, WEIGHTED] + sums[:, LOST_WEIGHTED]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            if answer.question == "mean":
                return pa.array(weighted / total)
            if answer.question in ("var", "std"):
                var = sums[:, SQUARES] / total
                return pa.array(np.sqrt(var) if answer.question == "std" else var)
            gap = np.clip(self._exponents(groups) - when.exponents, -3000, 3000).astype(np.int32)
            scaled = total if answer.question == "count" else weighted
            return pa.array(np.where(total == 0, 0.0, np.ldexp(scaled / when.weights, gap)))
