"""What all tests share: hypothesis is deterministic, and tests that need the compiler are skipped without it."""

from __future__ import annotations

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
