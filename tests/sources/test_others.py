"""Logs of the World Cup, CSV files, flows, and made-up crowds."""

from __future__ import annotations

import gzip
import struct
from ipaddress import ip_address

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wane import fn, local
from wane.errors import BadInput, BadParameter
from wane.sources import FORMATS, Crowd, Csv, Parquet, Traffic, WorldCup98, generate, open_source, write
from wane.sources import worldcup98 as module
from wane.times import SECOND, instant


def table(source) -> pa.Table:
    return pa.Table.from_batches(source.batches(), source.schema)


# --- World Cup


def log(seed: int, count: int) -> tuple[bytes, list[dict]]:
    random = np.random.default_rng(seed)
    codes = [100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305]
    codes += [*range(400, 416), *range(500, 506)]
    data, rows = b"", []
    for i in range(count):
        code, version = int(random.integers(0, 40)), int(random.integers(0, 4))
        server, region, size = int(random.integers(0, 32)), int(random.integers(0, 8)), int(random.integers(0, 2**32))
        size = 0xFFFFFFFF if i % 5 == 0 else size
        client, item = int(random.integers(0, 2**32)), int(random.integers(0, 2**32))
        data += struct.pack(
            ">IIIIBBBB", 894_000_000 + i, client, item, size, 0, version << 6 | code, 3, region << 5 | server
        )
        rows.append(
            {
                "time": (894_000_000 + i) * SECOND,
                "client": client,
                "object": item,
                "bytes": None if i % 5 == 0 else size,
                "method": 0,
                "status": codes[code] if code < len(codes) else None,
                "type": 3,
                "server": server,
                "region": region,
            }
        )
    return data, rows


def plain(rows: pa.Table) -> list[dict]:
    return rows.set_column(0, "time", rows["time"].cast(pa.timestamp("ns", "UTC")).cast(pa.int64())).to_pylist()


def test_logs_of_the_world_cup(tmp_path, monkeypatch):
    one, first = log(1, 300)
    two, second = log(2, 40)
    (tmp_path / "wc_day6_1.gz").write_bytes(gzip.compress(one[:4000]) + gzip.compress(one[4000:]))
    (tmp_path / "wc_day6_2").write_bytes(two + b"cut")
    monkeypatch.setattr(module, "_CHUNK", 64)
    source = open_source(str(tmp_path / "wc_day6_*"))
    assert isinstance(source, WorldCup98)
    assert plain(table(source)) == first + second
    assert source.dropped == {"broken record": 1}
    assert source.position == source.size
    asked = local.group(str(tmp_path / "wc_day6_*"), time="time").agg(fn.distinct("client"))
    assert asked["distinct_client"][0].as_py() == pytest.approx(340, rel=0.05)
    (batch, *_) = WorldCup98(tmp_path / "wc_day6_2").batches([])
    assert (batch.num_rows, batch.num_columns) == (40, 0)


