"""The exact heavy prefixes of ids, from their definition alone; see :mod:`wane.testing.oracles`."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

IPV4 = (8, 16, 24, 32)
"""The lengths of prefixes that are counted by default."""

Found = Mapping[tuple[int, int], tuple[Decimal, Decimal]]

_SHORT_OF = Decimal("1e-9")
"""What is heavy but for rounding counts as heavy."""

_EXACT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_LEAST = Decimal(2) ** -1074


@dataclass(frozen=True)
class Prefixes:
    """Heavy prefixes: by the lowest id and the length, what each weighs, and that without the heavy ones under it.

    Attributes:
        found: They.
        total: The weight of all ids.
    """

    found: Found
    total: Decimal

    def accepts(self, answer: Any, tolerance: float) -> bool:
        """Whether a list of prefixes is right, its weights to `tolerance` of the total."""
        if {(item, bits) for item, bits, *_ in answer} != set(self.found) or len(answer) != len(self.found):
            return False
        with decimal.localcontext(_EXACT):
            slack = Decimal(tolerance) * self.total + _LEAST
            return all(
                abs(Decimal(weight) - self.found[item, bits][0]) <= slack
                and abs(Decimal(rest) - self.found[item, bits][1]) <= 2 * slack
                for item, bits, weight, rest, _ in answer
            )

    def near(self, mine: Any, theirs: Any, tolerance: float) -> bool:
        """Whether both are right."""
        return self.accepts(mine, tolerance) and self.accepts(theirs, tolerance)


def heavy_prefixes(given: Sequence[Any], phi: float, levels: Sequence[int] = IPV4) -> Prefixes:
    """Every prefix that weighs `phi` of all."""
    return _prefixes(given, phi, levels, alone=False)


def hierarchical_prefixes(given: Sequence[Any], phi: float, levels: Sequence[int] = IPV4) -> Prefixes:
    """Every prefix that weighs `phi` of all without those of that kind under it."""
    return _prefixes(given, phi, levels, alone=True)


def _prefixes(given: Sequence[Any], phi: float, levels: Sequence[int], *, alone: bool) -> Prefixes:
    with decimal.localcontext(_EXACT):
        ids = list(_by_prefix([(int(row.value), row.weight) for row in given], 0).items())
        total = sum((weight for _, weight in ids), Decimal(0))
        least = Decimal(phi) * total * (1 - _SHORT_OF)
        alive = ids  # what no heavy prefix has claimed yet
        found = {}
        for length in sorted(levels, reverse=True):
            cut = levels[-1] - length
            weights, rests = _by_prefix(ids, cut), _by_prefix(alive, cut)
            claimed = {key for key, rest in rests.items() if total and rest >= least}
            alive = [(value, weight) for value, weight in alive if value >> cut not in claimed]
            for key, weight in weights.items():
                if total and (key in claimed or (not alone and weight >= least)):
                    found[key << cut, length] = weight, rests.get(key, Decimal(0))
        return Prefixes(found, total)


def _by_prefix(rows: Sequence[tuple[int, Decimal]], cut: int) -> dict[int, Decimal]:
    weights: dict[int, Decimal] = {}
    for value, weight in rows:
        weights[value >> cut] = weights.get(value >> cut, Decimal(0)) + weight
    return weights


PREFIX_ORACLES = {"prefixes": heavy_prefixes, "hierarchical": hierarchical_prefixes}
