"""Questions about ranks, which several summaries answer in their own ways."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wane.decay import Decay
from wane.decay.base import Floats
from wane.errors import BadParameter
from wane.hashing import Hashes
from wane.summaries._ordered import FloatKeys, WholeKeys
from wane.summaries.base import Summary, ldexp, whole

QUESTIONS = ("count", "quantile", "quantiles", "rank", "cdf", "histogram")
TIMELESS = ("quantile", "quantiles", "cdf")
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "quantile": {"phi": 0.5},
    "quantiles": {"phis": (0.0, 0.1, 0.75, 1.0)},
    "rank": {"value": 1.0},
    "cdf": {"value": 0.0},
    "histogram": {"edges": (-math.inf, -1.0, 0.5, 50.0, 1e9)},
}


def bounds(epsilon: float) -> dict[str, float]:
    """How far the answers may be from the exact ones; a bin of a histogram is between two ranks."""
    ranked = dict.fromkeys(("quantile", "quantiles", "rank", "cdf"), epsilon)
    return {"count": 1e-12, **ranked, "histogram": 2 * epsilon}


class Ranking(Summary):
    """A summary of values in order, which knows the rank of each to ``epsilon C``."""

    epsilon: float

    def __init__(self, decay: str | Decay, landmark: Any, bits: int | None, before: str) -> None:
        super().__init__(decay, landmark, before=before)
        if bits is not None and whole(bits, "bits", 1) > 64:
            raise BadParameter(f"bits must be a whole number from 1 to 64, got {bits!r}; without it values are floats")
        self.bits = bits
        self._domain: Any = FloatKeys() if bits is None else WholeKeys(int(bits))
        self._exponent = 0
        self._total = self._lost = 0.0  # the decayed count, and what its rounding lost

    def quantile(self, phi: Any) -> Any:
        """The smallest value whose rank is `phi` of the decayed count, to `epsilon` of it; does not depend on now.

        Args:
            phi: A number from 0 to 1, which gives a number, or a list of them, which gives an array. NaN of nothing.
        """
        if hasattr(phi, "__len__"):
            return self.quantiles(phi)
        found: float | int = self.quantiles([phi])[0].item()
        return found

    def quantiles(self, phis: Any) -> NDArray[Any]:
        """:meth:`quantile` of several, as an array."""
        shares = np.array([_share(phi) for phi in phis], np.float64)
        self._settle()
        if not self._total:
            return np.full(len(shares), math.nan)
        return np.asarray(self._domain.values(self._keys_at(shares)))

    def rank(self, value: Any, now: Any = None, *, historical: bool = False) -> Any:
        """The decayed count of values up to `value` (Definition 8), to ``epsilon C``; of one, or of each of a list."""
        found = self._normalised(self._ranks(value if hasattr(value, "__len__") else [value]), now, historical)
        return found if hasattr(value, "__len__") else float(found[0])

    def cdf(self, value: Any) -> Any:
        """:meth:`rank` as a share of the decayed count, which does not depend on now; NaN of nothing."""
        ranks = self._ranks(value if hasattr(value, "__len__") else [value])
        found = ranks / self._total if self._total else np.full(len(ranks), math.nan)
        return found if hasattr(value, "__len__") else float(found[0])

    def histogram(self, edges: Any, now: Any = None, *, historical: bool = False) -> Floats:
        """The decayed counts of values above each edge and up to the next one, each to ``2 epsilon C``.

        Args:
            edges: Numbers, none below the one before it; the first is in no bin, ``-math.inf`` makes one of all below.
            now: When.
            historical: Whether now may be before the newest item.
        """
        values = list(edges)
        if len(values) < 2 or any(not a <= b for a, b in pairwise(values)):
            raise BadParameter(f"edges must be two numbers or more in order, got {edges!r:.80}; sort them")
        return self._normalised(np.diff(self._ranks(values)), now, historical)

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count `C` of all values."""
        self._settle()
        return float(self._normalised(np.array([self._total + self._lost]), now, historical)[0])

    @abstractmethod
    def _keys_at(self, shares: Floats) -> Hashes:
        """The keys at some shares of the count, of which there is some."""

    @abstractmethod
    def _ranks_of(self, keys: Hashes, sides: NDArray[np.int8]) -> Floats:
        """The ranks of keys (:meth:`FloatKeys.place`), relative to the state's power of two, where any rows are."""

    def _ranks(self, values: Any) -> Floats:
        """The ranks of some values, relative to the state's power of two."""
        self._settle()
        keys, sides = self._domain.place(values)
        return self._ranks_of(keys, sides) if self._total else np.zeros(len(keys))

    def _normalised(self, weights: Floats, now: Any, historical: bool) -> Floats:
        """Weights of the state as they are at a time."""
        weight, exponent = self._now(now, historical)
        return np.array([ldexp(one / weight, self._exponent - exponent) for one in weights.tolist()])

    def _column(self, given: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        found: tuple[Any, NDArray[np.bool_] | None] = self._domain.read(given)
        return found

    def _plain(self, item: Any) -> bool:
        return bool(super()._plain(item) and self._domain.usable(item))


def _share(phi: Any) -> float:
    good = isinstance(phi, (int, float, np.integer, np.floating)) and not isinstance(phi, bool)
    if not (good and 0 <= phi <= 1):
        raise BadParameter(f"phi must be a number from 0 to 1, got {phi!r}; the median is 0.5")
    return float(phi)
