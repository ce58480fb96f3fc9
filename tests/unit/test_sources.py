from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from wane.errors import BadParameter, WaneError
from wane.sources import ATTACKER, Attack, Traffic, batches, generate, ip_text
from wane.sources.generator import BLOCK, SCHEMA
from wane.times import SECOND, instant

START = instant("2026-01-05T00:00:00Z")
EVERYTHING = {
    "rate": 5000.0,
    "late": 0.1,
    "delay": "2s",
    "repeated": 0.05,
    "attack": Attack(start="4s", share=0.3),
    "diurnal": 0.4,
}


def slack(trials: int, p: float) -> float:
    """Bernstein: a binomial count is this near its mean but once in 10^9 seeds."""
    log = math.log(2e9)
    return math.sqrt(2 * trials * p * (1 - p) * log) + 2 * log / 3


def near(count: int, trials: int, p: float) -> bool:
    return abs(count - trials * p) <= slack(trials, p)


def ages(table: pa.Table) -> np.ndarray:
    return table["time"].cast(pa.int64()).to_numpy() - START


def test_equal_parameters_give_equal_rows_and_another_seed_others():
    assert generate(40_000, **EVERYTHING).equals(generate(40_000, **EVERYTHING))
    first, second = generate(1000), generate(1000, seed=2)
    assert all(first[name] != second[name] for name in SCHEMA.names if name != "protocol")


@pytest.mark.parametrize("batch_rows", [1, 7, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 30_000, 10**9])
def test_the_size_of_batches_changes_nothing(batch_rows):
    rows = 1000 if batch_rows == 1 else 2 * BLOCK + 777
    whole = generate(rows, **EVERYTHING)
    parts = list(batches(rows, batch_rows=batch_rows, **EVERYTHING))
    assert [part.num_rows for part in parts[:-1]] == [batch_rows] * (len(parts) - 1)
    assert 0 < parts[-1].num_rows <= batch_rows
    assert pa.Table.from_batches(parts).equals(whole)
    assert whole.schema.equals(SCHEMA)


@pytest.mark.parametrize("rows", [0, 1, BLOCK, BLOCK + 1])
def test_a_shorter_trace_is_the_beginning_of_a_longer_one(rows):
    assert generate(rows, **EVERYTHING).equals(generate(3 * BLOCK, **EVERYTHING).slice(0, rows))


def test_no_block_is_like_another():
    table = generate(2 * BLOCK)
    for name in ("srcIP", "destIP", "len"):
        assert table[name].slice(0, BLOCK) != table[name].slice(BLOCK)


def test_batches_are_made_as_they_are_asked_for():
    endless = batches(10**15)
    assert sum(batch.num_rows for batch in itertools.islice(endless, 2)) == 2 * 65_536


def test_times_are_in_order_and_keep_the_rate():
    times = ages(generate(100_000, rate=20_000))
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert abs(times[-1] / SECOND - 5.0) < 0.01
    gaps = np.diff(times) / SECOND * 20_000
    # of a Poisson process the gaps are exponential: mean and deviation 1, and 1/e of them above the mean
    assert near(int((gaps > 1).sum()), len(gaps), math.exp(-1))
    assert 0.97 < gaps.std() < 1.03


@pytest.mark.parametrize("late", [0.01, 0.3])
def test_the_fraction_of_late_rows(late):
    # gaps are a ten-millionth of the delay: practically every late row is seen to be older than one before it
    times = ages(generate(200_000, rate=100_000, late=late, delay="100s"))[BLOCK:]
    behind = int((times < np.maximum.accumulate(times)).sum())
    assert near(behind, len(times), late)
    assert times.min() >= 0


def test_no_row_is_later_than_the_delay():
    times = ages(generate(50_000, rate=1000, late=0.5, delay="3s"))
    back = np.maximum.accumulate(times) - times
    assert 2.9 * SECOND < back.max() <= 3 * SECOND


@pytest.mark.parametrize("repeated", [0.02, 0.4])
def test_the_fraction_of_repeated_rows(repeated):
    table = generate(10 * BLOCK, repeated=repeated)
    distinct = table.group_by(SCHEMA.names).aggregate([]).num_rows
    assert near(table.num_rows - distinct, table.num_rows, repeated)
    assert distinct < table.num_rows


def test_without_repeats_no_two_rows_are_equal():
    table = generate(10 * BLOCK)
    assert table.group_by(SCHEMA.names).aggregate([]).num_rows == table.num_rows


