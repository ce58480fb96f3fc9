"""Input that means harm, or is only broken: clear errors or bounded memory, never a wrong answer."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from grouped_trace import trace

from wane import fn, local, plan
from wane._jit import DISABLED
from wane.errors import BadInput, WaneError
from wane.grouped import HighLevel, LowLevel

PROBE = Path(__file__).parent.parent / "memory_probe.py"


def low(schema: pa.Schema, *fns: Any, keys: tuple[str, ...] = ("k",), **options: Any) -> LowLevel:
    return LowLevel(plan.build(fns or (fn.count(), fn.sum("v")), keys), schema, **options)


SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64())])


@pytest.mark.parametrize("cache", [None, "second chance"])
@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (pa.record_batch({"k": ["a"], "v": [1.0]}), "column 'k' was int64 and became string; cast it to one type"),
        (pa.record_batch({"k": pa.array([1.5]), "v": [1.0]}), "column 'k' was int64 and became double"),
        (pa.record_batch({"k": [1], "v": ["text"]}), "column 'v'"),
        (pa.record_batch({"k": [1]}), "the batch has no column 'v', or more than one; its columns are k"),
        (
            pa.record_batch([pa.array([1]), pa.array([1]), pa.array([1.0])], ["k", "k", "v"]),
            "no column 'k', or more than one",
        ),
        (pa.record_batch({"k": [1], "v": [[1.0]]}), "column 'v'"),
    ],
)
def test_a_malformed_batch_is_a_clear_error(cache: str | None, batch: pa.RecordBatch, words: str) -> None:
    engine = low(SCHEMA, cache=cache)
    list(engine.update(pa.record_batch([pa.array([1, 2]), pa.array([1.0, 2.0])], SCHEMA)))
    with pytest.raises(WaneError, match=words):
        list(engine.update(batch))


def test_a_source_whose_batches_change_their_type_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [pa.record_batch({"k": keys, "v": [1.0, 2.0]}) for keys in ([1, 2], [3, 4], ["a", "b"])]
    monkeypatch.setattr(local, "read", lambda *_: (batches[0].schema, iter(batches)))
    for threads in (1, 2):
        with pytest.raises(BadInput, match="column 'k' was int64 and became string"):
            local.group(pa.table({}), "k", threads=threads).agg(fn.sum("v"))


def test_a_batch_that_contradicts_itself_is_a_clear_error() -> None:
    # Offsets that run past the text: what a broken writer of another language may send.
    schema = pa.schema([("k", pa.string()), ("v", pa.float64())])
    sent = pa.record_batch([pa.array(["ab", "cd"]), pa.array([1.0, 2.0])], schema).serialize().to_pybytes()
    offsets, wrong = (np.array([0, 2, last], np.int32).tobytes() for last in (4, 10**6))
    assert sent.count(offsets) == 1
    batch = pa.ipc.read_record_batch(pa.py_buffer(sent.replace(offsets, wrong)), schema)
    engine = low(schema)
    with pytest.raises(BadInput, match="the batch contradicts itself"):
        list(engine.update(batch))


def test_a_column_of_nulls_is_dropped_and_counted() -> None:
    for kind in (pa.null(), pa.float64()):
        table = pa.table({"k": [1, 1, 2], "v": pa.nulls(3, kind)})
        fns = (fn.count(), fn.sum("v"), fn.mean("v"), fn.max("v"), fn.top("v"), fn.quantiles("v", [0.5]))
        for how in ({}, {"levels": 2}, {"cache": "lru", "slots": 1}):
            found = local.group(table, "k", **how).agg(*fns)
            one, two = found.to_pylist()
            assert (one["count"], two["count"]) == (2.0, 1.0)
            assert one["sum_v"] == 0.0
            assert np.isnan([one["mean_v"], one["max_v"], *one["quantiles_v"]]).all()
            assert one["top_v"] == []
            assert local.dropped(found) == {"value of v": 6}  # as numbers, and as items


@pytest.mark.parametrize("cache", [None, "second chance", "none"])
def test_keys_of_every_type(cache: str | None) -> None:
    how = {} if cache is None else {"cache": cache, "slots": 2}
    columns = {
        "null": pa.nulls(6),
        "bool": pa.array([True, False, None, True, False, None]),
        "decimal": pa.array([Decimal("1.10"), Decimal("1.1"), None, Decimal("-2"), Decimal("1.10"), None]),
        "wide": pa.array([Decimal(10**40), None, Decimal(1), Decimal(10**40), None, Decimal(1)], pa.decimal256(50, 2)),
        "time": pa.array([1, 2, None, 1, 2, None], pa.timestamp("us", "Asia/Tokyo")),
        "day": pa.array([1, 2, None, 1, 2, None], pa.date32()),
        "gap": pa.array([1, 2, None, 1, 2, None], pa.duration("ms")),
        "bytes": pa.array([b"", b"\0", None, b"", b"\0\0", None]),
        "text": pa.array(["", "ä", None, "", "ä", None]).dictionary_encode(),
        "float": pa.array([0.0, -0.0, None, float("nan"), float("nan"), 5.0]),
        "small": pa.array([1, 2, None, 1, 2, None], pa.int8()),
        "large": pa.array([2**64 - 1, 0, None, 2**64 - 1, 0, None], pa.uint64()),
    }
    for name, column in columns.items():
        found = local.group(pa.table({name: column}), name, **how).agg(fn.count())
        said = [None if value is None else str(value) for value in column.to_pylist()]
        said = ["0.0" if value == "-0.0" else value for value in said]
        wanted = {value: float(said.count(value)) for value in said}
        assert {None if k is None else str(k): n for k, n in zip(*found.to_pydict().values(), strict=True)} == wanted
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        assert found.schema.field(name).type == kind
    everything = pa.table(columns)
    assert sum(local.group(everything, *columns, **how).agg(fn.count())["count"].to_pylist()) == 6.0


@pytest.mark.jit_only
def test_an_epoch_that_never_closes_takes_bounded_memory() -> None:
    # Times go to and fro over many epochs, so that none of them is ever over, and there are always new groups.
    random = np.random.default_rng(50)
    made = plan.build([fn.count(), fn.top("k", 3, epsilon=0.1)], ("k",), every=("t", 60))
    schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
    rows = 40_000
    for options in ({"budget": 3 << 20}, {"cache": "second chance", "slots": 500, "budget": None}):
        engine, high = LowLevel(made, schema, **options), HighLevel(made, schema)
        for step in range(10):
            times = random.integers(0, 3600, rows)
            keys = random.integers(step * rows // 2, (step + 2) * rows // 2, rows)
            for partials in engine.update(pa.record_batch([pa.array(times), pa.array(keys)], schema)):
                high.update(partials)
        for partials in engine.flush():
            high.update(partials)
        assert sum(high.answers()["count"].to_pylist()) == 10 * rows
        assert engine.measured.peak < (options["budget"] or 60 << 20)


def many_keys(rows: int, slots: int) -> None:
    """As many distinct keys as rows, texts among them, through a small cache."""
    schema = pa.schema([("k", pa.int64()), ("name", pa.string())])
    made = plan.build([fn.count()], ("k", "name"))
    engine = LowLevel(made, schema, cache="second chance", slots=slots, budget=32 << 20)
    step, total = min(rows, 100_000), 0.0
    for start in range(0, rows, step):
        keys = np.arange(start, start + step)
        batch = pa.record_batch([pa.array(keys), pa.array(keys // 7).cast(pa.string())], schema)
        for partials in engine.update(batch):
            total += float(np.sum(partials.column("s0_total").to_numpy()))
    total += sum(float(np.sum(partials.column("s0_total").to_numpy())) for partials in engine.flush())
    assert total == rows
    assert engine.measured.peak < 32 << 20


def test_many_distinct_keys_and_a_small_cache() -> None:
    many_keys(20_000 if DISABLED else 300_000, 100)


@pytest.mark.slow
@pytest.mark.jit_only
def test_ten_million_distinct_keys_and_a_cache_of_a_thousand() -> None:
    many_keys(10**7, 1000)


def probe(rows: int, groups: int, budget: int, *cache: str) -> dict[str, Any]:
    command = [sys.executable, str(PROBE), str(rows), str(groups), str(budget), *cache]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.jit_only
def test_resident_memory_stays_within_the_budget() -> None:
    found = probe(400_000, 20_000, 24 << 20)
    assert found["measured"]["flushes"] > 1  # or it shows nothing
    assert found["peak"] <= 1.1 * (24 << 20)
    assert found["off"] <= 1e-9


@pytest.mark.slow
@pytest.mark.jit_only
@pytest.mark.parametrize("cache", [(), ("second chance",)])
def test_twenty_million_rows_of_a_hundred_thousand_groups_in_64_megabytes(cache: tuple[str, ...]) -> None:
    found = probe(20_000_000, 100_000, 64 << 20, *cache)
    assert found["measured"]["flushes"] + found["measured"]["ejections"] > 1
    assert found["peak"] <= 1.1 * (64 << 20)
    assert found["off"] <= 1e-9


def test_the_answers_of_a_trace_with_every_kind_of_trouble() -> None:
    table = trace(51)
    worse = table.set_column(2, "ip", pa.array([None if i % 7 == 0 else i % 13 for i in range(len(table))]))
    found = local.group(worse, "host", "port", every=("time", "1 minute"), cache="direct", slots=7).agg(
        fn.count(), fn.top("ip", 2), fn.sum("ip")
    )
    assert sum(found["count"].to_pylist()) == len(table)
    assert local.dropped(found)["value of ip"] == 2 * sum(i % 7 == 0 for i in range(len(table)))
