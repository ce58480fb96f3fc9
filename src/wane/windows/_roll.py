"""Whole columns through windows: one answer a row, from the items before it and its own.

A column is passed over in blocks that stay in the cache, and each block is given to every window and aggregate in turn,
so that several of them read it from memory once. The front of each row's window is found once for each length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane._jit import PLAIN, Layout, Step, kernel, step
from wane.errors import BadInput, BadParameter, BadTime, Unsupported
from wane.monoids.base import Monoid, check, monoid_of, require
from wane.monoids.decayed import Decayed
from wane.monoids.product import Product
from wane.summaries.base import column_of, whole
from wane.times import Ticks, show, ticks
from wane.windows.base import (
    MASK,
    SUMS,
    E,
    F,
    Queue,
    able,
    combine,
    identity,
    length_of,
    open_names,
    positions,
    window_of,
)
from wane.windows.two_stacks_lite import TwoStacksLite

BLOCK = 1 << 15

Ints = NDArray[np.int64]


def roll(
    values: Any,
    times: Any = None,
    *,
    rows: Any = None,
    duration: Any = None,
    agg: Any,
    algorithm: Any = None,
) -> Any:
    """Aggregate a window at every row of a column: over the last `rows`, or those younger than `duration`.

    Each row's window ends with the row itself; at the start windows hold what there is. A missing value (NaN, a null,
    or one of 2.6e120 or more) brings nothing into its windows, and has an answer like every row. An item of just the
    age of the duration is outside. Values are read as doubles where the aggregates are native, and taken as they are by
    those over any items.

    Args:
        values: The column.
        times: Their times, which do not go back; needed for `duration`, and by decayed aggregates.
        rows: How many rows, or several such numbers.
        duration: How long, or several lengths.
        agg: A monoid (its name, one of :mod:`wane.monoids` or of :func:`wane.monoid`), or several.
        algorithm: A first-in-first-out window, by class or name, whose own steps do the work. By default it is
            :class:`wane.TwoStacksLite`, as a pass over the array that keeps no queue of values.

    Returns:
        An array with an answer for each row; with several lengths or aggregates a dict of them, by the lengths or
        aggregates as they were given, or by ``(length, aggregate)``. Answers of several parts are fields of a
        structured array, positions (of ``"argmax"``) are row numbers, -1 where there is none.

    >>> roll([2, 6, 3, 5, 3, 1], rows=3, agg="max")
    array([2., 6., 6., 6., 5., 5.])
    >>> roll([2, 6, 3], times=[0, 60, 90], duration=["1m", "1h"], agg="sum")
    {'1m': array([2., 6., 9.]), '1h': array([ 2.,  8., 11.])}
    """
    aggs, several = _aggregates(agg)
    lengths, ranges = _lengths(rows, duration)
    column = None if times is None else _in_order(ticks(times))
    for monoid in aggs.values():
        if monoid.items == "timed" and column is None:
            raise BadTime(f"{monoid.label} depends on times, and none were given; give times=")
    if duration is not None and column is None:
        raise BadTime("a duration is measured in times, and none were given; give times=, or rows=")
    source = _Source(values, column)
    for monoid in aggs.values():
        if monoid.unchecked:
            check(monoid, source.column(monoid.items)[:1])
    chosen = None if algorithm is None else _algorithm(algorithm)
    tasks = []
    for key, length in lengths.items():
        spans = _Spans(length, column if duration is not None else None, len(source))
        tasks.append((key, spans, [_Rolling(_over(m, duration, length), source, spans, chosen) for m in aggs.values()]))
    for first in range(0, len(source), BLOCK):
        size = min(BLOCK, len(source) - first)
        for _, spans, rolling in tasks:
            starts = spans.starts(first, size)
            for one in rolling:
                one.run(starts, first)
    found = {(key, name): one.answers() for key, _, rolling in tasks for name, one in zip(aggs, rolling, strict=True)}
    if ranges and several:
        return found
    if ranges or several:
        return {key[0] if ranges else key[1]: answers for key, answers in found.items()}
    return next(iter(found.values()))


class _Source:
    """The column in the forms that aggregates take it, each made when it is first asked for."""

    def __init__(self, values: Any, times: Ticks | None) -> None:
        self.given = values
        self.times = times
        self._columns: dict[str, Any] = {}
        if not (hasattr(values, "__len__") or hasattr(values, "__arrow_c_stream__")) or isinstance(
            values, (str, bytes)
        ):
            raise BadInput(f"values must be a column, got {values!r:.60}; give an array or a list")
        self._size = len(values) if hasattr(values, "__len__") else len(self.column("numbers"))
        if times is not None and len(times) != self._size:
            raise BadInput(f"{self._size} values came with {len(times)} times; give one time for each value")

    def __len__(self) -> int:
        """The number of rows."""
        return self._size

    def column(self, kind: str) -> Any:
        """The values: doubles with NaN where they are missing, or as they are for any items."""
        kind = "any" if kind == "any" else "numbers"
        if kind not in self._columns:
            if kind == "any":
                plain = self.given.to_pylist() if hasattr(self.given, "to_pylist") else self.given
                self._columns[kind] = plain.tolist() if hasattr(plain, "tolist") else list(plain)
            else:
                numbers, good = column_of(self.given, "values")
                self._columns[kind] = numbers if good is None else np.where(good, numbers, np.nan)
        return self._columns[kind]

    def beside(self, kind: str) -> NDArray[np.float64]:
        """What stands beside the values: seconds since the first time, or nothing."""
        if kind != "timed" or self.times is None or not self._size:
            return np.zeros(0)
        return self.times.seconds_since(int(self.times.values[0]) * self.times.per_tick)


class _Spans:
    """Where the window of each row begins."""

    def __init__(self, length: int, times: Ticks | None, size: int) -> None:
        self.length = length
        self.widest = min(length, size)
        self._ticks = None
        self._begin = 0
        if times is not None:
            self._ticks = times.values
            self.length = min(-(-length // times.per_tick), 2**63 - 1)
            self.widest = int(_widest(self._ticks, self.length))

    def starts(self, first: int, size: int) -> Ints:
        """Those of a block of rows."""
        out = np.empty(size, np.int64)
        if self._ticks is None:
            _row_starts(first, self.length, out)
        else:
            self._begin = int(_time_starts(self._ticks, self.length, first, self._begin, out))
        return out


class _Plan(NamedTuple):
    """A loop closed over one monoid, and how what it works on is laid out."""

    run: Any
    cell: Layout
    answer: Layout


class _Rolling:
    """One aggregate over windows of one length, as far as it has come."""

    def __init__(self, monoid: Monoid, source: _Source, spans: _Spans, algorithm: type[Queue] | None) -> None:
        if algorithm is not None:
            require(monoid, algorithm.SPEC.needs, algorithm.__name__, able(algorithm.SPEC))
        self.plan = plan = _plan(monoid, algorithm)
        size = 1 << spans.widest.bit_length()  # more than the widest, and a power of two
        p = positions(algorithm or _Pass, size)
        rings = (algorithm or _Pass).RINGS
        self.store = plan.cell.store(SUMS + size * rings)
        self.out = plan.answer.store(len(source))
        self.values, self.beside = source.column(monoid.items), source.beside(monoid.items)
        self.plain = plan.cell is PLAIN
        self.p: Any = p if self.plain else np.array(p, np.int64)
        fill(self.store, monoid.identity)
        if self.plain and isinstance(self.values, np.ndarray):
            self.values, self.beside = self.values.tolist(), self.beside.tolist()

    def run(self, starts: Ints, first: int) -> None:
        """Go on by a block of rows."""
        store, out = self.plan.cell.passed(self.store), self.plan.answer.passed(self.out[first : first + len(starts)])
        given: Any = starts.tolist() if self.plain else starts
        self.plan.run(self.values, self.beside, given, first, self.p, store, out)

    def answers(self) -> NDArray[Any]:
        """What was answered; numbers as numbers."""
        if not self.plain:
            return self.out
        numbers = len(self.out) and all(isinstance(answer, (int, float)) for answer in self.out)
        return np.array(self.out.tolist()) if numbers else self.out


def fill(store: NDArray[Any], nothing: Any) -> None:
    if store.dtype == object:
        for i in range(len(store)):
            store[i] = nothing
    else:
        store[:] = nothing


def names(monoid: Monoid, algorithm: type[Queue] | None, cell: Layout, answer: Layout) -> dict[str, Any]:
    """What the open names of a loop over a column stand for."""
    given = {
        **open_names(monoid),
        "lift": monoid.compiled_lift or monoid.lift,
        "lower": monoid.lower,
        "element": _ELEMENTS[monoid.items],
        "cells": cell.view,
        "answer_cells": answer.view,
    }
    if algorithm is not None:
        steps = {"insert": algorithm.insert_step, "evict": algorithm.evict_step, "query": algorithm.query_step}
        given |= {**steps, "split": _SPLITS[algorithm.RINGS]}
    return given


def _plan(monoid: Monoid, algorithm: type[Queue] | None) -> _Plan:
    """The loop for a monoid and an algorithm, closed and compiled once."""
    plans: dict[Any, _Plan] = monoid.__dict__.setdefault("_plans", {})
    if algorithm not in plans:
        cell, answer = monoid.layouts()
        given = names(monoid, algorithm, cell, answer)
        body = _over_array
        if algorithm is not None:
            body = _stepwise
        if cell is PLAIN:
            plans[algorithm] = _Plan(body.closed(given), cell, answer)
        else:
            signature = f"void(r_f8, r_f8, r_i8, int64, w_i8, {cell.signature}, {answer.signature})"
            made = body.kernel(given, signature, cached=monoid.lasting, counted=cell.counted or answer.counted)
            plans[algorithm] = _Plan(made, cell, answer)
    return plans[algorithm]


# --- The loops. Their open names: a monoid's functions, an algorithm's steps, and how columns of aggregates are read.


def lift(*given: Any) -> Any:
    """Stands for the monoid's way in; the others for its way out, and for what the loops are closed with."""
    raise NotImplementedError


