"""The values of items in many places at once, each place with the ranks of its own values, known to within a bound.

An entry is a value with two counts: how many items of its place it stands for, `steps`, and by how much more its rank
may be, `slack`. The rank of an entry is at least the sum of the steps up to it, and at most `slack` more (Greenwald and
Khanna, Space-efficient online computation of quantile summaries, 2001). Entries stand in the order of their places and
values. All is done in single passes over entries of all places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wane._jit import kernel
from wane.decay.base import Floats, Ints


class Ranks(NamedTuple):
    """Entries.

    Attributes:
        places: The place of each.
        values: Its value.
        steps: How many items it stands for.
        slacks: By how much its rank may be higher than the sum of the steps of its place up to it.
    """

    places: Ints
    values: Floats
    steps: Ints
    slacks: Ints

    def take(self, index: Any) -> Ranks:
        """The entries of a slice or a mask, copied."""
        places, values, steps, slacks = self
        return Ranks(places[index].copy(), values[index].copy(), steps[index].copy(), slacks[index].copy())


def none() -> Ranks:
    """No entries."""
    return Ranks(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


def of_rows(places: Ints, values: Floats) -> Ranks:
    """Entries of single items."""
    order = np.lexsort((values, places))
    return Ranks(places[order], values[order], np.ones(len(order), np.int64), np.zeros(len(order), np.int64))


@kernel("int64(r_i8, r_f8, r_i8, r_i8, r_i8, r_f8, r_i8, r_i8, w_i8, w_f8, w_i8, w_i8)")
def _merge(
    places_a: Ints,
    values_a: Floats,
    steps_a: Ints,
    slacks_a: Ints,
    places_b: Ints,
    values_b: Floats,
    steps_b: Ints,
    slacks_b: Ints,
    places: Ints,
    values: Floats,
    steps: Ints,
    slacks: Ints,
) -> int:
    """Merge entries in order; of the other's items, those that its next entry stands for may come before or after."""
    a, b, made = 0, 0, 0
    while a < places_a.shape[0] or b < places_b.shape[0]:
        first = b == places_b.shape[0]
        if not first and a < places_a.shape[0]:
            first = places_a[a] < places_b[b] or (places_a[a] == places_b[b] and values_a[a] <= values_b[b])
        if first:
            places[made], values[made], steps[made], slacks[made] = places_a[a], values_a[a], steps_a[a], slacks_a[a]
            if b < places_b.shape[0] and places_b[b] == places_a[a]:
                slacks[made] += max(steps_b[b] + slacks_b[b] - 1, 0)
            a += 1
        else:
            places[made], values[made], steps[made], slacks[made] = places_b[b], values_b[b], steps_b[b], slacks_b[b]
            if a < places_a.shape[0] and places_a[a] == places_b[b]:
                slacks[made] += max(steps_a[a] + slacks_a[a] - 1, 0)
            b += 1
        made += 1
    return made


def merge(mine: Ranks, theirs: Ranks) -> Ranks:
    """The entries of both."""
    if not len(mine.places) or not len(theirs.places):
        return mine if len(mine.places) else theirs
    room = len(mine.places) + len(theirs.places)
    made = Ranks(np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64))
    _merge(*mine, *theirs, *made)
    return made


@kernel("int64(w_i8, w_f8, w_i8, w_i8, r_i8)")
def _thin(places: Ints, values: Floats, steps: Ints, slacks: Ints, widths: Ints) -> Any:
    """Let an entry go up in the next of its place where that leaves it within a width; gives where the rest begins."""
    made = places.shape[0]
    for i in range(places.shape[0] - 1, -1, -1):
        # The first of a place stays: its least value is known.
        inside = i > 0 and places[i - 1] == places[i] and made < places.shape[0] and places[made] == places[i]
        if inside and steps[i] + steps[made] + slacks[made] <= widths[i]:
            steps[made] += steps[i]
            continue
        made -= 1
        places[made], values[made], steps[made], slacks[made] = places[i], values[i], steps[i], slacks[i]
    return made


def thin(ranks: Ranks, share: float, least: int) -> Ranks:
    """Fewer entries, each with ``steps + slack`` of at most a share of what its place counts, or of `least` if more."""
    if not len(ranks.places):
        return ranks
    starts, totals = counted(ranks)
    sizes = np.diff(np.append(starts, len(ranks.places)))
    widths = np.repeat((share * np.maximum(totals, least)).astype(np.int64), sizes)
    made = ranks.take(slice(None))
    return made.take(slice(_thin(*made, widths), None))


def counted(ranks: Ranks) -> tuple[Ints, Ints]:
    """Where the entries of each place begin, and how many items it has."""
    starts = np.flatnonzero(np.append(True, np.diff(ranks.places) != 0)) if len(ranks.places) else ranks.places
    totals = np.add.reduceat(ranks.steps, starts) if len(starts) else starts
    return starts, totals


@kernel("int64(r_i8, r_i8, r_i8, r_f8, r_i8, r_i8, w_i8, w_f8, w_i8, w_i8)")
def _deal(
    starts: Ints,
    sources: Ints,
    counts: Ints,
    values: Floats,
    steps: Ints,
    slacks: Ints,
    pieces: Ints,
    new_values: Floats,
    new_steps: Ints,
    new_slacks: Ints,
) -> Any:
    """Deal the items of places out: to each piece, in turn, the least that are left."""
    made = at = left = 0
    source = -1
    for p in range(sources.shape[0]):
        if sources[p] != source:
            source = sources[p]
            at = starts[source]
            left = steps[at]
        wanted = counts[p]
        while wanted > 0:
            if left == 0:
                at += 1
                left = steps[at]
            part = min(left, wanted)
            wanted -= part
            left -= part
            pieces[made], new_values[made], new_steps[made] = p, values[at], part
            new_slacks[made] = min(slacks[at], wanted)
            made += 1
    return made


def deal(ranks: Ranks, keys: Ints, sources: Ints, targets: Ints, counts: Ints) -> Ranks:
    """The entries of some places, when their items go to others.

    Args:
        ranks: The entries.
        keys: The places whose items go.
        sources: For each piece of them, which of `keys` it comes from; pieces of one place stand together.
        targets: The place that it goes to.
        counts: How many items it has.
    """
    starts = np.searchsorted(ranks.places, keys)
    room = len(ranks.places) + len(sources)
    pieces, values = np.empty(room, np.int64), np.empty(room)
    steps, slacks = np.empty(room, np.int64), np.empty(room, np.int64)
    size = _deal(starts, sources, counts, *ranks[1:], pieces, values, steps, slacks)
    pieces = pieces[:size]
    order = np.argsort(targets, kind="stable")
    grouped = targets[order]
    firsts = np.append(True, grouped[1:] != grouped[:-1]) if len(order) else np.empty(0, np.bool_)
    rounds = np.empty(len(order), np.int64)  # of the pieces that go to one place, which one this is
    numbers = np.arange(len(order))
    rounds[order] = numbers - np.maximum.accumulate(np.where(firsts, numbers, 0))
    found = none()
    for number in range(int(rounds.max(initial=-1)) + 1):
        rows = np.flatnonzero(rounds[pieces] == number)
        rows = rows[np.argsort(targets[pieces[rows]], kind="stable")]
        found = merge(found, Ranks(targets[pieces[rows]], values[rows], steps[rows], slacks[rows]))
    return found


__all__ = ["Ranks", "counted", "deal", "merge", "none", "of_rows", "thin"]
