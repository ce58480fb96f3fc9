"""The steps of an algorithm in a compiled loop: what experiments time, and what the Python object must equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane._jit import PLAIN, Step, cycles, step
from wane.errors import BadParameter
from wane.monoids.base import monoid_of, require
from wane.windows._roll import answer_cells, cells, element, evict, fill, insert, lower, names, query, split
from wane.windows.base import MASK, SUMS, E, F, Queue, able, positions


class Compiled:
    """A window whose operations run in compiled loops, over room for a fixed number of items.

    Args:
        window: The class of a window written as steps.
        monoid: What it aggregates with.
        capacity: For how many items there is room.

    >>> from wane.windows import DABA
    >>> w = Compiled(DABA, "max", capacity=4)
    >>> w.script([True, True, False], [3.0, 5.0]).tolist()
    [3.0, 5.0, 5.0]
    """

    def __init__(self, window: type[Queue], monoid: Any, capacity: int) -> None:
        self.window, self.monoid = window, monoid_of(monoid)
        require(self.monoid, window.SPEC.needs, window.__name__, able(window.SPEC))
        self.cell, self.answer = self.monoid.layouts()
        size = 1 << max(capacity - 1, 1).bit_length()
        self.capacity = size
        self._store = self.cell.store(SUMS + size * window.RINGS)
        fill(self._store, self.monoid.identity)
        p = positions(window, size)
        self._p: Any = p if self.plain else np.array(p, np.int64)

    @property
    def plain(self) -> bool:
        """Whether it runs as plain Python after all."""
        return self.cell is PLAIN

    def __len__(self) -> int:
        """The number of items."""
        return int(self._p[E] - self._p[F])

    def script(self, inserts: Any, values: Any) -> NDArray[Any]:
        """Insert the next value where `inserts` is true, else evict; gives the answer after each of them."""
        ops = np.asarray(inserts, np.bool_)
        size = len(self) + np.cumsum(np.where(ops, 1, -1))
        if len(ops) and not (size.min() >= 0 and size.max() <= self.capacity):
            raise BadParameter(
                f"a script keeps from 0 to {self.capacity} items, and this one from {size.min()} to {size.max()}"
            )
        if ops.sum() > len(values):
            raise BadParameter(f"a script inserts {ops.sum()} values, and there are {len(values)}; give more")
        out = self.answer.store(len(ops))
        self._run(_script, "r_b1", self.answer.signature, ops, values, self.answer.passed(out))
        return out

    def rounds(self, values: Any) -> NDArray[np.int64]:
        """Evict, insert and query for each value, and the processor's cycles that each round took."""
        took = np.zeros(len(values), np.int64)
        self._run(_rounds, self.answer.signature, "w_i8", self.answer.passed(self.answer.store(1)), values, took)
        return took

    def pass_over(self, values: Any) -> None:
        """Evict, insert and query for each value, untimed."""
        self._run(_rounds_untimed, self.answer.signature, "int64", self.answer.passed(self.answer.store(1)), values, 0)

    def _run(self, body: Step, first: str, last: str, given: Any, values: Any, out: Any) -> None:
        kernels: dict[Any, Any] = self.monoid.__dict__.setdefault("_scripts", {})
        key = (body, self.window)
        if key not in kernels:
            known = names(self.monoid, self.window, self.cell, self.answer) | {"cycles": cycles}
            counted = self.cell.counted or self.answer.counted
            signature = f"void({first}, r_f8, w_i8, {self.cell.signature}, {last})"
            kernels[key] = (
                body.closed(known)
                if self.plain
                else body.kernel(known, signature, cached=self.monoid.lasting, counted=counted)
            )
        column = np.ascontiguousarray(values, np.float64) if not self.plain else values
        kernels[key](given, column, self._p, self.cell.passed(self._store), out)


@step
def _script(ops: Any, values: Any, p: Any, store: Any, out: Any) -> None:
    cell, answers = cells(store), answer_cells(out)
    sums, rings = cell[:SUMS], split(cell, p[MASK] + 1)
    at = 0
    for i in range(len(ops)):
        if ops[i]:
            insert(p, sums, rings, element(values, values, at))
            at += 1
        else:
            evict(p, sums, rings)
        answers[i] = lower(query(p, sums, rings))


@step
def _rounds(out: Any, values: Any, p: Any, store: Any, took: Any) -> None:
    cell, answers = cells(store), answer_cells(out)
    sums, rings = cell[:SUMS], split(cell, p[MASK] + 1)
    before = cycles()
    for i in range(len(values)):
        evict(p, sums, rings)
        insert(p, sums, rings, element(values, values, i))
        answers[0] = lower(query(p, sums, rings))
        now = cycles()
        took[i] = now - before
        before = now


@step
def _rounds_untimed(out: Any, values: Any, p: Any, store: Any, nothing: Any) -> None:
    cell, answers = cells(store), answer_cells(out)
    sums, rings = cell[:SUMS], split(cell, p[MASK] + 1)
    for i in range(len(values)):
        evict(p, sums, rings)
        insert(p, sums, rings, element(values, values, i))
        answers[0] = lower(query(p, sums, rings))
