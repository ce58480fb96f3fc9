"""Captures made by hand, byte by byte, with what their packets say; shares no code with what reads them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ETHERNET, RAW, COOKED, IPV4, IPV6, COOKED_2 = 1, 101, 113, 228, 229, 276
LINKS = (ETHERNET, RAW, COOKED, IPV4, IPV6, COOKED_2)
FIELDS = ("time", "srcIP", "destIP", "srcPort", "destPort", "len", "protocol", "flags", "ttl", "srcIP6", "destIP6")


@dataclass
class Packet:
    """Bytes as captured, their length on the wire, and the row they make (None: none)."""

    time: int
    data: bytes
    wire: int
    row: dict[str, Any] | None = field(repr=False)


def packet(random: np.random.Generator, time: int, link: int = ETHERNET, snap: int = 96) -> Packet:
    """One packet of any kind that its link may have."""
    six = link == IPV6 or (link != IPV4 and random.random() < 0.4)
    protocol = int(random.choice([1, 6, 17, 58, 47]))
    fragment = bool(random.random() < 0.1)
    ports = [int(port) for port in random.integers(0, 65536, 2)]
    flags, ttl = int(random.integers(0, 256)), int(random.integers(1, 256))
    payload = random.bytes(int(random.integers(0, 200)))
    if protocol == 6:
        upper = struct.pack(">HHIIBBHHH", *ports, 1, 2, 0x50, flags, 1000, 0, 0)
    elif protocol == 17:
        upper = struct.pack(">HHHH", *ports, 8 + len(payload), 0)
    else:
        upper = struct.pack(">BBHI", 8, 0, 0, 7)
    row: dict[str, Any] = dict.fromkeys(FIELDS)
    row |= {"time": time, "protocol": protocol, "ttl": ttl}
    if six:
        source, dest = random.bytes(16), random.bytes(16)
        chain = b""
        following = protocol
        if fragment:
            chain = struct.pack(">BBHI", following, 0, 185 << 3, 99)
            following = 44
        if random.random() < 0.5:
            chain = struct.pack(">BBHI", following, 0, 0x0104, 0) + chain
            following = 0
        body = chain + upper + payload
        ip = struct.pack(">IHBB", 6 << 28, len(body), following, ttl) + source + dest + body
        row |= {"srcIP6": source, "destIP6": dest, "len": len(ip)}
        reach = 40 + len(chain)
    else:
        options = bytes(4 * int(random.integers(0, 11)))
        source, dest = (int(address) for address in random.integers(0, 2**32, 2))
        body = upper + payload
        header = 20 + len(options)
        where = 185 if fragment else 0x4000
        ip = struct.pack(
            ">BBHHHBBHII", 0x40 | header // 4, 0, header + len(body), 7, where, ttl, protocol, 0, source, dest
        )
        ip += options + body
        row |= {"srcIP": source, "destIP": dest, "len": len(ip)}
        reach = header
    kind = 0x86DD if six else 0x0800
    tags = b""
    if link == ETHERNET and random.random() < 0.4:
        tags = struct.pack(">HH", 0x8100, 5)
        if random.random() < 0.5:
            tags = struct.pack(">HH", 0x88A8, 6) + tags
    before = {
        ETHERNET: b"\x02" * 12 + tags + struct.pack(">H", kind),
        COOKED: struct.pack(">HHH8sH", 0, 1, 6, b"\x02" * 8, kind),
        COOKED_2: struct.pack(">HHIHBB8s", kind, 0, 1, 1, 0, 6, b"\x02" * 8),
    }.get(link, b"")
    if link == ETHERNET and random.random() < 0.05:  # no IP at all
        return Packet(time, b"\x02" * 12 + struct.pack(">H", 0x0806) + bytes(28), 42, None)
    whole = before + ip
    taken = whole[:snap]
    if len(taken) < len(before) + (40 if six else 20):
        return Packet(time, taken, len(whole), None)
    seen = len(taken) - len(before) - reach
    if six and seen < 0:  # cut in the chain of headers: the first that is not there is all that is known
        unseen = [kind for kind, there in ((0, ip[6] == 0), (44, fragment)) if there]
        whole_ones = (len(taken) - len(before) - 40) // 8
        row["protocol"] = unseen[whole_ones]
    if not fragment and protocol in (6, 17) and seen >= 4:
        row["srcPort"], row["destPort"] = ports
    if not fragment and protocol == 6 and seen >= 14:
        row["flags"] = flags
    return Packet(time, taken, len(whole), row)


def packets(seed: int, count: int, link: int = ETHERNET, snap: int = 96, tick: int = 1) -> list[Packet]:
    """Packets a few microseconds apart, whose times are whole multiples of `tick` nanoseconds."""
    random = np.random.default_rng(seed)
    times = 1_767_225_600 * 10**9 + np.cumsum(random.integers(1000, 900_000, count)) // tick * tick
    return [packet(random, int(time), link, snap) for time in times]


def pcap(made: list[Packet], link: int = ETHERNET, order: str = "<", nano: bool = True) -> bytes:
    """A pcap file."""
    parts = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)]
    parts += [record(one, order, nano) for one in made]
    return b"".join(parts)


def record(one: Packet, order: str = "<", nano: bool = True) -> bytes:
    second, rest = divmod(one.time, 10**9)
    return struct.pack(order + "IIII", second, rest if nano else rest // 1000, len(one.data), one.wire) + one.data


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str) -> bytes:
    body = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + option(order, 4, b"by hand") + option(order, 0, b"")
    return block(order, 0x0A0D0D0A, body)


def interface(order: str, link: int, resolution: int | None = 9, offset: int | None = None) -> bytes:
    body = struct.pack(order + "HHI", link, 0, 0)
    if resolution is not None:
        body += option(order, 9, bytes([resolution]))
    if offset is not None:
        body += option(order, 14, struct.pack(order + "q", offset))
    return block(order, 1, body + option(order, 0, b""))


def enhanced(order: str, face: int, one: Packet, ticks: int) -> bytes:
    body = struct.pack(order + "IIIII", face, ticks >> 32, ticks & 0xFFFFFFFF, len(one.data), one.wire)
    return block(order, 6, body + one.data + bytes(-len(one.data) % 4) + option(order, 2, b"\x01\0\0\0"))


def pcapng(made: list[Packet], link: int = ETHERNET, order: str = "<", resolution: int | None = 9) -> bytes:
    """A pcapng file of one section and interface; times are in ticks of 10**-resolution (None: 10**-6)."""
    per = 10 ** (9 - (6 if resolution is None else resolution))
    parts = [section(order), interface(order, link, resolution)]
    parts += [enhanced(order, 0, one, one.time // per) for one in made]
    return b"".join(parts)
