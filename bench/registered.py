"""The case that every registered thing has without a file: updates under each decay, against no decay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.runner import Case, Comparison, Run, Settings
from wane.decay import parse
from wane.errors import Unsupported
from wane.registry import Spec
from wane.times import SECOND

DECAYS = ("landmark", "poly(2)", "exp(half_life=5m)", "backward poly(1.5)", "window(5m)")
"""Those that the thing takes are measured."""

ROWS = 1_000_000
CALLS = 5_000
START = 1_767_225_600
"""Seconds since 1970 at which streams begin."""

Make = Callable[[], Any]


def case_of(spec: Spec) -> Case:
    """The case of one registered thing."""

    def comparisons(settings: Settings) -> Iterator[Comparison]:
        rows, calls = settings.rows(ROWS), settings.calls(CALLS)
        items, times = stream(spec.items, rows, settings.seed)
        few = list(zip(items[:calls].tolist(), (times[:calls].astype(np.int64) / SECOND).tolist(), strict=True))

        def in_bulk(make: Make) -> Run:
            return lambda: make().update(items, times).rows

        def one_by_one(make: Make) -> Run:
            return lambda: _one_by_one(make(), few)

        for parameters in spec.parameters:
            plain = _maker(spec, "none", parameters)
            makers = {decay: _maker(spec, decay, parameters) for decay in DECAYS}
            taken = {decay: make for decay, make in makers.items() if _takes(make)}
            for decay, make in (taken or {"none": plain}).items():
                to = f"{decay} {dict(parameters)}" if parameters else decay
                for what, run, work, unit in (
                    (f"update in bulk, {to}", in_bulk, rows, "ns/row"),
                    (f"update with one item, {to}", one_by_one, calls, "us/call"),
                ):
                    peers = {"no decay": run(plain)} if taken else {}
                    yield Comparison(what=what, ours=run(make), work=work, unit=unit, peers=peers, agree=0.0)

    return comparisons


def stream(items: str, rows: int, seed: int) -> tuple[NDArray[Any], NDArray[np.datetime64]]:
    """Items of a kind and their times, in order, over an hour."""
    random = np.random.default_rng(seed)
    times = START * SECOND + np.sort(random.integers(1, 3600 * SECOND, rows))
    if items == "vectors":
        return random.normal(100, 15, (rows, 2)), times.view("datetime64[ns]")
    column = random.normal(100, 15, rows) if items == "numbers" else random.zipf(1.2, rows).clip(max=10**6)
    return column, times.view("datetime64[ns]")


def _maker(spec: Spec, decay: str, parameters: Mapping[str, Any]) -> Make:
    landmark = {"landmark": START} if parse(decay).needs_landmark else {}
    return lambda: spec.make(decay=decay, **landmark, **parameters)


def _takes(make: Make) -> bool:
    try:
        make()
    except Unsupported:
        return False
    return True


def _one_by_one(summary: Any, few: list[tuple[Any, float]]) -> int:
    update = summary.update
    for item, time in few:
        update(item, time)
    rows: int = summary.rows
    return rows
