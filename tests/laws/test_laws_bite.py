"""Each law notices the mistake it is there for: the code is broken in one place, and the law must fail."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wane import registry, serde, times
from wane._jit import DISABLED
from wane.decay import Forward
from wane.decay.weigh import Weighed
from wane.errors import MergeRefused
from wane.summaries import _levels, base, moments
from wane.summaries._any_decay import AnyDecay
from wane.summaries._sampled import Sampler
from wane.summaries.base import Summary
from wane.summaries.extrema import Extrema
from wane.summaries.moments import Moments
from wane.testing import LAWS, START, Case, sample_decays

Break = Callable[[pytest.MonkeyPatch], None]


def around(owner: Any, name: str, change: Callable[..., Any]) -> Break:
    """Replace a function by one that gets the original first."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda *args, **named: change(original, *args, **named))

    return apply


def _keeps_its_own(_: Any, mine: Extrema, other: Extrema) -> None:
    mine._top, mine._bottom = mine._top or other._top, mine._bottom or other._bottom


def _takes_averages(_: Any, mine: Moments, other: Moments) -> None:
    mine._total, mine._weighted = (mine._total + other._total) / 2, (mine._weighted + other._weighted) / 2


def _forgets_the_means(absorb: Any, mine: Moments, other: Moments) -> None:
    squares = mine._squares + other._squares
    absorb(mine, other)
    mine._squares = squares


def _empties_the_other(absorb: Any, mine: Moments, other: Moments) -> None:
    absorb(mine, other)
    other._total = 0.0


def _forgets_earlier_batches(update: Any, one: Extrema, *args: Any) -> Any:
    one._top = None
    return update(one, *args)


def _does_not_scale_squares(rescale: Any, one: Moments, exponent: int) -> None:
    squares = one._squares
    rescale(one, exponent)
    one._squares = squares


def _adds_late_ones_as_they_are(meet: Any, one: Moments, exponent: int, total: float) -> int:
    return 0 if exponent < one._exponent else int(meet(one, exponent, total))


def _textbook_variance(_: Any, weights: Any, values: Any) -> tuple[float, float, float, float]:
    total, weighted = float(weights.sum()), float((weights * values).sum())
    if not total:
        return 0.0, 0.0, 0.0, 0.0
    with np.errstate(all="ignore"):
        squares = float((weights * values * values).sum()) - weighted * weighted / total
    return total, weighted / total, 0.0, max(squares, 0.0)


def _sums_carelessly(sums: Any, weights: Any, values: Any) -> tuple[float, float, float, float]:
    total, mean, drift, squares = sums(weights, values)
    return total, mean * (1 + 1e-9), drift, squares


def _forgets_the_exponent(read: Any, one: Moments, reader: Any) -> None:
    read(one, reader)
    one._exponent = 0


def _forgets_lost_digits(read: Any, one: Moments, reader: Any) -> None:
    read(one, reader)
    one._lost_weighted = one._lost_total = 0.5


def _reads_without_checks(_: Any, one: Moments, reader: Any) -> None:
    one._exponent = reader.int()
    one._total, one._lost_total, one._weighted, one._lost_weighted, one._squares = (reader.float() for _ in range(5))
    one._extra = {name: (reader.float(), reader.float()) for name in one._sums}


def _counts_questions(count: Any, one: Moments, *args: Any, **named: Any) -> Any:
    one.rows += 1
    return count(one, *args, **named)


def _looks_at_the_clock(update: Any, one: Moments, *args: Any) -> Any:
    time.time()
    return update(one, *args)


def _asks_anything(now: Any, one: Moments, at: Any, _: bool) -> Any:
    return now(one, at, True)


def _clamps_what_it_should_drop(policy: Any, one: Moments, *args: Any) -> Any:
    before, one.before = one.before, "clamp" if one.before == "drop" else one.before
    try:
        return policy(one, *args)
    finally:
        one.before = before


def _turns_arrow_round(read: Any, items: Any, *args: Any) -> Any:
    return read(items[::-1] if hasattr(items, "null_count") and len(items) else items, *args)


def _cleans_in_place(read: Any, items: Any, *args: Any) -> Any:
    if isinstance(items, np.ndarray) and items.flags.writeable:
        np.nan_to_num(items, copy=False)
    return read(items, *args)


