"""Pools: the states of all groups of a query in a few arrays, updated by one native pass over a batch.

A summary has a pool of its own kind when one is written for it (:func:`make_pool`); any other is kept as one object a
group by :class:`ObjectPool`, which is slow and always right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.decay import Forward, NoDecay, Pinned
from wane.grouped.clock import Asked, Clock, Rows, measured_in_epoch
from wane.grouped.query import Answer, Every, State
from wane.grouped.words import WordColumn
from wane.hashing import hash_one
from wane.registry import lookup
from wane.summaries.base import Summary, ask
from wane.times import Nanoseconds, Ticks

Ids = NDArray[np.int64]


class Named(NamedTuple):
    """The values of some rows with what tells the rows apart."""

    values: Any
    ids: pa.Array


class Pool(ABC):
    """The states of one :class:`~wane.plan.State` for all groups.

    Args:
        state: What is kept.
        every: The epochs of the query, or None.
        questions: What will be asked of it, so that it keeps no more than that needs.
        time: The type of the query's time column, or None where it has none.
        words: The words of its items, where they may be anything and not only numbers.

    Attributes:
        stream: Tells these states from those of other rows: samples draw their random numbers by it.
    """

    def __init__(
        self,
        state: State,
        every: Every | None,
        questions: frozenset[str],
        time: pa.DataType | None,
        words: WordColumn | None = None,
    ) -> None:
        self.state = state
        self.every = every
        self.questions = questions
        self.time = time
        self.stream = 0
        self._words = words

    @property
    def takes_words(self) -> bool:
        """Whether its values are words, and not doubles."""
        return self._words is not None

    @property
    def words(self) -> WordColumn:
        """The words of its items."""
        assert self._words is not None
        return self._words

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """About the memory that all groups take."""

    @abstractmethod
    def grow(self, groups: int) -> None:
        """Make room for this many groups."""

    @abstractmethod
    def update(self, ids: Ids, clock: Clock | None, values: Any) -> None:
        """Add a batch.

        Args:
            ids: The group of each row; there is room for it.
            clock: The rows' times, where the query has any.
            values: The rows' values, all usable: doubles, or words where items may be anything; None where whole rows
                are counted; :class:`Named` where the state has ids.
        """

    @abstractmethod
    def fields(self) -> list[pa.Field]:
        """The columns that a group's state travels as."""

    @abstractmethod
    def partials(self, groups: Ids) -> list[pa.Array]:
        """The states of some groups, as those columns."""

    @abstractmethod
    def absorb(self, ids: Ids, columns: list[pa.Array]) -> None:
        """Merge states, given as those columns, into groups that there is room for, in the order given."""

    @abstractmethod
    def answer(self, answer: Answer, groups: Ids, when: Asked) -> pa.Array:
        """Answer a question for some groups.

        Args:
            answer: The question.
            groups: The groups.
            when: When each of them is asked.
        """


