"""The laws that summaries keep: each is one small function of a case and a stream, found by name in :data:`LAWS`.

A law holds a summary to its contract as a user sees it: what it answers and which bytes it gives. How equal two
states must be is the summary's own class of equality (:class:`wane.registry.Equality`).
"""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import wane
from wane import registry, serde
from wane._jit import DISABLED
from wane.decay import Pinned, SlidingWindow
from wane.errors import BadParameter, BeforeLandmark, CorruptState, MergeRefused, MissingExtra, QueryInPast, WaneError
from wane.registry import Spec
from wane.summaries.base import ask
from wane.testing.cases import Case, alike, cases, require, sample_decays, takes
from wane.testing.oracles import USABLE
from wane.testing.streams import SPAN, Stream, shapes
from wane.testing.twin import twin
from wane.times import PER_TICK, SECOND, Nanoseconds, Ticks

REASONS = ("time", "value", "id", "weight", "before_landmark", "late")
"""Why a row may be dropped."""

FAR = 3_000_000_000 * SECOND
"""A century: ten million half-lives of five minutes."""

EMPTY: Mapping[str, Any] = {
    "count": 0.0,
    "sum": 0.0,
    "total": 0.0,
    "distinct": 0.0,
    "rank": 0.0,
    "argmin": None,
    "argmax": None,
}
"""What nothing answers; every other question gives NaN, or a list or array without entries or of NaN."""

EMPTY_PARTS: Mapping[str, Any] = {"histogram": 0.0}
"""What every entry of an answer about nothing is, where it is not NaN."""

CAPABILITIES: Mapping[str, Callable[[Case], bool]] = {
    "any": lambda _: True,
    "oracle": lambda case: case.judged,
    "timeless": lambda case: case.weighted and bool(case.spec.timeless) and case.sure,
    "weights": lambda case: case.weighted,
    "landmark": lambda case: case.landmark is not None,
    "landmark-free": lambda case: not case.decay.needs_landmark and case.until is None and case.sure,
    "movable": lambda case: case.until is None and case.sure,
    "open": lambda case: case.until is None,
    "repeatable": lambda case: not case.numbered and case.spec.counts_repeats,
    "numbered": lambda case: case.numbered and case.mergeable,
    "no repeats": lambda case: not case.spec.counts_repeats,
    "any decay": lambda case: (
        "backward" in case.spec.decays and isinstance(case.decay, SlidingWindow) and not case.parameters.get("fixed")
    ),
    "compiler": lambda _: not DISABLED,
}
"""What a law may need of a case, by name."""

Check = Callable[[Case, Stream], None]


@dataclass(frozen=True)
class Law:
    """A law.

    Attributes:
        name: Its name, by which a `SPEC` declares it absent.
        states: What it states, and where that comes from.
        needs: The capability it needs, a name in :data:`CAPABILITIES`.
        weighs: Whether what it states has to do with how items are weighed; if not, a few decays will show it.
        check: Raises `AssertionError` where a case breaks it on a stream.
        limits: What its streams must be like, as arguments of :func:`wane.testing.streams`.
    """

    name: str
    states: str
    needs: str
    weighs: bool
    check: Check
    limits: Mapping[str, Any] = field(default_factory=dict)

    def applies(self, case: Case) -> bool:
        """Whether the case has what the law needs, and its `SPEC` does not declare the law absent."""
        return self.name not in case.spec.absent and CAPABILITIES[self.needs](case)

    def verify(self, case: Case, examples: int | None = None) -> None:
        """Check the law on the hand-made streams, and on streams from hypothesis.

        Args:
            case: The summary and its decay.
            examples: How many streams hypothesis makes; by default what the profile in force says.
        """
        try:
            from hypothesis import HealthCheck, given, settings
        except ImportError:
            raise MissingExtra("wane.testing needs hypothesis: pip install hypothesis") from None

        for name, stream in case.edges(self.limits.get("early", False)).items():
            try:
                self.check(case, stream)
            except Exception as why:
                why.add_note(f"{case}: the law {self.name} on the hand-made stream {name!r}: {stream}")
                raise

        @settings(max_examples=examples or settings().max_examples, suppress_health_check=list(HealthCheck))
        @given(case.streams(**self.limits))
        def on_any_stream(stream: Stream) -> None:
            self.check(case, stream)

        on_any_stream()


LAWS: dict[str, Law] = {}
"""Every law by name."""


