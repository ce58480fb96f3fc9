"""Decays of every kind with what a row weighs under each, written down a second time; and streams times decays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wane import decay
from wane.times import SECOND, Nanoseconds

START = 1_767_225_600
END = START + 3600
"""The seconds that streams begin at, and the time that they are asked at."""


def _steep(age: float) -> float:
    return age * math.sqrt(age + 1.0)


_PINNED = Nanoseconds(END * SECOND)

WEIGHTS: dict[str, tuple[Any, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "none": ("none", lambda age, _: np.ones(len(age))),
    "landmark": ("landmark", lambda _, since: (since > 0) * 1.0),
    "poly(2)": ("poly(2)", lambda _, since: (since / 3600) ** 2),
    "exp(half_life=5m)": ("exp(half_life=5m)", lambda age, _: np.exp2(-age / 300)),
    "exp(half_life=7s)": ("exp(half_life=7s)", lambda age, _: np.exp2(-age / 7)),
    "polynomial": ("polynomial(1, 0, 2)", lambda _, since: (1 + 2 * since**2) / (1 + 2 * 3600.0**2)),
    "user": (
        decay.forward(_steep, name="tests steep"),
        lambda _, since: since * np.sqrt(since + 1) / (3600 * math.sqrt(3601)),
    ),
    "pinned": (decay.pinned("backward poly(1.5)", now=_PINNED), lambda age, _: (age + 1) ** -1.5),
    "window": (decay.pinned("window(10m)", now=_PINNED), lambda age, _: (age < 600) * 1.0),
}


def weights_of(name: str, times: np.ndarray, own: np.ndarray) -> np.ndarray:
    """What rows weigh at `END`: their own weights times the decay's."""
    return np.asarray(own * WEIGHTS[name][1](END - times, (times - START).astype(float)))


def draw(seed: int, shapes: int) -> tuple[int, str, bool]:
    """The shape, the decay and whether there are weights, for a seed: over many seeds each meets each."""
    names = list(WEIGHTS)
    return seed % shapes, names[seed // shapes % len(names)], bool(seed // (shapes * len(names)) % 2 ^ seed % 2)
