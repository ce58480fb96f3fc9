"""Kernels that find the packets of a capture, and the fields of a packet.

Every read is checked against the end of what may be read; nothing that a file says is believed. Where a record's
header cannot be right, or is not followed by one that can, the next place is looked for at which two headers in a
row can be right, or (in pcapng) a block whose length stands at both of its ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wane._jit import inline, kernel

MOST = 262_144
"""Bytes of a packet at most: what libpcap takes for the longest snapshot."""

MOST_BLOCK = 1 << 21
"""Bytes of a block of pcapng at most; a longer one is taken for broken."""

AT, SECOND, SCANNING, BROKEN, BIG, TICKS, LINK, INTERFACES, LAST = range(9)
"""The state of a capture that is read: the place, the newest second, whether a header is looked for, how many records
were broken, whether numbers are big-endian, ticks per second, the kind of link, how many interfaces there are, and
whether no more bytes will come."""
STATE = 9

FRAME = 5
"""Numbers of a packet that was found: where it starts, its captured length, its time, the kind of link, its length."""

FACE = 4
"""Numbers of an interface: kind of link, ticks per second, by how much to divide ticks first, seconds to add."""
FACES = 1024

TIME, SRC, DEST, SRC_PORT, DEST_PORT, LENGTH, PROTOCOL, FLAGS, TTL, PLACE = range(10)
"""Fields of a row; ports and flags are -1 where there are none, and PLACE is -1 for IPv4."""
ROW = 10

NOT_IP, CUT, MALFORMED, OTHER = range(4)
"""What is counted of packets that give no row; OTHER are those that were not asked for."""

NO_TIME = -(2**63)

ETHERNET, RAW, RAW_OLD, RAW_BSD, COOKED, IPV4, IPV6, COOKED_2 = 1, 101, 12, 14, 113, 228, 229, 276
LINKS = (ETHERNET, RAW, RAW_OLD, RAW_BSD, COOKED, IPV4, IPV6, COOKED_2)

TCP, UDP, SCTP, UDPLITE = 6, 17, 132, 136

_DAY = 86_400
_LONGEST = 1 << 20
_NANOS = 1_000_000_000
_AHEAD = 2 * MOST


@inline
def _be16(buf: Any, at: Any) -> Any:
    return (np.int64(buf[at]) << 8) | np.int64(buf[at + 1])


@inline
def _be32(buf: Any, at: Any) -> Any:
    return (
        (np.int64(buf[at]) << 24) | (np.int64(buf[at + 1]) << 16) | (np.int64(buf[at + 2]) << 8) | np.int64(buf[at + 3])
    )


@inline
def _u32(buf: Any, at: int, big: int) -> Any:
    if big:
        return _be32(buf, at)
    return (
        (np.int64(buf[at + 3]) << 24) | (np.int64(buf[at + 2]) << 16) | (np.int64(buf[at + 1]) << 8) | np.int64(buf[at])
    )


@inline
def _u16(buf: Any, at: int, big: int) -> Any:
    if big:
        return _be16(buf, at)
    return (np.int64(buf[at + 1]) << 8) | np.int64(buf[at])


@inline
def _header(buf: Any, at: int, big: int, ticks: int, near: int) -> bool:
    """Whether 16 bytes can be the header of a record, in the days around a second (-1: whenever)."""
    taken, length = _u32(buf, at + 8, big), _u32(buf, at + 12, big)
    if taken == 0 or taken > MOST or taken > length or length > _LONGEST:
        return False
    if _u32(buf, at + 4, big) >= ticks:
        return False
    return near < 0 or abs(_u32(buf, at, big) - near) <= _DAY


@inline
def _scan(buf: Any, begin: int, end: int, last: int, state: Any) -> Any:
    """The next place where two headers in a row can be right; ``~place`` is one that needs more bytes to tell."""
    big, ticks, near = state[BIG], state[TICKS], state[SECOND]
    for at in range(begin, end - 15):
        if not _header(buf, at, big, ticks, near):
            continue
        after = at + 16 + _u32(buf, at + 8, big)
        if after + 16 <= end:
            if _header(buf, after, big, ticks, _u32(buf, at, big)):
                return at
        elif not last:
            return ~at
        elif after == end:
            return at
    return ~max(begin, end - 15)


@kernel("int64(r_u1, int64, w_i8, w_i8)")
def frame_pcap(buf: Any, end: int, state: Any, frames: Any) -> int:
    """Find the packets of a pcap file, from its first record on.

    Args:
        buf: Some of the file.
        end: How much of that is there.
        state: Where it goes on; what is before its place is not needed any more when the kernel returns.
        frames: Takes the packets.

    Returns: How many were found. Fewer than `frames` has room for means that more bytes are needed.
    """
    big, ticks, last = state[BIG], state[TICKS], state[LAST]
    nanos = _NANOS // ticks
    most = len(frames) // FRAME
    at = state[AT]
    found = 0
    while found < most:
        if state[SCANNING]:
            place = _scan(buf, at, end, last, state)
            if place < 0:
                at = end if last else ~place
                break
            at, state[SCANNING] = place, 0
        if at + 16 > end:
            if last and at < end:
                state[BROKEN] += 1
                at = end
            break
        if not _header(buf, at, big, ticks, -1):
            state[BROKEN] += 1
            state[SCANNING] = 1
            at += 1
            continue
        second, fraction, wire = _u32(buf, at, big), _u32(buf, at + 4, big), _u32(buf, at + 12, big)
        start = at + 16
        after = start + _u32(buf, at + 8, big)
        if not last and after + 16 > end:
            break
        onward = after
        if after != end and not (after + 16 <= end and _header(buf, after, big, ticks, -1)):
            # This record's length is wrong, or the next one's header: where does the next good one start?
            limit = min(end, start + _AHEAD)
            if not last and limit == end:
                break
            state[BROKEN] += 1
            place = _scan(buf, start, limit, 1 if last and limit == end else 0, state)
            if place >= 0:
                onward = place
                after = min(after, place)
            elif after > end:
                onward = after = end
            else:
                onward = max(after, limit - 15)
                state[SCANNING] = 1
        row = found * FRAME
        frames[row], frames[row + 1] = start, after - start
        frames[row + 2] = second * _NANOS + fraction * nanos
        frames[row + 3], frames[row + 4] = state[LINK], wire
        state[SECOND] = second
        found += 1
        at = onward
    state[AT] = at
    return found


@inline
def _block(buf: Any, at: int, end: int, big: int) -> Any:
    """The length of the block at a place, if it says the same at both ends; 0 if not, -1 if bytes are missing."""
    if at + 12 > end:
        return -1
    total = _u32(buf, at + 4, big)
    if total < 12 or total % 4 or total > MOST_BLOCK:
        return 0
    if at + total > end:
        return -1
    return total if _u32(buf, at + total - 4, big) == total else 0


@inline
def _section(buf: Any, at: Any, end: int, big: int) -> Any:
    """The byte order of the section whose header is at a place; what it was where there is none."""
    if at + 12 <= end and _be32(buf, at) == 0x0A0D0D0A:
        if _be32(buf, at + 8) == 0x1A2B3C4D:
            return 1
        if _u32(buf, at + 8, 0) == 0x1A2B3C4D:
            return 0
    return big


@inline
def _interface(buf: Any, at: Any, stop: int, big: int, faces: Any, number: int) -> None:
    """Read the description of an interface."""
    row = number * FACE
    faces[row], faces[row + 1], faces[row + 2], faces[row + 3] = _u16(buf, at + 8, big), 1_000_000, 1, 0
    place = at + 16
    while place + 4 <= stop:
        code, size = _u16(buf, place, big), _u16(buf, place + 2, big)
        place += 4
        if code == 0 or place + size > stop:
            return
        if code == 9 and size >= 1:
            power: Any = np.int64(buf[place]) & 127
            if buf[place] & 128:
                if power <= 60:
                    faces[row + 2] = 1 << max(0, power - 30)
                    faces[row + 1] = 1 << power
                else:
                    faces[row + 1] = 0
            elif power <= 18:
                faces[row + 1] = 10**power
                faces[row + 2] = 10 ** max(0, power - 9)
            else:
                faces[row + 1] = 0
        elif code == 14 and size >= 8:
            high, low = (place, place + 4) if big else (place + 4, place)
            seconds = _u32(buf, high, big)
            if seconds < 1 << 30:
                faces[row + 3] = (seconds << 32) | _u32(buf, low, big)
        place += (size + 3) // 4 * 4


@inline
def _stamp(high: int, low: int, faces: Any, row: int) -> Any:
    """The time of a packet in nanoseconds, or NO_TIME if it is none that there can be."""
    per, divisor = faces[row + 1], faces[row + 2]
    if per == 0 or high >= 1 << 31:
        return NO_TIME
    ticks = (high << 32) | low
    second = ticks // per
    if abs(second + faces[row + 3]) > 9_000_000_000:
        return NO_TIME
    return (second + faces[row + 3]) * _NANOS + ticks % per // divisor * _NANOS // (per // divisor)


@kernel("int64(r_u1, int64, w_i8, w_i8, w_i8)")
def frame_pcapng(buf: Any, end: int, state: Any, faces: Any, frames: Any) -> int:
    """Find the packets of a pcapng file; as :func:`frame_pcap`, with the interfaces of the section."""
    last, most = state[LAST], len(frames) // FRAME
    at = state[AT]
    found = 0
    while found < most:
        big = _section(buf, at, end, state[BIG])
        total = _block(buf, at, end, big)
        if total < 0 and not last:
            break
        if total <= 0:
            if at >= end:
                break
            # A block whose first length leads to a good one, or to the end, is believed.
            claimed = _u32(buf, at + 4, big) if at + 12 <= end else 0
            whole = claimed >= 12 and claimed % 4 == 0 and at + claimed <= end
            if not state[SCANNING]:
                state[BROKEN] += 1
            if whole and not state[SCANNING] and (at + claimed == end or _block(buf, at + claimed, end, big) > 0):
                total = claimed
            else:
                state[SCANNING] = 1
                at += 4
                if at + 12 > end and last:
                    at = end
                continue
        kind = _u32(buf, at, big)
        if state[SCANNING] and not (kind == 0x0A0D0D0A or 1 <= kind <= 6):
            at += 4
            continue
        state[SCANNING] = 0
        stop = at + total - 4
        start: Any = -1
        face: Any = np.int64(0)
        taken = wire = high = low = face
        if kind == 0x0A0D0D0A:
            state[BIG], state[INTERFACES] = big, 0
        elif kind == 1 and total >= 20:
            if state[INTERFACES] < FACES:
                _interface(buf, at, stop, big, faces, state[INTERFACES])
                state[INTERFACES] += 1
            else:
                state[BROKEN] += 1
        elif (kind == 6 or kind == 2) and total >= 32:
            face = _u32(buf, at + 8, big) if kind == 6 else _u16(buf, at + 8, big)
            high, low = _u32(buf, at + 12, big), _u32(buf, at + 16, big)
            taken, wire = _u32(buf, at + 20, big), _u32(buf, at + 24, big)
            start = at + 28
        elif kind == 3 and total >= 16:
            wire = _u32(buf, at + 8, big)
            taken = min(wire, stop - at - 12)
            start = at + 12
        elif kind in (2, 3, 6):
            state[BROKEN] += 1
        if start >= 0:
            if face >= state[INTERFACES]:
                state[BROKEN] += 1
            else:
                if start + taken > stop:
                    state[BROKEN] += 1
                    taken = stop - start
                row = found * FRAME
                frames[row], frames[row + 1] = start, taken
                frames[row + 2] = NO_TIME if kind == 3 else _stamp(high, low, faces, face * FACE)
                frames[row + 3], frames[row + 4] = faces[face * FACE], wire
                found += 1
        at += total
    state[AT] = at
    return found


@inline
def _network(buf: Any, at: Any, stop: int, link: int) -> Any:
    """Where a packet's IP header starts; -1 where it has none, -2 where it was cut before."""
    if link == ETHERNET:
        at += 12
    elif link == COOKED:
        at += 14
    elif link == COOKED_2:
        if at + 20 > stop:
            return -2
        kind = _be16(buf, at)
        return at + 20 if kind == 0x0800 or kind == 0x86DD else -1
    else:
        return at
    if at + 2 > stop:
        return -2
    kind = _be16(buf, at)
    while kind == 0x8100 or kind == 0x88A8 or kind == 0x9100:
        at += 4
        if at + 2 > stop:
            return -2
        kind = _be16(buf, at)
    return at + 2 if kind == 0x0800 or kind == 0x86DD else -1


