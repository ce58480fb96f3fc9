"""``wane demo``: decayed answers over made-up traffic, and what they show sooner than counts by the minute do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wane.cli.output import show_table

if TYPE_CHECKING:
    import pyarrow as pa

    from wane.sources import Traffic

EXAMPLE = "wane demo --rows 20000"

LENGTH = 300
"""Seconds of traffic."""

BEGIN = 150
"""Seconds after which the attack begins."""

DECAY = "exp(half_life=10s)"
TOP = 3
"""Destinations shown for each minute."""


def command(
    rows: Annotated[int, typer.Option(min=1000, help="Packets in the trace.")] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the trace.")] = 1,
) -> None:
    """Make a trace with an attack in it, and ask decayed questions of it."""
    from wane.sources import ATTACKER, Attack, Traffic, ip_text

    attack = Attack(start=BEGIN, share=0.15)
    traffic = Traffic(rows=rows, rate=rows / LENGTH, late=0.05, delay="2s", repeated=0.01, attack=attack, seed=seed)
    table = traffic.table()
    late, repeated = _disorder(table)
    print(f"{rows:,} made-up packets in {LENGTH // 60} minutes; {late:,} come late, {repeated:,} repeat another.")
    print(f"After {BEGIN} s {ip_text(ATTACKER)} sends {attack.share:.0%} of all packets, all to one destination.")
    print()
    _by_minute(traffic, table)
    print()
    _who_is_hot(traffic, table)


def _by_minute(traffic: Traffic, table: pa.Table) -> None:
    """Show the destinations with the largest decayed counts at the end of each minute."""
    from wane import fn, local
    from wane.sources import ip_text

    asked = (
        fn.count(decay=DECAY).alias("hits"),
        fn.count().alias("packets"),
        fn.mean("len", decay="poly(2)").alias("mean"),
        fn.std("len", decay="poly(2)").alias("std"),
        fn.max("len", decay=DECAY).alias("max"),
        fn.sum("len").alias("bytes"),
    )
    local.group(table.slice(0, 1000), "destIP", every=("time", "1 minute")).agg(*asked)  # compiles, the first time
    began = time.perf_counter()
    answer = local.group(table, "destIP", every=("time", "1 minute")).agg(*asked)
    took = time.perf_counter() - began

    shown = []
    for minute in answer["epoch"].unique()[: LENGTH // 60]:  # the last packet may come a moment later
        group = answer.filter(_equal(answer["epoch"], minute)).sort_by([("hits", "descending")])
        for row in group.slice(0, TOP).to_pylist():
            mark = " *" if row["destIP"] == traffic.target else ""
            cells = [f"{row['hits']:,.1f}", f"{row['packets']:,.0f}", f"{row['mean']:,.0f}"]
            cells += [f"{row['std']:,.0f}", f"{row['max']:,.0f}", f"{row['bytes']:,.0f}"]
            shown.append([f"{minute.as_py():%H:%M}", ip_text(row["destIP"]) + mark, *cells])
    head = ("minute", "destination", "hits", "packets", "mean len", "std len", "max len", "bytes")
    show_table(head, shown, f"The {TOP} destinations with most hits at the end of each minute", right=head[2:])
    print(f"hits, max len: {DECAY}; mean and std len: poly(2); packets, bytes: no decay; *: attacked")
    counted, lost = answer["packets"].to_numpy().sum(), sum(local.dropped(answer).values())
    rate = table.num_rows / took / 1e6
    print(f"{answer.num_rows:,} groups; {counted:,.0f} packets counted, {lost:,} dropped; {rate:.1f} million a second")


@dataclass
class _Ranking:
    """A way to rank sources: the attacker's place in it, second by second."""

    name: str
    places: dict[int, int | None]

    def first(self) -> int | None:
        """The second at which the attacker is first."""
        return next((second for second, place in self.places.items() if place == 1), None)


