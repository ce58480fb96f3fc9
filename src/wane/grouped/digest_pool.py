"""Quantiles of all groups: :class:`wane.summaries.q_digest.QDigest` over one slab of nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.decay.base import Floats, Ints
from wane.errors import CorruptState
from wane.grouped.arena import EXPONENT
from wane.grouped.clock import Asked
from wane.grouped.contents import list_offsets
from wane.grouped.digest_slab import LOST, TOTAL, DigestSlab, GroupedNodes, Rule
from wane.grouped.pool import Ids
from wane.grouped.query import Answer
from wane.grouped.slab_pool import SlabPool
from wane.hashing import Hashes
from wane.summaries._nodes import spans
from wane.summaries._ordered import FloatKeys

_ROUNDING = 1e-9
_DOMAIN = FloatKeys()


class DigestPool(SlabPool):
    """A slab of nodes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        epsilon = dict(self.state.parameters)["epsilon"]
        levels = _DOMAIN.levels
        self._rule = Rule(2 * epsilon / levels, math.ceil(1 / epsilon), math.floor(2 * levels / epsilon) + 1)
        self._slab = DigestSlab(self._rule, self.budget)

    @property
    def strategy(self) -> str:
        """How the states are kept."""
        return f"buffer and sort: exact up to {self._rule.few} values, a q-digest of more when it pays"

    def exact(self, groups: Ids) -> NDArray[np.bool_]:
        """Those of which no two values have been put together."""
        return np.asarray(self._slab.nodes(groups).exact)

    def fields(self) -> list[pa.Field]:
        """A group's sums, its ends and its nodes as lists; keys have a sign, since Spark knows no others."""
        numbers = {"exponent": pa.int64(), "total": pa.float64(), "lost": pa.float64()}
        keys = {"least": pa.int64(), "largest": pa.int64(), "highs": pa.list_(pa.int64())}
        nodes = {"levels": pa.list_(pa.int8()), "loads": pa.list_(pa.float64())}
        return [pa.field(name, kind) for name, kind in (numbers | keys | nodes).items()]

    def partials(self, groups: Ids) -> list[pa.Array]:
        """The groups' states."""
        found = self._slab.nodes(groups)
        sums, ends = self._slab.sums.reshape(-1, 2)[groups], self._slab.ends.reshape(-1, 2)[groups]
        offsets = pa.array(found.offsets, pa.int32())
        columns = [pa.array(np.ascontiguousarray(column)) for column in (*sums.T, *ends.view(np.int64).T)]
        nodes = (found.highs.view(np.int64), found.levels.view(np.int8), found.loads)
        lists = [pa.ListArray.from_arrays(offsets, pa.array(column)) for column in nodes]
        return [pa.array(self._exponents(groups)), *columns, *lists]

    def absorb(self, ids: Ids, columns: list[pa.Array]) -> None:
        """Merge states of groups, one after the other."""
        powers, total, lost, least, largest, highs, levels, loads = columns
        offsets = list_offsets(highs)
        if any((list_offsets(other) != offsets).any() for other in (levels, loads)):
            raise CorruptState("a partial has lists of nodes, levels and weights that differ in length")
        plain = [column.flatten().to_numpy(zero_copy_only=False) for column in (highs, loads, levels)]
        nodes = GroupedNodes(
            offsets, plain[0].astype(np.int64).view(np.uint64), plain[1].astype(np.float64), plain[2].astype(np.uint8)
        )
        sums = np.column_stack([column.to_numpy(zero_copy_only=False) for column in (total, lost)])
        ends = np.column_stack([column.to_numpy(zero_copy_only=False) for column in (least, largest)])
        ends = ends.astype(np.int64).view(np.uint64)
        self._check(nodes, sums, ends)
        exponents = powers.to_numpy().astype(np.int64)
        self._slab.merge(ids, exponents, sums.reshape(-1), ends.reshape(-1), nodes)

    def answer(self, answer: Answer, groups: Ids, when: Asked) -> pa.Array:
        """The values of the ranks, which do not depend on when; NaN of nothing."""
        phis = np.array(dict(answer.arguments)["phis"], np.float64)
        ends = np.ascontiguousarray(self._slab.ends.reshape(-1, 2)[groups]).reshape(-1)
        found = _DOMAIN.values(self._slab.nodes(groups).quantiles(phis, ends))
        nothing = np.repeat(self._slab.sums.reshape(-1, 2)[groups, TOTAL] == 0, len(phis))
        offsets = np.arange(len(groups) + 1, dtype=np.int32) * len(phis)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.where(nothing, np.nan, found)))

    def _exponents(self, groups: Ids) -> Ints:
        return np.ascontiguousarray(self._slab.meta.reshape(-1, 5)[groups, EXPONENT])

    def _check(self, nodes: GroupedNodes, sums: Floats, ends: Hashes) -> None:
        """Refuse what no stream leads to."""
        offsets, highs, loads, levels = nodes
        sizes = np.diff(offsets)
        most = math.floor(3 * _DOMAIN.levels / dict(self.state.parameters)["epsilon"])
        if sizes.max(initial=0) > most:
            raise CorruptState(f"a partial has {sizes.max()} nodes, and at most {most} of them fit")
        owners = np.repeat(np.arange(len(sizes)), sizes)
        later = np.flatnonzero(owners[1:] == owners[:-1])
        in_order = (highs[later] < highs[later + 1]) | (
            (highs[later] == highs[later + 1]) & (levels[later] < levels[later + 1])
        )
        if not in_order.all() or levels.max(initial=0) > _DOMAIN.levels:
            raise CorruptState("the nodes of a partial are not in order")
        with np.errstate(over="ignore", invalid="ignore"):
            totals = np.bincount(owners, loads, len(sizes))
            allowed = np.where(levels == 0, math.inf, self._rule.share * totals[owners] * (1 + _ROUNDING))
            fits = np.isclose(totals, sums[:, TOTAL], rtol=_ROUNDING, atol=0)
            lost = np.abs(sums[:, LOST]) <= _ROUNDING * totals
        weighed = np.isfinite(totals).all() and fits.all() and lost.all()
        if not (weighed and ((loads >= 0) & (loads <= allowed)).all()):
            raise CorruptState("the weights of a partial do not fit its count")
        least, largest = ends[owners, 0], ends[owners, 1]
        if not ((highs & ~spans(levels) <= largest) & (highs >= least)).all():
            raise CorruptState("the nodes of a partial are not where its values are")
