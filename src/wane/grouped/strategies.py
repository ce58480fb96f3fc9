"""How the work on a summary is divided between the two levels: small parts of which any pair can be put together.

A low-level part has a scratchpad of fixed size for each slot of the cache of groups. It takes rows by slot; what grew
full it hands on as :class:`Flushed` and starts again, and what the cache ejects it hands on when it is told to. A
high-level part takes that for groups, in any order, and gives a summary for each. Neither knows how groups come to
their slots, or who carries what was flushed ("Holistic UDAFs at Streaming Speeds", section 4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane.decay.base import Floats, Ints
from wane.errors import BadInput
from wane.hashing import Hashes
from wane.summaries._tally import scaled

OUT = 1 << 14
"""Entries that are handed on together, at least."""


class Flushed(NamedTuple):
    """The content of scratchpads.

    Attributes:
        slots: Whose, one for each time that one was emptied.
        exponents: The power of two of the weights of each.
        offsets: Where the entries of each begin, and the end.
        columns: The entries: ids and weights, counters, keys of values, or tuples.
    """

    slots: Ints
    exponents: Ints
    offsets: Ints
    columns: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        """The number of entries."""
        return int(self.offsets[-1])

    @property
    def owners(self) -> Ints:
        """For each entry, the place in :attr:`slots` that it belongs to."""
        return np.repeat(np.arange(len(self.slots)), np.diff(self.offsets))

    def parts(self) -> Iterator[tuple[int, tuple[NDArray[Any], ...]]]:
        """The slot and the entries of each."""
        ends = zip(self.slots.tolist(), self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        for slot, start, end in ends:
            yield slot, tuple(column[start:end] for column in self.columns)


class Powers:
    """A power of two for each of some states, which only grows; weights are relative to it.

    Args:
        count: The number of states.
    """

    def __init__(self, count: int) -> None:
        self.each = np.full(count, -(2**40), np.int64)

    def grow(self, count: int) -> None:
        """Make room for more states."""
        self.each = np.append(self.each, np.full(max(count - len(self.each), 0), -(2**40), np.int64))

    def meet(self, owners: Ints, exponents: Any) -> tuple[Ints, Ints, Ints]:
        """Raise the powers of some states to those of weights that come for them.

        Args:
            owners: The states.
            exponents: The powers of the weights, one or one for each.

        Returns:
            The states whose content has to be scaled, by how much, and by how much each of the weights.
        """
        wanted = np.broadcast_to(np.asarray(exponents, np.int64), owners.shape)
        gaps = wanted - self.each[owners]
        if not gaps.any():
            return owners[:0], owners[:0], gaps
        before = self.each.copy()
        np.maximum.at(self.each, owners, wanted)
        raised = np.flatnonzero(self.each > before)
        return raised, np.maximum(before[raised] - self.each[raised], -3000), wanted - self.each[owners]


def brought(weights: Floats, by: Ints) -> Floats:
    """Weights, each scaled by its own power of two."""
    return np.ldexp(weights, np.maximum(by, -3000).astype(np.int32)) if by.any() else scaled(weights, 0)


def aligned(ids: Hashes, bits: int) -> Hashes:
    """Ids of so many bits, with their first bit on the left."""
    if bits < 64 and len(ids) and int(ids.max()) >> bits:
        raise BadInput(
            f"ids must be below 2**{bits} here, got {int(ids.max())}; drop such rows first, or take more bits"
        )
    return ids << np.uint64(64 - bits)


class LowPart(ABC):
    """Scratchpads of a fixed size, one for each slot."""

    @property
    @abstractmethod
    def slot_bytes(self) -> int:
        """The memory of a scratchpad."""

    @abstractmethod
    def add(self, slots: Ints, items: Hashes, weights: Floats | None = None, exponent: int = 0) -> Iterator[Flushed]:
        """Add rows, and hand on what does not fit any more; nothing is added that is not iterated over.

        Args:
            slots: The slot of each.
            items: Ids, or keys of values.
            weights: Their weights; None for 1 each.
            exponent: The power of two of the weights.
        """

    @abstractmethod
    def flush(self, slots: Ints) -> Flushed:
        """Hand on what some slots hold, and empty them."""


class HighPart(ABC):
    """The states of groups, made of what low levels hand on."""

    @abstractmethod
    def take(self, groups: Ints, flushed: Flushed) -> None:
        """Add what was flushed, from scratchpads of these groups."""

    @abstractmethod
    def summary(self, group: int) -> Any:
        """The summary of a group, to ask."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """About the memory that all groups take."""
