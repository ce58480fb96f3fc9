"""Heavy hitters of all groups: the algorithm of :class:`wane.summaries.space_saving.SpaceSaving` over one slab."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.decay.base import Floats
from wane.errors import CorruptState
from wane.grouped.arena import EXPONENT
from wane.grouped.clock import Asked
from wane.grouped.contents import list_offsets
from wane.grouped.pool import Ids
from wane.grouped.query import Answer
from wane.grouped.slab import LOST, MISSED, TOTAL, Entries, Slab
from wane.grouped.slab_pool import SlabPool

_ROUNDING = 1e-12


class HeavyPool(SlabPool):
    """A slab of counters: items as words, their weights and errors."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        epsilon = dict(self.state.parameters)["epsilon"]
        self._room = math.ceil(1 / epsilon)
        self._slab = Slab(self._room, self.budget)

    @property
    def strategy(self) -> str:
        """How the states are kept."""
        return f"buffer and hash: exact up to {self._room} items, the {self._room} heaviest of more (SpaceSaving)"

    def exact(self, groups: Ids) -> NDArray[np.bool_]:
        """Those that have let no item go."""
        self._slab.entries(groups)
        return np.asarray(self._slab.sums.reshape(-1, 3)[groups, MISSED] == 0)

    def error(self, answer: Answer) -> float:
        """That of the weights; which item is among the answers is as uncertain."""
        return float(dict(self.state.parameters)["epsilon"])

    def fields(self) -> list[pa.Field]:
        """The sums of a group, and its counters as lists."""
        numbers = [pa.field(name, pa.float64()) for name in ("total", "lost", "missed")]
        lists = [pa.field("weights", pa.list_(pa.float64())), pa.field("errors", pa.list_(pa.float64()))]
        items = pa.field("items", pa.list_(self.words.kind))
        return [pa.field("exponent", pa.int64()), *numbers, items, *lists]

    def partials(self, groups: Ids) -> list[pa.Array]:
        """The groups' states."""
        found = self._slab.entries(groups)
        meta, sums = self._slab.meta.reshape(-1, 5)[groups], self._slab.sums.reshape(-1, 3)[groups]
        offsets = pa.array(found.offsets, pa.int32())
        items = self.words.values(found.words, np.zeros(len(found.words), np.bool_))
        columns = [items, pa.array(found.weights), pa.array(found.errors)]
        return [
            pa.array(meta[:, EXPONENT]),
            *(pa.array(np.ascontiguousarray(sums[:, i])) for i in (TOTAL, LOST, MISSED)),
            *(pa.ListArray.from_arrays(offsets, column) for column in columns),
        ]

    def absorb(self, ids: Ids, columns: list[pa.Array]) -> None:
        """Merge states of groups, one after the other."""
        powers, total, lost, missed, items, weights, errors = columns
        offsets = list_offsets(items)
        sizes = np.diff(offsets)
        if any((np.diff(list_offsets(other)) != sizes).any() for other in (weights, errors)):
            raise CorruptState("a partial has lists of items, weights and errors that differ in length")
        if sizes.max(initial=0) > self._room:
            raise CorruptState(f"a partial has {sizes.max()} counters, and at most {self._room} of them fit")
        words, _ = self.words.words(items.flatten())
        values = np.column_stack([_floats(weights.flatten()), _floats(errors.flatten())]).reshape(-1)
        sums = np.column_stack([_floats(column) for column in (total, lost, missed)]).reshape(-1)
        self._slab.merge(ids, powers.to_numpy().astype(np.int64), sums, Entries(offsets, words, values))

    def answer(self, answer: Answer, groups: Ids, when: Asked) -> pa.Array:
        """The heaviest items of each group, heaviest first, with weights divided by that of now."""
        asked = dict(answer.arguments)
        found = self._slab.entries(groups)
        owners = found.owners
        if answer.question == "top":
            marks = found.heaviest(asked["k"])
        else:
            sums = self._slab.sums.reshape(-1, 3)[groups]
            least = asked["phi"] * (sums[:, TOTAL] + sums[:, LOST]) * (1 - _ROUNDING)
            marks = found.weights >= least[owners]
        chosen = found.chosen(marks)
        owners = chosen.owners
        gap = self._slab.meta.reshape(-1, 5)[groups, EXPONENT] - when.exponents
        by = np.clip(gap, -3000, 3000).astype(np.int32)[owners]
        with np.errstate(over="ignore"):
            weights, errors = (np.ldexp(x / when.weights[owners], by) for x in (chosen.weights, chosen.errors))
        items = self.words.values(chosen.words, np.zeros(len(chosen.words), np.bool_))
        hits = pa.StructArray.from_arrays([items, pa.array(weights), pa.array(errors)], ["item", "weight", "error"])
        return pa.ListArray.from_arrays(pa.array(chosen.offsets, pa.int32()), hits)


def _floats(array: pa.Array) -> Floats:
    found: Floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return found
