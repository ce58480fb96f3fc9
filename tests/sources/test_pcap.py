"""Captures of every kind are read as they were made and as dpkt reads them; broken ones lose what is broken."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path
from typing import Any

import captures
import dpkt
import numpy as np
import pyarrow as pa
import pytest
from captures import ETHERNET, FIELDS, LINKS, Packet

from wane import fn, local
from wane._jit import DISABLED
from wane.errors import BadInput, BadParameter
from wane.sources import Pcap, Traffic, open_source, write
from wane.sources import pcap as module

MUTANTS = 60 if DISABLED else 1500


def read(path: Path | str, table: str = "IP") -> tuple[list[dict[str, Any]], dict[str, int]]:
    source = Pcap(path, table)
    rows = pa.Table.from_batches(source.batches(), source.schema)
    times = rows["time"].cast(pa.int64())
    return rows.set_column(0, "time", times).to_pylist(), dict(source.dropped)


def wanted(made: list[Packet]) -> list[dict[str, Any]]:
    return [one.row for one in made if one.row is not None]


# --- What there is


@pytest.mark.parametrize("snap", [65535, 96, 60, 40])
@pytest.mark.parametrize("link", LINKS)
def test_packets_are_what_they_were_made_of(tmp_path, link, snap):
    made = captures.packets(link * 7 + snap, 300, link, snap)
    path = tmp_path / "x.pcap"
    path.write_bytes(captures.pcap(made, link))
    rows, dropped = read(path)
    assert rows == wanted(made)
    assert sum(dropped.values()) == sum(one.row is None for one in made)
    assert "broken record" not in dropped


@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_either_byte_order_and_either_clock(tmp_path, order, nano):
    made = captures.packets(1, 200, tick=1 if nano else 1000)
    (tmp_path / "x.pcap").write_bytes(captures.pcap(made, order=order, nano=nano))
    assert read(tmp_path / "x.pcap")[0] == wanted(made)


@pytest.mark.parametrize("resolution", [None, 0, 3, 6, 9])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_of_either_byte_order(tmp_path, order, resolution):
    tick = 10 ** (9 - (6 if resolution is None else resolution))
    made = captures.packets(2, 150, tick=tick)
    (tmp_path / "x.pcapng").write_bytes(captures.pcapng(made, order=order, resolution=resolution))
    assert read(tmp_path / "x.pcapng")[0] == wanted(made)


def test_pcapng_with_sections_interfaces_and_blocks_of_other_kinds(tmp_path):
    ethernet, raw = captures.packets(3, 20), captures.packets(4, 20, captures.RAW)
    second = 1_767_225_600
    parts = [
        captures.section("<"),
        captures.interface("<", ETHERNET, 9),
        captures.interface("<", captures.RAW, 0x80 | 30),
    ]
    parts.append(captures.block("<", 5, bytes(20)))  # statistics
    for one, other in zip(ethernet, raw, strict=True):
        parts.append(captures.enhanced("<", 0, one, one.time))
        parts.append(captures.enhanced("<", 1, other, ticks := (other.time << 30) // 10**9))
        other.row = other.row and {**other.row, "time": ticks * 10**9 >> 30}
    parts.append(captures.block("<", 0x0BAD, b"whatever it is"))
    parts += [captures.section(">"), captures.interface(">", ETHERNET, 0x80 | 20, second)]
    parts += [captures.enhanced(">", 0, one, i << 18) for i, one in enumerate(ethernet)]
    old = struct.pack(">HHIIII", 0, 0, *divmod(5 << 20, 2**32), len(ethernet[0].data), ethernet[0].wire)
    parts.append(captures.block(">", 2, old + ethernet[0].data))
    parts.append(captures.block(">", 3, struct.pack(">I", len(ethernet[0].data)) + ethernet[0].data))
    (tmp_path / "x").write_bytes(b"".join(parts))
    rows, dropped = read(tmp_path / "x")
    both = [one for pair in zip(ethernet, raw, strict=True) for one in pair]
    later = [Packet(second * 10**9 + i * 10**9 // 4, b"", 0, one.row) for i, one in enumerate(ethernet)]
    first = ethernet[0].row
    expected = wanted(both) + [{**one.row, "time": one.time} for one in later if one.row is not None]
    expected += [{**first, "time": (second + 5) * 10**9}, {**first, "time": None}]
    assert rows == expected
    assert "broken record" not in dropped


def test_gz_globs_and_other_names(tmp_path):
    one, two = captures.packets(5, 50), captures.packets(6, 50)
    (tmp_path / "a.pcap.gz").write_bytes(gzip.compress(captures.pcap(one)))
    (tmp_path / "b.pcap").write_bytes(captures.pcapng(two))  # told by what is in it
    (tmp_path / "c").write_bytes(captures.pcap(one))
    assert read(str(tmp_path / "*.pcap*"))[0] == wanted(one) + wanted(two)
    assert isinstance(open_source(tmp_path / "c"), Pcap)
    assert local.group([tmp_path / "c"]).agg(fn.count())["count"].to_pylist() == [len(wanted(one))]


def test_tables_are_protocols(tmp_path):
    made = captures.packets(8, 300)
    (tmp_path / "x.pcap").write_bytes(captures.pcap(made))
    for table, protocol in (("TCP", 6), ("UDP", 17), ("ICMP", 1)):
        assert read(tmp_path / "x.pcap", table)[0] == [row for row in wanted(made) if row["protocol"] == protocol]


def test_only_the_columns_that_are_needed_are_made(tmp_path):
    made = captures.packets(9, 40)
    (tmp_path / "x.pcap").write_bytes(captures.pcap(made))
    for names in (["ttl", "time"], [], ["destIP6"]):
        (batch,) = Pcap(tmp_path / "x.pcap").batches(names)
        assert batch.schema.names == names
        assert batch.num_rows == len(wanted(made))


@pytest.mark.parametrize("chunk", [1 << 20, 3_000_017])
def test_where_the_buffer_ends_changes_nothing(tmp_path, monkeypatch, chunk):
    """More than one buffer of packets, some of them broken: the buffer's size must not show."""
    made = captures.packets(10, 1500 if DISABLED else 30_000)
    data = bytearray(captures.pcap(made))
    random = np.random.default_rng(1)
    for at in random.integers(24, len(data), 40):
        data[at] ^= 1 << int(random.integers(8))
    (tmp_path / "x.pcap").write_bytes(data)
    whole = read(tmp_path / "x.pcap")
    assert len(whole[0]) > len(wanted(made)) - 60
    monkeypatch.setattr(module, "_CHUNK", chunk)
    monkeypatch.setattr(module, "_FRAMES", 1000)
    assert read(tmp_path / "x.pcap") == whole


