"""Queries of sums and extrema as plain Spark columns: Catalyst runs them, and no Python worker is started.

Weights are doubles here, without the power of two that states keep (docs/decisions/0001), so a query goes this way only
where no weight leaves what a double holds: by epochs the largest age is known, and elsewhere that of every polynomial.
Exponential weights without epochs have no bound. They are measured from the start of *stretches* of a few hundred
half-lives; a group has sums for each stretch in which it has rows, and these are added up at the end, relative to the
newest stretch of the group, so that a mean is right a million half-lives later.

Extrema compare ``weight * value`` with weights scaled so that the smallest is 1: no product underflows to a 0 that
would beat a negative one. Variances stay with the engine: Spark's own functions add up no weighted squares about a mean
in one pass, and ``sum(v^2)/C - A^2`` cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- its name everywhere

from wane.decay import Exponential, Forward, NoDecay, Pinned
from wane.grouped import timecolumn
from wane.grouped.clock import measured_in_epoch
from wane.grouped.query import Answer, Plan, State
from wane.grouped.states import EPOCH
from wane.spark.clocks import column, ticks, written
from wane.spark.expressions import translate
from wane.spark.weights import Age, exponents, weight
from wane.summaries.base import LARGEST
from wane.times import PER_TICK, SECOND, show

_EXTREMA = ("min", "max", "argmin", "argmax")
_QUESTIONS = ("count", "sum", "mean", *_EXTREMA)

_RANGE = 480
"""Weights from ``2**-480`` to ``2**480`` times values under ``2**400`` are doubles, and so are sums of them."""

_FAR = 2.0**34
"""Seconds, five centuries: the ages that are provided for where nothing else bounds them."""

_HALF_LIVES = 400
"""In a stretch."""

_LONGEST = 2.0**61
"""Ticks in the longest stretch: its ends are numbers of 64 bits."""

_START, _STRETCH, _PARTS, _NEWEST, _NOW = "wane_start", "wane_stretch", "wane_parts", "wane_newest", "wane_now"


@dataclass(frozen=True)
class Native:
    """A plan over rows of some columns, as plain Spark columns.

    Attributes:
        plan: The query.
        schema: The columns of the rows.
        before: What happens to a row before a landmark.
        now: The time of the question where there are no epochs: nanoseconds, or None for the newest of the rows.
    """

    plan: Plan
    schema: pa.Schema
    before: str = "error"
    now: int | None = None

    # --- Whether it can be done

    @property
    def obstacle(self) -> str | None:
        """Why the plan cannot be plain columns; None where it can."""
        return next(self._obstacles(), None)

    def _obstacles(self) -> Iterator[str]:
        plan = self.plan
        if plan.every is not None and plan.every.hops > 1:
            yield "epochs that hop are put together of panes"
        for answer in plan.answers:
            if answer.question not in _QUESTIONS:
                yield f"{answer.question} is no plain sum or extreme"
        if plan.time is not None and pa.types.is_floating(self.schema.field(plan.time).type):
            yield f"{plan.time} has seconds as floats, which the engine reads to the nanosecond"
        for i, state in enumerate(plan.states):
            if weight(state.decay, Age(F.lit(0), 1)) is None:
                yield f"{state.decay} is a function of Python"
            elif self._is_open(state):
                if self._asked(i) & {*_EXTREMA}:
                    yield f"extrema under {state.decay} without epochs are compared by powers of two"
                if self._length(state) < 1:
                    yield f"{state.decay} is too fast for ticks of {self._per} ns"
            elif not isinstance(state.decay, NoDecay):
                low, high = self._exponents(state)
                if low < -_RANGE or high > _RANGE or high - low > _RANGE:
                    yield f"weights under {state.decay} pass what a double holds"
            if self.before == "clamp" and state.landmark is not None:
                yield "rows before a landmark are moved to it by the engine"
            if state.landmark is not None and not state.decay.needs_landmark:
                yield f"a landmark that {state.decay} does not measure from only says which rows count"
            if self.now is not None and self._is_amiss(state, self.now):
                yield f"the engine says why {state} cannot be asked at {show(self.now)}"

    def _is_amiss(self, state: State, now: int) -> bool:
        """Whether a state is asked at a time at which it has no answer."""
        if isinstance(state.decay, Pinned):
            return now != state.decay.now
        return state.landmark is not None and now < state.landmark

    # --- The answers

    def answers(self, rows: DataFrame) -> DataFrame:
        """The answers of a plan without an obstacle, over the rows that pass its filter."""
        plan = self.plan
        if plan.time is not None:
            rows = rows.where(column(plan.time).isNotNull())
        keys = {f"wane_key_{i}": column(name) for i, name in enumerate(plan.keys)}
        if plan.every is not None:
            keys[_START] = self._epoch
        totals = {name: total for i in range(len(plan.states)) for name, total in self._totals(i).items()}
        if plan.time is not None:
            totals[_NEWEST] = F.max(self._ticks)
        if self._stretch:
            keys[_STRETCH] = self._ticks - F.pmod(self._ticks, F.lit(self._stretch))
        grouped = rows.groupBy(*_named(keys)).agg(*_named(totals))
        if self._stretch:
            grouped = self._joined(grouped, [name for name in keys if name != _STRETCH], list(totals))
        if self._needs_newest:
            newest = rows.agg(F.max(self._ticks).alias(_NOW))
            grouped = grouped.crossJoin(F.broadcast(newest))
        return grouped.select(*self._labels(), *(self._answer(answer) for answer in plan.answers))

    def _totals(self, i: int) -> dict[str, Column]:
        """What is added up for a state, by the names of its columns."""
        state, asked = self.plan.states[i], self._asked(i)
        weights = self._weights(state)
        found = {}
        values, usable = F.lit(None), F.lit(True)
        if state.column is not None:
            values = translate(state.column, self.schema)
            usable = F.abs(values) < LARGEST
        if asked & {"count", "mean"}:
            found["count"] = F.sum(F.when(usable, weights))
        if asked & {"sum", "mean"}:
            found["sum"] = F.sum(F.when(usable, weights * values))
        for side, sign in (("max", 1), ("min", -1)):
            if not asked & {side, f"arg{side}"}:
                continue
            # The weight is scaled first: the product of it as it is and a small value may underflow.
            product = F.when(usable, values * (weights * math.ldexp(sign, self._scale(state))))
            if side in asked:
                found[side] = F.max(product)
            if f"arg{side}" in asked:
                # Among equal products the newer item counts, then the one of the larger value.
                ticks = F.lit(0) if self.plan.time is None else self._ticks
                item = F.struct(product.alias("product"), ticks.alias("ticks"), values.alias("value"))
                found[f"arg{side}"] = F.max(F.when(product.isNotNull(), item))
        return {f"wane_{i}_{name}": total for name, total in found.items()}

    def _joined(self, grouped: DataFrame, keys: list[str], totals: list[str]) -> DataFrame:
        """Add up the sums of all stretches of each group."""
        parts = F.collect_list(F.struct(_STRETCH, *totals)).alias(_PARTS)
        whole = grouped.groupBy(*keys).agg(parts, F.max(_NEWEST).alias(_NEWEST))
        added = {}
        for i, state in enumerate(self.plan.states):
            mine = [name for name in totals if name.startswith(f"wane_{i}_")]
            # Sums are relative to the newest stretch in which the state has any.
            there = F.filter(_PARTS, lambda part: part[mine[0]].isNotNull())  # noqa: B023 -- called at once
            newest = F.array_max(F.transform(there, lambda part: part[_STRETCH]))
            rate = state.decay.alpha if self._is_open(state) else 0.0  # type: ignore[attr-defined]
            for name in mine:
                if name.endswith(("count", "sum")):
                    added[name] = _added(there, name, newest, rate * self._per / SECOND)
                else:
                    added[name] = F.array_max(F.transform(there, lambda part: part[name]))  # noqa: B023
            added[f"wane_{i}_stretch"] = newest
        return whole.select(*keys, _NEWEST, *_named(added))

    def _labels(self) -> list[Column]:
        """The columns that name the groups: the start of the epoch in the time column's own type, and the keys."""
        found = [F.col(f"wane_key_{i}").alias(name) for i, name in enumerate(self.plan.keys)]
        return [self._time(F.col(_START)).alias(EPOCH), *found] if self.plan.every else found

    def _answer(self, answer: Answer) -> Column:
        i, state = answer.state, self.plan.states[answer.state]

        def total(name: str) -> Column:
            return F.col(f"wane_{i}_{name}")

        def normalised(sums: Column, scale: int = 0) -> Column:
            return F.coalesce(sums, F.lit(0.0)) * self._factor(i) * math.ldexp(1.0, -scale) / self._divisor(state)

        match answer.question:
            case "count" | "sum":
                found = normalised(total(answer.question))
            case "mean":
                found = F.when(total("count") > 0, total("sum") / total("count")).otherwise(math.nan)
            case "max" | "min":
                product = total(answer.question) * (1.0 if answer.question == "max" else -1.0)
                # A sum with 0 is never -0.
                found = F.when(product.isNull(), math.nan).otherwise(normalised(product, self._scale(state)) + 0.0)
            case side:
                value, ticks = total(side)["value"], total(side)["ticks"]
                item = value if self.plan.time is None else F.struct(value, self._time(ticks).alias("time"))
                found = F.when(total(side).isNotNull(), item)
        checked = self._checked(found)
        return checked.alias(answer.name)

    def _factor(self, i: int) -> Column:
        """What brings sums from the start of their stretch to now."""
        state = self.plan.states[i]
        if not self._is_open(state):
            return F.lit(1.0)
        since = Age(self._now.ticks - F.col(f"wane_{i}_stretch"), self._per, self._now.more).seconds
        return F.coalesce(F.exp(since * -state.decay.alpha), F.lit(1.0))  # type: ignore[attr-defined]

    def _divisor(self, state: State) -> Column:
        """The weight of now, which answers are divided by."""
        if not isinstance(state.decay, Forward) or isinstance(state.decay, (NoDecay, Exponential, Pinned)):
            return F.lit(1.0)
        every = self.plan.every
        if measured_in_epoch(state, every):
            assert every is not None
            age = Age(F.lit(every.length // self._per), self._per)
        elif every is not None:
            age = self._since(F.col(_START) + every.length // self._per, 0, state)
        else:
            age = self._since(self._now.ticks, self._now.more, state)
        known = weight(state.decay, age)
        assert known is not None
        # Where now weighs nothing or is before the landmark, nothing is there. (To Spark NaN is more than 0.)
        return F.when((age.seconds >= 0) & (known > 0), known).otherwise(1.0)

    def _checked(self, answer: Column) -> Column:
        """An answer, refused where rows are newer than the question."""
        if self.now is None or self.plan.every is not None or self.plan.time is None:
            return answer
        message = f"now={show(self.now)} is before the newest row, whose weight would pass 1; ask at or after it"
        return F.when(F.col(_NEWEST) > self.now // self._per, F.raise_error(F.lit(message))).otherwise(answer)

    # --- Weights

    def _weights(self, state: State) -> Column:
        """The weight of every row, null where the row is left out."""
        decay, every = state.decay, self.plan.every
        if isinstance(decay, NoDecay):
            return F.lit(1.0)
        if self._is_open(state):
            # Grows from 1 at the start of the stretch.
            return F.exp(Age(F.pmod(self._ticks, F.lit(self._stretch)), self._per).seconds * decay.alpha)  # type: ignore[attr-defined]
        if isinstance(decay, Pinned):
            age = Age(decay.now // self._per - self._ticks, self._per, decay.now % self._per)
            return self._refused(age.ticks < 0, f"a row is newer than the fixed time of {decay}", decay, age)
        if measured_in_epoch(state, every) or isinstance(decay, Exponential):
            assert every is not None
            into = self._into
            passed = into if decay.needs_landmark else every.length // self._per - into
            known = weight(decay, Age(passed, self._per))
            assert known is not None
            return known
        age = self._since(self._ticks, 0, state)
        assert state.landmark is not None
        message = f"rows are before the landmark {show(state.landmark)} of {state}; choose an earlier landmark, or "
        return self._refused(age.ticks < 0, message + "before='drop' or 'clamp'", decay, age, self.before == "drop")

    def _refused(self, bad: Column, message: str, decay: object, age: Age, drop: bool = False) -> Column:
        """The weight of an age, with bad rows left out or refused."""
        known = weight(decay, age)  # type: ignore[arg-type]
        assert known is not None
        return F.when(bad, F.lit(None) if drop else F.raise_error(F.lit(message)).cast("double")).otherwise(known)

    def _since(self, ticks: Column, more: int, state: State) -> Age:
        """The time from a state's landmark to `ticks` and `more` nanoseconds."""
        landmark = state.landmark or 0
        whole = -(-landmark // self._per)
        return Age(ticks - whole, self._per, whole * self._per - landmark + more)

    def _exponents(self, state: State) -> tuple[int, int]:
        """The powers of two of the smallest and the largest weight of a state whose ages are bounded."""
        every = self.plan.every
        epochs = measured_in_epoch(state, every) or isinstance(state.decay, Exponential)
        return exponents(state.decay, self._per / SECOND, every.length / SECOND if epochs and every else _FAR)

    def _scale(self, state: State) -> int:
        """The power of two that products are scaled by, so that the smallest weight becomes 1."""
        return 0 if isinstance(state.decay, NoDecay) else -self._exponents(state)[0]

    # --- Stretches

    def _is_open(self, state: State) -> bool:
        return isinstance(state.decay, Exponential) and self.plan.every is None

    def _length(self, state: State) -> int:
        """Ticks in a stretch of a state."""
        length = _HALF_LIVES * math.log(2) / state.decay.alpha * SECOND / self._per  # type: ignore[attr-defined]
        return int(min(length, _LONGEST))

    @cached_property
    def _stretch(self) -> int:
        """Ticks in a stretch, or 0 where there are none."""
        return min((self._length(state) for state in self.plan.states if self._is_open(state)), default=0)

    # --- Times

    @cached_property
    def _per(self) -> int:
        """Nanoseconds in a tick of the time column."""
        return 1 if self.plan.time is None else PER_TICK[timecolumn.unit_of(self.schema.field(self.plan.time).type)]

    @property
    def _ticks(self) -> Column:
        assert self.plan.time is not None
        return ticks(self.plan.time, self.schema.field(self.plan.time).type)

    def _time(self, found: Column) -> Column:
        """Ticks in the time column's own type."""
        assert self.plan.time is not None
        return written(found, self.schema.field(self.plan.time).type)

    @property
    def _into(self) -> Column:
        """Ticks since the start of the epoch."""
        every = self.plan.every
        assert every is not None
        return F.pmod(self._ticks - every.offset // self._per, F.lit(every.length // self._per))

    @property
    def _epoch(self) -> Column:
        """The start of the epoch."""
        return self._ticks - self._into

    @property
    def _now(self) -> Age:
        """The time of the question, as an age since 1970."""
        if self.now is None:
            return Age(F.col(_NOW), self._per)
        return Age(F.lit(self.now // self._per), self._per, self.now % self._per)

    @property
    def _needs_newest(self) -> bool:
        if self.now is not None or self.plan.every is not None:
            return False
        return any(state.decay.needs_landmark or self._is_open(state) for state in self.plan.states)

    # --- Values

    def _asked(self, i: int) -> frozenset[str]:
        return frozenset(answer.question for answer in self.plan.answers if answer.state == i)


def _added(parts: Column, name: str, newest: Column, rate: float) -> Column:
    """The sum of parts, each weighed by how many ticks its stretch is before the newest."""

    def add(total: Column, part: Column) -> Column:
        share = F.exp((part[_STRETCH] - newest).cast("double") * rate) if rate else F.lit(1.0)
        return total + F.coalesce(part[name], F.lit(0.0)) * share

    return F.aggregate(parts, F.lit(0.0), add)


def _named(columns: dict[str, Column]) -> list[Column]:
    return [found.alias(name) for name, found in columns.items()]
