"""Readings find their way through a lossy radio network by many paths at once, and the sum at the end is right.

Sensors lie at random round a base station and talk by radio. A message is one summary; whoever is near enough may hear
it, and each one who could misses it with the odds of `loss`. Ring by ring, from the outside in, every sensor merges
what it has heard with its own readings and announces the result once (synopsis diffusion: Nath, Gibbons, Seshan and
Anderson, 2004; here after section 1 of Cormode, Tirthapura and Xu, 2007). Three ways of doing it cost the same number
of messages:

* a tree of exact sums, each sent to one parent: a lost message takes all that is behind it;
* the same exact sums, but taken in by all who hear them: what comes by several paths counts several times;
* summaries that repeats do not change (`wane.DuplicateInsensitive`), taken in by all who hear them.

Run it: ``python examples/sensor_network.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wane import DuplicateInsensitive

NOW = 3600.0
"""Seconds at which the base station asks."""

DECAY = "exp(half_life=10m)"
READINGS = 8
"""Readings of each sensor over the hour."""

EPSILON = 0.2


class Network(NamedTuple):
    """Sensors that can reach the base station, over some others or at once.

    Attributes:
        ring: How many messages away each is; the base station, number 0, is in ring 0.
        hears: For each, who is near enough to be heard.
    """

    ring: NDArray[np.int64]
    hears: list[NDArray[np.int64]]

    def inwards(self) -> Iterator[int]:
        """The sensors, those of the outermost ring first."""
        yield from (node for node in np.argsort(-self.ring, kind="stable").tolist() if self.ring[node] > 0)

    def nearer(self, node: int) -> NDArray[np.int64]:
        """Who can hear a sensor from the ring before its own."""
        near = self.hears[node]
        return near[self.ring[near] == self.ring[node] - 1]


class Readings(NamedTuple):
    """What all sensors have read: which sensor, when, how much, and how sure it is (the weight)."""

    sensors: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def ids(self) -> NDArray[np.int64]:
        """One for each reading: the sensor and the number of its reading."""
        return np.arange(len(self.sensors))

    def decayed(self) -> NDArray[np.float64]:
        """The weights at the time of the question, written down once more."""
        return np.asarray(self.weights * np.exp2((self.times - NOW) / 600))


class Answers(NamedTuple):
    """The decayed sum at the base station as a share of the truth.

    Attributes:
        tree: By a tree of exact sums.
        by_all_paths: By exact sums that take all paths.
        insensitive: By summaries that repeats do not change, by all paths.
        arrived: What no link on every path of it has lost: the most that any way could give.
    """

    tree: float
    by_all_paths: float
    insensitive: float
    arrived: float


def scatter(sensors: int, radius: float, seed: int) -> Network:
    """Lay sensors at random on a square, the base station in its middle, and count the messages to it."""
    rng = np.random.default_rng(seed)
    places = np.concatenate([[[0.5, 0.5]], rng.random((sensors, 2))])
    apart = np.hypot(*(places[:, None, axis] - places[None, :, axis] for axis in (0, 1)))
    near = (apart < radius) & (apart > 0)
    ring = np.full(len(places), -1)
    edge = np.zeros(len(places), bool)
    edge[0] = True
    for distance in range(len(places)):
        ring[edge] = distance
        edge = near[edge].any(axis=0) & (ring < 0)
    return Network(ring, [np.flatnonzero(row) for row in near])


def read(network: Network, seed: int) -> Readings:
    """Readings of the sensors that can be reached."""
    rng = np.random.default_rng([seed, 1])
    sensors = np.repeat(np.flatnonzero(network.ring > 0), READINGS)
    times = rng.uniform(0, NOW, len(sensors))
    return Readings(sensors, times, rng.normal(20, 5, len(sensors)), rng.integers(1, 11, len(sensors)).astype(float))


def summarise(given: Readings, sensor: int) -> DuplicateInsensitive:
    """The summary that a sensor makes of its own readings."""
    own = given.sensors == sensor
    one = DuplicateInsensitive(EPSILON, DECAY, max_weight=10, max_id=2**20)
    return one.update(given.values[own], given.times[own], given.weights[own], ids=given.ids[own])


def route(network: Network, heard: Callable[[int], list[int]], send: Callable[[int, int], None]) -> None:
    """Let every sensor announce once, ring by ring; what it sends is taken in by those who heard it."""
    for node in network.inwards():
        for listener in heard(node):
            send(node, listener)


def simulate(sensors: int = 200, radius: float = 0.2, loss: float = 0.2, seed: int = 0) -> Answers:
    """Send all readings to the base station each way, over the same links that fail at the same moments."""
    network = scatter(sensors, radius, seed)
    given = read(network, seed)
    rng = np.random.default_rng([seed, 2])
    heard = {node: [int(n) for n in network.nearer(node) if rng.random() >= loss] for node in network.inwards()}
    parents = {node: int(rng.choice(network.nearer(node))) for node in network.inwards()}
    truth = float(given.decayed().sum())

    def exactly(listeners: Callable[[int], list[int]]) -> float:
        sums = np.bincount(given.sensors, given.decayed(), len(network.ring))

        def send(node: int, listener: int) -> None:
            sums[listener] += sums[node]

        route(network, listeners, send)
        return float(sums[0]) / truth

    summaries = [summarise(given, node) for node in range(len(network.ring))]

    def send(node: int, listener: int) -> None:
        summaries[listener].merge(summaries[node])

    route(network, heard.__getitem__, send)
    through = {0}
    for node in reversed(list(network.inwards())):
        through |= {node} if through & set(heard[node]) else set()
    return Answers(
        exactly(lambda node: [parents[node]] if parents[node] in heard[node] else []),
        exactly(heard.__getitem__),
        summaries[0].sum(now=NOW) / truth,
        float(given.decayed()[np.isin(given.sensors, list(through))].sum()) / truth,
    )


def main() -> None:
    """Print what arrives, for some rates of loss: the mean over networks, and the worst."""
    print("share of the true decayed sum at the base station (mean, and the furthest from 1)\n")
    print("  loss   tree of exact sums   exact sums by all paths   duplicate-insensitive   what arrived at all")
    for loss in (0.0, 0.1, 0.2, 0.3):
        found = np.array([simulate(loss=loss, seed=seed) for seed in range(5)])
        worst = found[np.abs(found - 1).argmax(axis=0), range(4)]
        cells = [f"{mean:10.2f} ({far:.2f})" for mean, far in zip(found.mean(axis=0), worst, strict=True)]
        print(f"{loss:6.0%}{cells[0]:>21}{cells[1]:>26}{cells[2]:>24}{cells[3]:>22}")


if __name__ == "__main__":
    main()
