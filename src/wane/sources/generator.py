"""Made-up network traffic, as like the packets of the papers' experiments as a seed can make it.

Rows come in order of arrival, and arrive as a Poisson process. A late row carries a time before that of its
neighbours; a repeated one is a copy of a row shortly before it. Rows are made in blocks of a fixed size, each
from a random stream of its own, so that neither the size of batches nor the number of rows changes what a row
says: a shorter trace is the beginning of a longer one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wane.errors import BadParameter
from wane.times import SECOND, duration, instant

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("ns", tz="UTC")),
        ("srcIP", pa.int64()),
        ("destIP", pa.int64()),
        ("srcPort", pa.int32()),
        ("destPort", pa.int32()),
        ("len", pa.int32()),
        ("protocol", pa.int8()),
    ]
)

BLOCK = 16384
"""Rows made at once from one random stream. Another size makes another trace."""

_REPEAT_WITHIN = 1000  # rows between a row and its copy, at most
_DAY = 86400
# Networks for private use: the first address and their size.
_SOURCES = (int(IPv4Address("172.16.0.0")), 1 << 20)
_DESTINATIONS = (int(IPv4Address("10.0.0.0")), 1 << 24)
_SCATTER = 0x9E3779B1  # odd: multiplying by it, modulo a power of two, only reorders

ATTACKER = int(IPv4Address("203.0.113.66"))
"""The source that floods, unless the attack names another; no other row comes from there."""

_TCP, _UDP = 6, 17
_SERVICES = (  # port, protocol, share of 100
    (443, _TCP, 52),
    (80, _TCP, 20),
    (53, _UDP, 10),
    (443, _UDP, 8),
    (22, _TCP, 6),
    (25, _TCP, 2),
    (123, _UDP, 2),
)
_LENGTHS = ((40, 24, 45), (64, 512, 15), (576, 1, 10), (1400, 100, 30))  # least length, spread, share of 100

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One source that floods one destination with small packets.

    Attributes:
        start: When it begins, as a duration after the start of the trace.
        share: Its share of all packets from then on.
        source: The address it comes from.
        target: The address it goes to, or None for the least popular destination.
    """

    start: Any = "30s"
    share: float = 0.2
    source: int = ATTACKER
    target: int | None = None

    def __post_init__(self) -> None:
        _fraction("the attack's share", self.share)
        if duration(self.start, "the attack's start") < 0:
            raise BadParameter(f"the attack must start at 0 or later, got start={self.start!r}; write start='30s'")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """A flash crowd: all sources alike turn to one destination, and lose interest again.

    Attributes:
        start: When it begins, as a duration after the start of the trace.
        half_life: How long until half of the interest is gone.
        share: Its share of all packets when it begins.
        target: The address it goes to, or None for the second least popular destination.
    """

    start: Any = "30s"
    half_life: Any = "10s"
    share: float = 0.5
    target: int | None = None

    def __post_init__(self) -> None:
        _fraction("the crowd's share", self.share)
        if duration(self.start, "the crowd's start") < 0:
            raise BadParameter(f"the crowd must start at 0 or later, got start={self.start!r}; write start='30s'")
        if duration(self.half_life, "the crowd's half_life") <= 0:
            raise BadParameter(
                f"the crowd's half_life must be longer than 0, got {self.half_life!r}; write half_life='10s'"
            )


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What a trace is like; equal parameters give equal rows.

    Attributes:
        rows: The number of packets, repeated ones included.
        rate: Packets per second of event time, on average.
        start: The time at which the trace starts; no packet is older.
        skew: The exponent of the Zipf laws of sources and destinations; 0 makes all equally frequent.
        sources: The number of source hosts, beside an attacker.
        destinations: The number of destination hosts.
        late: The fraction of packets that carry an older time than their place tells.
        delay: By how much at most, each amount being as likely as another.
        repeated: The fraction of packets that repeat one of the thousand before them, time and all.
        attack: A flood, or None.
        crowd: A flash crowd, or None.
        diurnal: How far the rate swings about its average over a day, from 0 to under 1; most comes at noon.
        seed: The seed of all randomness.
    """

    rows: int = 1_000_000
    rate: float = 100_000.0
    start: Any = "2026-01-05T00:00:00Z"
    skew: float = 1.0
    sources: int = 10_000
    destinations: int = 20_000
    late: float = 0.0
    delay: Any = "1s"
    repeated: float = 0.0
    attack: Attack | None = None
    crowd: Crowd | None = None
    diurnal: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise BadParameter(f"rows must be 0 or more, got {self.rows!r}")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise BadParameter(f"rate must be a positive number of rows per second, got {self.rate!r}")
        if not (math.isfinite(self.skew) and self.skew >= 0):
            raise BadParameter(f"skew must be 0 or more, got {self.skew!r}; about 1 is usual")
        for name, hosts, most in (
            ("sources", self.sources, _SOURCES[1]),
            ("destinations", self.destinations, _DESTINATIONS[1]),
        ):
            if not 1 <= hosts <= most:
                raise BadParameter(f"{name} must be from 1 to {most}, got {hosts!r}")
        _fraction("late", self.late)
        _fraction("repeated", self.repeated)
        if duration(self.delay, "delay") < 0:
            raise BadParameter(f"delay must be 0 or more, got {self.delay!r}; write delay='1s'")
        if not 0 <= self.diurnal < 1:
            raise BadParameter(f"diurnal must be from 0 to under 1, got {self.diurnal!r}")
        if self.seed < 0:
            raise BadParameter(f"seed must be 0 or more, got {self.seed!r}")

    @cached_property
    def target(self) -> int | None:
        """The destination under attack, or None."""
        if self.attack is None:
            return None
        least = int(_address(_DESTINATIONS, np.array([self.destinations - 1]))[0])
        return least if self.attack.target is None else self.attack.target

    @cached_property
    def crowded(self) -> int | None:
        """The destination of the flash crowd, or None."""
        if self.crowd is None:
            return None
        rank = np.array([max(self.destinations - 2, 0)])
        return int(_address(_DESTINATIONS, rank)[0]) if self.crowd.target is None else self.crowd.target

    def batches(self, batch_rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The trace in record batches of `batch_rows` rows; only the last may have fewer."""
        if batch_rows < 1:
            raise BadParameter(f"batch_rows must be 1 or more, got {batch_rows!r}")
        held: list[pa.RecordBatch] = []
        holding = 0
        for block in self._blocks():
            offset = 0
            while holding + block.num_rows - offset >= batch_rows:
                part = block.slice(offset, batch_rows - holding)
                yield pa.concat_batches([*held, part]) if held else part
                offset += part.num_rows
                held, holding = [], 0
            if offset < block.num_rows:
                held.append(block.slice(offset))
                holding += block.num_rows - offset
        if held:
            yield pa.concat_batches(held)

    def table(self) -> pa.Table:
        """The whole trace."""
        return pa.Table.from_batches(self._blocks(), SCHEMA)

    def _blocks(self) -> Iterator[pa.RecordBatch]:
        for number in range(-(-self.rows // BLOCK)):
            yield self._block(number).slice(0, self.rows - number * BLOCK)

    def _block(self, number: int) -> pa.RecordBatch:
        random = np.random.Generator(np.random.SFC64([self.seed, number]))
        age = self._ages(number, random)
        source = _address(_SOURCES, _draw(self._source_odds, random))
        target = _address(_DESTINATIONS, _draw(self._destination_odds, random))
        source_port = random.integers(32768, 61000, BLOCK, np.int32)
        port, protocol = (column[random.integers(0, 100, BLOCK, np.uint8)] for column in self._service)
        size = self._length[random.integers(0, len(self._length), BLOCK, np.uint16)]
        if self.attack is not None and self.target is not None:
            begun = age >= duration(self.attack.start)
            flood = begun & (random.random(BLOCK) < self.attack.share)
            source[flood], target[flood] = self.attack.source, self.target
            port[flood], protocol[flood], size[flood] = 80, _TCP, 40
        if self.crowd is not None:
            # Of a stream of its own, so that a trace with a crowd is otherwise that without.
            draw = np.random.Generator(np.random.SFC64([self.seed, number, 1])).random(BLOCK)
            since = (age - duration(self.crowd.start)) / duration(self.crowd.half_life)
            drawn = (since >= 0) & (draw < self.crowd.share * np.exp2(-np.maximum(since, 0)))
            port[drawn], protocol[drawn] = 443, _TCP
            if self.crowded is not None:
                target[drawn] = self.crowded
        columns = [age + instant(self.start), source, target, source_port, port, size, protocol]
        if self.repeated:
            rows = _originals(self.repeated, random)
            columns = [column[rows] for column in columns]
        arrays = [pa.array(column).cast(kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
        return pa.record_batch(arrays, schema=SCHEMA)

    def _ages(self, number: int, random: np.random.Generator) -> Ints:
        """Nanoseconds from the start of the trace to each packet's time, in order of arrival."""
        # Order statistics of the uniform distribution: a Poisson process known to give BLOCK packets here.
        gaps = np.cumsum(random.standard_exponential(BLOCK + 1))
        seconds = self._at_rate((number + gaps[:-1] / gaps[-1]) * (BLOCK / self.rate))
        if self.late:
            late = random.random(BLOCK) < self.late
            back = random.random(BLOCK) * np.minimum(seconds, duration(self.delay) / SECOND)
            seconds[late] -= back[late]
        return (seconds * SECOND).astype(np.int64)

    def _at_rate(self, even: Floats) -> Floats:
        """Bend times of a constant rate to a daily cycle, whose rate is ``1 - diurnal cos(time of day)``."""
        if not self.diurnal:
            return even
        turn = 2 * math.pi / _DAY
        midnight = instant(self.start) % (_DAY * SECOND) / SECOND
        swing = self.diurnal / turn

        def expected(seconds: Floats) -> Floats:
            """The packets expected by then, counted in seconds of the constant rate."""
            there = np.sin(turn * (midnight + seconds)) - math.sin(turn * midnight)
            return np.asarray(seconds - swing * there)

        # The inverse by bisection at a few places, and straight lines between them.
        knots = np.linspace(even[0], even[-1], 257)
        low, high = np.maximum(knots - 2 * swing, 0.0), knots + 2 * swing
        for _ in range(64):
            middle = (low + high) / 2
            early = expected(middle) < knots
            low, high = np.where(early, middle, low), np.where(early, high, middle)
        return np.interp(even, knots, high)

    @cached_property
    def _source_odds(self) -> Floats:
        return _zipf(self.sources, self.skew)

    @cached_property
    def _destination_odds(self) -> Floats:
        return _zipf(self.destinations, self.skew)

    @cached_property
    def _service(self) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """A hundred places to draw from: ports and protocols."""
        shares = [share for _, _, share in _SERVICES]
        ports = np.repeat(np.array([port for port, _, _ in _SERVICES], np.int32), shares)
        return ports, np.repeat(np.array([protocol for _, protocol, _ in _SERVICES], np.int8), shares)

    @cached_property
    def _length(self) -> NDArray[np.int32]:
        """Places to draw lengths from."""
        parts = [least + np.arange(share * 100) % spread for least, spread, share in _LENGTHS]
        return np.concatenate(parts, dtype=np.int32)


def generate(rows: int = 1_000_000, **parameters: Any) -> pa.Table:
    """Make a trace as one table; the parameters are those of :class:`Traffic`.

    >>> trace = generate(1000, rate=100, seed=7)
    >>> trace.num_rows, trace.column_names
    (1000, ['time', 'srcIP', 'destIP', 'srcPort', 'destPort', 'len', 'protocol'])
    """
    return Traffic(rows=rows, **parameters).table()


def batches(rows: int = 1_000_000, *, batch_rows: int = 65_536, **parameters: Any) -> Iterator[pa.RecordBatch]:
    """Make a trace batch by batch, in bounded memory; the parameters are those of :class:`Traffic`.

    >>> [batch.num_rows for batch in batches(1000, batch_rows=400)]
    [400, 400, 200]
    """
    return Traffic(rows=rows, **parameters).batches(batch_rows)


def ip_text(address: int) -> str:
    """Write an IPv4 address for a person.

    >>> ip_text(ATTACKER)
    '203.0.113.66'
    """
    return str(IPv4Address(int(address)))


def _zipf(hosts: int, skew: float) -> Floats:
    """The distribution function over hosts, the most popular first."""
    odds = np.cumsum(np.arange(1, hosts + 1, dtype=np.float64) ** -skew)
    return np.asarray(odds / odds[-1])


def _draw(odds: Floats, random: np.random.Generator) -> Ints:
    return np.searchsorted(odds, random.random(BLOCK), "right")


def _address(network: tuple[int, int], hosts: Ints) -> Ints:
    """Addresses that do not tell which hosts are popular."""
    first, size = network
    return first + (hosts + 1) * _SCATTER % size


def _originals(repeated: float, random: np.random.Generator) -> Ints:
    """For each row of a block the row that it shows: itself, or the original that it repeats."""
    rows = np.arange(BLOCK)
    back = random.integers(1, _REPEAT_WITHIN + 1, BLOCK)
    shown = np.where(random.random(BLOCK) < repeated, np.maximum(rows - back, 0), rows)
    while True:  # a copy of a copy shows the original
        further = shown[shown]
        if (further == shown).all():
            return shown
        shown = further


def _fraction(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise BadParameter(f"{name} must be a fraction from 0 to 1, got {value!r}")
