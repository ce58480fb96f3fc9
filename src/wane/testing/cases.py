"""What laws are tried on: a summary with its parameters under a decay, and the answers it gives."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from wane import decay as decays
from wane.decay import Decay
from wane.registry import Equality, Spec
from wane.testing import oracles
from wane.testing.oracles import Answer
from wane.testing.streams import START, Stream, edges, streams
from wane.times import SECOND, Nanoseconds, Ticks

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

EQUAL = 1e-12
"""The relative error that the class of equality EQUAL allows."""


def _steep(age: float) -> float:
    return age * math.sqrt(age + 1.0)


def _lorentz(age: float) -> float:
    return 1.0 / (1.0 + age * age / 10_000.0)


PINNED = Nanoseconds(START + 3 * 86400 * SECOND)
"""The instant that the pinned one of :func:`sample_decays` is asked at."""


DEFAULTS = ("poly(2)", "window(5m)", "pinned")
"""Decays that summaries are tried with as the default, where the decay is chosen with the question."""


@functools.cache
def sample_decays() -> Mapping[str, Decay]:
    """One decay of each kind, by name; laws are tried under each that a summary takes."""
    texts = (
        "none",
        "exp(half_life=5m)",
        "exp(rate=0.1)",
        "exp(half_life=730d)",
        "poly(2)",
        "poly(0.5)",
        "polynomial(1, 0, 2)",
        "landmark",
        "backward poly(1.5)",
        "window(5m)",
    )
    made = {text: decays.parse(text) for text in texts}
    made["user"] = decays.forward(_steep, name="wane.testing steep")
    made["user backward"] = decays.backward(_lorentz, name="wane.testing lorentz")
    made["pinned"] = decays.pinned("backward poly(1.5)", now=PINNED)
    return made


@dataclass(frozen=True)
class Case:
    """A summary with its parameters under a decay.

    Attributes:
        spec: The summary.
        decay: The decay.
        parameters: Its parameters beside the decay.
        landmark: Where the decay measures from.
        ids: Whether rows are given with their ids, where a summary takes them.
        asked: The decay that questions name, where they name one.
    """

    spec: Spec
    decay: Decay
    parameters: Mapping[str, Any] = field(default_factory=dict)
    landmark: Nanoseconds | None = None
    ids: bool = False
    asked: Decay | None = None

    def make(self, *, part: int = 0, **changes: Any) -> Any:
        """An empty summary, with some of its arguments changed.

        Args:
            part: Which of several that are to merge it is: where rows are numbered, each needs a seed of its own.
            changes: The arguments.
        """
        seeds = {"seed": part} if part and self.numbered else {}
        return self.spec.make(**{"decay": self.decay, "landmark": self.landmark, **self.parameters, **seeds, **changes})

    def fed(self, *given: Stream, part: int = 0, **changes: Any) -> Any:
        """A summary that has seen these streams, each in one update; the arguments are those of :meth:`make`."""
        made = self.make(part=part, **changes)
        for stream in given:
            self.update(made, stream)
        return made

    def update(self, summary: Any, stream: Stream) -> Any:
        """Add a stream to a summary."""
        return self.add(summary, stream.items, stream.times, stream.weights, stream.ids)

    def add(self, summary: Any, items: Any, times: Any, weights: Any, ids: Any) -> Any:
        """Add rows to a summary; of their ids, only where it is given any."""
        loads = {} if weights is None else {"weights": weights}
        return summary.update(items, times, **loads, **({"ids": ids} if self.ids else {}))

    @property
    def numbered(self) -> bool:
        """Whether rows are told apart by their numbers, so that parts which merge need seeds of their own."""
        return self.spec.numbered and not self.ids

    @property
    def equality(self) -> Equality:
        """Its class of equality, which is that of rows with ids where there are any."""
        return Equality.GUARANTEED if self.numbered else self.spec.equality

    @property
    def replays(self) -> bool:
        """Whether the same rows in the same order give the same bytes, however they are cut into batches."""
        return self.spec.numbered or self.equality is Equality.IDENTICAL

    @property
    def mergeable(self) -> bool:
        """Whether two that have seen rows merge."""
        return "merge_is_concatenation" not in self.spec.absent

    @property
    def start(self) -> Nanoseconds:
        """The instant that its streams begin at."""
        return START if self.landmark is None else self.landmark

    @property
    def until(self) -> Nanoseconds | None:
        """The instant that no item may come after."""
        return Nanoseconds(self.decay.now) if isinstance(self.decay, decays.Pinned) else None

    @property
    def weighted(self) -> bool:
        """Whether items may have weights."""
        return self.spec.weighted

    @property
    def untimed(self) -> bool:
        """Whether items need no times."""
        return isinstance(self.decay, decays.NoDecay) and not self.open

    @property
    def open(self) -> bool:
        """Whether the decay is chosen with the question."""
        return bool({"backward", "smooth"} & self.spec.decays)

    def asking(self, decay: Decay) -> Case:
        """The same case with questions that name a decay."""
        return replace(self, asked=decay)

    def streams(self, **limits: Any) -> SearchStrategy[Stream]:
        """A strategy of streams that it takes; arguments go to :func:`wane.testing.streams`."""
        return streams(**{**self._limits(), **limits}).map(self.fit)

    def edges(self, early: bool = False) -> Mapping[str, Stream]:
        """The hand-made streams that it takes, and if `early`, one that starts before the landmark."""
        made = edges(items=self.spec.items, start=self.start, until=self.until, weighted=self.weighted, early=early)
        return {name: self.fit(stream) for name, stream in made.items()}

    def fit(self, stream: Stream, after: int | None = None) -> Stream:
        """A stream as it takes it: without weights where it takes none, in order and after a time where it must be.

        Args:
            stream: The stream.
            after: The time of the newest item that came before.
        """
        light = stream if self.weighted else Stream(stream.items, stream.times, None, stream.ids)
        if not self.spec.ordered or light.times is None:
            return light
        times = light.times
        least = np.iinfo(np.int64).min if after is None else -(-after // times.per_tick)
        known = times.values if times.valid is None else np.where(times.valid, times.values, least)
        order = np.argsort(known, kind="stable")
        valid = None if times.valid is None else times.valid[order]
        moved = Ticks(np.maximum(known[order], least), times.unit, valid)
        weights = None if light.weights is None else light.weights[order]
        return Stream(light.items[order], moved, weights, light.ids[order])

    def now(self, stream: Stream, later: int = 0) -> Nanoseconds:
        """A time at which to ask about a stream: `later` nanoseconds after its newest item, or the pinned one."""
        if self.until is not None:
            return self.until
        newest = stream.newest
        if newest is None:
            newest = self.start
        return Nanoseconds((newest if self.landmark is None else max(newest, self.landmark)) + later)

    def answers(self, summary: Any, now: Any, *, historical: bool = False) -> dict[str, Any]:
        """The answers to all questions, by name; a named sum is asked as ``total`` with its name."""
        spec = self.spec
        known = {q: getattr(summary, q)(**self.arguments(q)) for q in spec.timeless}
        extra: dict[str, Any] = {"historical": True} if historical else {}
        if self.asked is not None:
            extra |= {"decay": self.asked, "landmark": self.start if self.asked.needs_landmark else None}
        asked = {
            q: getattr(summary, q)(**self.arguments(q), now=now, **extra)
            for q in spec.questions
            if q not in spec.timeless
        }
        totals = {f"total {name}": summary.total(name, now=now, **extra) for name in self._sums}
        return {**known, **asked, **totals}

    def exact(self, stream: Stream, now: int | None, *, before: str = "error") -> dict[str, Answer]:
        """The exact answers to those questions that an oracle judges, by the names that :meth:`answers` gives."""
        decay, start = (self.decay, self.landmark) if self.asked is None else (self.asked, self.start)
        numbers, heaviest = self.spec.items in ("numbers", "vectors"), self.heaviest
        rows = oracles.rows(stream, decay, now, start, before=before, numbers=numbers, heaviest=heaviest)
        asked = [(q, self.oracle(q)) for q in self.spec.questions if self.tolerance(q) is not None]
        found = {q: oracle(rows, **self.arguments(q)) for q, oracle in asked if oracle is not None}
        return found | {
            f"total {name}": oracles.decayed_total(rows, _expression(text)) for name, text in self._sums.items()
        }

    def arguments(self, question: str) -> Mapping[str, Any]:
        """What a question is asked with, beside now."""
        return self.spec.arguments.get(question, {})

    def tolerance(self, question: str) -> float | None:
        """What an answer may be off by, relative to the oracle's scale; None where nothing is known."""
        return self.spec.bounds(self.parameters).get(question, EQUAL if self.sure else None)

    @property
    def sure(self) -> bool:
        """Whether answers are a function of the rows, to within rounding."""
        return self.equality is not Equality.GUARANTEED

    def identical(self, stream: Stream) -> bool:
        """Whether summaries of the rows of a stream have the same bytes."""
        if self.spec.undecayed is Equality.IDENTICAL and self.untimed:
            loads = np.ones(len(stream)) if stream.weights is None else stream.weights[stream.weights < oracles.USABLE]
            return bool((loads == np.floor(loads)).all() and loads.sum() < 2.0**53)
        return self.equality is Equality.IDENTICAL

    @property
    def judged(self) -> bool:
        """Whether an oracle judges any question."""
        return any(self.oracle(q) is not None and self.tolerance(q) is not None for q in self.spec.questions)

    def oracle(self, question: str) -> Callable[..., Answer] | None:
        """The oracle of a question: the summary's own where it means something else by it, or that of the name."""
        return oracles.ORACLES.get(f"{self.spec.name}.{question}", oracles.ORACLES.get(question))

    @property
    def heaviest(self) -> float:
        """The largest weight that an item may have."""
        return float(self.parameters.get("max_weight", oracles.HEAVIEST))

    def seen(self, summary: Any) -> tuple[Any, ...]:
        """What a summary says of the rows it has seen, as far as that is part of its state."""
        if not self.spec.counts_repeats:
            return (summary.newest,)
        return summary.rows, summary.newest, dict(sorted(summary.dropped.items()))

    def require_same(self, mine: Any, theirs: Any, stream: Stream, *, ordered: bool = False) -> None:
        """Require two summaries of the same rows to be equal in their class of equality.

        Args:
            mine: One.
            theirs: The other.
            stream: The rows.
            ordered: Whether both have seen them in the same order.
        """
        seen = [self.seen(one) for one in (mine, theirs)]
        require(seen[0] == seen[1], f"rows, newest time and dropped rows are {seen[0]} one way and {seen[1]} the other")
        if self.identical(stream) or (ordered and self.replays):
            require(mine.to_bytes() == theirs.to_bytes(), f"the bytes of {mine!r} and of {theirs!r} differ")
        now = self.now(stream)
        self.require_close(self.answers(mine, now), self.answers(theirs, now), stream, now)

    def require_close(self, mine: Mapping[str, Any], theirs: Mapping[str, Any], stream: Stream, now: int) -> None:
        """Require two sets of answers about one stream to be equal to within their class of equality."""
        exact = self.exact(stream, now)
        for question, answer in mine.items():
            other, right, tolerance = theirs[question], exact.get(question), self.tolerance(question)
            if tolerance is None:
                continue
            if right is None:
                close = alike(answer, other, tolerance)
            elif self.sure:
                close = right.near(answer, other, 2 * tolerance)
            else:
                close = right.accepts(answer, tolerance) and right.accepts(other, tolerance)
            require(close, f"{question} is {answer!r} one way and {other!r} the other; exactly: {right}")

    def require_right(self, summary: Any, stream: Stream, now: Nanoseconds, *, historical: bool = False) -> None:
        """Require the answers that an oracle judges to be right."""
        exact = self.exact(stream, now)
        for question, answer in self.answers(summary, now, historical=historical).items():
            tolerance = self.tolerance(question)
            if question in exact and tolerance is not None:
                right = exact[question]
                require(right.accepts(answer, tolerance), f"{question} at {now} is {answer!r}; exactly: {right}")

    @property
    def _sums(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.parameters.get("sums", {})
        return found

    def _limits(self) -> dict[str, Any]:
        return {
            "items": self.spec.items,
            "start": self.start,
            "until": self.until,
            "timed": None if self.untimed else True,
            "weighted": None if self.weighted else False,
        }

    def __str__(self) -> str:
        short = [name if isinstance(value, Mapping) else f"{name}={value}" for name, value in self.parameters.items()]
        parameters = ", ".join(short) or "plain"
        return f"{self.spec.name} {parameters} {self.decay}{' ids' * self.ids}"


NUMBERED = ("none",)
"""Decays under which rows without ids are tried too, where they may have some: the same code weighs both."""


def cases(spec: Spec) -> Iterator[Case]:
    """Every set of parameters of a summary, under each of :func:`sample_decays` that it takes.

    A decay that is chosen with the question is only the default of what is asked; of those a few are enough.
    """
    ids = spec.numbered and "ids" in inspect.signature(spec.make.update).parameters
    for parameters in spec.parameters:
        for name, decay in sample_decays().items():
            if takes(spec, decay) and (name in DEFAULTS or "backward" not in spec.decays):
                landmark = START if decay.needs_landmark else None
                yield Case(spec, decay, parameters, landmark, ids)
                if ids and name in NUMBERED:
                    yield Case(spec, decay, parameters, landmark)


def takes(spec: Spec, decay: Decay) -> bool:
    """Whether a summary takes a decay, by what its `SPEC` says."""
    if "smooth" in spec.decays and isinstance(decay, (decays.NoDecay, decays.BackwardPoly, decays.SubPoly)):
        return True
    if isinstance(decay, decays.Forward):
        return "forward" in spec.decays or (decay.flat and "landmark" in spec.decays)
    return "backward" in spec.decays


def require(condition: bool, otherwise: str) -> None:
    """Fail unless the condition holds (pytest explains `assert` in test files only)."""
    if not condition:
        raise AssertionError(otherwise)


def alike(mine: Any, theirs: Any, tolerance: float = 0.0) -> bool:
    """Whether two answers of any shape are the same, NaN included, numbers to within a relative tolerance."""
    if isinstance(mine, (list, tuple, np.ndarray)) and isinstance(theirs, (list, tuple, np.ndarray)):
        return len(mine) == len(theirs) and all(alike(a, b, tolerance) for a, b in zip(mine, theirs, strict=True))
    if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
        return (math.isnan(mine) and math.isnan(theirs)) or math.isclose(mine, theirs, rel_tol=tolerance)
    return bool(mine == theirs)


def _expression(text: str) -> Callable[[Decimal], Decimal]:
    """An expression of `v` over decimals; what is written alike in Python means the same."""
    code = compile(text, "an expression", "eval")
    return lambda v: Decimal(eval(code, {"__builtins__": {}}, {"v": v}))
