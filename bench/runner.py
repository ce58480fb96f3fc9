"""Runs comparisons: contestants take turns in one process, for several rounds, and the best round counts.

The best, because whatever else the machine does can only add time; the median is told beside it. Before anything is
timed, all run once, which compiles what there is to compile, and their answers are compared.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
PACKAGES = ("wane", "numpy", "numba", "pyarrow", "pandas", "polars", "pyspark", "datasketches")

Run = Callable[[], Any]


@dataclass(frozen=True)
class Settings:
    """How much to do.

    Attributes:
        quick: Whether only to show that everything runs; times mean nothing then.
        seed: The seed of all data.
    """

    quick: bool = False
    seed: int = 1

    def rows(self, full: int) -> int:
        """The number of rows to use in place of `full`."""
        return min(full, 20_000) if self.quick else full

    def calls(self, full: int) -> int:
        """The number of calls to make in place of `full`."""
        return min(full, 200) if self.quick else full

    @property
    def rounds(self) -> int:
        """How often each contestant has its turn."""
        return 2 if self.quick else 9

    @property
    def turn(self) -> float:
        """Seconds that a turn lasts at least."""
        return 0.0 if self.quick else 0.02


@dataclass(frozen=True)
class Comparison:
    """One thing done by wane and by others.

    Attributes:
        what: What is done.
        ours: Does it, and gives the answer.
        work: How many rows or calls that is.
        unit: The unit of the figures, such as ``"ns/row"``.
        peers: Others that do it, by name.
        target: What our figure must stay under.
        ratios: What the ratio of our figure to a peer's must stay under, by the peer's name.
        agree: How near the others' answers must be to ours, relatively; None where they answer something else.
        rounds: How often each has its turn, where turns are long.
        counted: Whether the figures are what the contestants give, such as bytes, and not the time they take.
    """

    what: str
    ours: Run
    work: int
    unit: str
    peers: Mapping[str, Run] = field(default_factory=dict)
    target: float | None = None
    ratios: Mapping[str, float] = field(default_factory=dict)
    agree: float | None = None
    rounds: int | None = None
    counted: bool = False


@dataclass(frozen=True)
class Finding:
    """A figure that is no time of a run: found by an experiment of the case's own.

    Attributes:
        what: What was found.
        value: The figure.
        unit: Its unit.
        target: What it must stay under.
    """

    what: str
    value: float
    unit: str
    target: float | None = None

    def figure(self, case: str, settings: Settings) -> dict[str, Any]:
        """The figure, in the form of those of comparisons."""
        ok = None if settings.quick or self.target is None else self.value < self.target
        value = None if math.isinf(self.value) else float(self.value)
        return {
            "kind": "figure",
            "case": case,
            "what": self.what,
            "against": None,
            "ours": value,
            "peer": None,
            "ratio": None,
            "unit": self.unit,
            "target": self.target,
            "ok": ok,
            "ours_median": value,
            "peer_median": None,
        }


Case = Callable[[Settings], Iterator[Comparison | Finding]]


class Disagreement(AssertionError):
    """Two contestants do not do the same thing."""


def figures(case: str, comparison: Comparison | Finding, settings: Settings) -> Iterator[dict[str, Any]]:
    """Run one comparison and give a figure for each peer, or one alone where there are none; or what was found."""
    if isinstance(comparison, Finding):
        yield comparison.figure(case, settings)
        return
    contestants = {"": comparison.ours, **comparison.peers}
    if comparison.counted:
        counts = {name: float(run()) for name, run in contestants.items()}
        yield from _figures(case, comparison, settings, counts, counts)
        return
    with _no_collector():
        loops = {name: _loops(run, settings.turn) for name, run in contestants.items()}
        _compare(case, comparison)
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        order = list(contestants)
        for _ in range(min(settings.rounds, comparison.rounds or settings.rounds)):
            for name in order:
                seconds[name].append(_timed(contestants[name], loops[name]))
            order.append(order.pop(0))  # nobody is always the first, or always after the same other
    scale = SCALES[comparison.unit.partition("/")[0]] / comparison.work
    best = {name: min(times) * scale for name, times in seconds.items()}
    median = {name: statistics.median(times) * scale for name, times in seconds.items()}
    yield from _figures(case, comparison, settings, best, median)


def _figures(
    case: str, comparison: Comparison, settings: Settings, best: Mapping[str, float], median: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """A figure for each peer, or one alone."""
    for peer in comparison.peers or [None]:
        yield {
            "kind": "figure",
            "case": case,
            "what": comparison.what,
            "against": peer,
            "ours": best[""],
            "peer": None if peer is None else best[peer],
            "ratio": None if peer is None or not best[peer] else best[""] / best[peer],
            "unit": comparison.unit,
            "target": comparison.target,
            "ok": None if settings.quick else _met(comparison, best, peer),
            "ours_median": median[""],
            "peer_median": None if peer is None else median[peer],
        }


def _met(comparison: Comparison, best: Mapping[str, float], peer: str | None) -> bool | None:
    """Whether our figure stays under the target, and under its share of the peer's; None where neither is set."""
    limits = [] if comparison.target is None else [comparison.target]
    if peer is not None and peer in comparison.ratios:
        limits.append(comparison.ratios[peer] * best[peer])
    return best[""] < min(limits) if limits else None


def record(settings: Settings) -> dict[str, Any]:
    """What the figures of one run were measured on and with."""
    return {
        "kind": "run",
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "system": platform.platform(),
            "load": round(os.getloadavg()[0], 2),
        },
        "versions": {"python": platform.python_version(), **_versions()},
        "seed": settings.seed,
        "quick": settings.quick,
        "rounds": settings.rounds,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _loops(run: Run, turn: float) -> int:
    """How many runs make a turn, after one to compile and one to look."""
    run()
    return max(1, math.ceil(turn / _timed(run, 1))) if turn else 1


def _timed(run: Run, loops: int) -> float:
    """Seconds of one run."""
    began = time.perf_counter_ns()
    for _ in range(loops):
        run()
    return max(time.perf_counter_ns() - began, 1) / loops / 1e9


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector out of the times."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compare(case: str, comparison: Comparison) -> None:
    if comparison.agree is None:
        return
    ours = comparison.ours()
    for name, run in comparison.peers.items():
        theirs = run()
        if not np.allclose(ours, theirs, rtol=comparison.agree, atol=0):
            raise Disagreement(f"{case}, {comparison.what}: {ours} here, {theirs} by {name}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