lower = element = insert = evict = query = split = cells = answer_cells = lift


@step
def _number(values: Any, beside: Any, i: Any) -> Any:
    """The aggregate of one row: nothing where its value is missing."""
    v = values[i]
    return lift(v) if v == v else identity


@step
def _pair(values: Any, beside: Any, i: Any) -> Any:
    """The aggregate of one row with its number."""
    v = values[i]
    return lift((v, i)) if v == v else identity


@step
def _timed(values: Any, beside: Any, i: Any) -> Any:
    """The aggregate of one row with its time."""
    v = values[i]
    return lift((v, beside[i])) if v == v else identity


@step
def _any(values: Any, beside: Any, i: Any) -> Any:
    """The aggregate of one row, whatever it is."""
    return lift(values[i])


_ELEMENTS: Mapping[str, Step] = {"numbers": _number, "pairs": _pair, "timed": _timed, "any": _any}


@step
def _one_ring(cell: Any, size: Any) -> Any:
    return (cell[SUMS : SUMS + size],)


@step
def _two_rings(cell: Any, size: Any) -> Any:
    return cell[SUMS : SUMS + size], cell[SUMS + size : SUMS + 2 * size]


@step
def _four_rings(cell: Any, size: Any) -> Any:
    return (
        cell[SUMS : SUMS + size],
        cell[SUMS + size : SUMS + 2 * size],
        cell[SUMS + 2 * size : SUMS + 3 * size],
        cell[SUMS + 3 * size : SUMS + 4 * size],
    )


