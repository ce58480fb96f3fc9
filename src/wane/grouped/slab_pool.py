"""What pools over a slab have in common: rows are appended, groups have stretches of it, and it knows its size."""

from __future__ import annotations

from typing import Any

from wane.grouped.clock import Clock
from wane.grouped.pool import Ids, Pool, unweighted


class SlabPool(Pool):
    """A pool whose states lie in a slab, which whoever derives from it makes."""

    _slab: Any

    @property
    def nbytes(self) -> int:
        """The memory that all groups take."""
        return int(self._slab.nbytes)

    def grow(self, groups: int) -> None:
        """Make room for this many groups."""
        self._slab.grow(groups)

    def update(self, ids: Ids, clock: Clock | None, values: Any) -> None:
        """Append a batch."""
        for rows, weights, powers in unweighted(len(ids)) if clock is None else clock.sums(self.state):
            self._slab.append(ids[rows], weights, powers, values[rows])

    def clear(self, groups: Ids) -> None:
        """Forget some groups."""
        self._slab.clear(groups)
