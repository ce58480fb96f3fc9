"""What every summary has in common: its decay, its landmark, its clocklessness, its bytes.

A summary keeps the weights of its items scaled by a power of two, ``weight = state * 2**exponent``. Bringing a state
to another power is exact, so nothing overflows and nothing is lost by rescaling, after a million half-lives either.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import items, registry, serde
from wane._jit import kernel
from wane.decay import CustomForward, Decay, Forward, Landmark, NoDecay, Pinned, parse
from wane.decay.base import Floats
from wane.decay.weigh import Weighed, weigh
from wane.errors import (
    BadInput,
    BadParameter,
    BadTime,
    BeforeLandmark,
    CorruptState,
    MergeRefused,
    QueryInPast,
    Unsupported,
    WaneError,
)
from wane.times import PER_TICK, SECOND, Nanoseconds, Ticks, absent, instant, show, ticks

LARGEST = math.ldexp(1.0, 400)
"""Values and weights under this (2.6e120) are taken: a million of their squares still fit a double."""

_LARGEST_BITS = int(np.float64(LARGEST).view(np.int64))

_SOON = 9_000_000_000
"""Seconds from 1970 to instants whose nanoseconds fit 64 bits."""

_NEAR = 2**62
"""Instants under this (a century around 1970) fit 64 bits in any unit, and so do their differences."""

_SHORTEST = 2 * 64 / SECOND
"""The reach of half-lives of 2 ns, of which 2**61 last a century; there are too many shorter ones in it."""

_FARTHEST = 2**63 * SECOND

POLICIES = ("error", "drop", "clamp")

_COMPANY = 64
"""Items given one by one that are added together: in a column each costs a fraction, and sums are more exact."""


class Batch(NamedTuple):
    """The accepted rows of one update."""

    times: Ticks | None
    weights: Floats | None
    keep: NDArray[np.bool_] | None
    size: int
    span: tuple[int, int]


class Summary(ABC):
    """A small mergeable state that answers one family of questions with a stated guarantee.

    Args:
        decay: A decay or its text form; a backward one needs its time fixed first (:func:`wane.decay.pinned`).
        landmark: The time that forward decay measures from. Exponential and no decay need none.
        before: What happens to an item before the landmark: ``"error"`` refuses the update, ``"drop"`` counts and
            drops it, ``"clamp"`` takes it as if it came at the landmark.
    """

    SPEC: ClassVar[registry.Spec]
    _max_weight: float = math.nextafter(LARGEST, 0.0)
    _PAST: ClassVar[str] = "whose weight would pass 1; ask at or after it, or add historical=True"

    def __init__(self, decay: str | Decay = "none", landmark: Any = None, *, before: str = "error") -> None:
        self.decay: Forward = self._taken(parse(decay))
        self.landmark = None if landmark is None else instant(landmark, "landmark")
        if self.decay.needs_landmark and self.landmark is None:
            raise BadParameter(
                f"{self.decay} measures from a landmark, and none was given; add landmark= with a time at or before "
                "the first item"
            )
        if before not in POLICIES:
            raise BadParameter(f"before must be one of {', '.join(POLICIES)}, got {before!r}")
        self.before = before
        # Whether an instant within a century of 1970 may be one that the decay cannot weigh.
        short = isinstance(self.decay, Forward) and self.decay.reach < _SHORTEST
        self._picky = short or isinstance(self.decay, (Pinned, CustomForward))
        self.rows = 0
        self.newest: int | None = None
        self._dropped: dict[str, int] = {}
        self._waiting: tuple[list[Any], list[int | None]] = ([], [])  # items and times given one by one

    def update(self, items: Any, times: Any = None, weights: Any = None) -> Self:
        """Add items: one, or a column of them, with their times and perhaps weights; gives the summary itself."""
        if weights is not None and not self.SPEC.weighted:
            able = [spec for spec in registry.specs().values() if spec.weighted]
            raise Unsupported(
                f"{type(self).__name__} counts each row once, and weights were given; leave them away, or "
                f"{self._use(able) or 'repeat the rows'}"
            )
        kind = type(items)
        bare = kind is float or kind is int  # the most common ones first: they come one by one
        if bare or is_scalar(items):
            items = items if bare else _plain_scalar(items)
            one = items.item() if isinstance(items, np.generic) else items
            if weights is None and self._plain(one) and self._wait(one, times):
                return self
            items, times, weights = [items], *([x] if x is not None else None for x in (times, weights))
        column, good = self._column(items)
        batch = self._accept(len(column), times, weights, good)
        self._add_rows(column if batch.keep is None else column[batch.keep], batch)
        return self

    @abstractmethod
    def _add_rows(self, items: Any, batch: Batch) -> None:
        """Add accepted rows: items as :meth:`_column` gives them, with what makes their weights (:meth:`_weigh`)."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """The further arguments that make an empty one like it, as values :class:`wane.serde.Writer` can write."""

    @abstractmethod
    def _write(self, writer: serde.Writer) -> None:
        """Write the state."""

    @abstractmethod
    def _read(self, reader: serde.Reader) -> None:
        """Read the state, checking every value."""

    @abstractmethod
    def _absorb(self, other: Self) -> None:
        """Merge the state of `other`, which has the same parameters."""

    def _scale(self, factor: float, exponent: int) -> None:
        """Multiply the weight of everything by ``factor * 2**exponent``, the factor above 0 and about 1."""
        raise Unsupported(f"the weights in a {type(self).__name__} cannot be scaled; use one of sums or of counters")

    def _wait(self, item: Any, time: Any) -> bool:
        """Let one item without a weight wait for company; False where it must go the way of a column at once."""
        at: int | None = None
        if type(time) is float or type(time) is int:
            whole = int(time) if -_SOON < time < _SOON else 0
            if not whole and not -1 < time < 1:
                return False
            at = whole * SECOND + round((time - whole) * SECOND)
        elif time is not None:
            try:
                at = instant(time)
            except BadTime:
                return False
            if not -_SOON * SECOND < at < _SOON * SECOND:
                return False
        elif self._timed:
            return False
        if self._picky or (at is not None and self.landmark is not None and at < self.landmark):
            return False
        if at is not None and self._too_late(at):
            return False
        if self._waiting[1] and (self._waiting[1][-1] is None) != (at is None):
            self._settle()
        waiting, instants = self._waiting
        waiting.append(item)
        instants.append(at)
        self.rows += 1
        if at is not None and (self.newest is None or at > self.newest):
            self.newest = at
        if len(waiting) >= _COMPANY:
            self._settle()
        return True

    def _settle(self) -> None:
        """Bring into the state what was accepted and waits; everything that reads the state does so first."""
        waiting, instants = self._waiting
        if waiting:
            self._waiting = ([], [])
            times = None if instants[0] is None else Ticks(np.array(instants, np.int64), "ns")
            span = (0, 0) if times is None else times.span()
            self._add_rows(self._column(waiting)[0], Batch(times, None, None, len(waiting), span))

    def _column(self, given: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """Read a column of items, and where they can be used (None: everywhere)."""
        if self.SPEC.items == "numbers":
            return column_of(given)
        column = items.read(given)
        return column, column.valid

    def _plain(self, item: Any) -> bool:
        """Whether one item surely can be used."""
        kind = type(item)
        if kind is float or kind is int:
            return bool(-LARGEST < item < LARGEST)
        return self.SPEC.items != "numbers" and (kind is str or kind is bytes)

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many rows were not counted, by reason: ``time``, ``value``, ``id``, ``weight``, ``before_landmark``."""
        self._settle()
        return dict(self._dropped)

    def merge(self, other: Self) -> Self:
        """Add everything `other` has seen; `other` stays as it is. Refused where no honest merge exists."""
        if type(other) is not type(self):
            raise MergeRefused(f"a {type(self).__name__} merges with its like, not with a {type(other).__name__}")
        mine, theirs = self._identity(), other._identity()
        for name, value in mine.items():
            if theirs[name] != value:
                here, there = _say(name, value), _say(name, theirs[name])
                raise MergeRefused(f"{name} differs: {here} here, {there} there; only states over one {name} merge")
        self._settle()
        other._settle()
        self._absorb(other)
        if other.newest is not None:
            self.newest = other.newest if self.newest is None else max(self.newest, other.newest)
        if self.SPEC.counts_repeats:
            self.rows += other.rows
            for reason, count in other._dropped.items():
                self._drop(reason, count)
        return self

    def to_bytes(self) -> bytes:
        """The state as bytes, which :func:`wane.from_bytes` reads back."""
        self._settle()
        writer = serde.Writer()
        writer.text(str(self.decay)).value(self.landmark).text(self.before).mapping(self._parameters())
        counts = self.SPEC.counts_repeats
        writer.uint(self.rows if counts else 0).value(self.newest).mapping(self._dropped if counts else {})
        self._write(writer)
        return serde.pack(self.SPEC.name, self.SPEC.version, self.digest(), writer.bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a state of this class; anything else is `CorruptState`."""
        envelope = serde.unpack(data)
        spec = cls.SPEC
        if envelope.name != spec.name:
            raise CorruptState(f"the state is of {envelope.name!r}, not of {spec.name!r}; read it with wane.from_bytes")
        if envelope.version > spec.version:
            raise CorruptState(
                f"the state has version {envelope.version} of {spec.name!r}, this wane reads up to {spec.version}; "
                "upgrade wane"
            )
        reader = serde.Reader(envelope.payload)
        try:
            decay, landmark, before = parse(reader.text()), _instant(reader.value()), reader.text()
            found = cls(decay=decay, landmark=landmark, before=before, **reader.mapping())
            if found.digest() != envelope.digest:
                other = "another function than the state was made with, or " if found.decay.behaviour else ""
                raise CorruptState(f"the state cannot be read under {found.decay}: {other}its parameters were changed")
            found.rows = reader.uint()
            found.newest = _instant(reader.value())
            found._dropped = {name: _count(count) for name, count in reader.mapping().items()}
            found._read(reader)
        except CorruptState:
            raise
        except (WaneError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as why:
            raise CorruptState(f"the state of {spec.name!r} cannot be used: {why}") from why
        reader.done()
        return found

    def digest(self) -> bytes:
        """Eight bytes that are the same for summaries that may merge."""
        return serde.digest_of(self.SPEC.name, self.SPEC.version, self._identity())

    def copy(self) -> Self:
        """An independent copy."""
        return type(self).from_bytes(self.to_bytes())

    def __repr__(self) -> str:
        landmark = "" if self.landmark is None else f", landmark={show(self.landmark)}"
        own = "".join(f", {name}={value!r}" for name, value in self._parameters().items() if value)
        rows = f", {self.rows} rows" if self.SPEC.counts_repeats else ""
        return f"<{type(self).__name__} decay={str(self.decay)!r}{landmark}{own}{rows}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as bytes."""
        return type(self).from_bytes, (self.to_bytes(),)

    def _identity(self) -> dict[str, Any]:
        """What two states must share to merge: under no or exponential decay, any landmark gives the same weights."""
        landmark = self.landmark if self.decay.needs_landmark or self.before != "error" else None
        own = {"decay": str(self.decay), "landmark": landmark, "before": self.before, **self._parameters()}
        return own | {"function of the decay": self.decay.behaviour} if self.decay.behaviour else own

    @property
    def _timed(self) -> bool:
        """Whether an item needs its time."""
        return not isinstance(self.decay, NoDecay)

    def _taken(self, decay: Decay) -> Any:
        """The decay itself, refused where it cannot weigh items when they arrive."""
        kinds = self.SPEC.decays
        if isinstance(decay, Forward) and ("forward" in kinds or decay.flat):
            return decay
        wanted = "forward" if isinstance(decay, Forward) else "backward"
        able = [spec for spec in registry.specs().values() if wanted in spec.decays]
        instead = self._use(able) or "no summary here does"
        fixed = (
            "; where the time of the question is known ahead, fix it: decay=wane.decay.pinned(..., now=...)"
            if wanted == "backward"
            else ""
        )
        raise Unsupported(
            f"{type(self).__name__} cannot take {str(decay)!r}: that needs a summary for {wanted} decay "
            f"({instead}){fixed}"
        )

    def _use(self, able: list[registry.Spec]) -> str:
        """Which of some summaries to use instead: those that answer the same where there are such."""
        like = [spec for spec in able if set(spec.functions) & set(self.SPEC.functions)]
        names = [spec.make.__name__ for spec in like or able]
        return f"use {' or '.join(names)}" if names else ""

    def _now(self, now: Any, historical: bool) -> tuple[float, int]:
        """The weight that answers are divided by, ``g(now - L)``, as a double and a power of two."""
        at = self._when(now, self.decay, self.landmark, historical)
        if at is None:
            return 1.0, 0
        weight, exponent = self.decay.at(at, self.landmark)
        if weight == 0:
            if self.rows == 0 or self.newest == at:
                return 1.0, 0  # only items of weight 0 can be there: 0 of anything
            raise QueryInPast(f"{self.decay} gives weight 0 to now={show(at)} itself; ask after the landmark")
        return weight, exponent

    def _when(self, now: Any, decay: Decay, landmark: int | None, historical: bool = False) -> int | None:
        """The instant of a question under a decay, checked; None where the answer is the same at any."""
        if now is None:
            if isinstance(decay, (NoDecay, Landmark)):
                return None
            if not isinstance(decay, Pinned):
                raise QueryInPast(
                    f"this answer under {decay} depends on when it is asked; give now= a time, or now='latest' for "
                    "the newest item's"
                )
            at = decay.now
        elif isinstance(now, str) and now == "latest":
            if self.newest is None:
                return None
            at = self.newest
        else:
            at = instant(now, "now")
        if isinstance(decay, Pinned) and at != decay.now:
            raise QueryInPast(f"{decay} was fixed for {show(decay.now)}, and now={show(at)} is another time")
        if self.newest is not None and at < self.newest and not historical:
            raise QueryInPast(f"now={show(at)} is before the newest item, {show(self.newest)}, {self._PAST}")
        if decay.needs_landmark and landmark is not None and at < landmark:
            raise QueryInPast(f"now={show(at)} is before the landmark {show(landmark)}")
        return at

    def _drop(self, reason: str, count: int) -> None:
        if count:
            self._dropped[reason] = self._dropped.get(reason, 0) + count

    def _accept(
        self,
        size: int,
        times: Any,
        weights: Any,
        valid: NDArray[np.bool_] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> Batch:
        """Check times and weights of a batch, count what is dropped, and note the newest time.

        Args:
            size: The number of items.
            times: Their times, or None under no decay.
            weights: Their weights, or None for 1.
            valid: False where the item itself cannot be used, which is counted as ``value``.
            known: False where its id cannot, where items have ids, which is counted as ``id``.
        """
        column = self._times(times, size)
        loads = None if weights is None else _weights(weights, size)
        dropped: dict[str, int] = {}
        keep: NDArray[np.bool_] | None = None
        for reason, good in (
            ("value", valid),
            ("id", known),
            ("time", None if column is None else column.valid),
            ("weight", None if loads is None else loads <= self._max_weight),
        ):
            if good is not None and not good.all():
                keep = np.ones(size, np.bool_) if keep is None else keep
                dropped[reason] = int((keep & ~good).sum())
                keep &= good
        if column is not None and keep is not None:
            column = column.take(keep)
        oldest = newest = 0
        if column is not None and len(column):
            oldest, newest = column.span()
            if self.landmark is not None and oldest < self.landmark:
                column, keep = self._before_landmark(column, keep, size, dropped)
                oldest, newest = column.span() if len(column) else (0, 0)
            if len(column):
                column, keep = self._admit(column, keep, size, dropped)
            if len(column):
                self._weighable(column, oldest, newest)
                self.newest = newest if self.newest is None else max(self.newest, newest)
        for reason, count in dropped.items():
            self._drop(reason, count)
        accepted = size if keep is None else int(keep.sum())
        self.rows += accepted
        return Batch(column, loads if keep is None or loads is None else loads[keep], keep, accepted, (oldest, newest))

    def _admit(
        self, column: Ticks, keep: NDArray[np.bool_] | None, size: int, dropped: dict[str, int]
    ) -> tuple[Ticks, NDArray[np.bool_] | None]:
        """Refuse, or leave out and count, rows that a summary cannot take because of what came before them."""
        return column, keep

    def _too_late(self, at: int) -> bool:
        """Whether one item is surely for :meth:`_admit` to judge."""
        return False

    def _weighable(self, column: Ticks, oldest: int, newest: int) -> None:
        """Let the decay refuse a batch before any of it is counted: what it takes at both ends, it takes between."""
        if isinstance(self.decay, CustomForward):  # but for a user's function, which may do anything between
            self.decay.locate(column, self.landmark)
        elif self._picky or not -_NEAR < oldest <= newest < _NEAR:
            ends = Ticks(np.array([oldest // column.per_tick, newest // column.per_tick]), column.unit)
            self.decay.locate(ends, self.landmark)
            next(weigh(self.decay, self.landmark, 2, ends, (oldest, newest)))

    def _weigh(self, batch: Batch) -> Iterator[Weighed]:
        """The weights of the accepted rows, a chunk at a time."""
        return weigh(self.decay, self.landmark, batch.size, batch.times, batch.span, batch.weights)

    def _times(self, times: Any, size: int) -> Ticks | None:
        if times is None:
            if not self._timed:
                return None
            raise BadInput(f"{self._clock()} weighs items by time, and no times were given; pass times=")
        column = ticks(times)
        if len(column) != size:
            raise BadInput(f"{size} items came with {len(column)} times; give one time for each item")
        return column

    def _clock(self) -> str:
        """What needs the time of an item, for messages."""
        return str(self.decay)

    def _before_landmark(
        self, column: Ticks, keep: NDArray[np.bool_] | None, size: int, dropped: dict[str, int]
    ) -> tuple[Ticks, NDArray[np.bool_] | None]:
        assert self.landmark is not None
        values, base, per = column.since(self.landmark, *column.span())
        late = values < base
        if self.before == "error":
            first = int(column.values[np.argmax(late)]) * column.per_tick
            raise BeforeLandmark(
                f"{int(late.sum())} of {size} items are before the landmark {show(self.landmark)}, the first at "
                f"{show(first)}; choose an earlier landmark, or before='drop' or 'clamp'"
            )
        if self.before == "clamp":
            unit = next(unit for unit, ns in PER_TICK.items() if ns == per)
            return Ticks(np.maximum(values, base), unit), keep
        dropped["before_landmark"] = int(late.sum())
        keep = np.ones(size, np.bool_) if keep is None else keep
        keep[np.flatnonzero(keep)[late]] = False
        return column.take(~late), keep


def from_bytes(data: bytes) -> Summary:
    """Read a state of any registered summary; anything else is `CorruptState`."""
    name = serde.unpack(data).name
    if name not in registry.specs():
        raise CorruptState(
            f"the state is of {name!r}, which is not registered here; install the package that brings it"
        )
    found: Summary = registry.lookup(name).make.from_bytes(data)
    return found


def ask(summary: Summary, question: str, now: Any, arguments: Mapping[str, Any]) -> Any:
    """Put a question to a summary, with `now` if it takes one."""
    method = getattr(summary, question)
    timed = {"now": now} if "now" in inspect.signature(method).parameters else {}
    return method(**arguments, **timed)


def is_scalar(items: Any) -> bool:
    """Whether one item was given, and not a column."""
    if isinstance(items, (str, bytes)) or hasattr(items, "as_py") or getattr(items, "ndim", 1) == 0:
        return True
    return not (hasattr(items, "__len__") or hasattr(items, "__arrow_c_stream__"))


def _plain_scalar(item: Any) -> Any:
    """One item without its wrapping by Arrow or NumPy."""
    if hasattr(item, "as_py"):
        return item.as_py()
    return item[()] if isinstance(item, np.ndarray) else item


def ldexp(number: float, exponent: int) -> float:
    """``number * 2**exponent``, which is inf where it is too large, as it is for every other operation."""
    try:
        return math.ldexp(number, max(exponent, -3000))
    except OverflowError:
        return math.copysign(math.inf, number)


def fraction(value: Any, what: str, above: float, why: str = "what it costs is in proportion to its inverse") -> float:
    """Check a parameter that is a fraction above some bound, and under 1."""
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (good and above < value < 1):
        raise BadParameter(f"{what} must be a number above {above:g} and under 1, got {value!r} ({why})")
    return float(value)


def whole(value: Any, what: str, least: int) -> int:
    """Check a parameter that is a whole number of at least some size."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise BadParameter(f"{what} must be a whole number of {least} or more, got {value!r}")
    return int(value)


def share(phi: Any) -> float:
    """Check an argument that is a share of a whole, for a quantile."""
    good = isinstance(phi, (int, float, np.integer, np.floating)) and not isinstance(phi, bool)
    if not (good and 0 <= phi <= 1):
        raise BadParameter(f"phi must be a number from 0 to 1, got {phi!r}; the median is 0.5")
    return float(phi)


def plus(total: float, lost: float, number: float) -> tuple[float, float]:
    """Add to a sum, and what is rounded away to what was lost before (Neumaier's summation)."""
    new = total + number
    return new, lost + ((total - new) + number if abs(total) >= abs(number) else (number - new) + total)


@kernel("int64(r_i8)")
def _largest(bits: NDArray[np.int64]) -> np.int64:
    """The largest magnitude, as the bits of a double: they order like numbers, with infinities and NaN on top."""
    most = np.int64(0)
    for i in range(bits.shape[0]):
        most = max(most, bits[i] & np.int64(0x7FFFFFFFFFFFFFFF))
    return most


def column_of(items: Any, what: str = "items") -> tuple[Floats, NDArray[np.bool_] | None]:
    """Read a column of numbers as doubles, and where they can be used (they are under `LARGEST`), or None for all."""
    numbers, missing = _numbers(items, what)
    if missing is None and _largest(numbers.view(np.int64)) < _LARGEST_BITS:
        return numbers, None
    good = np.abs(numbers) < LARGEST
    return numbers, good if missing is None else good & ~missing


def _numbers(items: Any, what: str) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Read numbers as doubles, and where one is missing (None: nowhere); NaN stands for a missing one as well."""
    missing = None
    if type(items).__module__.partition(".")[0] == "pyarrow":
        array, missing = _arrow_numbers(items, what)
    elif isinstance(items, np.ma.MaskedArray):
        array, missing = items.filled(0), np.ma.getmaskarray(items)
    elif hasattr(items, "isna") and getattr(getattr(items, "dtype", None), "kind", "O") in "fiub":
        array = items.to_numpy(np.float64, na_value=np.nan)  # pandas, whose own missing number is no double
    else:
        array = items.to_numpy() if hasattr(items, "to_numpy") else items
    try:
        array = np.asarray(array)
        if array.dtype.kind == "O":
            if any(isinstance(item, (str, bytes)) for item in array.flat):
                raise BadInput(f"{what} must be numbers, and hold texts; convert the column first")
            try:
                array = array.astype(np.float64)  # None becomes NaN
            except TypeError:  # the nulls of libraries do not
                array = np.array([np.nan if absent(item) else item for item in array.flat], np.float64)
    except (TypeError, ValueError, OverflowError) as why:
        if isinstance(why, BadInput):
            raise
        raise BadInput(f"{what} must be numbers that a double can hold: {why}; give a column of such numbers") from None
    if array.dtype.kind not in "fiub":
        raise BadInput(f"{what} must be numbers, got dtype {array.dtype}; convert the column first")
    if array.ndim != 1:
        raise BadInput(f"{what} must have one dimension, got shape {array.shape}; ravel it or pass one column")
    return np.ascontiguousarray(array, np.float64), missing


def _arrow_numbers(items: Any, what: str) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    import pyarrow as pa

    if not isinstance(items, (pa.Array, pa.ChunkedArray)):
        raise BadInput(f"{what} must be one column, got a {type(items).__name__}; pass one of its columns")
    column = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kind = column.type
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise BadInput(f"{what} must be numbers, got Arrow type {kind}; cast the column first")
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False), None
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return column.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False), missing


def _weights(weights: Any, size: int) -> Floats:
    loads, missing = _numbers(weights, "weights")
    if len(loads) != size:
        raise BadInput(f"{size} items came with {len(loads)} weights; give one weight for each item")
    if missing is not None:
        loads = np.where(missing, np.nan, loads)
    if (loads < 0).any():
        worst = float(loads[np.argmax(loads < 0)])
        raise BadInput(f"a weight must be 0 or more, got {worst!r}; wane cannot take items away")
    return loads


def _instant(value: Any) -> Nanoseconds | None:
    if value is not None and not (isinstance(value, int) and abs(value) <= _FARTHEST):
        raise CorruptState(f"the state holds {value!r:.60} where a time must be")
    return None if value is None else Nanoseconds(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise CorruptState(f"the state holds {value!r} where a count must be")
    return value


def _say(name: str, value: Any) -> str:
    if value is None:
        return "none"
    return show(value) if name == "landmark" else repr(value)


__all__ = [
    "LARGEST",
    "Batch",
    "Summary",
    "ask",
    "column_of",
    "fraction",
    "from_bytes",
    "is_scalar",
    "ldexp",
    "plus",
    "share",
    "whole",
]