_SPLITS: Mapping[int, Step] = {1: _one_ring, 2: _two_rings, 4: _four_rings}


@step
def _stepwise(values: Any, beside: Any, starts: Any, first: Any, p: Any, store: Any, out: Any) -> None:
    """Insert, evict and query at each row, by the steps of any algorithm."""
    cell, answers = cells(store), answer_cells(out)
    sums, rings = cell[:SUMS], split(cell, p[MASK] + 1)
    for j in range(len(starts)):
        while p[F] < starts[j]:
            evict(p, sums, rings)
        insert(p, sums, rings, element(values, beside, first + j))
        answers[j] = lower(query(p, sums, rings))


class _Pass(Queue):
    """What the pass over an array keeps: a ring of aggregates for the front, where the back begins, and its sum."""


B = E
"""Where the back begins: the pass needs no end, which is its row."""


@step
def _over_array(values: Any, beside: Any, starts: Any, first: Any, p: Any, store: Any, out: Any) -> None:
    """Two-Stacks Lite with the array itself as the queue: only the front's aggregates are kept."""
    cell, answers = cells(store), answer_cells(out)
    back, b, mask = cell[0], p[B], p[MASK]
    for j in range(len(starts)):
        i, start = first + j, starts[j]
        back = combine(back, element(values, beside, i))
        if start >= b:  # flip
            front = element(values, beside, i)
            cell[SUMS + (i & mask)] = front
            for k in range(i - 1, start - 1, -1):
                front = combine(element(values, beside, k), front)
                cell[SUMS + (k & mask)] = front
            b = i + 1
            back = identity
        answers[j] = lower(combine(cell[SUMS + (start & mask)], back))
    p[B] = b
    cell[0] = back


