import datetime as dt
import decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from wane import fn, local
from wane.errors import BadInput
from wane.grouped.keys import Groups

COLUMNS = {
    "int16": pa.array([1, 2, None, 1, 2, -3], pa.int16()),
    "uint64": pa.array([2**64 - 1, None, 1, 2**64 - 1, 7, 0], pa.uint64()),
    "float32": pa.array([1.5, 2, None, 1.5, 3, -0.5], pa.float32()),
    "float64": pa.array([0.0, -0.0, None, float("inf"), 0.0, 1e300]),
    "bool": pa.array([True, None, False, True, True, False]),
    "string": pa.array(["x", None, "y", "x", "", "é"]),
    "large_string": pa.array(["x", None, "y", "x", "", "é"], pa.large_string()),
    "binary": pa.array([b"1", b"2", None, b"1", b"\xff", b""]),
    "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal(2), decimal.Decimal("1.5")] * 2)[:6],
    "date32": pa.array([dt.date(2020, 1, 1), None, dt.date(1969, 1, 1)] * 2),
    "timestamp": pa.array([1, 2, None, 1, 5, -5], pa.timestamp("us", "Europe/Paris")),
    "naive": pa.array([1, 2, None, 1, 5, -5], pa.timestamp("s")),
    "time32": pa.array([1, 2, None, 1, 3, 0], pa.time32("s")),
    "time64": pa.array([1, 2, None, 1, 3, 0], pa.time64("us")),
    "duration": pa.array([1, 2, None, 1, 3, 0], pa.duration("ms")),
    "fixed": pa.array([b"12", None, b"34", b"12", b"00", b"56"], pa.binary(2)),
    "null": pa.nulls(6),
    "dictionary": pa.array(["p", "q", None, "p", "p", "r"]).dictionary_encode(),
    "int_dictionary": pa.array([5, 6, None, 5, 5, 7]).dictionary_encode(),
}


def grouped(arrays, cuts):
    """Ids of all rows, given batch by batch, and the groups' keys."""
    groups = Groups([pa.field(f"k{i}", a.type) for i, a in enumerate(arrays)])
    ids = []
    for start, stop in pairwise(cuts):
        ids += groups.ids([a.slice(start, stop - start) for a in arrays], stop - start).tolist()
    keys = [column.to_pylist() for column in groups.keys(np.arange(groups.size))]
    return ids, list(zip(*keys, strict=True)) if keys else [()] * groups.size


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("cuts", [[0, 6], [0, 1, 2, 3, 4, 5, 6], [0, 4, 4, 6]])
def test_every_type_is_a_key_and_comes_back_in_its_own_type(kind, cuts):
    array = COLUMNS[kind]
    ids, keys = grouped([array], cuts)
    assert [keys[i] for i in ids] == [(value,) for value in array.to_pylist()]
    assert len(set(map(repr, keys))) == len(keys)
    groups = Groups([pa.field("k", array.type)])
    groups.ids([array], len(array))
    plain = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    assert groups.keys(np.arange(groups.size))[0].type == plain


def test_all_columns_together_equal_pythons_own_grouping():
    arrays = list(COLUMNS.values())
    ids, keys = grouped(arrays, [0, 2, 6])
    rows = list(zip(*(a.to_pylist() for a in arrays), strict=True))
    assert [keys[i] for i in ids] == rows
    assert len(keys) == len(set(rows))


def test_not_a_number_and_the_two_zeros_are_one_key_each():
    ids, _ = grouped([pa.array([float("nan"), -0.0, float("nan"), 0.0])], [0, 1, 4])
    assert ids == [0, 1, 0, 1]


def test_no_key_at_all_is_one_group():
    assert grouped([], [0, 0]) == ([], [])
    assert Groups([]).ids([], 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(3))
def test_many_groups_over_many_batches_equal_a_dictionary(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(-3000, 3000, 20_000), rng.integers(0, 3, 20_000)
    cuts = [0, *sorted(rng.integers(0, 20_000, 5).tolist()), 20_000]
    ids, keys = grouped([pa.array(first), pa.array(second)], cuts)
    oracle: dict[tuple[int, int], int] = {}
    assert ids == [oracle.setdefault(row, len(oracle)) for row in zip(first.tolist(), second.tolist(), strict=True)]
    assert keys == list(oracle)


def test_keys_that_collide_in_their_low_bits_stay_apart():
    keys = (np.arange(5000, dtype=np.int64) << 40).tolist()
    ids, found = grouped([pa.array(keys)], [0, 5000])
    assert ids == list(range(5000))
    assert [key for (key,) in found] == keys


def test_a_key_column_that_changes_its_type_is_refused():
    groups = Groups([pa.field("k", pa.int64())])
    groups.ids([pa.array([1])], 1)
    with pytest.raises(BadInput, match="column 'k' was int64 and became string; cast it"):
        groups.ids([pa.array(["a"])], 1)


@pytest.mark.parametrize("kind", COLUMNS)
def test_answers_are_ordered_by_keys_of_every_type(kind):
    array = COLUMNS[kind]
    answer = local.group(pa.table({"k": array}), "k").agg(fn.count())
    found = [key for key in answer["k"].to_pylist() if key is not None]
    assert found == sorted(found)
    assert sum(answer["count"].to_pylist()) == 6