def applicable(spec: Spec) -> list[Law]:
    """The laws that a summary must keep in some case; one that keeps none, or a bad absence, is an error."""
    for name, reason in spec.absent.items():
        if name not in LAWS:
            raise BadParameter(f"{spec.name} declares the law {name!r} absent, which does not exist; name one of LAWS")
        if not reason.strip():
            raise BadParameter(f"{spec.name} declares the law {name!r} absent without a reason; say why it cannot hold")
    every = list(cases(spec))
    found = [law for law in LAWS.values() if any(law.applies(case) for case in every)]
    if not found:
        raise BadParameter(f"no law applies to {spec.name}: nothing would be tested; give it a decay and parameters")
    return found


def law(needs: str = "any", *, weighs: bool = True, **limits: Any) -> Callable[[Check], Check]:
    """Register a law under its function's name.

    Args:
        needs: The capability it needs.
        weighs: Whether it has to do with how items are weighed.
        limits: Arguments of :func:`wane.testing.streams`.
    """
    if needs not in CAPABILITIES:
        raise BadParameter(f"there is no capability {needs!r}; it is one of {', '.join(CAPABILITIES)}")

    def register(check: Check) -> Check:
        LAWS[check.__name__] = Law(check.__name__, check.__doc__ or "", needs, weighs, check, limits)
        return check

    return register


# --- Merging


@law(weighs=False)
def merge_has_an_identity(case: Case, stream: Stream) -> None:
    """Merging an empty summary changes nothing, from either side."""
    case.require_same(case.fed(stream), case.fed(stream).merge(case.make()), stream, ordered=True)
    case.require_same(case.fed(stream), case.make().merge(case.fed(stream)), stream, ordered=True)


@law()
def merge_is_commutative(case: Case, stream: Stream) -> None:
    """``a + b`` is ``b + a``."""
    a, b = _parts(stream, 2)
    mine, theirs = case.fed(a).merge(case.fed(b, part=1)), case.fed(b, part=1).merge(case.fed(a))
    case.require_same(mine, theirs, stream)


@law()
def merge_is_associative(case: Case, stream: Stream) -> None:
    """``(a + b) + c`` is ``a + (b + c)``."""
    a, b, c = (case.fed(rows, part=part) for part, rows in enumerate(_parts(stream, 3)))
    case.require_same(a.copy().merge(b).merge(c), a.merge(b.merge(c)), stream)


@law()
def merge_is_concatenation(case: Case, stream: Stream) -> None:
    """Merging what two summaries saw is seeing both streams (section VI.B of the forward-decay paper)."""
    a, b = _parts(stream, 2)
    case.require_same(case.fed(a).merge(case.fed(b, part=1)), case.fed(a.concat(b)), stream)


@law("repeatable")
def merge_with_itself_doubles(case: Case, stream: Stream) -> None:
    """A summary merged with itself has seen its stream twice."""
    one = case.fed(stream)
    case.require_same(one.merge(one), case.fed(stream, stream), stream.concat(stream))


@law("numbered", weighs=False)
def one_seed_draws_once(case: Case, stream: Stream) -> None:
    """Rows without ids are told apart by seed and number: two parts of one seed do not merge, and stay as they were."""
    mine, theirs = case.fed(stream), case.fed(stream.take(slice(0, 1)))
    if not (mine.rows and theirs.rows):
        return
    before, other = mine.to_bytes(), theirs.to_bytes()
    for one in (theirs, mine, case.fed(stream, part=1).merge(theirs)):
        with _raises(MergeRefused, "merging what one seed has drawn twice"):
            mine.merge(one)
    require(mine.to_bytes() == before and theirs.to_bytes() == other, "a refused merge has changed the state")


@law("no repeats")
def repetition_changes_nothing(case: Case, stream: Stream) -> None:
    """Rows that come again, in other batches, orders and overlapping parts, leave the state as it was."""
    once = case.fed(stream)
    order = _rng(stream).permutation(np.repeat(np.arange(len(stream)), 3))
    case.require_same(once, case.fed(*(stream.take(part) for part in np.array_split(order, 4))), stream)
    first, middle, last = _thirds(stream)
    ends = (slice(first.start, middle.stop), slice(middle.start, last.stop), slice(first.start, first.stop))
    a, b, c = (case.fed(stream.take(part)) for part in ends)
    case.require_same(once, a.copy().merge(b).merge(c).merge(a), stream)
    case.require_same(once, c.merge(b.merge(a)).merge(case.fed(stream)), stream)
    case.require_same(once, case.fed(stream).merge(once).merge(once.copy()), stream)


