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
    law.verify(case, 200)


@every_case
def test_seeded_streams(case: Case) -> None:
    names = list(_shapes(case, 0))
    for seed in range(3 if DISABLED else 20):
        _judge(case, _shapes(case, seed)[names[seed % len(names)]], seed)


@pytest.mark.slow
@every_case
def test_many_seeded_streams(case: Case) -> None:
    for seed in range(200):
        for stream in _shapes(case, seed).values():
            _judge(case, stream, seed)


def _shapes(case: Case, seed: int) -> dict[str, Stream]:
    found = shapes(seed, items=case.spec.items, start=case.start, until=case.until)
    return {name: stream if case.weighted else Stream(stream.items, stream.times) for name, stream in found.items()}


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
