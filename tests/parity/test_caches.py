"""Groups in caches of every kind and size answer as groups that are all kept: nothing is lost on the way up."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grouped_trace import HEAVY, HOLISTIC, ROWS, SIMPLE, check_heavy, check_quantiles, close, trace

from wane import fn, local, plan
from wane.errors import BadParameter
from wane.grouped import HighLevel, LowLevel
from wane.grouped.cache import STRATEGIES, CachedGroups

EVERY = ("time", "1 minute")
KEYS = ("port", "host")


def alike(mine: pa.Table, theirs: pa.Table) -> None:
    assert mine.schema.names == theirs.schema.names
    one, two = mine.to_pylist(), theirs.to_pylist()
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert close(a, b), (a, b)


@pytest.mark.parametrize("flush", ["lazy", "eager"])
@pytest.mark.parametrize("slots", [1, 3, 20, 5000])
@pytest.mark.parametrize("cache", STRATEGIES)
def test_every_cache_gives_the_same_answers(cache: str, slots: int, flush: str) -> None:
    table = trace(20, ROWS // 4)
    whole = local.group(table, *KEYS, every=EVERY).agg(*SIMPLE)
    found = local.group(table, *KEYS, every=EVERY, cache=cache, slots=slots, flush=flush).agg(*SIMPLE)
    alike(found, whole)
    assert local.dropped(found) == local.dropped(whole)


@pytest.mark.parametrize("cache", STRATEGIES)
@pytest.mark.parametrize("size", [1, 100, 10**6])
def test_guarantees_survive_the_cache(cache: str, size: int) -> None:
    table = trace(21, min(ROWS, 600) if size > 1 else 100)
    made = plan.build((*HEAVY, *HOLISTIC), ("port",), every=EVERY)
    low = LowLevel(made, table.schema, cache=cache, slots=3)
    high = HighLevel(made, table.schema)
    for batch in table.combine_chunks().to_batches(max_chunksize=size):
        for partials in low.update(batch):
            high.update(partials)
    for partials in low.flush():
        high.update(partials)
    found = high.answers()
    check_heavy(table, found)
    check_quantiles(table, found)


def slots_of(words: np.ndarray, slots: int, times: int) -> list[int]:
    """The slots that a group may have, reckoned in whole numbers of Python."""
    mask, golden, scramble = 2**64 - 1, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
    h = golden
    for word in words:
        h = (h ^ (int(word) & mask)) * scramble & mask
        h ^= h >> 32
    h = h * golden & mask
    found = []
    for _ in range(times):
        found.append(((h >> 32) * slots) >> 32)
        h = (h ^ golden) * scramble & mask
    return found


def replay(kind: str, keys: list[int], slots: int) -> list[int]:
    """The rows at which a group enters the cache, by a plain model of the paper's sentences."""
    entered: list[int] = []
    cache: Any = OrderedDict() if kind == "lru" else {}
    for row, key in enumerate(keys):
        if kind == "lru":
            if key in cache:
                cache.move_to_end(key)
                continue
            if len(cache) == slots:
                cache.popitem(last=False)
            cache[key] = row
        elif kind != "none":
            places = slots_of(np.array([key, 0]), slots, 2 if kind == "second chance" else 1)
            if any(cache.get(place) == key for place in places):
                continue
            cache[next((place for place in places if place not in cache), places[0])] = key
        entered.append(row)
    return entered


@pytest.mark.parametrize("slots", [1, 7, 64])
@pytest.mark.parametrize("cache", STRATEGIES)
def test_a_cache_does_what_its_strategy_says(cache: str, slots: int) -> None:
    random = np.random.default_rng(22)
    keys = np.minimum(random.zipf(1.3, 600), 200)
    groups = CachedGroups([pa.field("k", pa.int64())], cache, slots, epochs=False)
    entered: list[int] = []
    before: set[int] = set()
    ejected = 0
    for start in range(0, len(keys), 50):
        ids = groups.ids([pa.array(keys[start : start + 50])], 50)
        known = groups.keys(ids)[0].to_pylist()
        assert known == keys[start : start + 50].tolist()
        fresh = {int(one) for one in ids} - before
        first = {one: int(np.flatnonzero(ids == one)[0]) for one in fresh}
        entered += sorted(start + row for row in first.values())
        ejected += len(groups.gone)
        groups.forget()
        before = {int(one) for one in groups.live}
    assert entered == replay(cache, keys.tolist(), slots)
    assert len(entered) - ejected == len(groups.live) <= slots


def test_a_cache_stays_small_however_many_groups_there_are() -> None:
    made = plan.build([fn.count()], ("k",))
    schema = pa.schema([("k", pa.int64())])
    for cache in STRATEGIES:
        low = LowLevel(made, schema, cache=cache, slots=100, budget=None)
        partials: list[pa.RecordBatch] = []
        for start in range(0, 20_000, 500):
            partials += low.update(pa.record_batch([pa.array(np.arange(start, start + 500))], schema))
        partials += low.flush()
        assert sum(sum(one.column("s0_total").to_pylist()) for one in partials) == 20_000.0
        assert {count for one in partials for count in one.column("rows").to_pylist()} == {1}
        assert low.measured.peak < 150_000
        assert low.measured.partials == 20_000