@law(weighs=False)
def merge_leaves_the_other(case: Case, stream: Stream) -> None:
    """What is merged from stays as it is, then and later."""
    a, b = (case.fed(rows, part=part) for part, rows in enumerate(_parts(stream, 2)))
    before = b.to_bytes()
    a.merge(b)
    case.update(a, case.fit(stream, a.newest))
    require(b.to_bytes() == before, "the summary that was merged from has changed")


@law(weighs=False)
def merge_refuses_mismatches(case: Case, stream: Stream) -> None:
    """Another kind, decay, landmark, policy or parameters: `MergeRefused`, and both stay as they were."""
    one = case.fed(stream)
    before = one.to_bytes()
    for what, other in _strangers(case):
        theirs = other.to_bytes() if hasattr(other, "to_bytes") else None
        with _raises(MergeRefused, f"merging over another {what}"):
            one.merge(other)
        require(one.to_bytes() == before, f"a refused merge over another {what} has changed the state")
        require(theirs is None or other.to_bytes() == theirs, f"a refused merge has changed the other {what}")


# --- Order and batches


@law()
def batches_do_not_matter(case: Case, stream: Stream) -> None:
    """Any cutting of a stream into batches gives the same state, empty batches included."""
    cuts = np.sort(_rng(stream).integers(0, len(stream) + 1, 4))
    pieces = [stream.take(slice(a, b)) for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    case.require_same(case.fed(stream), case.fed(*pieces), stream, ordered=True)


@law()
def one_at_a_time_is_a_batch(case: Case, stream: Stream) -> None:
    """Items given as scalars, with their times as Python numbers, give the same state as a column of them."""
    one = case.make()
    for i in range(len(stream)):
        _update_scalar(case, one, stream.take(slice(i, i + 1)))
    case.require_same(case.fed(stream), one, stream, ordered=True)


@law(weighs=False)
def a_question_sees_every_row(case: Case, stream: Stream) -> None:
    """Each question, asked first after items given one by one, has seen them all."""
    few = stream.take(slice(0, 5))
    now = case.now(few)
    whole = case.answers(case.fed(few), now)
    for question in case.spec.questions:
        one = case.make()
        for i in range(len(few)):
            _update_scalar(case, one, few.take(slice(i, i + 1)))
        answer = ask(one, question, now, case.arguments(question))
        case.require_close({question: answer}, whole, few, now)


@law()
def order_does_not_matter(case: Case, stream: Stream) -> None:
    """Rows may arrive in any order (section VI.B: the landmark is fixed, so late items need nothing special)."""
    whole = case.fed(stream)
    for order in (_rng(stream).permutation(len(stream)), np.arange(len(stream))[::-1]):
        shuffled = stream.take(order)
        case.require_same(whole, case.fed(shuffled), stream)
        case.require_same(whole, case.fed(*(shuffled.take(part) for part in _thirds(shuffled))), stream)


@law("movable")
def distance_does_not_matter(case: Case, stream: Stream) -> None:
    """Parts a century apart can be fed and merged in any order: rescaling loses nothing that counts."""
    far = stream.moved(FAR)
    both = stream.concat(far)
    case.require_same(case.fed(both), case.fed(stream, far), both)
    case.require_same(case.fed(both), case.fed(far, stream), both)
    case.require_same(case.fed(both), case.fed(stream).merge(case.fed(far)), both)
    case.require_same(case.fed(both), case.fed(far).merge(case.fed(stream)), both)


@law("movable")
def moving_everything_changes_nothing(case: Case, stream: Stream) -> None:
    """Only ``t_i - L`` and ``t - L`` count (Definition 3): move items, landmark and now alike, and answers stay."""
    by = int(_rng(stream).integers(-(10**6), 10**6)) * 300 * SECOND
    landmark = None if case.landmark is None else Nanoseconds(case.landmark + by)
    now = case.now(stream, 7 * SECOND)
    mine = case.answers(case.fed(stream), now)
    theirs = case.answers(case.fed(stream.moved(by), landmark=landmark), Nanoseconds(now + by))
    numbers = {question: answer for question, answer in mine.items() if isinstance(answer, float)}
    case.require_close(numbers, theirs, stream, now)


@law("landmark-free")
def any_landmark_will_do(case: Case, stream: Stream) -> None:
    """Under no and exponential decay the landmark changes no weight (section III.A), and states merge across it."""
    now = case.now(stream, SECOND)
    plain = case.fed(stream)
    for landmark in (0, 1_500_000_000, -(10**8) + 0.5):
        other = case.fed(stream, landmark=landmark)
        case.require_close(case.answers(plain, now), case.answers(other, now), stream, now)
        both = stream.concat(stream)
        case.require_close(case.answers(case.fed(both), now), case.answers(other.merge(plain), now), both, now)


@law("timeless", weighted=False)
def a_common_factor_cancels(case: Case, stream: Stream) -> None:
    """A question that does not depend on now depends on no common factor of the weights: now enters as one only."""
    light = Stream(stream.items, stream.times)
    answers = {q: getattr(case.fed(light), q)(**case.arguments(q)) for q in case.spec.timeless}
    for power in (-900, -60, 3, 390):
        heavy = case.fed(Stream(stream.items, stream.times, np.full(len(stream), math.ldexp(1.0, power))))
        case.require_close(
            answers, {q: getattr(heavy, q)(**case.arguments(q)) for q in case.spec.timeless}, light, case.now(light)
        )


@law("weights", weighs=False, weighted=False)
def no_weights_are_ones(case: Case, stream: Stream) -> None:
    """Items without weights weigh 1 each."""
    plain = Stream(stream.items, stream.times)
    ones = Stream(stream.items, stream.times, np.ones(len(stream)))
    case.require_same(case.fed(plain), case.fed(ones), plain, ordered=True)


# --- Answers


@law("oracle")
def answers_are_right(case: Case, stream: Stream) -> None:
    """Every question that has an exact oracle is answered within the guarantee, at the newest item and long after."""
    one = case.fed(stream)
    for later in (0, 1, 10 * SECOND, 86400 * SECOND, SPAN):
        now = case.now(stream, later)
        case.require_right(one, stream, now)


@law("oracle")
def answers_are_right_after_merging(case: Case, stream: Stream) -> None:
    """So is a summary that was merged from many, read back from bytes on the way."""
    parts = [case.fed(rows, part=part) for part, rows in enumerate(_parts(stream, 5), 1)]
    one = case.make()
    for part in parts:
        one = case.spec.make.from_bytes(one.to_bytes()).merge(part)
    case.require_right(one, stream, case.now(stream, SECOND))


@law("any decay", weighs=False)
def any_decay_may_be_asked(case: Case, stream: Stream) -> None:
    """One summary answers under every decay that a question names, a user's own too, within the guarantee."""
    one = case.fed(stream)
    before = one.to_bytes()
    for decay in sample_decays().values():
        if not isinstance(decay, Pinned):
            for later in (0, SECOND, 86400 * SECOND):
                case.asking(decay).require_right(one, stream, case.now(stream, later))
    require(one.to_bytes() == before, "asking has changed the state")


@law(weighs=False)
def nothing_has_answers(case: Case, stream: Stream) -> None:
    """Without rows a count is 0, an item None, and what would divide by 0 NaN; there is no error."""
    empty = stream.take(slice(0, 0))
    now = case.now(empty)
    for one in (case.make(), case.fed(empty), case.make().merge(case.make()), case.make().copy()):
        require((one.rows, one.newest, one.dropped) == (0, None, {}), f"an empty summary has seen {one!r}")
        for at in (now, "latest"):
            for question, answer in case.answers(one, at).items():
                wanted = EMPTY.get(question.partition(" ")[0], math.nan)
                if hasattr(answer, "__len__"):  # of what was asked for one by one, each is NaN
                    wanted = [EMPTY_PARTS.get(question, math.nan)] * len(answer)
                require(alike(answer, wanted), f"{question} of nothing is {answer!r} and must be {wanted!r}")


@law(weighs=False)
def asking_changes_nothing(case: Case, stream: Stream) -> None:
    """Questions leave the state as it is, and give the same answers again."""
    one = case.fed(stream)
    before, now = one.to_bytes(), case.now(stream, SECOND)
    first, again = case.answers(one, now), case.answers(one, now)
    require(all(alike(first[q], again[q]) for q in first), f"asked twice: {first} and {again}")
    require(str(one) == str(one) and one.to_bytes() == before, "asking has changed the state")


@law(weighs=False)
def no_clock_is_read(case: Case, stream: Stream) -> None:
    """Now is an argument: nothing here reads a clock."""
    now = case.now(stream, SECOND)
    names = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "gmtime", "localtime")
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(time, name, side_effect=AssertionError(f"time.{name} was called")))
        one = case.fed(stream)
        case.answers(one, now)
        if case.mergeable:
            case.spec.make.from_bytes(one.to_bytes()).merge(case.fed(stream, part=1))