def _measures_in_floats(_: Any, column: times.Ticks, origin: int) -> Any:
    return (column.values - origin // column.per_tick).astype(np.float64) * (column.per_tick / times.SECOND)


def _weighs_twice(weigh: Any, one: Summary, batch: base.Batch) -> Any:
    for rows, weights, exponent in weigh(one, batch):
        yield Weighed(rows, weights if batch.weights is None else weights * 2, exponent)


def _guards_the_mean(_: Any, one: Moments) -> float:
    total = math.ldexp(one._total + one._lost_total, max(one._exponent, -1000) if one._exponent < 900 else 900)
    weighted = math.ldexp(one._weighted, max(one._exponent, -1000) if one._exponent < 900 else 900)
    return weighted / (total + 1e-9) if total else math.nan


def _asks_under_its_own(question: Any, one: AnyDecay, now: Any, decay: Any, *args: Any) -> Any:
    return question(one, now, None, *args)


MOMENTS, EXTREMA, PRIORITY = "moments", "extrema", "priority"
BREAKS: dict[str, tuple[str, str, Break]] = {
    "merge_has_an_identity": (MOMENTS, "none", around(Moments, "_absorb", lambda *_: None)),
    "merge_is_commutative": (EXTREMA, "none", around(Extrema, "_absorb", _keeps_its_own)),
    "merge_is_associative": (MOMENTS, "none", around(Moments, "_absorb", _takes_averages)),
    "merge_is_concatenation": (MOMENTS, "exp(half_life=5m)", around(Moments, "_absorb", _forgets_the_means)),
    "merge_with_itself_doubles": (
        MOMENTS,
        "none",
        around(Moments, "_absorb", lambda absorb, mine, other: None if mine is other else absorb(mine, other)),
    ),
    "one_seed_draws_once": (PRIORITY, "none", around(Sampler, "_meet", lambda *_: None)),
    "repetition_changes_nothing": (
        "duplicate_insensitive",
        "none",
        around(_levels, "_one_each", lambda _, levels, *__: np.arange(len(levels))),
    ),
    "merge_leaves_the_other": (MOMENTS, "none", around(Moments, "_absorb", _empties_the_other)),
    "merge_refuses_mismatches": (MOMENTS, "poly(2)", around(Summary, "_identity", lambda *_: {})),
    "batches_do_not_matter": (EXTREMA, "none", around(Extrema, "update", _forgets_earlier_batches)),
    "one_at_a_time_is_a_batch": (
        MOMENTS,
        "exp(half_life=5m)",
        around(Moments, "_wait", lambda wait, one, value, at: wait(one, value, at + 1e-3)),
    ),
    "a_question_sees_every_row": (EXTREMA, "none", around(Extrema, "_most", lambda _, one: one._top)),
    "order_does_not_matter": (MOMENTS, "exp(half_life=5m)", around(Moments, "_meet", _adds_late_ones_as_they_are)),
    "distance_does_not_matter": (MOMENTS, "exp(half_life=730d)", around(Moments, "_rescale", _does_not_scale_squares)),
    "moving_everything_changes_nothing": (MOMENTS, "poly(2)", around(Forward, "_origin", lambda *_: 0)),
    "any_landmark_will_do": (
        MOMENTS,
        "exp(half_life=5m)",
        around(Summary, "_identity", lambda own, one: {**own(one), "landmark": one.landmark}),
    ),
    "a_common_factor_cancels": (MOMENTS, "poly(2)", around(Moments, "mean", _guards_the_mean)),
    "no_weights_are_ones": (MOMENTS, "poly(2)", around(Summary, "_weigh", _weighs_twice)),
    "answers_are_right": (MOMENTS, "none", around(moments, "_chunk_sums", _textbook_variance)),
    "answers_are_right_after_merging": (MOMENTS, "exp(half_life=5m)", around(Moments, "_read", _forgets_the_exponent)),
    "any_decay_may_be_asked": ("exphist", "window(5m)", around(AnyDecay, "_question", _asks_under_its_own)),
    "nothing_has_answers": (
        MOMENTS,
        "none",
        around(Moments, "mean", lambda mean, one: 0.0 if math.isnan(mean(one)) else mean(one)),
    ),
    "asking_changes_nothing": (MOMENTS, "none", around(Moments, "count", _counts_questions)),
    "no_clock_is_read": (MOMENTS, "none", around(Moments, "update", _looks_at_the_clock)),
    "the_past_is_refused": (MOMENTS, "poly(2)", around(Summary, "_now", _asks_anything)),
    "every_row_is_counted": (MOMENTS, "none", around(Summary, "_drop", lambda *_: None)),
    "the_landmark_has_a_policy": (MOMENTS, "poly(2)", around(Summary, "_before_landmark", _clamps_what_it_should_drop)),
    "every_form_is_the_same": (EXTREMA, "none", around(base, "_numbers", _turns_arrow_round)),
    "inputs_are_left_alone": (MOMENTS, "none", around(base, "column_of", _cleans_in_place)),
    "units_do_not_matter": (EXTREMA, "poly(2)", around(times.Ticks, "seconds_since", _measures_in_floats)),
    "refused_updates_change_nothing": (MOMENTS, "pinned", around(Summary, "_weighable", lambda *_: None)),
    "bytes_round_trip": (MOMENTS, "none", around(Moments, "_read", _forgets_lost_digits)),
    "copies_are_independent": (MOMENTS, "none", around(Summary, "copy", lambda _, one: one)),
    "size_is_bounded": (
        MOMENTS,
        "none",
        around(Summary, "to_bytes", lambda to_bytes, one: to_bytes(one) + bytes(one.rows)),
    ),
    "changed_bytes_are_refused": (MOMENTS, "none", around(serde, "_checksum", lambda *_: bytes(8))),
    "forged_bytes_do_no_harm": (MOMENTS, "none", around(Moments, "_read", _reads_without_checks)),
    "kernels_are_their_python_bodies": (MOMENTS, "none", around(moments, "_chunk_sums", _sums_carelessly)),
}
"""For each law: a summary, a decay, and what to break in it."""

ELSE: dict[str, type[Exception]] = {"any_landmark_will_do": MergeRefused, "forged_bytes_do_no_harm": ValueError}
"""What shows the mistake, where it is not the law's own word: anything else would be a mistake in this file."""


def test_every_law_has_a_mistake_to_notice() -> None:
    assert set(BREAKS) == set(LAWS)


@pytest.mark.parametrize("name", BREAKS)
def test_law_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, text, damage = BREAKS[name]
    if LAWS[name].needs == "compiler" and DISABLED:
        pytest.skip("the law needs the compiler")
    spec = registry.lookup(summary)
    decay = sample_decays()[text]
    case = Case(spec, decay, spec.parameters[0], landmark=START if decay.needs_landmark else None)
    LAWS[name].verify(case, 2)
    damage(monkeypatch)
    with pytest.raises(ELSE.get(name, AssertionError)):
        LAWS[name].verify(case, 20)