def test_groups_of_old_epochs_leave_little_by_little_or_at_once() -> None:
    rows = 6400
    times = np.concatenate([np.zeros(1000, np.int64), np.full(rows, 60)])
    table = pa.table({"t": times, "k": np.concatenate([np.arange(1000), np.zeros(rows, np.int64)])})
    made = plan.build([fn.count()], ("k",), every=("t", 60))
    left = {}
    for flush in ("lazy", "eager"):
        for cache in STRATEGIES:
            low = LowLevel(made, table.schema, cache=cache, slots=50_000, flush=flush)
            batches = table.combine_chunks().to_batches(max_chunksize=100)
            ejected = [sum(partials.num_rows for partials in low.update(batch)) for batch in batches]
            left[flush, cache] = ejected
            assert sum(partials.num_rows for partials in low.flush()) + sum(ejected) >= 1001
    for cache in set(STRATEGIES) - {"none"}:
        steps = left["lazy", cache][10:]
        assert max(steps) <= 134 + 5  # 1000 groups over three quarters of 1000 rows, and what collides
        assert 950 <= sum(steps) <= 1000  # a few have gone before
        assert max(left["eager", cache]) > 900
    eager = LowLevel(made, table.schema, flush="eager")
    gone = [sum(p.num_rows for p in eager.update(b)) for b in table.combine_chunks().to_batches(max_chunksize=100)]
    assert [count for count in gone if count] == [1001]


def test_a_late_row_ejects_nothing_but_what_it_meets() -> None:
    made = plan.build([fn.count()], ("k",), every=("t", 60))
    rows = pa.table({"t": [0, 60, 1, 61, 2], "k": [1, 1, 1, 1, 1]})
    low = LowLevel(made, rows.schema, cache="lru", slots=10)
    for batch in rows.to_batches(max_chunksize=1):
        assert sum(p.num_rows for p in low.update(batch)) <= 1
    table = local.group(rows, "k", every=("t", 60), cache="lru", slots=10).agg(fn.count())
    assert table["count"].to_pylist() == [3.0, 2.0]


def test_shedding_keeps_whole_groups_and_says_so() -> None:
    table = trace(23)
    whole = {row["host"]: row for row in local.group(table, "host").agg(fn.count(), fn.sum("len")).to_pylist()}
    kept = local.group(table, "host", shed=0.4).agg(fn.count(), fn.sum("len"))
    rows = kept.to_pylist()
    assert all(close(row, whole[row["host"]]) for row in rows)
    assert 0.15 * len(whole) < len(rows) < 0.65 * len(whole)
    missing = sum(row["count"] for row in whole.values()) - sum(row["count"] for row in rows)
    assert local.dropped(kept)["shed"] == missing > 0
    assert local.shed(kept) == 0.4
    assert local.shed(local.group(table, "host").agg(fn.count())) is None
    # The same groups everywhere: in other batches, in another process's order.
    parts = [local.group(part, "host", shed=0.4).agg(fn.count()) for part in (table.slice(0, 50), table.slice(50))]
    assert {row["host"] for part in parts for row in part.to_pylist()} == {row["host"] for row in rows}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache": "fifo"}, "there is no cache 'fifo'; the strategies are direct, second chance, none, lru"),
        ({"cache": "lru", "slots": 0}, "whole number of slots from 1"),
        ({"flush": "never"}, "flush must be one of lazy, eager"),
        ({"shed": 0}, "share of the groups"),
        ({"shed": 1.5}, "share of the groups"),
        ({"levels": 4}, "levels must be 1, 2 or 3"),
        ({"levels": 1, "budget": 10}, "with levels=1 nothing is handed out"),
        ({"threads": 0}, "threads must be a whole number from 1"),
        ({"budget": 0}, "budget is a number of bytes"),
        ({"thread": 2}, "there is no option 'thread'; the options are threads, levels"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        local.group(trace(24, 10), "port", **options).agg(fn.count())


@pytest.mark.jit_only
def test_where_reducing_does_not_pay_rows_go_up_as_they_are_until_it_does() -> None:
    random = np.random.default_rng(25)
    rows = 400_000
    budget = rows * 10
    keys = np.concatenate([random.permutation(rows), np.zeros(rows, np.int64), random.permutation(rows)])
    made = plan.build([fn.count(), fn.sum("k")], ("k",))
    schema = pa.schema([("k", pa.int64())])
    low, high = LowLevel(made, schema, budget=budget), HighLevel(made, schema)
    taken = []
    for start in range(0, len(keys), 4000):
        before = low.measured.partials
        for partials in low.update(pa.record_batch([pa.array(keys[start : start + 4000])], schema)):
            high.update(partials)
        taken.append(low.measured.partials - before)
    for partials in low.flush():
        high.update(partials)
    steps = rows // 4000
    assert low.measured.passes >= 1
    assert 4000 in taken[:steps]  # as they are
    assert sum(taken[steps + steps // 2 : 2 * steps]) < rows / 4  # all of one group, which it finds out in time
    found = high.answers()
    assert sum(found["count"].to_pylist()) == len(keys)
    assert sum(found["sum_k"].to_pylist()) == keys.sum()
    assert low.measured.peak < 1.1 * budget
