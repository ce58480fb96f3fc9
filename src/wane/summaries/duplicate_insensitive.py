"""Sums, shares, quantiles and frequent values where rows come late, in any order and more than once (PODC 2007).

The sketch of Cormode, Tirthapura and Xu, "Time-Decaying Sketches for Sensor Data Aggregation". An element is a value, a
weight, a time and an id. Its id owns a range of integers, one for each unit of weight; hashes of integers, independent
in pairs, thin them out from level to level by half (:mod:`wane.summaries._range_sample`). Each level keeps the elements
that are of use the longest, at most `tau` of them (:mod:`wane.summaries._levels`), and an answer comes from the lowest
level that has all it needs. What comes again leads to the same integers and the same hashes, and so changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wane import items, serde
from wane.decay import Backward, Decay, NoDecay, SlidingWindow
from wane.decay.base import Floats, Ints
from wane.errors import BadInput, BadParameter, CorruptState, Unsupported
from wane.hashing import combine, hash_column
from wane.registry import Equality, Spec
from wane.summaries._any_decay import FARTHEST, AnyDecay, Question, nanoseconds
from wane.summaries._expiry import NEVER, Expiry
from wane.summaries._levels import LEVELS, Elements, Samples, Scale, integers
from wane.summaries._pairwise import PRIME, chosen
from wane.summaries._range_sample import threshold
from wane.summaries.base import LARGEST, Batch, fraction, is_scalar, share, whole

DOMAIN = 2**57
"""The most integers there may be: for each id as many as the largest weight has."""

_TOGETHER = 4096
"""Rows that wait for each other: they are sorted into the levels together."""

_FAILS = 0.05
"""How often one copy with the default `tau` misses by more than epsilon."""

_MOST_COPIES = 999

_ODDS = np.array([threshold(level) / PRIME for level in range(LEVELS)])
"""The share of all integers that is in the sample of each level."""

Where = Callable[[float, float], Any]
"""A predicate of a value and a weight."""


class Share(NamedTuple):
    """A value, and its share of the decayed weight."""

    value: float
    share: float


class Estimates(NamedTuple):
    """What one copy says: elements, and the decayed weight that each stands for (relative to each other, if open)."""

    values: Floats
    weights: Floats
    stands: Floats


class DuplicateInsensitive(AnyDecay):
    """Decayed sums, shares, quantiles and frequent values, whatever comes late, in any order, or more than once.

    :meth:`sum`, the decayed weight of all distinct elements, is right to `epsilon` of itself with a probability of
    ``1 - delta``, and so is each :meth:`selectivity`, :meth:`quantile` (by its rank), :meth:`heavy` and :meth:`mean`
    to half an epsilon of the whole. On top of that an element counts up to ``1 / scale`` too little. While there are
    no more than `tau` elements, nothing is lost but by the scale. The state is a function of the set of elements: the
    same bytes after any permutation, repetition, and merging of overlapping parts.

    The decay is chosen with the question: a window of any length (Theorem 4.1), or any decay (Theorem 4.2); `decay` is
    only what is asked by default. With ``fixed=True`` it is the only one, and elements leave when their weight does
    (Figures 2 and 3). At most `tau` elements of 32 bytes at each of some ``log2(sum / tau)`` levels, and fewer above
    them; under 1.5 microseconds a row in bulk, and under 4 where the decay is fixed.

    Elements are one if their ids are. Whole numbers up to `max_id` are ids as they are; texts and all else are hashed
    to such: two of them fall together with the odds of ``1 / (max_id + 1)``, which takes from a sum over `n` ids a
    share of some ``n / (2 max_id)``. Without ids, rows of one value, time and weight are one element. Where one id
    comes with several values, weights or times, one of them counts at each level: of those in its sample that of the
    latest time (or expiry), then of the smallest value, then weight. A value or weight that is no number under its
    largest is dropped and counted, as is an id that is not in its range. `rows` and `dropped` count what this very
    object was given.

    Args:
        epsilon: The relative error allowed.
        decay: The decay that questions are asked under unless they name another.
        landmark: Where a forward decay measures from, likewise.
        delta: The probability allowed for a larger error.
        fixed: Whether `decay` is fixed ahead: a backward one, which no question can change.
        max_weight: The largest weight of an element.
        max_id: The largest id; by default as large as can be. ``max_weight * scale * (max_id + 1)`` is up to 2**57.
        scale: How finely weights count: as whole numbers of ``1 / scale``, rounded down. By default 1, but
            ``10_000 / epsilon``, or what fits, where a decay that is not just 0 or 1 is fixed ahead.
        tau: How many elements a level may keep, by default ``10 / epsilon**2``. At the sizes that are hardest a sum is
            then off by more than `epsilon` in 1.2 of 100 streams, a share by more than half of it in 1; with ``8``, 1.7
            and 4, with ``6`` 4.5 and 4.7, with ``4`` 9 and 13. The paper proves 60 for sums and 492 for shares to be
            enough in 2 of 3.
        copies: How many sketches, by independent hashes, the median is taken of: an odd number; by default as many as
            `delta` needs: 1 from 0.05, 3 from 0.0073, 5 from 0.0012.
        seed: Chooses the hashes. Summaries merge if it is the same.
        before: The policy for items before the landmark: ``"error"``, ``"drop"`` or ``"clamp"``.

    >>> north = DuplicateInsensitive(0.1, "window(90s)", max_weight=10)
    >>> south = DuplicateInsensitive(0.1, "window(90s)", max_weight=10)
    >>> _ = north.update([21, 30, 25], times=[0, 60, 100], weights=[1, 3, 2], ids=["a", "b", "c"])
    >>> _ = south.update([30, 25, 19], times=[60, 100, 110], weights=[3, 2, 5], ids=["b", "c", "d"])
    >>> both = north.merge(south)
    >>> both.sum(now=120), both.sum(decay="backward poly(1)", now=120) < 2
    (10.0, True)
    >>> both.selectivity(lambda v, w: v > 20, window="30s", now=120), both.quantile(0.5, now=120)
    (0.2857142857142857, 19.0)
    """

    def __init__(
        self,
        epsilon: float = 0.1,
        decay: str | Decay = "none",
        landmark: Any = None,
        *,
        delta: float = 0.05,
        fixed: bool = False,
        max_weight: float = 1,
        max_id: int | None = None,
        scale: float | None = None,
        tau: int | None = None,
        copies: int | None = None,
        seed: int = 0,
        before: str = "error",
    ) -> None:
        super().__init__(decay, landmark, before=before)
        self.epsilon = fraction(epsilon, "epsilon", 1e-4, "what it costs is in proportion to its inverse squared")
        self.delta = fraction(delta, "delta", 1e-12, "it is the probability of a larger error")
        self.fixed = bool(fixed)
        self.max_weight = _positive(max_weight, "max_weight")
        self.scale = _positive(self._usual_scale(max_id) if scale is None else scale, "scale")
        width = self._width()
        self.max_id = DOMAIN // width - 1 if max_id is None else whole(max_id, "max_id", 0)
        if width * (self.max_id + 1) > DOMAIN:
            raise BadParameter(
                f"max_weight * scale * (max_id + 1) may be up to 2**57, and {self.max_weight:g} * {self.scale:g} * "
                f"({self.max_id} + 1) is {math.log2(width) + math.log2(self.max_id + 1):.1f} bits; lower one of them"
            )
        self.tau = math.ceil(10 / self.epsilon**2) if tau is None else whole(tau, "tau", 1)
        self.copies = copies_for(self.delta) if copies is None else whole(copies, "copies", 1)
        if self.copies % 2 == 0 or self.copies > _MOST_COPIES:
            raise BadParameter(f"copies must be an odd number up to {_MOST_COPIES}, got {copies!r}: it has a middle")
        self.seed = whole(seed, "seed", 0)
        self._max_weight = self.max_weight
        self._units = Scale(self.scale, width)
        self._expiry = Expiry(self._backward(), width) if self.fixed else None
        self._samples = [
            Samples(chosen(self.seed, copy), self.tau, self._units, self._expiry) for copy in range(self.copies)
        ]
        self._queue: list[Elements] = []

    def update(self, items: Any, times: Any = None, weights: Any = None, ids: Any = None) -> Self:
        """Add elements: one, or columns of them.

        Args:
            items: Their values.
            times: Their times.
            weights: Their weights, 1 without.
            ids: Their ids: whole numbers, or anything else that has a hash. Without, the rows themselves.
        """
        if ids is None:
            return super().update(items, times, weights)
        if is_scalar(items):
            items, ids = [items], [ids]
            times, weights = ([x] if x is not None else None for x in (times, weights))
        column, good = self._column(items)
        marks, known = self._identities(ids, len(column))
        batch = self._accept(len(column), times, weights, good, known)
        keep = slice(None) if batch.keep is None else batch.keep
        self._enter(column[keep], batch, marks[keep])
        return self

    def sum(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> float:
        """The decayed sum: the decayed weights of all distinct elements.

        Args:
            now: When.
            decay: The decay, if not the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        asked = self._asked(now, decay, window, landmark)
        if self._expiry is not None:
            return self._median([float(found.stands.sum()) for found in self._estimates(asked)])
        return self._swept(asked)

    def interval(
        self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> tuple[float, float]:
        """An interval that holds the decayed sum with a probability of ``1 - delta``, but for what the scale rounds.

        Where nothing was left out that the question is about, both its ends are :meth:`sum`.

        Args:
            now: When.
            decay: The decay, if not the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        asked = self._asked(now, decay, window, landmark)
        found = self.sum(now, decay=decay, window=window, landmark=landmark)
        if all(self._level(samples, asked) == 0 for samples in self._samples):
            return found, found
        return found / (1 + self.epsilon), found / (1 - self.epsilon)

    def selectivity(
        self, where: Where, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> float:
        """The share of the decayed sum that is of elements for which `where` of value and weight is true.

        Args:
            where: A function of a value and a weight.
            now: When.
            decay: The decay, if not the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        shares = []
        for values, weights, stands in self._estimates(self._asked(now, decay, window, landmark)):
            pairs = zip(values.tolist(), weights.tolist(), strict=True)
            picked = np.fromiter((bool(where(v, w)) for v, w in pairs), np.bool_, len(values))
            shares.append(_ratio(float(stands[picked].sum()), float(stands.sum())))
        return self._median(shares)

    def quantile(
        self, phi: float, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> float:
        """The smallest value up to which there is a share of `phi` of the decayed sum; NaN of nothing.

        Args:
            phi: The share, from 0 to 1.
            now: When.
            decay: The decay, if not the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        wanted = share(phi)
        found = []
        for values, _, stands in self._estimates(self._asked(now, decay, window, landmark)):
            order = np.argsort(values)
            ranks = np.cumsum(stands[order])
            at = np.searchsorted(ranks, wanted * ranks[-1] * (1 - 1e-15)) if len(ranks) else 0
            found.append(float(values[order[at]]) if len(ranks) else math.nan)
        return self._median(found)

    def heavy(
        self, phi: float, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None
    ) -> list[Share]:
        """The values of a share of `phi` of the decayed sum or more, and none of less than ``phi - epsilon``.

        Args:
            phi: The share.
            now: When.
            decay: The decay, if not the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        least = fraction(phi, "phi", 0.0, "it is a share of the whole") - self.epsilon / 2
        shares: dict[float, list[float]] = {}
        for values, _, stands in self._estimates(self._asked(now, decay, window, landmark)):
            known, places = np.unique(values, return_inverse=True)
            parts = np.bincount(places, stands, len(known)) / (stands.sum() or 1.0)
            for value, part in zip(known.tolist(), parts.tolist(), strict=True):
                shares.setdefault(value, []).append(part)
        middle = [Share(value, self._median(of + [0.0] * (self.copies - len(of)))) for value, of in shares.items()]
        return sorted((one for one in middle if one.share >= least), key=lambda one: (-one.share, one.value))

    def mean(self, now: Any = None, *, decay: Any = None, window: Any = None, landmark: Any = None) -> float:
        """The decayed mean of the values, a ratio of two sums; NaN of nothing.

        Its error is up to half an epsilon of the distance of the largest value from the smallest. (Where values are
        positive, the ratio of two summaries' :meth:`sum`, one with the values as weights, is right to ``2 epsilon`` of
        itself.)

        Args:
            now: When.
            decay: The decay, if not the summary's own.
            window: The length of a window, in place of a decay.
            landmark: Where a forward decay measures from.
        """
        every = self._estimates(self._asked(now, decay, window, landmark))
        return self._median(
            [_ratio(float((stands * values).sum()), float(stands.sum())) for values, _, stands in every]
        )

    # --- What is kept

    def _add_rows(self, values: Floats, batch: Batch) -> None:
        self._enter(values, batch, None)

    def _enter(self, values: Floats, batch: Batch, ids: Ints | None) -> None:
        """Let accepted rows wait for each other, but for those that weigh nothing."""
        assert batch.times is not None
        times, values = nanoseconds(batch.times), values + 0.0  # and not -0.0
        weights = np.ones(batch.size) if batch.weights is None else batch.weights
        if ids is None:
            columns = (hash_column(column, self.seed) for column in (values, times, weights))
            ids = self._folded(combine(*columns))
        elements = Elements(times, ids, values, weights)
        there = self._units.loads(weights) >= 1
        self._queue.append(elements if there.all() else elements.take(there))
        if sum(len(waiting.ids) for waiting in self._queue) >= _TOGETHER:
            self._flush()

    def _settle(self) -> None:
        super()._settle()
        if self._queue:
            self._flush()

    def _flush(self) -> None:
        """Sort what waits into the levels."""
        together = Elements(*(np.concatenate(columns) for columns in zip(*self._queue, strict=True)))
        self._queue = []
        for samples in self._samples:
            samples.add(together, self._clock_of(self.newest))

    def _clock_of(self, newest: int | None) -> int:
        """The time at which what expires may go."""
        return NEVER if self._expiry is None or newest is None else newest

    def _identities(self, ids: Any, size: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Ids from 0 to the largest, and which of them there are."""
        numbers = _whole_numbers(ids)
        if numbers is None:
            column = items.read(ids, self.seed)
            found = self._folded(column.hashes)
            known = np.ones(len(found), np.bool_) if column.valid is None else column.valid
        else:
            known = (numbers >= 0) & (numbers <= self.max_id)
            found = np.where(known, numbers, 0).astype(np.int64)
        if found.shape != (size,):
            raise BadInput(f"{size} items came with ids of shape {found.shape}; give one id for each item")
        return found, known

    def _folded(self, hashes: Any) -> Ints:
        """Hashes as ids."""
        found: Ints = (hashes % np.uint64(self.max_id + 1)).astype(np.int64)
        return found

    def _absorb(self, other: Self) -> None:
        known = [newest for newest in (self.newest, other.newest) if newest is not None]
        for mine, theirs in zip(self._samples, other._samples, strict=True):
            mine.absorb(theirs, self._clock_of(max(known, default=None)))

    # --- Answers

    def _asked(self, now: Any, decay: Any, window: Any, landmark: Any) -> Question:
        self._settle()
        asked = self._question(now, decay, window, landmark)
        if self.fixed and asked.decay != self.decay:
            raise Unsupported(
                f"this summary was fixed to {self.decay} ahead, and cannot answer under {asked.decay}; make it without "
                "fixed=True to choose with the question"
            )
        return asked

    def _estimates(self, asked: Question) -> Iterator[Estimates]:
        """What each copy says."""
        for samples in self._samples:
            if self._expiry is not None:
                found = self._of_level(samples, asked)
            else:
                rows, counts = self._usable(samples, asked)
                found = self._standing(samples, rows, counts * self._steps(samples, asked, rows))
            yield found

    def _of_level(self, samples: Samples, asked: Question) -> Estimates:
        """Figure 3: one level has all that is still of use."""
        assert self._expiry is not None
        level = self._level(samples, asked)
        rows = np.flatnonzero((samples.levels == level) & (samples.keys > asked.now))
        elements = samples.elements.take(rows)
        # The distance of two times fits 64 bits without a sign.
        ages = np.uint64(asked.now % 2**64) - elements.times.astype(np.uint64)
        sizes = integers(self._units.loads(elements.weights) * self._expiry.share(ages))
        levels = np.full(len(rows), level)
        return self._standing(samples, rows, samples.counts(levels, elements.ids, sizes) / _ODDS[level])

    def _usable(self, samples: Samples, asked: Question) -> tuple[Ints, Floats]:
        """The entries that a question needs, and how many integers each of them stands for.

        A window that begins after a level's top, and not after that of the level below, is answered at this level
        (Theorem 4.1). A decay is a combination of all windows, and so each level serves those that are its own.
        """
        levels = samples.levels
        below = np.append(asked.now, samples.tops)[levels] > samples.tops[levels]
        rows = np.flatnonzero((levels <= self._level(samples, asked)) & below)
        elements, levels = samples.elements.take(rows), levels[rows]
        sizes = integers(self._units.loads(elements.weights))
        return rows, samples.counts(levels, elements.ids, sizes) / _ODDS[levels]

    def _level(self, samples: Samples, asked: Question) -> int:
        """The lowest level that has not ejected anything which is still of use."""
        fixed = self._expiry is not None
        good = samples.tops <= asked.now if fixed else self._weights_of_tops(samples, asked) == 0
        if not good.any():
            raise BadParameter(
                f"no level is left that has kept what this question needs: more than tau={self.tau} elements of one "
                "time or expiry were in the sample of the highest; make the summary with a larger tau="
            )
        return int(np.argmax(good))

    def _steps(self, samples: Samples, asked: Question, rows: Ints) -> Floats:
        """What the windows of each entry's level weigh together, of those that hold its element."""
        levels, known = samples.levels[rows], samples.tops != NEVER
        times = np.minimum(samples.elements.times[rows], np.append(asked.now, samples.tops)[levels])
        weights, _ = asked.scaled(np.concatenate([times, samples.tops[known]]))
        lows = np.zeros(LEVELS)
        lows[known] = weights[len(rows) :]
        return np.maximum(weights[: len(rows)] - lows[levels], 0.0)

    def _weights_of_tops(self, samples: Samples, asked: Question) -> Floats:
        """What the newest element that each level has ejected would weigh, relative to each other."""
        known, weights = samples.tops != NEVER, np.zeros(LEVELS)
        weights[known], _ = asked.scaled(samples.tops[known])
        return weights

    def _standing(self, samples: Samples, rows: Ints, integers_each: Floats) -> Estimates:
        elements = samples.elements.take(rows)
        return Estimates(elements.values, elements.weights, integers_each / self.scale)

    def _swept(self, asked: Question) -> float:
        """Theorem 4.2: one pass over all times, sorted; between two of them every window has the same estimates.

        A weight of an age is the sum of the steps that the decay makes on the way there, and each step counts what is
        in the window of its age: the median of what the copies say of that.
        """
        curves = [self._curve(samples, asked) for samples in self._samples]
        times = np.unique(np.concatenate([curve[0] for curve in curves]))
        if not len(times):
            return 0.0
        windows = np.zeros((self.copies, len(times)))
        for i, (places, sums) in enumerate(curves):
            windows[i] = np.append(sums, 0.0)[np.searchsorted(places, times)]
        steps = np.diff(asked.weights(times), prepend=0.0)
        return float((np.median(windows, axis=0) * np.maximum(steps, 0.0)).sum() / self.scale)

    def _curve(self, samples: Samples, asked: Question) -> tuple[Ints, Floats]:
        """Times in ascending order, and the estimates of the windows that begin between each and the one before."""
        rows, counts = self._usable(samples, asked)
        levels, times = samples.levels[rows], samples.elements.times[rows]
        places, sums = [np.empty(0, np.int64)], [np.empty(0)]
        for level in range(self._level(samples, asked), -1, -1):
            begin, end = np.searchsorted(levels, [level, level + 1])
            if begin == end:
                continue
            since, totals = times[begin:end][::-1], np.cumsum(counts[begin:end])[::-1]
            high = asked.now if level == 0 else int(samples.tops[level - 1])
            first = np.append(True, since[1:] != since[:-1])  # of one time, what has all of them
            since, totals = since[first], totals[first]
            own = since < high
            within = float(totals[~own][0]) if not own.all() else 0.0
            places += [since[own], np.array([high])]
            sums += [totals[own], np.array([within])]
        return np.concatenate(places), np.concatenate(sums)

    def _median(self, found: list[float]) -> float:
        return float(np.median(found))

    # --- Parameters and bytes

    def _usual_scale(self, max_id: int | None) -> float:
        if not self.fixed or isinstance(self.decay, (NoDecay, SlidingWindow)):
            return 1.0
        most = DOMAIN if max_id is None else DOMAIN / (self.max_weight * (max_id + 1))
        return max(1.0, math.floor(min(10_000 / self.epsilon, most * 0.99)))

    def _width(self) -> int:
        """How many integers the largest weight has."""
        load = float(Scale(self.scale, 0).loads(np.array([self.max_weight]))[0])
        if not 1 <= load <= DOMAIN:
            raise BadParameter(
                f"max_weight * scale must be from 1 to 2**57, got {self.max_weight:g} * {self.scale:g}; scale= says "
                "how many whole numbers stand for a weight of 1"
            )
        return math.floor(load)

    def _backward(self) -> Backward:
        decay: Decay = self.decay
        if isinstance(decay, Backward):
            return decay
        raise Unsupported(
            f"{self.decay} cannot be fixed ahead: elements expire by their age, and so it takes a backward decay; "
            "leave out fixed=True, and ask with it"
        )

    def _parameters(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "fixed", "max_weight", "max_id", "scale", "tau", "copies", "seed")
        return {name: getattr(self, name) for name in names}

    def _write(self, writer: serde.Writer) -> None:
        for samples in self._samples:
            writer.array(samples.tops)
            for column in samples.distinct():
                writer.array(column)

    def _read(self, reader: serde.Reader) -> None:
        for samples in self._samples:
            samples.tops = reader.array(np.int64)
            kinds = (np.int64, np.int64, np.float64, np.float64)
            elements = Elements(*(reader.array(kind) for kind in kinds))
            self._check(samples.tops, elements)
            clock = self._clock_of(self.newest)
            if not samples.rebuild(elements, clock):
                raise CorruptState("the elements in the state are not those that its levels keep")

    def _check(self, tops: Ints, elements: Elements) -> None:
        """Refuse what no stream leads to."""
        times, ids, values, weights = elements
        if tops.shape != (LEVELS,) or not len(times) == len(ids) == len(values) == len(weights):
            raise CorruptState("the columns in the state do not fit each other")
        newest = NEVER if self.newest is None else self.newest
        inside = (abs(times) < FARTHEST) & (times <= newest) & (ids >= 0) & (ids <= self.max_id)
        usable = (abs(values) < LARGEST) & ~((values == 0) & np.signbit(values)) & (weights <= self.max_weight)
        if not (inside & usable & (self._units.loads(weights) >= 1)).all():
            raise CorruptState("an element in the state is outside its bounds")
        known = tops != NEVER
        past = (tops <= newest) if self._expiry is None else (tops > newest)
        if not ((past & (tops > -FARTHEST)) | ~known).all() or (tops[1:] > tops[:-1]).any():
            raise CorruptState("the tops of the levels in the state are out of order")


def copies_for(delta: float) -> int:
    """How many copies have a median that misses with a probability of `delta` at most, if each misses by `_FAILS`."""
    copies = 1
    while _median_fails(copies) > delta * (1 + 1e-9):
        copies += 2
    return copies


def _median_fails(copies: int) -> float:
    """The odds that half of the copies or more miss."""
    ways = ((k, math.comb(copies, k)) for k in range((copies + 1) // 2, copies + 1))
    return math.fsum(count * _FAILS**k * (1 - _FAILS) ** (copies - k) for k, count in ways)


def _positive(value: Any, what: str) -> float:
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (good and 0 < value < LARGEST):
        raise BadParameter(f"{what} must be a positive number, got {value!r}")
    return float(value)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _whole_numbers(ids: Any) -> NDArray[Any] | None:
    """Ids that are whole numbers as an array, -1 where one is missing; None where they are something else."""
    if type(ids).__module__.partition(".")[0] == "pyarrow":
        import pyarrow as pa

        column = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        if not (isinstance(column, pa.Array) and pa.types.is_integer(column.type)):
            return None
        found: NDArray[Any] = column.cast(pa.int64(), safe=False).fill_null(-1).to_numpy(zero_copy_only=False)
        return found
    if isinstance(ids, (list, tuple)) and not all(type(one) is int for one in ids):
        return None
    array = ids.to_numpy() if hasattr(ids, "to_numpy") else np.asarray(ids)
    return array if array.dtype.kind in "iu" else None


SPEC = Spec(
    name="duplicate_insensitive",
    make=DuplicateInsensitive,
    version=1,
    title="sums, shares, quantiles and frequent values, whatever comes late or more than once",
    questions=("sum", "selectivity", "quantile", "heavy", "mean"),
    timeless=(),
    arguments={
        "selectivity": {"where": lambda value, _: value > 1},
        "quantile": {"phi": 0.5},
        "heavy": {"phi": 0.2},
    },
    guarantee="with probability 1 - delta sums to epsilon and shares to epsilon / 2, and 1 / scale an element",
    space="O(log(weight * ids) / epsilon^2): at most tau elements of 32 bytes at each level and copy",
    time="O(log weight) amortised, under 1.5 us a row in bulk, and under 4 us with a decay fixed ahead",
    paper="Time-Decaying Sketches for Sensor Data Aggregation (PODC 2007), Theorems 3.1 to 4.3; errata: the merge",
    equality=Equality.IDENTICAL,
    counts_repeats=False,
    bounds=lambda p: {
        "sum": 1 / p["scale"] if p["tau"] >= 1000 else None,  # so many rows no law makes: then all are there
        **dict.fromkeys(("selectivity", "quantile", "heavy", "mean")),
    },
    decays=frozenset({"forward", "backward"}),
    items="numbers",
    parameters=({"max_weight": 100, "scale": 1000, "tau": 1000},),
    state_bytes=lambda p: 1024 + p.get("copies", 1) * LEVELS * (32 * p["tau"] + 9),
)
DuplicateInsensitive.SPEC = SPEC
