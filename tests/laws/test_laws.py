"""Every summary, with each of its sets of parameters, under every decay it takes, against every law that applies."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from wane import registry
from wane._jit import DISABLED
from wane.testing import Case, Law, Stream, applicable, cases, shapes

CASES = [case for spec in registry.specs().values() for case in cases(spec)]
PRODUCT = [(case, law) for case in CASES for law in applicable(case.spec) if law.applies(case)]
EXAMPLES = 2 if DISABLED else 6

the_product = pytest.mark.parametrize(("case", "law"), PRODUCT, ids=[f"{case}-{law.name}" for case, law in PRODUCT])
every_case = pytest.mark.parametrize("case", CASES, ids=str)


@the_product
def test_law(case: Case, law: Law) -> None:
    law.verify(case, EXAMPLES)


@pytest.mark.slow
@the_product
def test_law_at_length(case: Case, law: Law) -> None:
    law.verify(case, 60)


@every_case
def test_seeded_streams(case: Case) -> None:
    _judge_seeds(case, range(3 if DISABLED else 20))


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
    for hand in range(4):
        merged.merge(case.fed(stream.take(hands == hand)))
    for other in (shuffled, merged):
        case.require_same(at_once, other, stream)
    for later in (0, 10**9, 10**15):
        case.require_right(merged, stream, case.now(stream, later))
