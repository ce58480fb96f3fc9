"""What summaries do with odd arguments; that their answers are right is for the laws."""

from __future__ import annotations

from typing import Any

import pytest

from wane import Extrema, Moments
from wane.errors import BadParameter, MergeRefused


@pytest.mark.parametrize("kind", [Extrema, Moments])
def test_a_missing_value_given_alone_is_dropped_and_counted(kind: Any) -> None:
    one = kind("exp(half_life=5m)").update(None, 5).update([None, 1.0], [6, 7])
    assert (one.rows, one.dropped) == (1, {"value": 2})


def test_the_name_of_a_sum_is_a_text() -> None:
    for sums in ({3: "v"}, {"a": "v", None: "v"}):
        with pytest.raises(BadParameter, match="the name of a sum is a text, got"):
            Moments(sums=sums)  # type: ignore[arg-type]


def test_landmarks_that_differ_are_told_as_times() -> None:
    with pytest.raises(MergeRefused, match=r"landmark differs: 2026-01-05T00:00:00Z here, 100\.5 there"):
        Moments("poly(2)", landmark="2026-01-05").merge(Moments("poly(2)", landmark=100.5))
