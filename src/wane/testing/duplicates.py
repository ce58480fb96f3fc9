"""Exact answers where a row that comes again is the same row."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wane.testing.oracles import Exact, Row


def distinct_sum(given: Sequence[Row]) -> Exact:
    """The weight of all distinct rows; an error refers to that of the rows, but to one a row at least.

    Weights that are rounded to whole numbers of some unit lose up to that much a row.
    """
    from wane.testing.oracles import EXACT, Exact

    with decimal.localcontext(EXACT):
        known = {(row.value, row.time, row.own): row.weight for row in given}
        weight = sum(known.values(), Decimal(0))
        return Exact(weight, len(known) + weight * Decimal("1e-9"))


ORACLES: Mapping[str, Callable[..., Exact]] = {"duplicate_insensitive.sum": distinct_sum}