class ObjectPool(Pool):
    """One summary object a group: the fallback for a summary without a pool of its own."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._spec = lookup(self.state.summary)
        self._objects: dict[int, Summary] = {}

    def grow(self, groups: int) -> None:
        """Nothing to do: objects are made when their first row comes."""

    @property
    def nbytes(self) -> int:
        """By what the `SPEC` says a state takes at most."""
        return len(self._objects) * self._spec.state_bytes(dict(self.state.parameters))

    def update(self, ids: Ids, clock: Clock | None, values: Any) -> None:
        """Sort the batch by group, and give each object its rows at once."""
        order = np.argsort(ids, kind="stable")
        names = None
        if isinstance(values, Named):
            values, names = values
        items: Any = np.ones(len(ids)) if values is None else values
        for rows in np.split(order, np.flatnonzero(np.diff(ids[order])) + 1):
            if not len(rows):
                continue
            group = int(ids[rows[0]])
            if group not in self._objects:
                self._objects[group] = self._empty(group, None if clock is None else clock.epoch(int(rows[0])))
            times = None if clock is None else Ticks(clock.times.values[rows], clock.times.unit)
            chosen = items[rows]
            if self._words is not None:
                chosen = self._words.values(chosen, np.zeros(len(chosen), np.bool_))
            named = {} if names is None else {"ids": names.take(pa.array(rows))}
            self._objects[group].update(chosen, times, **named)

    def fields(self) -> list[pa.Field]:
        """The bytes of the summary; null where no row has come."""
        return [pa.field("state", pa.binary())]

    def partials(self, groups: Ids) -> list[pa.Array]:
        """The groups' states."""
        objects = [self._objects.get(group) for group in groups.tolist()]
        return [pa.array([None if one is None else one.to_bytes() for one in objects], pa.binary())]

    def absorb(self, ids: Ids, columns: list[pa.Array]) -> None:
        """Merge states object by object."""
        for group, data in zip(ids.tolist(), columns[0].to_pylist(), strict=True):
            if data is None:
                continue
            found = self._spec.make.from_bytes(data)
            mine = self._objects.get(group)
            self._objects[group] = found if mine is None else mine.merge(found)

    def answer(self, answer: Answer, groups: Ids, when: Asked) -> pa.Array:
        """Put the question to every object."""
        found = []
        for i, group in enumerate(groups.tolist()):
            summary = self._objects.get(group)
            if summary is None:  # every row of the group was dropped
                summary = self._spec.make(decay=NoDecay(), **dict(self.state.parameters))
            now: Any = "latest"
            if when.times:
                asked = when.times[when.place[i]]
                now = Nanoseconds(asked if self.state.landmark is None else max(asked, self.state.landmark))
            found.append(_plain(ask(summary, answer.question, now, dict(answer.arguments))))
        return pa.array(found, self._kind(answer))

    def _kind(self, answer: Answer) -> pa.DataType:
        """The type of an answer, as an empty summary shows it."""
        if answer.question == "sample":
            numbers = [pa.field(name, pa.float64()) for name in ("weight", "stands_for")]
            return pa.list_(pa.struct([pa.field("item", self.words.kind), *numbers]))
        empty = ask(self._spec.make(**dict(self.state.parameters)), answer.question, "latest", dict(answer.arguments))
        return pa.float64() if isinstance(empty, (int, float)) else pa.array([empty]).type

    def _empty(self, group: int, epoch: int | None) -> Summary:
        state, every = self.state, self.every
        decay, landmark = state.decay, state.landmark
        if every is not None and epoch is not None and measured_in_epoch(state, every):
            start = every.offset + epoch * every.length
            if isinstance(decay, Forward):
                landmark = start
            else:
                decay = Pinned(decay, start + every.length)
        made: Summary = self._spec.make(
            decay=decay,
            landmark=None if landmark is None else Nanoseconds(landmark),
            **self._parameters(group),
        )
        return made

    def _parameters(self, group: int) -> dict[str, Any]:
        """The parameters of one group's summary: where rows are numbered, each group of each store has its own seed."""
        found = dict(self.state.parameters)
        if self._spec.numbered and self.state.ids is None:
            found["seed"] = hash_one((self.stream, group), found.get("seed", 0))
        return found


def _plain(answer: Any) -> Any:
    """An answer as Arrow takes it: rows that have names as mappings."""
    if isinstance(answer, list):
        return [one._asdict() if hasattr(one, "_asdict") else one for one in answer]
    return answer


def make_pool(
    state: State,
    every: Every | None,
    questions: frozenset[str],
    time: pa.DataType | None,
    words: WordColumn | None = None,
) -> Pool:
    """The pool for a state: of the summary's own kind, or the fallback."""
    from wane.grouped.extrema_pool import ExtremaPool
    from wane.grouped.heavy_pool import HeavyPool
    from wane.grouped.moments_pool import MomentsPool

    own: dict[str, type[Pool]] = {"moments": MomentsPool, "extrema": ExtremaPool, "spacesaving": HeavyPool}
    return own.get(state.summary, ObjectPool)(state, every, questions, time, words)


def unweighted(size: int) -> list[Rows]:
    """Rows that all weigh 1."""
    return [Rows(slice(0, size), np.ones(size), np.zeros(size, np.int64))]