@pytest.mark.jit_only  # a search through half a megabyte, byte by byte
def test_a_broken_record_at_the_end_of_the_buffer_is_judged_with_what_follows(tmp_path, monkeypatch):
    made = captures.packets(14, 12_000)
    records = [captures.record(one) for one in made]
    which = next(i for i in range(len(made)) if 24 + sum(map(len, records[:i])) > 1 << 20)
    begin = 24 + sum(map(len, records[:which]))
    data = bytearray(captures.pcap(made))
    data[begin + 9] ^= 1  # its length: 256 bytes more or less
    (tmp_path / "x.pcap").write_bytes(data)
    whole = read(tmp_path / "x.pcap")
    others = [one for one in made if one is not made[which]]
    assert [row for row in whole[0] if row["time"] != made[which].time] == wanted(others)
    for end in range(begin - 8, begin + 500, 40):
        monkeypatch.setattr(module, "_CHUNK", end)
        assert read(tmp_path / "x.pcap") == whole, end


# --- As dpkt reads it


def by_dpkt(path: Path, link: int, ng: bool) -> list[dict[str, Any]]:
    """The same fields, as dpkt reads them."""
    rows = []
    with path.open("rb") as file:
        for _, data in (dpkt.pcapng if ng else dpkt.pcap).Reader(file):
            try:
                frame = {
                    ETHERNET: dpkt.ethernet.Ethernet, captures.COOKED: dpkt.sll.SLL, captures.COOKED_2: dpkt.sll2.SLL2
                }.get(link, lambda raw: raw)(data)  # fmt: skip
                ip = getattr(frame, "data", frame)
                if isinstance(ip, bytes):
                    ip = (dpkt.ip.IP if ip[0] >> 4 == 4 else dpkt.ip6.IP6)(ip)
            except dpkt.UnpackError:
                continue
            if not isinstance(ip, (dpkt.ip.IP, dpkt.ip6.IP6)):
                continue
            six = isinstance(ip, dpkt.ip6.IP6)
            row: dict[str, Any] = dict.fromkeys(FIELDS[1:])
            source, dest = ("srcIP6", "destIP6") if six else ("srcIP", "destIP")
            row[source], row[dest] = (ip.src, ip.dst) if six else (int.from_bytes(ip.src), int.from_bytes(ip.dst))
            row["protocol"], row["ttl"] = (ip.p, ip.hlim if six else ip.ttl)
            row["len"] = ip.plen + 40 if six else ip.len
            if isinstance(ip.data, (dpkt.tcp.TCP, dpkt.udp.UDP)):
                row["srcPort"], row["destPort"] = ip.data.sport, ip.data.dport
            if isinstance(ip.data, dpkt.tcp.TCP):
                row["flags"] = ip.data.flags
            rows.append(row)
    return rows


