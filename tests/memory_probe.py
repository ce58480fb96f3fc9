"""What a low level takes of memory, measured from outside it: run as a program, since a process has one peak.

Usage: ``python memory_probe.py ROWS GROUPS BUDGET CACHE`` prints the peak in bytes and how far the decayed count of all
partials is from the exact one, relatively.
"""

from __future__ import annotations

import gc
import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from wane import fn, plan
from wane.grouped import LowLevel
from wane.sources.generator import Traffic
from wane.times import SECOND

HALF_LIFE = 10
DECAY = f"exp(half_life={HALF_LIFE}s)"
ASKED = (
    fn.count(decay=DECAY),
    fn.sum("len", decay=DECAY),
    fn.top("srcIP", 10, decay=DECAY),
    fn.quantiles("len", [0.5, 0.95, 0.99], decay=DECAY),
)


def resident(what: str) -> int:
    """``VmRSS``, what is resident now, or ``VmHWM``, the most that ever was, in bytes."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"this system does not tell {what}")


def batches(rows: int, groups: int) -> Iterator[pa.RecordBatch]:
    """A trace of a power law over so many destinations, and one row of each at the beginning."""
    traffic = Traffic(rows=rows, destinations=groups, rate=rows / 60)
    return traffic.batches(1 << 15)


def weighed(made: plan.Plan, partials: Iterable[pa.RecordBatch], now: int) -> Iterator[float]:
    """The decayed count in each partial."""
    at, power = made.states[0].decay.at(now, None)  # type: ignore[attr-defined]
    for one in partials:
        total = one.column("s0_total").to_numpy() + one.column("s0_lost_total").to_numpy()
        gap = one.column("s0_exponent").to_numpy() - power
        yield math.fsum(np.ldexp(total / at, np.clip(gap, -3000, 3000).astype(np.int32)))


def main(rows: int, groups: int, budget: int, cache: str | None, slots: int) -> None:
    made = plan.build(ASKED, ("destIP",), every=("time", "1 hour"))
    for few in (1000, 200_000):  # compiles, and brings allocators to where they will be
        source = batches(few, groups)
        low = LowLevel(made, next(source).schema, budget=2 << 20, cache=cache, slots=min(slots, 500))
        for batch in batches(few, groups):
            list(low.update(batch))
        list(low.flush())
        del low, batch
    gc.collect()
    pa.default_memory_pool().release_unused()
    source = batches(rows, groups)
    batch = next(source)
    start = int(batch.column("time").cast(pa.int64())[0].as_py())
    now = start + 60 * SECOND
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
    low = LowLevel(made, batch.schema, budget=budget, cache=cache, slots=slots)
    found: list[float] = []
    exact: list[float] = []
    while batch is not None:
        ages = (now - batch.column("time").cast(pa.int64()).to_numpy()) / SECOND
        exact.append(math.fsum(np.exp2(-ages / HALF_LIFE)))
        found += weighed(made, low.update(batch), now)
        batch = next(source, None)
    found += weighed(made, low.flush(), now)
    peak = resident("VmHWM") - before
    off = abs(math.fsum(found) - math.fsum(exact)) / math.fsum(exact)
    print(
        json.dumps(
            {"peak": peak, "off": off, "measured": vars(low.measured), "counts": [math.fsum(found), math.fsum(exact)]}
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None, 12_000)
