"""What all tests share: hypothesis is deterministic, and tests that need the compiler are skipped without it."""

from __future__ import annotations

import re

import pytest
from hypothesis import settings

from wane._jit import DISABLED

settings.register_profile("wane", derandomize=True, deadline=None, database=None)
settings.load_profile("wane")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if DISABLED:
        for item in items:
            if item.get_closest_marker("jit_only"):
                item.add_marker(pytest.mark.skip(reason="NUMBA_DISABLE_JIT is set, and the test needs the compiler"))


def pytest_make_parametrize_id(config: pytest.Config, val: object) -> str | None:
    """Name objects without their addresses, which differ between the workers of one run."""
    text = repr(val)
    return re.sub(r" at 0x[0-9a-f]+", "", text)[:60] if " at 0x" in text else None
