"""Weighted reservoir sampling under decay: section V.B and Theorem 6 of the forward-decay paper.

Efraimidis and Spirakis keep the `k` largest keys ``u ** (1 / w)``. Their logarithms are ``-e / w`` with an exponential
random number `e`, so that the smallest ``e / w`` are kept (:mod:`wane.summaries._bottom`), as wide numbers. In this
form no weight overflows, no key rounds to 1 and pins its row for ever, and a sample loses nothing by being left alone.
"""

from __future__ import annotations

from wane.registry import Equality, Spec
from wane.summaries._bottom import EXPONENTIAL
from wane.summaries._sampled import BottomSample, bytes_of_bottom


class WeightedReservoir(BottomSample):
    """A sample of `k` rows without replacement, as if drawn one after the other, each in proportion to its weight.

    The first draw takes each row with its share of the decayed count, the second each of the others with its share of
    what they weigh, and so on: exactly this distribution, in whatever order rows come. :meth:`items` has them in the
    order of the draws. :meth:`estimate` has no bias, and a slightly larger variance than that of a `PrioritySample`. 24
    bytes a row and its item. Some 4 ns a row in bulk. Takes any forward decay, or a backward one whose time is fixed.

    A row that weighs 0 is never drawn; one whose weight is infinite, NaN or over 2.6e120 is dropped and counted, and a
    negative one is an error. All others may differ as they like: 1e-300 beside 1e100 is no loss.

    Args:
        k: How many rows.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        seed: Chooses the random numbers. Parts that merge have seeds of their own; if rows have ids, one seed.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> recent = WeightedReservoir(3, "exp(half_life=1m)", seed=7)
    >>> recent.update(range(1000), times=range(1000)).items()
    [953, 758, 997]
    """

    ranks = EXPONENTIAL


SPEC = Spec(
    name="weighted_reservoir",
    make=WeightedReservoir,
    version=1,
    title="a weighted sample without replacement",
    questions=("count", "items"),
    timeless=("items",),
    guarantee="rows as if drawn one by one, each with its share of the weight that is left",
    space="O(k): 24 bytes and an item for each of k rows",
    time="O(1) amortised, about 4 ns a row in bulk",
    paper="Forward Decay (ICDE 2009), section V.B and Theorem 6; Efraimidis and Spirakis (2006)",
    equality=Equality.IDENTICAL,
    numbered=True,
    bounds=lambda p: {} if p.get("k", 1000) >= 1000 else {"count": None},
    decays=frozenset({"forward"}),
    items="any",
    parameters=({"k": 3},),
    functions=("sample",),
    state_bytes=lambda p: bytes_of_bottom(p["k"]),
)
WeightedReservoir.SPEC = SPEC