@law("open")
def the_past_is_refused(case: Case, stream: Stream) -> None:
    """A now before the newest item is refused, for weights would pass 1, unless historical=True says it is meant."""
    one = case.fed(stream)
    if one.newest is None:
        return
    earlier = Nanoseconds(one.newest - 1)
    for question in case.spec.questions:
        if question not in case.spec.timeless:
            with _raises(QueryInPast, f"asking {question} before the newest item"):
                getattr(one, question)(**case.arguments(question), now=earlier)
    if not case.open and (case.landmark is None or earlier > case.landmark):
        case.require_right(one, stream, earlier, historical=True)


@law(weighs=False)
def every_row_is_counted(case: Case, stream: Stream) -> None:
    """A row is used or counted as dropped, with its reason: none vanishes."""
    one = case.fed(stream)
    dropped = {reason: count for reason, count in one.dropped.items() if reason in REASONS}
    require(one.rows + sum(dropped.values()) == len(stream), f"{len(stream)} rows: {one.rows} used, {dropped} dropped")
    require(one.rows == int(_usable(case, stream).sum()), f"{one.rows} rows are used, of {_usable(case, stream)}")


@law("landmark", early=True)
def the_landmark_has_a_policy(case: Case, stream: Stream) -> None:
    """Items before the landmark are refused, dropped and counted, or taken as of the landmark, as `before` says."""
    assert case.landmark is not None
    usable = _usable(case, stream)
    instants = np.array([case.landmark if t is None else t for t in stream.instants], object)
    early = usable & (instants < case.landmark).astype(np.bool_)
    if early.any():
        one = case.make()
        empty = one.to_bytes()
        with _raises(BeforeLandmark, "an item before the landmark"):
            case.update(one, stream)
        require(one.to_bytes() == empty, "a refused update has changed the state")
    now = case.now(stream, SECOND)
    clamped = Stream(
        stream.items[usable],
        Ticks(np.maximum(instants[usable], case.landmark).astype(np.int64), "ns"),
        None if stream.weights is None else stream.weights[usable],
    )
    for policy, plain in (("clamp", clamped), ("drop", stream.take(usable & ~early))):
        one = case.fed(stream, before=policy)
        require(one.rows == len(plain), f"{policy}: {one.rows} rows are used, and must be {len(plain)}")
        counted = one.dropped.get("before_landmark", 0)
        require(counted == int(early.sum()) * (policy == "drop"), f"{policy}: {counted} counted as before the landmark")
        case.require_close(case.answers(one, now), case.answers(case.fed(plain), now), plain, now)


