"""Importing wane is quick, and brings nothing along that was not asked for."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import wane

HEAVY = (
    "numpy", "numba", "pandas", "pyarrow", "pyspark", "polars", "sqlglot", "hypothesis", "matplotlib", "rich", "typer",
)  # fmt: skip


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def loaded_after(code: str) -> set[str]:
    """Which heavy packages a fresh process has loaded after some code."""
    seen = python("-c", f"{code}\nimport sys\nprint(*sys.modules)").stdout.split()
    return set(HEAVY) & set(seen)


def test_importing_wane_loads_nothing_heavy() -> None:
    assert loaded_after("import wane") == set()
    assert loaded_after("import wane; assert 'Moments' in dir(wane)") == set()


def test_a_decay_is_read_and_printed_without_the_compiler() -> None:
    code = """
import datetime, numpy
from wane.decay import parse, pinned
from wane.times import instant, ticks
for text in ("exp(half_life=5m)", "poly(2)", "backward poly(1.5)", "window(1h)", "polynomial(1, 2, unit=1h)"):
    assert parse(str(parse(text))) == parse(text)
assert parse("poly(2)").at(10**9, 0) == (1.0, 0)
pinned("window(5m)", now=numpy.datetime64("2026-01-01"))
ticks([1.5, 2]), ticks(["2026-01-01"]), instant(datetime.date(2026, 1, 1))
"""
    assert loaded_after(code) == {"numpy"}


def test_importing_wane_takes_under_60_ms() -> None:
    pattern = re.compile(r"import time:\s+\d+ \|\s+(\d+) \| wane$", re.MULTILINE)
    times = []
    for _ in range(5):
        found = pattern.search(python("-X", "importtime", "-c", "import wane").stderr)
        assert found is not None
        times.append(int(found[1]))
    assert min(times) < 60_000, f"{min(times)} us"


def test_names_load_when_they_are_used() -> None:
    from wane.summaries.moments import Moments

    assert wane.Moments is Moments
    assert wane.decay.parse("none").is_forward
    assert {"Moments", "Extrema", "decay", "times", "from_bytes"} <= set(dir(wane))
    with pytest.raises(AttributeError, match="module 'wane' has no attribute 'Momments'"):
        _ = wane.Momments
    with pytest.raises(ImportError):
        from wane import nothing_of_the_kind  # noqa: F401
