"""How far chance may go: the slack of tests of what holds with a probability, computed and not guessed."""

from __future__ import annotations

import math
from collections.abc import Sequence

ALARM = 1e-6
"""The odds at which a test of something that is right fails all the same."""


def most_failures(trials: int, probability: float, alarm: float = ALARM) -> int:
    """How many of some independent trials may fail, if each may with a probability: more are rarer than `alarm`.

    >>> most_failures(200, 0.05)
    27
    """
    odds = [
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(count + 1)
            - math.lgamma(trials - count + 1)
            + count * math.log(probability)
            + (trials - count) * math.log1p(-probability)
        )
        for count in range(trials + 1)
    ]
    tail, count = 0.0, trials
    while count > 0 and tail + odds[count] <= alarm:
        tail += odds[count]
        count -= 1
    return count


def chi_square(found: Sequence[float], expected: Sequence[float]) -> float:
    """The odds of counts as far from what is expected as these, or further (Pearson; expect 5 or more of each)."""
    if min(expected) < 5:
        raise ValueError(f"chi-square needs 5 expected in each cell, got {min(expected):g}; join cells or draw more")
    statistic = math.fsum((f - e) ** 2 / e for f, e in zip(found, expected, strict=True))
    return _upper_gamma((len(found) - 1) / 2, statistic / 2)


def _upper_gamma(a: float, x: float) -> float:
    """The regularised incomplete gamma function Q(a, x): its series, or its continued fraction."""
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-16:
            n += 1
            term *= x / n
            total += term
        return max(1 - total * scale, 0.0)
    b, c = x + 1 - a, 1e300
    d = 1 / b
    h = d
    for i in range(1, 10_000):
        b += 2
        d = 1 / (b - i * (i - a) * d)
        c = b - i * (i - a) / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return h * scale
