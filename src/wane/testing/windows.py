"""The laws of monoids and of first-in-first-out windows, with oracles in plain Python and patterns of coming and going.

A monoid of your own is tested like this, a window likewise with :data:`WINDOW_LAWS`::

    @pytest.mark.parametrize("law", MONOID_LAWS.values(), ids=MONOID_LAWS)
    def test_law(law):
        law(monoid, items, answer)
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from wane.monoids.base import Monoid, alike
from wane.testing.cases import require

Answer = Callable[[Sequence[Any]], Any]


def _exactly(items: Sequence[Any]) -> Fraction:
    return sum((Fraction(item) for item in items), Fraction(0))


def _belongs(pick: Callable[..., Any]) -> Answer:
    return lambda items: next((what for value, what in items if value == pick(v for v, _ in items)), -1)


ORACLES: Mapping[str, Answer] = {
    "sum": lambda items: float(_exactly(items)),
    "count": len,
    "min": lambda items: min(items, default=math.inf),
    "max": lambda items: max(items, default=-math.inf),
    "mean": lambda items: float(_exactly(items) / len(items)) if items else math.nan,
    "gmean": lambda items: statistics.geometric_mean(items) if items else math.nan,
    "mincount": lambda items: (min(items), items.count(min(items))) if items else (math.inf, 0),
    "stddev": lambda items: statistics.stdev(map(Fraction, items)) if len(items) > 1 else math.nan,
    "argmax": _belongs(max),
    "argmin": _belongs(min),
    "collect": list,
    "first": lambda items: items[0] if items else math.nan,
    "last": lambda items: items[-1] if items else math.nan,
}
"""The exact answer over a list of items, oldest first, by the name of the monoid."""


def items_for(kind: str, count: int, seed: int) -> list[Any]:
    """Items that a monoid takes: ties and repetitions among them, none negative, for logarithms."""
    rng = np.random.default_rng(seed)
    numbers = np.where(rng.random(count) < 0.5, rng.integers(1, 9, count), rng.exponential(5, count)).tolist()
    if kind == "pairs":
        return [(number, f"item {i}") for i, number in enumerate(numbers)]
    if kind == "timed":
        return list(zip(numbers, np.cumsum(rng.integers(0, 5, count)).tolist(), strict=True))
    return [round(number) for number in numbers] if kind == "any" else numbers


# --- Monoids


def identity_changes_nothing(monoid: Monoid, items: Sequence[Any], answer: Answer) -> None:
    """Combined with the identity, from either side, an aggregate stays as it is."""
    nothing = monoid.identity
    for one in [*map(monoid.lift, items), nothing]:
        for got in (monoid.combine(nothing, one), monoid.combine(one, nothing)):
            require(_same(got, one), f"with the identity, {one!r} becomes {got!r}")


def combine_is_associative(monoid: Monoid, items: Sequence[Any], answer: Answer) -> None:
    """Three aggregates give the same from the left and from the right."""
    combine = monoid.combine
    for parts in zip(items, items[1:], items[2:], strict=False):
        a, b, c = map(monoid.lift, parts)
        left, right = combine(combine(a, b), c), combine(a, combine(b, c))
        require(_same(left, right), f"{parts} give {left!r} from the left and {right!r} from the right")


def flags_are_true(monoid: Monoid, items: Sequence[Any], answer: Answer) -> None:
    """What it says it has holds, and of what can be seen not to hold it does not say so."""
    combine = monoid.combine
    lifted = [monoid.lift(item) for item in items]
    pairs = list(pairwise(lifted))
    swaps = [_same(combine(a, b), combine(b, a)) for a, b in pairs]
    doubles = [_same(combine(a, a), a) for a in lifted]
    for flag, holds in (("commutative", all(swaps)), ("idempotent", all(doubles))):
        require((flag in monoid.has) == holds, f"{flag} is {holds}, and it says {flag in monoid.has}")
    require(("invertible" in monoid.has) == (monoid.inverse is not None), "an inverse is what makes it invertible")
    if monoid.inverse is not None:
        for a, b in pairs:
            left = combine(combine(a, b), monoid.inverse(a))
            require(_same(left, b), f"{a!r} taken out again leaves {left!r}, not {b!r}")


def answers_are_right(monoid: Monoid, items: Sequence[Any], answer: Answer) -> None:
    """Lifted, combined in order and lowered, items give what the oracle gives for any stretch of them."""
    for end in (0, 1, 2, 3, len(items) // 2, len(items)):
        agg = monoid.identity
        for item in items[:end]:
            agg = monoid.combine(agg, monoid.lift(item))
        got, right = monoid.lower(agg), answer(list(items[:end]))
        require(alike(got, right), f"over {end} items the answer is {got!r}; exactly: {right!r}")


def combining_changes_neither(monoid: Monoid, items: Sequence[Any], answer: Answer) -> None:
    """Combining and lowering leave their arguments alone: windows keep them."""
    for pair in pairwise(items):
        a, b = map(monoid.lift, pair)
        before = copy.deepcopy((a, b))
        monoid.lower(monoid.combine(a, b))
        require(all(_same(x, y) for x, y in zip(before, (a, b), strict=True)), f"combining changes {before!r}")


MONOID_LAWS: Mapping[str, Callable[[Monoid, Sequence[Any], Answer], None]] = {
    law.__name__: law
    for law in (
        identity_changes_nothing,
        combine_is_associative,
        flags_are_true,
        answers_are_right,
        combining_changes_neither,
    )
}


def _same(mine: Any, theirs: Any) -> bool:
    if hasattr(mine, "to_bytes") and not isinstance(mine, int):
        return bool(mine.to_bytes() == theirs.to_bytes())
    return alike(mine, theirs)


# --- Windows


def patterns(steps: int, seed: int) -> Mapping[str, list[bool]]:
    """Sequences of inserts (True) and evicts, none of an empty window.

    At random about different sizes; sawtooth, all the way up and down; thirds, filled and drained to other sizes; and a
    window of one size that moves.
    """
    rng = np.random.default_rng(seed)

    def follow(targets: Iterator[int]) -> list[bool]:
        ops: list[bool] = []
        size = 0
        for target in targets:
            ops += [size < target] * abs(target - size)
            size = target
            if len(ops) >= steps:
                break
        return ops[:steps]

    def random() -> list[bool]:
        ops: list[bool] = []
        size = 0
        for i, draw in enumerate(rng.random(steps)):
            middle = (3, 50, 200)[i * 3 // steps]
            insert = size == 0 or bool(draw < (0.75 if size < middle else 0.25))
            ops.append(insert)
            size += 1 if insert else -1
        return ops

    height = max(steps // 8, 2)
    third = max(steps // 6, 3)
    return {
        "random": random(),
        "sawtooth": follow(height if i % 2 == 0 else 0 for i in range(steps)),
        "thirds": follow((third, third // 4 + 1, third * 2 // 3)[i % 3] for i in range(steps)),
        "moving": [True] * 17 + [False, True] * (steps // 2),
        "singles": [True, False] * (steps // 2),
    }


def queries_are_right(make: Callable[[], Any], items: Sequence[Any], ops: Sequence[bool], answer: Answer) -> None:
    """After every insert and evict the answer and the length are those of a plain list."""
    window, there, coming = make(), [], iter(items)
    for i, insert in enumerate(ops):
        if insert:
            item = next(coming)
            window.insert(item)
            there.append(item)
        else:
            window.evict()
            del there[0]
        got, right = window.query(), answer(there)
        require(alike(got, right), f"after {i + 1} operations the answer is {got!r}; exactly: {right!r}")
        require(len(window) == len(there), f"after {i + 1} operations the length is {len(window)}, not {len(there)}")


def a_second_query_is_the_first(
    make: Callable[[], Any], items: Sequence[Any], ops: Sequence[bool], answer: Answer
) -> None:
    """Asking changes nothing: where it is asked now and then, the answers are the same."""
    window, there, coming = make(), [], iter(items)
    for i, insert in enumerate(ops):
        if insert:
            item = next(coming)
            window.insert(item)
            there.append(item)
        else:
            window.evict()
            del there[0]
        if i % 7 == 0:
            first, second = window.query(), window.query()
            require(alike(first, second) and alike(first, answer(there)), f"asked twice: {first!r}, {second!r}")


WINDOW_LAWS: Mapping[str, Callable[[Callable[[], Any], Sequence[Any], Sequence[bool], Answer], None]] = {
    law.__name__: law for law in (queries_are_right, a_second_query_is_the_first)
}
