from __future__ import annotations

import re

import numpy as np
import pytest

from wane._jit import DISABLED
from wane.cli import main
from wane.cli.commands import demo
from wane.sources import ATTACKER, Attack, Traffic, ip_text
from wane.times import SECOND, instant

ROWS = 3_000 if DISABLED else 30_000
TRAFFIC = Traffic(
    rows=ROWS, rate=ROWS / 300, late=0.05, delay="2s", repeated=0.01, attack=Attack(start=150, share=0.15), seed=5
)


@pytest.fixture(scope="module")
def said() -> str:
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["demo", "--rows", str(ROWS), "--seed", "5"]) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def packets() -> dict[str, np.ndarray]:
    table = TRAFFIC.table()
    found = {name: table[name].to_numpy() for name in ("srcIP", "destIP", "len")}
    return {**found, "time": table["time"].to_numpy().view(np.int64) - instant(TRAFFIC.start)}


def test_late_and_repeated_rows_are_counted(said, packets):
    late = sum(
        time < newest for time, newest in zip(packets["time"], np.maximum.accumulate(packets["time"]), strict=True)
    )
    distinct = len({tuple(row.values()) for row in TRAFFIC.table().to_pylist()})
    assert f"{ROWS:,} made-up packets in 5 minutes; {late:,} come late, {ROWS - distinct:,} repeat another." in said
    assert f"{ROWS:,} packets counted, 0 dropped" in said


def test_the_table_by_minute_says_what_numpy_says(said, packets):
    lines = [line.replace(" *", "").split() for line in said.splitlines() if re.match(r"00:0\d  ", line)]
    assert len(lines) == 5 * demo.TOP
    for minute in range(5):
        end = (minute + 1) * 60
        age = end - packets["time"] / SECOND
        inside = (age > 0) & (age <= 60)
        weight = np.where(inside, 0.5 ** (age / 10), 0.0)
        hits = {host: weight[packets["destIP"] == host].sum() for host in np.unique(packets["destIP"])}
        top = sorted(hits, key=hits.get, reverse=True)[: demo.TOP]
        for host, line in zip(top, lines[minute * demo.TOP :], strict=False):
            own = inside & (packets["destIP"] == host)
            size, square = packets["len"][own], (60 - age[own]) ** 2
            mean = (square * size).sum() / square.sum()
            std = np.sqrt((square * (size - mean) ** 2).sum() / square.sum())
            want = [hits[host], own.sum(), mean, std, (weight[own] * size).max(), size.sum()]
            assert line[:2] == [f"00:0{minute}", ip_text(host)]
            got = [float(cell.replace(",", "")) for cell in line[2:]]
            assert np.allclose(got, want, rtol=0, atol=0.501)
            assert abs(got[0] - want[0]) < 0.051


def test_the_attacked_destination_is_marked_and_first_in_the_end(said):
    lines = [line for line in said.splitlines() if re.match(r"00:04  ", line)]
    assert lines[0].split()[1:3] == [ip_text(TRAFFIC.target), "*"]
    assert said.count(" * ") == 3


def seconds_to_first(packets, hits) -> int:
    """The first second after the attack's start at which the attacker has the most hits, by brute force."""
    newest = np.maximum.accumulate(packets["time"])
    for second in range(150, 300):
        arrived = newest < second * SECOND
        weights = hits(packets["time"][arrived] / SECOND, second)
        sources, place = np.unique(packets["srcIP"][arrived], return_inverse=True)
        sums = np.bincount(place, weights)
        if ATTACKER in sources and sums.max() > 0 and sums[np.searchsorted(sources, ATTACKER)] == sums.max():
            return second
    raise AssertionError("never")


def test_the_lead_is_what_brute_force_says(said, packets):
    decayed = seconds_to_first(packets, lambda times, second: 0.5 ** ((second - times) / 10))
    sofar = seconds_to_first(packets, lambda times, second: (times >= second - second % 60) * 1.0)
    full = seconds_to_first(packets, lambda times, second: np.floor(times / 60) == second // 60 - 1)
    assert f"attacker first {sofar - decayed} s before the count of this minute so far." in said
    assert f"attacker first {full - decayed} s before the count of the last full minute." in said
    assert re.search(rf"^ +{decayed - 150} +1\. ", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("decayed", "plain", "said"),
    [
        (160, 180, "puts the attacker first 20 s before the count."),
        (180, 160, "puts the attacker first 20 s after the count."),
        (160, None, "The count does not put the attacker first before the trace ends; the decayed one does."),
        (None, 160, "The decayed count does not put the attacker first before the trace ends."),
    ],
)
def test_the_lead_is_told_whoever_has_it(decayed, plain, said):
    assert demo._lead("count", decayed, plain).endswith(said)