@pytest.mark.parametrize("ng", [False, True])
@pytest.mark.parametrize("link", LINKS)
def test_fields_are_those_of_dpkt(tmp_path, link, ng):
    made = captures.packets(100 + link, 300, link, snap=65535)
    path = tmp_path / "x.pcap"
    path.write_bytes((captures.pcapng if ng else captures.pcap)(made, link))
    ours = [{name: row[name] for name in FIELDS[1:]} for row in read(path)[0]]
    theirs = by_dpkt(path, link, ng)
    assert len(ours) == len(theirs) > 200
    for mine, other in zip(ours, theirs, strict=True):
        if mine["srcPort"] is None and mine["protocol"] in (6, 17):  # a later fragment, which dpkt reads on in IPv6
            other = {**other, "srcPort": None, "destPort": None, "flags": None}
        assert mine == other


# --- Broken ones


def flipped(data: bytes, begin: int, end: int, random: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for at in random.integers(begin, end, int(random.integers(1, 4))):
        changed[at] ^= 1 << int(random.integers(8))
    return bytes(changed)


@pytest.mark.parametrize("ng", [False, True])
def test_only_what_is_broken_is_lost(tmp_path, ng):
    """Bits of one record change, in its header or its packet: every other packet is read as before."""
    order = "<"
    path = tmp_path / "x"
    random = np.random.default_rng(17)
    made = captures.packets(11, 12)
    if ng:
        head = captures.section(order) + captures.interface(order, ETHERNET)
        records = [captures.enhanced(order, 0, one, one.time) for one in made]
    else:
        head = captures.pcap([])
        records = [captures.record(one) for one in made]
    path.write_bytes(head + b"".join(records))
    whole = read(path)[0]
    counted = 0
    for trial in range(MUTANTS // 4):
        which = trial % len(made)
        begin = len(head) + sum(map(len, records[:which]))
        end = begin + (len(records[which]) if trial % 3 else 16)
        path.write_bytes(flipped(head + b"".join(records), begin, end, random))
        rows, dropped = read(path)
        counted += sum(dropped.values())
        others = [row for row in whole if made[which].row is None or row["time"] != made[which].time]
        assert [row for row in rows if row in others] == others, trial
    assert counted


def mutants(count: int, seed: int) -> Any:
    """Captures of all kinds with bits flipped, ends cut, lengths made absurd, parts left out or repeated."""
    random = np.random.default_rng(seed)
    kinds = []
    for link in LINKS:
        for order in "<>":
            made = captures.packets(link, 15, link)
            kinds += [captures.pcap(made, link, order), captures.pcapng(made, link, order)]
    for _ in range(count):
        data = bytearray(kinds[random.integers(len(kinds))])
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(len(data)))
            what = int(random.integers(5))
            if what == 0:
                data[at] ^= 1 << int(random.integers(8))
            elif what == 1:
                del data[at:]
            elif what == 2:
                data[at : at + 4] = random.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000]).astype("<u4").tobytes()
            elif what == 3:
                del data[at : at + int(random.integers(1, 40))]
            else:
                data[at:at] = data[at // 2 : at]
            data = data or bytearray(b"\0")
        yield bytes(data)


def survives(path: Path, data: bytes) -> int:
    """Read it, whatever it is; the rows there are have sound values."""
    path.write_bytes(data)
    try:
        rows, dropped = read(path)
    except BadInput:
        return 0  # what it begins with says that it is no capture
    assert all(count > 0 for count in dropped.values())
    for row in rows:
        assert 0 <= row["protocol"] < 256
        assert 0 <= row["ttl"] < 256
        assert row["len"] >= 20
        assert (row["srcIP"] is None) == (row["srcIP6"] is not None)
    return len(rows)


def test_mutants_are_read_or_refused(tmp_path):
    rows = sum(survives(tmp_path / "x", data) for data in mutants(MUTANTS, 1))
    assert rows > 4 * MUTANTS


@pytest.mark.slow
def test_ten_thousand_mutants_are_read_or_refused(tmp_path):
    rows = sum(survives(tmp_path / "x", data) for data in mutants(10_000, 2))
    assert rows > 40_000


def test_a_cut_gz_gives_what_is_there(tmp_path):
    made = captures.packets(12, 500)
    packed = gzip.compress(captures.pcap(made))
    (tmp_path / "x.gz").write_bytes(packed[: len(packed) // 3])
    rows, dropped = read(tmp_path / "x.gz")
    assert 100 < len(rows) < 250
    assert rows[:-1] == wanted(made)[: len(rows) - 1]
    assert dropped["broken record"] == 2  # the file, and the record that it ends in


def test_dropped_packets_come_with_the_answer(tmp_path):
    made = captures.packets(13, 30, snap=30)
    (tmp_path / "x.pcap").write_bytes(captures.pcap(made))
    answer = local.group(tmp_path / "x.pcap").agg(fn.count())
    assert sum(local.dropped(answer).values()) == 30


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no capture"),
        (b"hello", "no capture"),
        (captures.pcap([])[:20], "no capture"),
        (captures.pcap([], link=127), "link type 127"),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path, data, says):
    (tmp_path / "x.pcap").write_bytes(data)
    with pytest.raises(BadInput, match=says):
        read(tmp_path / "x.pcap")


def test_a_table_that_is_none(tmp_path):
    (tmp_path / "x.pcap").write_bytes(captures.pcap([]))
    with pytest.raises(BadParameter, match="TCP, UDP, ICMP, IP"):
        Pcap(tmp_path / "x.pcap", "tcp")


# --- Written


def test_what_is_written_is_read_back(tmp_path):
    traffic = Traffic(rows=5000, late=0.1, repeated=0.05)
    assert write(tmp_path / "x.pcap", traffic.batches()) == 5000
    rows = pa.Table.from_batches(Pcap(tmp_path / "x.pcap").batches())
    for name in traffic.table().column_names:
        assert rows[name].to_pylist() == traffic.table()[name].to_pylist(), name
    with (tmp_path / "x.pcap").open("rb") as file:
        for _, data in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(data).data
            header = bytes(ip)[:20]
            total = sum(struct.unpack(">10H", header))
            assert (total & 0xFFFF) + (total >> 16) == 0xFFFF  # the checksum of IP


def test_a_write_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(BadParameter, match="end in one of"):
        write(tmp_path / "x.json", Traffic(rows=10).batches())
    bare = pa.record_batch({"len": [1]})
    with pytest.raises(BadInput, match="there is no 'time'"):
        write(tmp_path / "x.pcap", [bare])
    with pytest.raises(BadInput, match="no rows"):
        write(tmp_path / "x.pcap", [])
    assert os.listdir(tmp_path) == []