@kernel("void(int64, int64, w_i8)")
def _row_starts(first: int, length: int, out: Ints) -> None:
    for j in range(out.shape[0]):
        out[j] = max(first + j + 1 - length, 0)


@kernel("int64(r_i8, int64, int64, int64, w_i8)")
def _time_starts(times: Ints, length: int, first: int, begin: int, out: Ints) -> int:
    """The first row of each window; gives the last of them, to go on from."""
    for j in range(out.shape[0]):
        while times[first + j] - times[begin] >= length:
            begin += 1
        out[j] = begin
    return begin


@kernel("int64(r_i8, int64)")
def _widest(times: Ints, length: int) -> int:
    """The most rows that a window holds."""
    begin = most = 0
    for i in range(times.shape[0]):
        while times[i] - times[begin] >= length:
            begin += 1
        most = max(most, i + 1 - begin)
    return most


@kernel("int64(r_i8)")
def _goes_back(times: Ints) -> int:
    """The first row whose time is before that of the row above, or 0."""
    for i in range(1, times.shape[0]):
        if times[i] < times[i - 1]:
            return i
    return 0


# --- What was asked


def _aggregates(agg: Any) -> tuple[dict[Any, Monoid], bool]:
    """The monoids asked for, by what they were called, and whether several were."""
    if isinstance(agg, Product):
        agg = agg.parts
    if isinstance(agg, (list, tuple)):
        if not agg:
            raise BadParameter("agg names no monoid; give one, such as 'max', or several")
        found = [(one if isinstance(one, str) else monoid_of(one).label, monoid_of(one)) for one in agg]
        if len(dict(found)) < len(found):
            raise BadParameter("two aggregates have one name; give monoids of your own a name=")
        return dict(found), True
    return {agg if isinstance(agg, str) else "": monoid_of(agg)}, False


def _lengths(rows: Any, duration: Any) -> tuple[dict[Any, int], bool]:
    """The lengths asked for, in rows or nanoseconds, by how they were given, and whether several were."""
    if (rows is None) == (duration is None):
        raise BadParameter("a window is of some rows or of some duration; give rows= or duration=")
    given = duration if rows is None else rows
    several = isinstance(given, Sequence) and not isinstance(given, str)
    lengths = {
        one: whole(one, "rows", 1) if rows is not None else length_of(one) for one in (given if several else [given])
    }
    if not lengths:
        raise BadParameter("no length was given; give rows= or duration= one, or several")
    return lengths, several


def _over(monoid: Monoid, duration: Any, length: int) -> Monoid:
    """A decayed monoid with its landmark at the start of windows of some duration."""
    return monoid.over(length) if isinstance(monoid, Decayed) and duration is not None else monoid


def _in_order(column: Ticks) -> Ticks:
    """Times that a window can follow: none missing, none going back, no further apart than 64 bits hold."""
    if column.valid is not None:
        row = int(np.argmin(column.valid))
        raise BadTime(f"row {row} has no time, and a window cannot place it; drop such rows first")
    if len(column):
        low, high = column.span()
        if high - low >= 2**63 * column.per_tick:
            raise BadTime(
                f"times from {show(low)} to {show(high)} are further apart than 64 bits of {column.unit} hold"
            )
        row = int(_goes_back(column.values))
        if row:
            before, after = (show(int(column.values[at]) * column.per_tick) for at in (row - 1, row))
            raise BadTime(
                f"row {row} is at {after}, before {before} of the row above, and a first-in-first-out window does not "
                "go back; sort the rows by time first"
            )
    return column


def _algorithm(given: Any) -> type[Queue] | None:
    """The window whose steps do the work, or None for the pass, which is Two-Stacks Lite."""
    found = window_of(given)
    if not issubclass(found, Queue):
        raise Unsupported(f"{found.__name__} has no steps that run over a column; use DABALite or TwoStacksLite")
    return None if found is TwoStacksLite else found
