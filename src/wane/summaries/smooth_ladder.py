"""Any mergeable summary under a smooth decay: value division (Cormode, Korn and Tirthapura, PODS 2008).

Time is cut into panes, in each of which the weight varies by a factor of at most ``1 + epsilon``; what is in a pane is
in one summary without decay. A question merges them, each with the weight of the middle of its pane.

Panes are stretches of ``2**k`` nanoseconds that begin at multiples of their length, the longest that the decay allows
at the age that they have when the newest item comes. So they follow from the newest time alone: whatever the order of
arrival, and however states are merged, the panes are the same. Under a decay that falls ever more slowly (its logarithm
is convex) a pane that may be so long now may be so later, and two neighbours become one as they age. A late item goes
to the pane that holds its time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from wane import registry, serde
from wane._jit import kernel
from wane.decay import Backward, BackwardPoly, Decay, Forward, NoDecay, SubPoly
from wane.decay.base import Floats, Ints
from wane.errors import BadParameter, CorruptState, UnknownName, Unsupported
from wane.registry import Equality, Spec
from wane.summaries._any_decay import FARTHEST, AnyDecay, Question, nanoseconds
from wane.summaries.base import Batch, Summary, fraction
from wane.times import SECOND, show

_TOP = 61
"""The longest panes last ``2**61`` nanoseconds, 73 years."""

_NEVER = 2**62
"""No age."""

_ROUNDING = 1e-9

_MOST_CHECKED = 1 << 14
"""Panes of one length that a decay is checked on."""


@dataclass
class _Pane:
    """What came in one stretch of time.

    Attributes:
        low: The time of the oldest item in it.
        high: The time of the newest.
        summary: The items, without decay.
    """

    low: int
    high: int
    summary: Any


@kernel("int64(int64, int64, r_i8, int64, w_i8)")
def _starts(newest: int, oldest: int, ages: Ints, base: int, starts: Ints) -> int:
    """The first instants of the panes from the newest item back to the oldest; counts on where there is no room."""
    end: Any = ((newest >> base) + 1) << base
    made = 0
    while end > oldest:
        k = base
        while k + 1 < ages.shape[0] and (end >> (k + 1)) << (k + 1) == end and newest - (end - 1) >= ages[k + 1]:
            k += 1
        end -= np.int64(1) << k
        if made < starts.shape[0]:
            starts[made] = end
        made += 1
    return made


class SmoothLadder(AnyDecay):
    """Any of the mergeable summaries under a smooth backward decay, and at the question any decay that falls slower.

    The questions are those of the summary inside, with `decay`, `now` and `landmark` beside their own arguments. Each
    weight is right to `epsilon`, relatively: so are counts, sums (to that share of the sum of magnitudes), heavy
    hitters and distinct counts, and ranks to `epsilon` of the count, all on top of what the summary inside allows. In
    any order of arrival and after any merges the panes are the same. ``O(log(f(0) / f(W)) / epsilon)`` summaries for an
    age of `W`: for a polynomial decay in proportion to its exponent. An update costs what it costs inside, and 10 to 20
    ns a row in bulk to find the panes.

    The decay that it is made with decides the panes. It must be smooth: to fall by ever smaller factors, as polynomials
    of age do. A question may name another that falls by no more than ``1 + epsilon`` in any pane; any other is refused.

    Args:
        of: What is inside: a summary without rows, a class, or a registered name.
        epsilon: By how much a weight may be wrong, relatively.
        decay: The decay that the panes are made for, and the default of questions.
        landmark: The landmark of questions that name none.
        parameters: Those of the summary inside, where `of` is a class or a name.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> from wane import QDigest
    >>> ladder = SmoothLadder(QDigest(0.01), 0.1, "backward poly(1.5)")
    >>> ladder.update([4, 8, 3, 6, 4], times=[105, 107, 103, 108, 104]).quantile(0.5, now=110)
    6.0
    >>> round(ladder.count(now=110), 4), round(ladder.count(now=110, decay="backward poly(1)"), 4)
    (0.4837, 1.0179)
    """

    def __init__(
        self,
        of: Any = "moments",
        epsilon: float = 0.1,
        decay: str | Decay = "backward poly(1)",
        landmark: Any = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-6)
        self._of, self._inside = _inside(of, parameters)
        self._ages, self._base = _allowed(self.decay, self.epsilon)
        self._panes: list[_Pane] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any other question of the summary inside, which takes `now`, `decay`, `window` and `landmark` as well."""
        inside = self.__dict__.get("_inside")
        if inside is None or name not in (*inside.SPEC.questions, *inside.SPEC.functions):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(self.ask, name)

    def ask(
        self,
        question: str,
        *args: Any,
        now: Any = None,
        decay: Any = None,
        window: Any = None,
        landmark: Any = None,
        **named: Any,
    ) -> Any:
        """Put a question of the summary inside: ``ask("quantile", 0.5, now=t)`` is ``quantile(0.5, now=t)``."""
        if question not in (*self._inside.SPEC.questions, *self._inside.SPEC.functions):
            known = ", ".join(dict.fromkeys((*self._inside.SPEC.questions, *self._inside.SPEC.functions)))
            raise UnknownName(f"a ladder of {self._of} answers {known}, and was asked {question!r}")
        decayed = self.decayed(now, decay=decay, window=window, landmark=landmark)
        return getattr(decayed, question)(*args, **named)

    def count(self, now: Any = None, **asked: Any) -> float:
        """The decayed count, where the summary inside gives one."""
        return float(self.ask("count", now=now, **asked))

    def sum(self, now: Any = None, **asked: Any) -> float:
        """The decayed sum, where the summary inside gives one."""
        return float(self.ask("sum", now=now, **asked))

    def mean(self, now: Any = None, **asked: Any) -> float:
        """The decayed mean, where the summary inside gives one."""
        return float(self.ask("mean", now=now, **asked))

    def decayed(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> Any:
        """The summary of everything, with the weights of one moment; it is asked without a `now`."""
        self._settle()
        question = self._question(now, decay, window, landmark)
        if decay is not None or window is not None:
            self._require_slower(question)
        weights, power = self._weights(question)
        merged = self._empty()
        for pane, weight in zip(self._panes, weights.tolist(), strict=True):
            if weight > 0:
                one = pane.summary.copy()
                one._scale(weight, power)
                merged.merge(one)
        return merged

    @property
    def panes(self) -> int:
        """How many summaries there are."""
        self._settle()
        return len(self._panes)

    def _empty(self) -> Any:
        """What is inside of a new pane."""
        return type(self._inside)(decay=self._inside.decay, **self._inside._parameters())

    def _weights(self, question: Question) -> tuple[Floats, int]:
        """The weight of each pane, half-way between those of its oldest and its newest item."""
        ends = np.array([pane.low for pane in self._panes] + [pane.high for pane in self._panes], np.int64)
        weights, power = question.scaled(ends)
        low, high = weights[: len(self._panes)], weights[len(self._panes) :]
        rough = high > low * ((1 + self.epsilon) * (1 + _ROUNDING))
        if rough.any():
            pane = self._panes[int(np.argmax(rough))]
            raise Unsupported(
                f"{question.decay} varies by more than {1 + self.epsilon:g} between {show(pane.low)} and "
                f"{show(pane.high)}, which are one pane of a ladder for {self.decay}; ask under a decay that falls no "
                "faster, or use RangeSketch"
            )
        return (low + high) / 2, power

    def _require_slower(self, question: Question) -> None:
        """Refuse a backward decay that is not dominated by the ladder's own, whatever the panes hold."""
        decay = question.decay
        if decay == self.decay or not isinstance(decay, Backward):
            return
        ages, spans = _checked(self._ages, self._base)
        later = ages + spans
        if not _falls_by(decay, ages, later, self.epsilon).all():
            raise Unsupported(
                f"{decay} falls faster than {self.decay}, for which this ladder divides time; make a ladder for the "
                "fastest decay that is asked for, or use RangeSketch"
            )

    # --- Rows

    def _taken(self, decay: Decay) -> Any:
        if _is_smooth(decay):
            return decay
        why = (
            "is fixed when an item comes: give it to the summary itself"
            if isinstance(decay, Forward)
            else f"does not fall ever more slowly; use {' or '.join(registry.takers('backward'))}"
        )
        raise Unsupported(f"a ladder is for smooth backward decays such as backward poly(1), and {decay} {why}")

    def _column(self, given: Any) -> Any:
        return self._inside._column(given)

    def _plain(self, item: Any) -> bool:
        return bool(self._inside._plain(item))

    def _add_rows(self, items: Any, batch: Batch) -> None:
        if not batch.size:
            return
        assert batch.times is not None
        assert self.newest is not None
        times = nanoseconds(batch.times)
        starts = self._divide(self.newest, min([int(times.min()), *(pane.low for pane in self._panes)]))
        places = np.searchsorted(starts, times, "right") - 1
        weights = batch.weights
        if len(places) > 1 and (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            items, times, places = items[order], times[order], places[order]
            weights = None if weights is None else weights[order]
        cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(places)]
        fresh = []
        for start, end in pairwise(cuts):
            part = slice(start, end)
            one = _Pane(int(times[part].min()), int(times[part].max()), self._empty())
            loads = None if weights is None else weights[part]
            one.summary._add_rows(items[part], Batch(None, loads, None, end - start, (0, 0)))
            one.summary.rows += end - start
            fresh.append(one)
        self._join(fresh, starts)

    def _absorb(self, other: Self) -> None:
        if not other._panes:
            return
        newest = max(time for time in (self.newest, other.newest) if time is not None)
        starts = self._divide(newest, min(pane.low for pane in (*self._panes, *other._panes)))
        self._join([_Pane(pane.low, pane.high, pane.summary.copy()) for pane in other._panes], starts)

    def _divide(self, newest: int, oldest: int) -> Ints:
        """The first instants of the panes between two instants, in order."""
        starts = np.empty(256, np.int64)
        count = _starts(newest, oldest, self._ages, self._base, starts)
        if count > len(starts):
            starts = np.empty(count, np.int64)
            _starts(newest, oldest, self._ages, self._base, starts)
        return starts[:count][::-1].copy()

    def _join(self, fresh: list[_Pane], starts: Ints) -> None:
        """Merge panes with what is there, by the stretches that they fall in now."""
        every = sorted((*self._panes, *fresh), key=lambda pane: pane.low)
        places = np.searchsorted(starts, np.array([pane.low for pane in every], np.int64), "right").tolist()
        joined: list[_Pane] = []
        last = -1
        for pane, place in zip(every, places, strict=True):
            if place == last:
                mine = joined[-1]
                mine.summary.merge(pane.summary)
                mine.low, mine.high = min(mine.low, pane.low), max(mine.high, pane.high)
            else:
                joined.append(pane)
            last = place
        self._panes = joined

    # --- States

    def _parameters(self) -> dict[str, Any]:
        return {"of": self._of, "epsilon": self.epsilon, "parameters": self._inside._parameters()}

    def _write(self, writer: serde.Writer) -> None:
        writer.uint(len(self._panes))
        for pane in self._panes:
            writer.int(pane.low).int(pane.high).blob(pane.summary.to_bytes())

    def _read(self, reader: serde.Reader) -> None:
        count = reader.uint()
        rows, before = 0, -FARTHEST
        for _ in range(min(count, _most(self._ages, self._base))):
            low, high = reader.int(), reader.int()
            if not before < low <= high < FARTHEST:
                raise CorruptState("the panes in the state are not in order")
            one = type(self._inside).from_bytes(reader.blob())
            if one.digest() != self._inside.digest() or one.decay != self._inside.decay or not one.rows:
                raise CorruptState("a pane in the state holds another summary, or nothing")
            before = high
            rows += one.rows
            self._panes.append(_Pane(low, high, one))
        if count != len(self._panes) or rows != self.rows or (count and self.newest != before):
            raise CorruptState(f"the state promises {count} panes of {self.rows} rows, and has {len(self._panes)}")
        if count:
            assert self.newest is not None
            starts = self._divide(self.newest, self._panes[0].low)
            places = [np.searchsorted(starts, [pane.low, pane.high], "right").tolist() for pane in self._panes]
            if any(a != b for a, b in places) or len({a for a, _ in places}) != count:
                raise CorruptState("the panes in the state are not those of its newest time")


def _inside(of: Any, parameters: Mapping[str, Any] | None) -> tuple[str, Any]:
    """The name of the summary inside, and an empty one."""
    if isinstance(of, Summary):
        if of.rows or parameters is not None or not isinstance(of.decay, NoDecay):
            raise BadParameter(f"a ladder is made of a summary without rows, without decay, as it is; got {of!r}")
        name, made = of.SPEC.name, of.copy()
    else:
        name = of if isinstance(of, str) else getattr(getattr(of, "SPEC", None), "name", repr(of))
        spec = registry.lookup(name)
        made = spec.make(**(parameters or {}))
    try:
        made.copy()._scale(1.0, 0)
    except Unsupported as why:
        raise BadParameter(f"there is no ladder of {name!r}: {why}") from None
    return name, made


def _is_smooth(decay: Decay) -> bool:
    """Whether a backward decay falls by ever smaller factors; a user's is judged by a sample of ages."""
    if isinstance(decay, (NoDecay, BackwardPoly, SubPoly)):
        return True
    if isinstance(decay, Forward) or not isinstance(decay, Backward):
        return False
    ages = np.append(0.0, np.geomspace(1e-6, 2e9, 400))
    for length in np.geomspace(1e-6, 1e9, 60).tolist():
        with np.errstate(invalid="ignore"):
            logs = _logs(decay, ages) - _logs(decay, ages + length)
        if not (np.isfinite(logs) & (logs >= 0)).all() or (np.diff(logs) > _ROUNDING * (1 + abs(logs[1:]))).any():
            return False
    return True


@functools.lru_cache(64)
def _allowed(decay: Any, epsilon: float) -> tuple[Ints, int]:
    """By length of a pane, as a power of two, the least age at which it may have it; and the longest for any age."""
    ages = np.full(_TOP + 1, _NEVER, np.int64)
    for k in range(_TOP + 1):
        length = math.ldexp(1.0, k) / SECOND
        low, high = 0, _NEVER
        while low < high:
            middle = (low + high) // 2
            if _falls_by(decay, np.array([middle / SECOND]), np.array([middle / SECOND + length]), epsilon)[0]:
                high = middle
            else:
                low = middle + 1
        ages[k] = low
    ages = np.maximum.accumulate(ages)
    base = max(int(np.searchsorted(ages, 0, "right")) - 1, 0)  # a pane of one instant may always be
    ages[: base + 1] = -_NEVER
    ages.setflags(write=False)
    return ages, base


def _checked(allowed: Ints, base: int) -> tuple[Floats, Floats]:
    """Ages and lengths of panes that may be there, in seconds: such that no age is left out, and finer from each on."""
    ages, spans = [], []
    for k in range(base, len(allowed)):
        first = max(int(allowed[k]), 0)
        last = int(allowed[k + 1]) if k + 1 < len(allowed) else _NEVER
        if first < last:
            side_by_side = np.arange(min((last - first >> k) + 2, _MOST_CHECKED))
            steps = np.concatenate([side_by_side, np.geomspace(1e-3, 1e3, 25)])
            ages.append((first + steps * 2.0**k) / SECOND)
            spans.append(np.full(len(steps), 2.0**k / SECOND))
    return np.concatenate(ages), np.concatenate(spans)


def _falls_by(decay: Backward, ages: Floats, later: Floats, epsilon: float) -> Any:
    """Where a decay falls by ``1 + epsilon`` at most between two ages."""
    with np.errstate(invalid="ignore"):
        logs = _logs(decay, ages) - _logs(decay, later)
    return np.isnan(logs) | (logs <= math.log1p(epsilon))  # nan: nothing becomes nothing


def _logs(decay: Backward, ages: Floats) -> Floats:
    """Natural logarithms of the weights of ages; -inf of none."""
    mantissas, exponents = decay.wide_of_age(ages)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(mantissas) + exponents * math.log(2)
    return np.where(mantissas == 0, -np.inf, logs)


def _most(ages: Ints, base: int) -> int:
    """How many panes there may be: of each length, two for each that fits between the ages that allow it."""
    edges = [0 if age < 0 else int(age) for age in ages[base:]] + [_NEVER]
    return sum(4 + 2 * ((b - a) >> k) for k, (a, b) in enumerate(pairwise(edges), base) if a < b) + 8


def _most_bytes(parameters: Mapping[str, Any]) -> int:
    ladder = SmoothLadder(**parameters)
    spec = registry.lookup(ladder._of)
    ages, base = _allowed(BackwardPoly(4.0), ladder.epsilon)
    return 1024 + (32 + spec.state_bytes(ladder._inside._parameters())) * _most(ages, base)


SPEC = Spec(
    name="smoothladder",
    make=SmoothLadder,
    version=1,
    title="any mergeable summary under smooth backward decay, by value division",
    questions=("count", "sum", "mean"),
    timeless=(),
    guarantee="each weight to epsilon of itself, on top of what the summary inside allows",
    space="O(log(f(0) / f(W)) / epsilon) summaries",
    time="that of the summary inside, and 10 to 20 ns a row in bulk",
    paper="Cormode, Korn and Tirthapura (PODS 2008), value division",
    equality=Equality.GUARANTEED,
    bounds=lambda p: dict.fromkeys(("count", "sum", "mean"), p["epsilon"]),
    decays=frozenset({"smooth"}),
    items="numbers",
    parameters=({"epsilon": 0.2},),
    state_bytes=_most_bytes,
)
SmoothLadder.SPEC = SPEC
