"""Priority sampling under decay: section V.B and Theorem 6 of the forward-decay paper.

A row of weight `w` gets the priority ``w / u`` for a random `u` from 0 to 1, and the `k` rows of the largest priorities
are kept. With the next priority `t`, each stands for ``max(w, t)``: the sum over any part of the rows has no bias, and
nearly the least variance that `k` rows can have (Duffield, Lund and Thorup, 2007; Szegedy, 2006). What is kept here is
``u / w``, of which the smallest count (:mod:`wane.summaries._bottom`), as wide numbers: no weight is too large or too
small, and nothing is lost while nothing comes.
"""

from __future__ import annotations

from wane.registry import Equality, Spec
from wane.summaries._bottom import UNIFORM
from wane.summaries._sampled import BottomSample, bytes_of_bottom


class PrioritySample(BottomSample):
    """A sample of `k` rows by priority, made to estimate the decayed weight of any part of the rows.

    The estimate has no bias: over all seeds its mean is the true weight. Its variance, which is estimated too, is under
    ``(decayed count) * (weight of the part) / (k - 1)``, and 0 while no more than `k` rows have come. 24 bytes a row
    and its item. Some 4 ns a row in bulk. Takes any forward decay, or a backward one whose time is fixed.

    A row that weighs 0 is never drawn; one whose weight is infinite, NaN or over 2.6e120 is dropped and counted, and a
    negative one is an error. All others may differ as they like: 1e-300 beside 1e100 is no loss.

    Args:
        k: How many rows.
        decay: A decay or its text form.
        landmark: The time that decay measures from, where it needs one.
        seed: Chooses the random numbers. Parts that merge have seeds of their own; if rows have ids, one seed.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> kept = PrioritySample(2, "exp(half_life=1m)", seed=7)
    >>> kept.update(["a", "b"], times=[0, 60]).sample(now=120)
    [Draw(item='a', weight=0.25, stands_for=0.25), Draw(item='b', weight=0.5, stands_for=0.5)]
    >>> kept.estimate(lambda item: item == "b", now=120)
    0.5
    """

    ranks = UNIFORM


SPEC = Spec(
    name="priority",
    make=PrioritySample,
    version=1,
    title="a sample by priority, for sums over any part of the rows",
    questions=("count", "items"),
    timeless=("items",),
    guarantee="no bias in any sum, and a variance under (count) (weight of the part) / (k - 1)",
    space="O(k): 24 bytes and an item for each of k rows",
    time="O(1) amortised, about 4 ns a row in bulk",
    paper="Forward Decay (ICDE 2009), section V.B and Theorem 6",
    equality=Equality.IDENTICAL,
    numbered=True,
    bounds=lambda p: {} if p.get("k", 1000) >= 1000 else {"count": None},
    decays=frozenset({"forward"}),
    items="any",
    parameters=({"k": 1000},),
    functions=("sample",),
    state_bytes=lambda p: bytes_of_bottom(p["k"]),
)
PrioritySample.SPEC = SPEC