def test_a_cut_gz_log_gives_what_is_there(tmp_path):
    one, first = log(3, 2000)
    packed = gzip.compress(one)
    (tmp_path / "wc_day7_1.gz").write_bytes(packed[: len(packed) // 2])
    source = WorldCup98(tmp_path / "wc_day7_1.gz")
    rows = plain(table(source))
    assert 500 < len(rows) < 1500
    assert rows == first[: len(rows)]
    assert source.dropped == {"broken record": 1}


# --- CSV


def test_plain_csv(tmp_path):
    (tmp_path / "a.csv").write_text("t,name,v\n1,x,0.5\n2,y,\n3,z\n4,w,2\n")
    source = open_source(tmp_path / "a.csv")
    assert isinstance(source, Csv)
    assert table(source).to_pylist() == [
        {"t": 1, "name": "x", "v": 0.5},
        {"t": 2, "name": "y", "v": None},
        {"t": 4, "name": "w", "v": 2.0},
    ]
    assert source.dropped == {"row of another length": 1}
    assert local.group(tmp_path / "a.csv").agg(fn.sum("v"))["sum_v"].to_pylist() == [2.5]


def test_many_and_packed_csv(tmp_path):
    (tmp_path / "1.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "2.tsv.gz").write_bytes(gzip.compress(b"a\tb\n3\t4\n"))
    assert table(Csv(str(tmp_path / "*.tsv*"))).to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    (tmp_path / "3.tsv").write_text("a\tc\n1\t2\n")
    with pytest.raises(BadInput, match="has the columns a, c"):
        table(Csv([tmp_path / "1.tsv", tmp_path / "3.tsv"]))
    (tmp_path / "4.csv").write_text("")
    with pytest.raises(BadInput, match="cannot be read as CSV"):
        Csv(tmp_path / "4.csv")
    (tmp_path / "5.csv").write_text("a\n" + "1\n" * 1_000_000 + "x\n")
    with pytest.raises(BadInput, match="cannot be read as CSV"):
        table(Csv(tmp_path / "5.csv"))


FLOWS = """ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt
2026-01-05 10:00:01.250,2026-01-05 10:00:02.000,0.750,10.0.0.1,10.0.0.2,4000,443,TCP,...AP.SF,0,0,7,1500,0,0
2026-01-05 10:00:03.000,2026-01-05 10:00:03.000,0.000,2001:db8::1,2001:db8::2,53,5353,UDP,........,0,0,1,80,0,0
2026-01-05 10:00:04.000,2026-01-05 10:00:04.000,0.000,10.0.0.9,10.0.0.2,0,8.0,ICMP,0x00,0,0,2,168,0,0
2026-01-05 10:00:05.000,2026-01-05 10:00:05.000,0.000,10.0.0.9,10.0.0.2,0,771,99,A,0,0,2,168,0,0
Summary
flows,bytes,packets,avg_bps,avg_pps,avg_bpp
4,1916,12,0,0,0
"""


def test_flows_become_columns_of_packets(tmp_path):
    (tmp_path / "flows.csv").write_text(FLOWS)
    source = Csv(tmp_path / "flows.csv")
    rows = table(source).to_pylist()
    assert [row["srcIP"] for row in rows] == [int(ip_address("10.0.0.1")), None, *[int(ip_address("10.0.0.9"))] * 2]
    assert rows[1]["destIP6"] == ip_address("2001:db8::2").packed
    assert rows[0]["destIP6"] is None
    assert [row["protocol"] for row in rows] == [6, 17, 1, 99]
    assert [row["flags"] for row in rows] == [0b11011, 0, 0, 16]
    assert [row["len"] for row in rows] == [1500, 80, 168, 168]
    assert [row["packets"] for row in rows] == [7, 1, 2, 2]
    assert [row["destPort"] for row in rows] == [443, 5353, 8, 771]
    assert rows[0]["duration"] == 0.75
    assert rows[0]["time"].isoformat() == "2026-01-05T10:00:01.250000+00:00"
    assert source.dropped["row of another length"] == 3


# --- Which it is


def test_the_format_may_be_said(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.dat")
    assert isinstance(open_source(tmp_path / "x.dat"), Parquet)
    assert isinstance(open_source(tmp_path), Parquet)
    (tmp_path / "y.dat").write_text("a\n1\n")
    assert table(open_source(tmp_path / "y.dat", format="csv")).to_pylist() == [{"a": 1}]
    with pytest.raises(BadParameter, match="did you mean 'parquet'"):
        open_source(tmp_path / "x.dat", format="parquett")
    assert FORMATS == ("parquet", "pcap", "csv", "worldcup98")
    source = Parquet(tmp_path / "x.dat")
    list(source.batches())
    assert source.position == source.size > 0


def test_rows_are_written_as_csv_and_parquet(tmp_path):
    traffic = Traffic(rows=20_000)
    for name in ("x.parquet", "x.csv"):
        assert write(tmp_path / name, traffic.batches()) == 20_000
        rows = table(open_source(tmp_path / name))
        assert rows["srcIP"].to_pylist() == traffic.table()["srcIP"].to_pylist()
        assert rows["time"].cast(pa.timestamp("ns", "UTC")).equals(traffic.table()["time"])


# --- A flash crowd


def test_a_crowd_comes_and_goes():
    crowd = Crowd(start="4s", half_life="2s", share=0.5)
    traffic = Traffic(rows=100_000, rate=5000, crowd=crowd)
    rows, without = traffic.table(), generate(100_000, rate=5000)
    ages = (rows["time"].cast(pa.int64()).to_numpy() - instant(traffic.start)) / SECOND
    there = rows["destIP"].to_numpy() == traffic.crowded
    assert not there[ages < 4].mean() > 0.001
    for second in range(4, 20):
        inside = (ages >= second) & (ages < second + 1)
        # the mean share over the second
        share = 0.5 * 2 ** (-(second - 4) / 2) * (1 - 2**-0.5) / (0.5 * np.log(2))
        slack = 6 * np.sqrt(share * (1 - share) / inside.sum()) + 0.002
        assert abs(there[inside].mean() - share) < slack, second
    for name in ("time", "srcIP", "len"):  # a trace with a crowd is otherwise that without
        assert rows[name].equals(without[name])
    assert (rows["srcIP"].to_numpy()[there] != 0).all()
    assert len(np.unique(rows["srcIP"].to_numpy()[there])) > 1000


@pytest.mark.parametrize(
    ("crowd", "says"), [({"share": 2}, "share"), ({"start": -1}, "start"), ({"half_life": 0}, "half")]
)
def test_a_crowd_out_of_range_is_refused(crowd, says):
    with pytest.raises(BadParameter, match=says):
        Crowd(**crowd)