@inline
def _transport(buf: Any, at: int, stop: int) -> Any:
    """The protocol of an IPv6 packet, where its header starts, and whether that is there."""
    protocol = np.int64(buf[at + 6])
    place: Any = at + 40
    while protocol in (0, 43, 44, 51, 60, 135):
        if place + 8 > stop:
            return protocol, place, False
        if protocol == 44:
            first = (_be16(buf, place + 2) >> 3) == 0
            protocol = np.int64(buf[place])
            place += 8
            if not first:
                return protocol, place, False
            continue
        size = (np.int64(buf[place + 1]) + 2) * 4 if protocol == 51 else (np.int64(buf[place + 1]) + 1) * 8
        protocol = np.int64(buf[place])
        place += size
    return protocol, place, True


@kernel("int64(r_u1, int64, r_i8, int64, int64, w_i8, w_i8)")
def decode(buf: Any, end: int, frames: Any, found: int, wanted: int, rows: Any, counts: Any) -> int:
    """Read the fields of packets.

    Args:
        buf: Some of the file.
        end: How much of that is there.
        frames: The packets.
        found: How many.
        wanted: The one protocol that is asked for, or -1 for all.
        rows: Takes the fields, a row for each packet that has them.
        counts: Of packets without a row, by reason.

    Returns: How many rows there are.
    """
    made = 0
    for i in range(found):
        begin = frames[i * FRAME]
        stop = min(begin + frames[i * FRAME + 1], end)
        at = _network(buf, begin, stop, frames[i * FRAME + 3])
        if at == -1:
            counts[NOT_IP] += 1
            continue
        if at < 0 or at >= stop:
            counts[CUT] += 1
            continue
        version = buf[at] >> 4
        source = dest = np.int64(-1)
        place = np.int64(-1)
        there = True
        if version == 4:
            if at + 20 > stop:
                counts[CUT] += 1
                continue
            header = (np.int64(buf[at]) & 15) * 4
            length = _be16(buf, at + 2)
            if length == 0:  # left to the network card to fill in
                length = frames[i * FRAME + 4] - (at - begin)
            if header < 20 or length < header or length > _LONGEST:
                counts[MALFORMED] += 1
                continue
            ttl, protocol = np.int64(buf[at + 8]), np.int64(buf[at + 9])
            source, dest = _be32(buf, at + 12), _be32(buf, at + 16)
            upper = at + header
            there = (_be16(buf, at + 6) & 0x1FFF) == 0
        elif version == 6:
            if at + 40 > stop:
                counts[CUT] += 1
                continue
            length = _be16(buf, at + 4) + 40
            if length == 40:
                length = frames[i * FRAME + 4] - (at - begin)
            if length < 40 or length > _LONGEST:
                counts[MALFORMED] += 1
                continue
            ttl = np.int64(buf[at + 7])
            place = at
            protocol, upper, there = _transport(buf, at, stop)
        else:
            counts[MALFORMED] += 1
            continue
        if wanted >= 0 and protocol != wanted:
            counts[OTHER] += 1
            continue
        stop = min(stop, at + length)
        row = made * ROW
        rows[row + TIME], rows[row + SRC], rows[row + DEST] = frames[i * FRAME + 2], source, dest
        rows[row + SRC_PORT] = rows[row + DEST_PORT] = rows[row + FLAGS] = -1
        ported = protocol in (TCP, UDP, SCTP, UDPLITE)
        if there and ported and upper + 4 <= stop:
            rows[row + SRC_PORT], rows[row + DEST_PORT] = _be16(buf, upper), _be16(buf, upper + 2)
        if there and protocol == TCP and upper + 14 <= stop:
            rows[row + FLAGS] = np.int64(buf[upper + 13])
        rows[row + LENGTH], rows[row + PROTOCOL] = length, protocol
        rows[row + TTL], rows[row + PLACE] = ttl, place
        made += 1
    return made