# --- Inputs


@law(weighs=False)
def every_form_is_the_same(case: Case, stream: Stream) -> None:
    """NumPy, lists, Arrow, pandas, read-only and strided columns of the same rows give the same state."""
    plain = case.fed(stream)
    for form, same_unit, *columns in _forms(stream):
        one = case.add(case.make(), *columns)
        if same_unit:
            require(one.to_bytes() == plain.to_bytes(), f"{form} give another state than NumPy arrays")
        else:  # times in a list have the coarsest unit that holds them all
            case.require_same(plain, one, stream, ordered=True)


@law(weighs=False)
def inputs_are_left_alone(case: Case, stream: Stream) -> None:
    """An update writes to nothing it is given."""
    times = None if stream.times is None else stream.times.values
    columns = [column for column in (stream.items, times, stream.weights) if column is not None]
    before = [column.tobytes() for column in columns]
    case.fed(stream)
    require([column.tobytes() for column in columns] == before, "an update has changed what it was given")


@law(weighs=False)
def units_do_not_matter(case: Case, stream: Stream) -> None:
    """The same instants in another unit are the same times."""
    if stream.times is None:
        return
    for unit, per in PER_TICK.items():
        values = [None if t is None else divmod(t, per) for t in stream.instants]
        if any(pair is not None and (pair[1] or abs(pair[0]) >= 2**63) for pair in values):
            continue
        ticks = np.array([0 if pair is None else pair[0] for pair in values], np.int64)
        other = Stream(stream.items, Ticks(ticks, unit, stream.times.valid), stream.weights)
        case.require_same(case.fed(stream), case.fed(other), stream, ordered=True)


@law(weighs=False)
def refused_updates_change_nothing(case: Case, stream: Stream) -> None:
    """An update that is refused, even for its last row, leaves the state as it was."""
    one = case.fed(stream)
    before = one.to_bytes()
    for what, items, times, weights in _refusable(case):
        with mock.patch("wane.decay.weigh.CHUNK", 2):  # the last rows come in a chunk of their own
            try:
                case.add(one, items, times, weights, np.arange(len(items)))
            except WaneError:
                require(one.to_bytes() == before, f"an update with {what} was refused, and has changed the state")
            else:
                require(what == "far", f"an update with {what} was accepted")
                one = case.spec.make.from_bytes(before)