@pytest.mark.parametrize("late", [0.0, 0.2])
def test_the_attack_has_its_share_from_its_start_and_nothing_before(late):
    table = generate(100_000, rate=10_000, attack=Attack(start="4s", share=0.3), late=late, delay="2s")
    times, flood = ages(table), table["srcIP"].to_numpy() == ATTACKER
    after = times >= 4 * SECOND
    assert not flood[~after].any()
    assert near(int(flood[after].sum()), int(after.sum()), 0.3)
    assert len(np.unique(table["destIP"].to_numpy()[flood])) == 1
    assert set(table["len"].to_numpy()[flood]) == {40}


def test_the_attack_names_its_source_and_target_and_changes_no_other_row():
    calm = generate(20_000, rate=10_000)
    stormy = generate(20_000, rate=10_000, attack=Attack(start="1s", share=0.5, source=1, target=2))
    flood = stormy["srcIP"].to_numpy() == 1
    assert set(stormy["destIP"].to_numpy()[flood]) == {2}
    assert stormy["time"].equals(calm["time"])
    assert stormy.filter(pa.array(~flood)).num_rows > 12_000


def test_the_attacker_is_nobody_else():
    assert not (generate(200_000, sources=1 << 20, skew=0.0)["srcIP"].to_numpy() == ATTACKER).any()


@pytest.mark.parametrize("skew", [0.0, 1.0, 1.5])
@pytest.mark.parametrize(("column", "hosts"), [("srcIP", 100), ("destIP", 300)])
def test_hosts_follow_zipf(skew, column, hosts):
    table = generate(100_000, sources=100, destinations=300, skew=skew)
    _, counts = np.unique(table[column].to_numpy(), return_counts=True)
    odds = 1.0 / np.arange(1, hosts + 1) ** skew
    odds /= odds.sum()
    assert len(counts) <= hosts
    ranked = np.sort(counts)[::-1]
    for rank in (0, 1, 2) if skew else ():
        assert near(int(ranked[rank]), table.num_rows, odds[rank])
    assert ranked[0] <= table.num_rows * odds[0] + slack(table.num_rows, odds[0])


def test_all_hosts_have_addresses_of_their_own():
    table = generate(300_000, sources=1000, destinations=1000, skew=0.0)
    for column in ("srcIP", "destIP"):
        assert len(np.unique(table[column].to_numpy())) == 1000


def test_a_day_has_its_cycle():
    hours = ages(generate(240_000, rate=240_000 / 86400, diurnal=0.6)) / SECOND / 3600
    counts, _ = np.histogram(hours, 24, (0, 24))
    for hour in range(24):
        # the integral of the rate over the hour
        angle = np.sin(2 * np.pi * np.array([hour, hour + 1]) / 24)
        share = (1 - 0.6 * (angle[1] - angle[0]) * 24 / (2 * np.pi)) / 24
        assert near(int(counts[hour]), 240_000, share)
    assert counts[12] > 3 * counts[0]


def test_columns_are_what_packets_have():
    table = generate(50_000)
    assert set(table["protocol"].to_pylist()) == {6, 17}
    lengths = table["len"].to_numpy()
    assert 40 <= lengths.min() < 64
    assert 1400 <= lengths.max() <= 1500
    assert {80, 443, 53} <= set(table["destPort"].to_pylist())
    assert ip_text(table["destIP"][0].as_py()).startswith("10.")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"rows": -1}, "rows"),
        ({"rate": 0}, "rate"),
        ({"rate": math.inf}, "rate"),
        ({"skew": -1}, "skew"),
        ({"skew": math.nan}, "skew"),
        ({"sources": 0}, "sources"),
        ({"sources": 2**21}, "sources"),
        ({"destinations": 2**25}, "destinations"),
        ({"late": 1.5}, "late"),
        ({"repeated": math.nan}, "repeated"),
        ({"delay": "-1s"}, "delay"),
        ({"delay": -1}, "delay"),
        ({"diurnal": 1}, "diurnal"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_parameter_out_of_range_is_refused(parameters, said):
    with pytest.raises(WaneError, match=said):
        Traffic(**parameters)


def test_an_attack_out_of_range_is_refused():
    with pytest.raises(BadParameter, match="share"):
        Attack(share=2)
    with pytest.raises(BadParameter, match="start"):
        Attack(start=-1)
    with pytest.raises(BadParameter, match="batch_rows"):
        next(batches(10, batch_rows=0))