def _who_is_hot(traffic: Traffic, table: pa.Table) -> None:
    """Rank the sources every second after the attack's start, in three ways, until all put the attacker first."""
    rankings = [
        _Ranking(f"count, {DECAY}", {}),
        _Ranking("count of this minute so far", {}),
        _Ranking("count of the last full minute", {}),
    ]
    arrived = _Arrivals(traffic, table)
    for second in range(BEGIN, LENGTH):
        for ranking, place in zip(rankings, _places(arrived, second), strict=True):
            ranking.places[second] = place
        if all(ranking.first() for ranking in rankings):
            break

    head = ("seconds since its start", *(ranking.name for ranking in rankings))
    shown = [
        [str(second - BEGIN), *(_ordinal(ranking.places[second]) for ranking in rankings)]
        for second in rankings[0].places
        if (second - BEGIN) % 10 == 0 or second in [ranking.first() for ranking in rankings]
    ]
    show_table(head, shown, "The attacker's place among the sources, by", right=head)
    decayed, *plain = (ranking.first() for ranking in rankings)
    for ranking, first in zip(rankings[1:], plain, strict=True):
        print(_lead(ranking.name, decayed, first))


def _lead(name: str, decayed: int | None, plain: int | None) -> str:
    if decayed is None:
        return "The decayed count does not put the attacker first before the trace ends."
    if plain is None:
        return f"The {name} does not put the attacker first before the trace ends; the decayed one does."
    ahead = plain - decayed
    return f"The decayed count puts the attacker first {abs(ahead)} s {'before' if ahead >= 0 else 'after'} the {name}."


class _Arrivals:
    """What had arrived of a trace by each moment."""

    def __init__(self, traffic: Traffic, table: pa.Table) -> None:
        import numpy as np

        from wane.times import SECOND, instant

        self.table = table
        self.start = instant(traffic.start)
        self.newest = np.maximum.accumulate(table["time"].to_numpy().view(np.int64))
        self.second = SECOND

    def until(self, second: int) -> pa.Table:
        """The rows that had arrived before a second of the trace."""
        return self.table.slice(0, self.newest.searchsorted(self.start + second * self.second))

    def between(self, first: int, last: int, second: int) -> pa.Table:
        """Those of them with times from the second `first` on and before `last`."""
        rows = self.until(second).slice(self.newest.searchsorted(self.start + first * self.second))
        times = rows["time"].to_numpy().view("i8") - self.start
        return rows.filter((times >= first * self.second) & (times < last * self.second))


def _places(arrived: _Arrivals, second: int) -> Iterator[int | None]:
    from wane import fn, local
    from wane.times import Nanoseconds

    minute = second - second % 60
    now = Nanoseconds(arrived.start + second * arrived.second)
    decayed = fn.count(decay=DECAY).alias("hits")
    plain = fn.count().alias("hits")
    yield _place(local.group(arrived.until(second), "srcIP", time="time").agg(decayed, now=now))
    yield _place(local.group(arrived.between(minute, second, second), "srcIP").agg(plain))
    yield _place(local.group(arrived.between(minute - 60, minute, second), "srcIP").agg(plain))


def _place(answer: pa.Table) -> int | None:
    """The attacker's place by hits, or None if it has none."""
    import pyarrow.compute as pc

    from wane.sources import ATTACKER

    own = answer.filter(_equal(answer["srcIP"], ATTACKER))
    if not own.num_rows:
        return None
    return 1 + int(pc.sum(pc.greater(answer["hits"], own["hits"][0])).as_py())


def _disorder(table: pa.Table) -> tuple[int, int]:
    """How many rows are older than one before them, and how many are copies of another."""
    import numpy as np

    times = table["time"].to_numpy()
    late = int((times < np.maximum.accumulate(times)).sum())
    return late, table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows


def _equal(column: Any, value: Any) -> Any:
    import pyarrow.compute as pc

    return pc.equal(column, value)


def _ordinal(place: int | None) -> str:
    return "-" if place is None else f"{place}."
