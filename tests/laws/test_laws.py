"""Every summary, with each of its sets of parameters, under every decay it takes, against every law that applies."""

from __future__ import annotations

import os
from unittest import mock

import numpy as np
import pytest

from wane import registry
from wane._jit import DISABLED
from wane.testing import Case, Law, Stream, applicable, cases, sample_decays, shapes

FEW = ("none", "exp(half_life=5m)", "poly(2)", "pinned")
"""Decays under which laws that have to do with something else than weights are tried, and all laws in a brief run."""

BRIEF = DISABLED or os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""Without the compiler or with bounds checks, the same code runs again: kernels do not depend on the decay."""

EXAMPLES = 2 if BRIEF else 6
SEEDS = 3 if BRIEF else 20

CASES = [case for spec in registry.specs().values() for case in cases(spec)]
PRODUCT = [(case, law) for case in CASES for law in applicable(case.spec) if law.applies(case)]


def is_quick(case: Case, law: Law | None = None) -> bool:
    few = any(case.decay == sample_decays()[name] for name in FEW)
    return few or not (BRIEF or (law is not None and not law.weighs))


the_product = pytest.mark.parametrize(("case", "law"), PRODUCT, ids=[f"{case}-{law.name}" for case, law in PRODUCT])
the_quick_part = pytest.mark.parametrize(
    ("case", "law"),
    [(case, law) for case, law in PRODUCT if is_quick(case, law)],
    ids=[f"{case}-{law.name}" for case, law in PRODUCT if is_quick(case, law)],
)
quick_cases = pytest.mark.parametrize("case", [case for case in CASES if is_quick(case)], ids=str)
every_case = pytest.mark.parametrize("case", CASES, ids=str)


@the_quick_part
def test_law(case: Case, law: Law) -> None:
    law.verify(case, EXAMPLES)


@pytest.mark.slow
@the_product
def test_law_at_length(case: Case, law: Law) -> None:
    law.verify(case, 60)


@quick_cases
def test_seeded_streams(case: Case) -> None:
    _judge_seeds(case, range(SEEDS))


@pytest.mark.slow
@every_case
def test_many_seeded_streams(case: Case) -> None:
    _judge_seeds(case, range(1000, 1300))


def _judge_seeds(case: Case, seeds: range) -> None:
    """Judge one stream for each seed, their shapes in turn."""
    for seed in seeds:
        every = list(shapes(seed, items=case.spec.items, start=case.start, until=case.until).values())
        stream = every[seed % len(every)]
        _judge(case, stream if case.weighted else Stream(stream.items, stream.times), seed)


def _judge(case: Case, stream: Stream, seed: int) -> None:
    """Feed a stream at once, in shuffled chunks, and merged from parts: all must agree, and be right."""
    rng = np.random.default_rng(seed)
    at_once = case.fed(stream)
    with mock.patch("wane.decay.weigh.CHUNK", 37):
        shuffled = case.fed(stream.take(rng.permutation(len(stream))))
    hands = rng.integers(0, 4, len(stream))
    merged = case.make()
    for hand in range(4) if case.mergeable else ():
        merged.merge(case.fed(stream.take(hands == hand), part=hand + 1))
    if not case.mergeable:
        merged = at_once
    for other in (shuffled, merged):
        case.require_same(at_once, other, stream)
    for later in (0, 10**9, 10**15):
        case.require_right(merged, stream, case.now(stream, later))
