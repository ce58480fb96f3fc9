"""Streams in many orders, decays drawn at random, and exact answers by plain NumPy: oracles for any decay."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane.decay import backward, forward
from wane.times import SECOND

START = 1_767_225_600
"""Seconds since 1970 at which streams begin."""

ORDERS = ("in order", "shuffled", "reversed", "bounded late", "adversarial")

LORENTZ = backward(lambda a: 1.0 / (1.0 + a * a / 1e6), name="tests lorentz")
STAIRS = backward(lambda a: 2.0 ** -float(int(a / 300.0)) if a < 30000.0 else 0.0, name="tests stairs")
CUBIC = forward(lambda n: 1.0 + n * n * n, name="tests cubic", unit="1m")


class Asked(NamedTuple):
    """A decay as a question names it, and its exact weights as a function of ages in whole seconds."""

    decay: Any
    weights: Callable[[NDArray[Any]], NDArray[np.float64]]


def arrivals(seed: int, order: str, size: int, span: int = 6 * 3600) -> NDArray[np.int64]:
    """Times in whole seconds, in an order of arrival: steady, in bursts, or thicker and thicker."""
    rng = np.random.default_rng([seed, size])
    shape = seed % 3
    if shape == 0:
        offsets = rng.integers(0, span, size)
    elif shape == 1:
        offsets = (rng.integers(0, 12, size) * (span // 12) + rng.exponential(span / 500, size)).astype(np.int64)
    else:
        offsets = (span - span ** rng.uniform(0, 1, size)).astype(np.int64)
    times = START + np.sort(offsets)
    if order == "shuffled":
        return rng.permutation(times)
    if order == "reversed":
        return times[::-1].copy()
    if order == "bounded late":
        return times[np.argsort(np.arange(size) + rng.uniform(0, size / 20, size), kind="stable")]
    if order == "adversarial":  # the oldest and the newest in turn, so that ranges open at both ends
        turned = np.empty(size, np.int64)
        turned[::2], turned[1::2] = times[: -(-size // 2)], times[-(-size // 2) :][::-1]
        return turned
    return times


def draw(rng: np.random.Generator, now: int) -> Asked:
    """A decay drawn at random: windows mostly, and every other kind."""
    half, alpha = int(rng.integers(1, 7200)), float(rng.uniform(0.2, 3))
    length = int(np.exp(rng.uniform(0, math.log(30000))))
    kinds: list[Asked] = [
        *[Asked(f"window({length})", lambda ages: (ages < length).astype(float))] * 6,
        Asked(f"backward poly({alpha!r})", lambda ages: (ages + 1.0) ** -alpha),
        Asked(f"exp(half_life={half})", lambda ages: 2.0 ** (-ages / half)),
        Asked(f"superexp(half_life={half})", lambda ages: 2.0 ** (-((ages / half) ** 2))),
        Asked("subpoly", lambda ages: 1 / (1 + np.log(1.0 + ages))),
        Asked("none", lambda ages: np.ones(len(ages))),
        Asked("poly(2)", lambda ages: np.maximum((now - START + 100.0 - ages) / (now - START + 100.0), 0) ** 2),
        Asked("landmark", lambda ages: np.ones(len(ages))),
        Asked(LORENTZ, lambda ages: 1 / (1 + (ages / 1000.0) ** 2)),
        Asked(STAIRS, lambda ages: np.where(ages < 30000, 2.0 ** -(ages // 300), 0.0)),
        Asked(
            CUBIC,
            lambda ages: (1 + ((now - START + 100.0 - ages) / 60) ** 3) / (1 + ((now - START + 100.0) / 60) ** 3),
        ),
    ]
    return kinds[int(rng.integers(len(kinds)))]


LANDMARK = START - 100
"""Where forward decays measure from."""


def column(times: NDArray[np.int64]) -> NDArray[np.datetime64]:
    """Whole seconds as a column of times."""
    return times.view("datetime64[s]")


def asked_at(rng: np.random.Generator, times: NDArray[np.int64]) -> int:
    """A now: the newest item's time, or some time after it."""
    return int(times.max()) + int(rng.choice([0, 0, 1, 60, 7200]))


__all__ = ["LANDMARK", "ORDERS", "SECOND", "START", "Asked", "arrivals", "asked_at", "column", "draw"]
