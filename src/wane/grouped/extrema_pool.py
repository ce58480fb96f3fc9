"""The extrema of all groups: for each, the best key on either side, compared as :mod:`wane.summaries.extrema` does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane._jit import kernel
from wane.decay.base import Floats, Ints, split
from wane.grouped import timecolumn
from wane.grouped.arrays import grown
from wane.grouped.clock import Asked, Clock
from wane.grouped.pool import Ids, Pool, unweighted
from wane.grouped.query import Answer


@kernel("void(w_i8, w_i8, w_f8, w_i8, w_f8, r_i8, r_i8, r_f8, r_i8, r_f8, int64)")
def _best(
    known: Ints,
    powers: Ints,
    mantissas: Floats,
    times: Ints,
    values: Floats,
    ids: Ids,
    row_powers: Ints,
    row_mantissas: Floats,
    row_times: Ints,
    row_values: Floats,
    side: int,
) -> None:
    """Keep the largest product of each group (for `side` -1: of the products with their signs turned).

    A product is ``mantissa * 2**power`` with a signed mantissa in [1/2, 1), or 0. Among equal products the newer item
    is the larger, then the one of larger value.
    """
    for row in range(ids.shape[0]):
        group = ids[row]
        mantissa = row_mantissas[row] * side
        power = row_powers[row]
        if known[group] == 1:
            best = mantissas[group]
            if mantissa > 0.0:
                sign = 1
            elif mantissa < 0.0:
                sign = -1
            else:
                sign = 0
            if best > 0.0:
                best_sign = 1
            elif best < 0.0:
                best_sign = -1
            else:
                best_sign = 0
            if sign != best_sign:
                if sign < best_sign:
                    continue
            elif sign * power != best_sign * powers[group]:
                if sign * power < best_sign * powers[group]:
                    continue
            elif mantissa != best:
                if mantissa < best:
                    continue
            elif row_times[row] != times[group]:
                if row_times[row] < times[group]:
                    continue
            elif row_values[row] <= values[group]:
                continue
        known[group] = 1
        mantissas[group] = mantissa
        powers[group] = power
        times[group] = row_times[row]
        values[group] = row_values[row]


class _Side:
    """The largest products of all groups, or the smallest."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.known = np.zeros(0, np.int64)
        self.powers = np.zeros(0, np.int64)
        self.mantissas = np.zeros(0)
        self.times = np.zeros(0, np.int64)
        self.values = np.zeros(0)

    @property
    def name(self) -> str:
        return "max" if self.side == 1 else "min"

    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.known, self.powers, self.mantissas, self.times, self.values

    def grow(self, groups: int) -> None:
        self.known, self.powers, self.times = (grown(a, groups) for a in (self.known, self.powers, self.times))
        self.mantissas, self.values = grown(self.mantissas, groups), grown(self.values, groups)

    def update(self, ids: Ids, powers: Ints, mantissas: Floats, times: Ints, values: Floats) -> None:
        _best(
            self.known, self.powers, self.mantissas, self.times, self.values,
            ids, powers, mantissas, times, values, self.side,
        )  # fmt: skip


class ExtremaPool(Pool):
    """Minimum and maximum of the decayed value, with their items."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._top = _Side(1) if self.questions & {"max", "argmax"} else None
        self._bottom = _Side(-1) if self.questions & {"min", "argmin"} else None
        self._label = None if self.time is None else timecolumn.label_type(self.time)
        self._sides = [side for side in (self._top, self._bottom) if side is not None]

    @property
    def strategy(self) -> str:
        """How the states are kept."""
        return "the best item of each group in arrays, since it is a few numbers"

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        for side in self._sides:
            side.grow(groups)

    def update(self, ids: Ids, clock: Clock | None, values: Floats | None) -> None:
        """Compare a batch: products by sign, power of two and mantissa, so that none underflows."""
        assert values is not None
        for rows, weights, exponents in unweighted(len(ids)) if clock is None else clock.keys(self.state):
            chosen = values[rows]
            mantissas, powers = split(np.abs(chosen))
            halves, extra = np.frexp(np.copysign(mantissas, chosen) * weights)
            times = np.zeros(len(chosen), np.int64) if clock is None else clock.times.values[rows]
            for side in self._sides:
                side.update(ids[rows], powers + exponents + extra, halves, times, chosen)

    def exact(self, groups: Ids) -> NDArray[np.bool_]:
        """All of them."""
        return np.ones(len(groups), np.bool_)

    def clear(self, groups: Ids) -> None:
        """Forget some groups."""
        for side in self._sides:
            side.known[groups] = 0

    @property
    def nbytes(self) -> int:
        """The memory that all groups take."""
        return sum(array.nbytes for side in self._sides for array in side.arrays())

    def fields(self) -> list[pa.Field]:
        """For each side whether it is known, and its product as power and mantissa with the item's time and value."""
        kinds = {"known": pa.int64(), "power": pa.int64(), "mantissa": pa.float64()}
        kinds |= {"time": pa.int64(), "value": pa.float64()}
        return [pa.field(f"{side.name}_{name}", kind) for side in self._sides for name, kind in kinds.items()]

    def partials(self, groups: Ids) -> list[pa.Array]:
        """The groups' states."""
        return [pa.array(array[groups]) for side in self._sides for array in side.arrays()]

    def absorb(self, ids: Ids, columns: list[pa.Array]) -> None:
        """Compare states with those of the groups."""
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        for side in self._sides:
            known, powers, mantissas, times, values = arrays[:5]
            arrays = arrays[5:]
            there = known != 0
            # What a side holds has its sign turned, as its comparisons want it.
            side.update(ids[there], powers[there], mantissas[there] * side.side, times[there], values[there])

    def answer(self, answer: Answer, groups: Ids, when: Asked) -> pa.Array:
        """The products divided by the weight of now, or the items behind them."""
        side = self._top if answer.question in ("max", "argmax") else self._bottom
        assert side is not None
        missing = side.known[groups] == 0
        if answer.question in ("argmin", "argmax"):
            values = pa.array(side.values[groups], mask=missing)
            if self.time is None:
                return values
            times = timecolumn.write(side.times[groups], timecolumn.unit_of(self.time), self._label, missing)
            return pa.StructArray.from_arrays([values, times], ["value", "time"], mask=pa.array(missing))
        gap = np.clip(side.powers[groups] - when.exponents, -3000, 3000).astype(np.int32)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = np.ldexp(side.mantissas[groups] / when.weights, gap) * side.side
        return pa.array(np.where(missing, np.nan, np.where(side.mantissas[groups] == 0, 0.0, found)))