# --- Bytes


@law(weighs=False)
def bytes_round_trip(case: Case, stream: Stream) -> None:
    """``from_bytes(to_bytes())`` gives the same bytes and answers, and goes on like the original."""
    one = case.fed(stream)
    now = case.now(stream, SECOND)
    for read in (case.spec.make.from_bytes(one.to_bytes()), wane.from_bytes(one.to_bytes())):
        require(read.to_bytes() == one.to_bytes(), "bytes read back give other bytes")
        mine, theirs = case.answers(one, now), case.answers(read, now)
        require(all(alike(mine[q], theirs[q]) for q in mine), f"read back, {mine} became {theirs}")
        more = case.fit(stream, one.newest)
        case.require_same(case.fed(stream, more), case.update(read, more), stream.concat(more), ordered=True)


@law(weighs=False)
def copies_are_independent(case: Case, stream: Stream) -> None:
    """A copy, or one through pickle, is equal, and what is done to it does not touch the original."""
    one = case.fed(stream)
    before = one.to_bytes()
    for made in (one.copy(), copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        require(type(made) is type(one) and made.to_bytes() == before, "a copy is not equal to its original")
        case.update(made, case.fit(stream, made.newest))
        if case.mergeable:
            made.merge(case.fed(stream, part=1))
        require(one.to_bytes() == before, "a change to a copy has changed the original")


@law(weighs=False)
def size_is_bounded(case: Case, stream: Stream) -> None:
    """The bytes of a state never pass `SPEC.state_bytes`, however long the stream."""
    bound = case.spec.state_bytes(case.parameters)
    one = case.make()
    more = shapes(len(stream), items=case.spec.items, start=case.start, until=case.until)
    for given in (stream, *more.values()):
        case.update(one, case.fit(given, one.newest))
        size = len(one.to_bytes())
        require(size <= bound, f"the state has {size} bytes after {one.rows} rows, and its bound is {bound}")


@law(weighs=False)
def changed_bytes_are_refused(case: Case, stream: Stream) -> None:
    """Bytes that were cut, extended or changed, and bytes of anything else, are `CorruptState`."""
    rng = _rng(stream)
    data = case.fed(stream).to_bytes()
    wrong: list[Any] = [b"", b"WANE", bytes(64), rng.bytes(len(data)), data + b"\0", data[1:], None, "text"]
    wrong += [data[: int(end)] for end in rng.integers(0, len(data), 8)]
    for place in rng.integers(0, len(data) * 8, 32).tolist():
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        wrong.append(bytes(flipped))
    for bad in wrong:
        for read in (case.spec.make.from_bytes, wane.from_bytes):
            with _raises(CorruptState, f"reading {bad!r}"):
                read(bad)


@law(weighs=False)
def forged_bytes_do_no_harm(case: Case, stream: Stream) -> None:
    """A payload changed by one who can make checksums is refused, or gives a summary that works."""
    rng = _rng(stream)
    envelope = serde.unpack(case.fed(stream).to_bytes())
    for payload in _forgeries(envelope.payload, rng):
        data = serde.pack(envelope.name, envelope.version, envelope.digest, payload)
        try:
            found = case.spec.make.from_bytes(data)
        except CorruptState:
            continue
        try:
            require(case.spec.make.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes(), "it cannot be written")
            _use(case, found, stream)
        except Exception as why:
            why.add_note(f"the payload was {payload!r}")
            raise


# --- The compiler


@law("compiler")
def kernels_are_their_python_bodies(case: Case, stream: Stream) -> None:
    """A process without the compiler computes the same state: the same bytes, or the sums in another order."""
    one, other = case.fed(stream), case.spec.make.from_bytes(twin().state(case, stream))
    require(case.seen(one) == case.seen(other), "rows differ")
    if case.identical(stream) or case.replays:
        require(one.to_bytes() == other.to_bytes(), "the compiled kernels give another state than their Python bodies")
    now = case.now(stream)
    exact, mine, theirs = case.exact(stream, now), case.answers(one, now), case.answers(other, now)
    slack = 1e-15 * max(len(stream), 1)
    for question, answer in exact.items():
        tolerance = case.tolerance(question)
        tolerance = slack if case.sure and tolerance is not None else tolerance
        close = tolerance is None or answer.near(mine[question], theirs[question], tolerance)
        require(close, f"{question} is {mine[question]!r} compiled and {theirs[question]!r} in Python")


# --- What laws are made of


@contextlib.contextmanager
def _raises(kind: type[Exception], what: str) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    except Exception as why:
        raise AssertionError(f"{what} must be {kind.__name__}, and was {type(why).__name__}: {why}") from why
    raise AssertionError(f"{what} must be {kind.__name__}, and was accepted")


def _rng(stream: Stream) -> np.random.Generator:
    """Random numbers that depend on the stream alone."""
    ticks = b"" if stream.times is None else stream.times.values.tobytes()
    return np.random.default_rng(zlib.crc32(stream.items.tobytes() + ticks))


def _thirds(stream: Stream) -> list[slice]:
    """The rows cut in three."""
    third = -(-len(stream) // 3)
    return [slice(third * i, third * (i + 1)) for i in range(3)]


def _parts(stream: Stream, count: int) -> list[Stream]:
    """The rows dealt out at random."""
    hands = _rng(stream).integers(0, count, len(stream))
    return [stream.take(hands == hand) for hand in range(count)]


def _update_scalar(case: Case, summary: Any, row: Stream) -> None:
    """Give one row as scalars, its time as seconds where a number of them holds it."""
    (item,), (time,) = row.items.tolist(), row.instants
    at: Any = time
    if row.times is not None and time is None:
        at = math.nan
    elif time is not None and time % SECOND == 0:
        at = int(time // SECOND)
    elif time is not None and _as_float(time) is not None:
        at = _as_float(time)
    case.add(summary, item, at, None if row.weights is None else float(row.weights[0]), int(row.ids[0]))


def _as_float(time: int) -> float | None:
    """An instant as a float of seconds, where that is exact to the nanosecond."""
    seconds = time / SECOND
    return seconds if round(Fraction(seconds) * SECOND) == time else None


def _usable(case: Case, stream: Stream) -> NDArray[np.bool_]:
    """Which rows must not be dropped, landmark aside."""
    good = np.ones(len(stream), np.bool_)
    if case.spec.items != "any":
        good &= (np.abs(stream.items) < USABLE).all(axis=tuple(range(1, stream.items.ndim)))
    if stream.times is not None and stream.times.valid is not None:
        good &= stream.times.valid
    return good if stream.weights is None else good & (stream.weights <= case.heaviest)


def _strangers(case: Case) -> Iterator[tuple[str, Any]]:
    """Things that no honest merge exists for."""
    yield "kind", object()
    for spec in registry.specs().values():
        if spec.make is not case.spec.make:
            yield "kind", spec.make(**spec.parameters[0])
    for decay in sample_decays().values():
        if decay != case.decay and takes(case.spec, decay):
            yield "decay", case.make(decay=decay, landmark=case.start)
    if case.decay.needs_landmark and case.landmark is not None:
        yield "landmark", case.make(landmark=Nanoseconds(case.landmark - 1))
    yield "policy", case.make(before="drop")
    if case.ids:
        yield "seed", case.fed(Stream(np.ones(1, np.int64), Ticks(np.array([case.start]), "ns")), seed=1)
    for parameters in case.spec.parameters:
        if parameters != case.parameters:
            yield "set of parameters", replace(case, parameters=parameters).make()


def _forms(stream: Stream) -> Iterator[tuple[str, bool, Any, Any, Any, Any]]:
    """The rows in other forms: name, whether times keep their unit, items, times, weights, ids."""
    times, unit = None, "ns"
    if stream.times is not None:
        unit = stream.times.unit
        times = stream.times.values.astype(f"datetime64[{unit}]")
        if stream.times.valid is not None:
            times[~stream.times.valid] = np.datetime64("NaT")

    def each(change: Callable[[Any], Any]) -> tuple[Any, Any, Any, Any]:
        columns = (stream.items, times, stream.weights, stream.ids)
        items, ticks, weights, ids = (None if x is None else change(x) for x in columns)
        return items, ticks, weights, ids

    def arrow(column: NDArray[Any]) -> Any:
        given = column if column.ndim == 1 else column.tolist()
        kind = None if column.ndim == 1 else pa.list_(pa.float64())
        return pa.array(given, pa.timestamp(unit) if column.dtype.kind == "M" else kind, from_pandas=True)

    def locked(column: NDArray[Any]) -> NDArray[Any]:
        copied = column.copy()
        copied.setflags(write=False)
        return copied

    yield "datetime64", True, *each(lambda column: column)
    yield "read-only arrays", True, *each(locked)
    yield "strided arrays", True, *each(lambda column: np.repeat(column, 3, axis=0)[1::3])
    yield "arrays turned round", True, *each(lambda column: column[::-1].copy()[::-1])
    yield "Arrow arrays", True, *each(arrow)
    yield (
        "slices of Arrow arrays",
        True,
        *each(lambda column: arrow(np.concatenate([column[:1], column]))[len(column[:1]) :]),
    )
    yield "chunked Arrow arrays", True, *each(lambda column: pa.chunked_array([arrow(column[:2]), arrow(column[2:])]))
    instants = None if times is None else stream.instants
    weights = None if stream.weights is None else stream.weights.tolist()
    yield "lists", False, stream.items.tolist(), instants, weights, stream.ids.tolist()
    floats = [None if time is None else _as_float(time) for time in stream.instants]
    if times is not None and None not in floats:
        yield "float seconds", False, stream.items, np.array(floats, np.float64), stream.weights, stream.ids
    with contextlib.suppress(ImportError):
        import pandas as pd

        yield (
            "pandas Series",
            True,
            *each(lambda column: pd.Series(column if column.ndim == 1 else list(column), range(7, 7 + len(column)))),
        )


def _refusable(case: Case) -> Iterator[tuple[str, Any, Any, Any]]:
    """Updates of which at least the last row must be refused (but for far ones, which may be)."""
    start = case.start
    end = case.until or Nanoseconds(start + SPAN)
    items = np.array([1, 2, 3, 4, 5], np.int64 if case.spec.items == "any" else np.float64)
    items = np.stack([items, items], axis=1) if case.spec.items == "vectors" else items
    good = [start, start, end, end, start]
    times = np.array(good)
    yield "too few times", items, Ticks(times[:4], "ns"), None
    yield "another dimension", items[:, None], Ticks(times, "ns"), None
    yield "times of two dimensions", items, times.reshape(5, 1), None
    if case.weighted:
        yield "too few weights", items, Ticks(times, "ns"), [1.0]
        yield "a negative weight", items, Ticks(times, "ns"), [1.0, 1.0, 1.0, 1.0, -1.0]
    if case.spec.items == "numbers":
        yield "a text", ["1", "2", "3", "4", "x"], Ticks(times, "ns"), None
    if not case.untimed:
        yield "no times", items, None, None
    if case.until is not None:
        yield "a row after the fixed time", items, Ticks(np.append(times[:4], end + 1), "ns"), None
    if case.landmark is not None:
        yield "a row before the landmark", items, Ticks(np.append(times[:4], start - 1), "ns"), None
    yield "far", items, Ticks(np.append(times[:4] // SECOND, 2**62), "s"), None
    yield "far", items, Ticks(np.append(times[:4] // SECOND, -(2**62)), "s"), None


def _forgeries(payload: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Changes of a payload that are likely to get past its reader."""
    for place in rng.integers(0, len(payload), 3).tolist():
        changed = bytearray(payload)
        changed[place] ^= 1 << int(rng.integers(8))
        yield bytes(changed)
        changed[place] = int(rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF]))
        yield bytes(changed)
        yield payload[:place]
        yield payload[:place] + payload[place + 1 :]
        yield payload[:place] + rng.bytes(int(rng.integers(1, 12))) + payload[place:]
        yield payload[:place] + b"\xff" * 40 + b"\x01" + payload[place + 1 :]
        number = rng.choice([math.nan, math.inf, -1.0, -0.0, 1.7e308, -1.7e308, 5e-324])
        yield payload[:place] + struct.pack("<d", number) + payload[place + 8 :]
    yield rng.bytes(len(payload))
    yield b""


def _use(case: Case, summary: Any, stream: Stream) -> None:
    """Do with a summary whatever can be done: it may refuse, and must not fail."""
    for name in sorted({*case.spec.questions, *case.spec.functions}):
        for now in ("latest", case.now(stream), Nanoseconds(case.now(stream) + SPAN)):
            with contextlib.suppress(WaneError):
                ask(summary, name, now, case.arguments(name))
    repr(summary)
    with contextlib.suppress(WaneError):
        summary.copy().merge(summary).to_bytes()
    with contextlib.suppress(WaneError):
        case.update(summary.copy(), stream).to_bytes()
    with contextlib.suppress(WaneError):
        case.fed(stream, part=1).merge(summary).to_bytes()
