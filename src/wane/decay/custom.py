"""A user's own decay: a Python function of one number, compiled, and checked against Definition 1.

A custom decay goes by its name: that is what its text form, and so a stored state, carries. A process that reads
such a state must have defined the decay under that name; pickling takes the function along. Within a process one name
means one function: what it does, captures and looks up is fingerprinted, and a second one is refused the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from wane._jit import fingerprint, over_arrays
from wane.decay.base import (
    Backward,
    Decay,
    Floats,
    Forward,
    Ints,
    from_log,
    number_text,
    positive_duration,
    split,
    unit_text,
)
from wane.errors import BadDecay, DuplicateName
from wane.times import SECOND, duration, show_duration

_KNOWN: dict[tuple[str, str], Decay] = {}
_SAMPLES = 241
_ROUNDING = 1e-12
"""Which way a function goes is judged beyond this: its last digits may wobble, where it levels off for instance."""


@dataclass(frozen=True)
class CustomForward(Forward):
    """``g`` is a user's function of the time since the landmark, counted in `unit`."""

    name: str
    unit: int
    log: bool
    code: str
    func: Callable[[float], float] = field(compare=False, repr=False)
    over: Callable[[NDArray[np.float64]], NDArray[np.float64]] = field(compare=False, repr=False)

    needs_landmark = True

    def __str__(self) -> str:
        return _text("forward", self.name, self.unit)

    @property
    def behaviour(self) -> str:
        """What the function gives for some ages, so that a state is not read under another function of its name."""
        return _behaviour(self.over, self.log)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function; the copy is compiled where it arrives."""
        return _again, ("forward", self.func, self.name, self.unit, self.log)

    def wide(self, ages: Floats) -> tuple[Floats, Ints]:
        """The function itself, refused where it is not a number of 0 or more."""
        values = self.over(ages * (SECOND / self.unit))
        bad = np.isnan(values) | np.isposinf(values) | (False if self.log else values < 0)
        if bad.any():
            at = int(np.argmax(bad))
            raise BadDecay(
                f"{self} gives {float(values[at])!r} at age {number_text(float(ages[at]))} s; a decay must be "
                "finite and 0 or more (for one that overflows, give its logarithm and log=True)"
            )
        return from_log(values) if self.log else split(values)


@dataclass(frozen=True)
class CustomBackward(Backward):
    """``f`` is a user's function of age, counted in `unit`."""

    name: str
    unit: int
    log: bool
    code: str
    func: Callable[[float], float] = field(compare=False, repr=False)
    over: Callable[[NDArray[np.float64]], NDArray[np.float64]] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return _text("backward", self.name, self.unit)

    @property
    def behaviour(self) -> str:
        """What the function gives for some ages, so that a state is not read under another function of its name."""
        return _behaviour(self.over, self.log)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function; the copy is compiled where it arrives."""
        return _again, ("backward", self.func, self.name, self.unit, self.log)

    def of_age(self, ages: Floats) -> Floats:
        """``f(age) / f(0)``, refused where it is not in [0, 1]."""
        values, first = self._values(ages)
        return self._checked(np.exp(values - first) if self.log else values / first, ages)

    def wide_of_age(self, ages: Floats) -> tuple[Floats, Ints]:
        """By logarithms to the end, where the function gives them."""
        if not self.log:
            return super().wide_of_age(ages)
        values, first = self._values(ages)
        logs = values - first
        self._checked(np.exp(logs), ages)
        return from_log(np.minimum(logs, 0.0))

    def _values(self, ages: Floats) -> tuple[Floats, float]:
        values = self.over(np.append(ages * (SECOND / self.unit), 0.0))
        return values[:-1], float(values[-1])

    def _checked(self, weights: Floats, ages: Floats) -> Floats:
        bad = ~((weights >= 0) & (weights <= 1 + _ROUNDING))
        if bad.any():
            at = int(np.argmax(bad))
            raise BadDecay(
                f"{self} gives weight {float(weights[at])!r} at age {number_text(float(ages[at]))} s; Definition 1 "
                "wants weights from 0 to 1"
            )
        at_most: Floats = np.minimum(weights, 1.0)
        return at_most


_Custom = TypeVar("_Custom", CustomForward, CustomBackward)


def forward(
    g: Callable[[float], float],
    *,
    name: str | None = None,
    unit: Any = 1,
    log: bool = False,
    horizon: Any = "3650d",
) -> CustomForward:
    """Make a forward decay of a non-decreasing function of the time since the landmark.

    The function is compiled when it can be (a warning says when it cannot) and checked on a sample of ages from 0 to
    `horizon` for Definition 1; one that breaks it is refused with the age at which it does.

    Args:
        g: A function of one float, 0 or more, to a float, 0 or more.
        name: What states and query texts call it; the default is the function's own name.
        unit: What `g` counts age in, such as ``"1m"``.
        log: Whether `g` gives the logarithm of the weight, for a decay too steep for a double.
        horizon: The largest age that is checked.

    >>> str(forward(lambda n: n * math.sqrt(n + 1), name="steep"))
    "forward user('steep')"
    """
    made = _Made(g, name, unit, log, "g")
    zero = -math.inf if log else 0.0
    before = zero
    for age, value in made.sample(horizon):
        if math.isnan(value) or value < zero or value == math.inf:
            hint = "; for one that overflows, give its logarithm and log=True" if value == math.inf and not log else ""
            made.refuse(value, age, f"a forward decay must be finite and 0 or more{hint}")
        if _above(before, value, log):
            made.refuse(value, age, f"it was {before!r} before: a forward decay never falls as time grows")
        before = max(value, before)
    if before == zero:
        raise BadDecay(f"g is 0 at every age up to {show_duration(duration(horizon))}; it must rise above 0")
    return _keep("forward", CustomForward(made.name, made.unit, log, made.code, g, made.over))


def backward(
    f: Callable[[float], float],
    *,
    name: str | None = None,
    unit: Any = 1,
    log: bool = False,
    horizon: Any = "3650d",
) -> CustomBackward:
    """Make a backward decay of a non-increasing function of age; the arguments are those of :func:`forward`.

    >>> backward(lambda a: 1 / (1 + a * a), name="lorentz").weight([8.0, 10.0], now=10.0)
    array([0.2, 1. ])
    """
    made = _Made(f, name, unit, log, "f")
    zero = -math.inf if log else 0.0
    before = math.inf
    for age, value in made.sample(horizon):
        if before == math.inf and not zero < value < math.inf:
            made.refuse(value, age, "a backward decay must be positive and finite at age 0, whose weight is 1")
        if math.isnan(value) or value < zero:
            made.refuse(value, age, "a backward decay must be 0 or more")
        if _above(value, before, log):
            made.refuse(value, age, f"it was {before!r} before: a backward decay never rises with age")
        before = min(value, before)
    return _keep("backward", CustomBackward(made.name, made.unit, log, made.code, f, made.over))


def known(direction: str, name: str, unit: int) -> Decay | None:
    """The custom decay of this name in this process, if it was defined."""
    found = _KNOWN.get((direction, name))
    return found if found is not None and getattr(found, "unit", None) == unit else None


def text_of(direction: str, name: str) -> str:
    """The text form of the custom decay of this name, whatever its unit."""
    return str(_KNOWN[direction, name])


def names(direction: str) -> list[str]:
    """The names of the custom decays of one direction in this process."""
    return sorted(name for side, name in _KNOWN if side == direction)


class _Made:
    """A user's function with its name and unit, compiled."""

    def __init__(self, func: Callable[[float], float], name: str | None, unit: Any, log: bool, letter: str) -> None:
        if not callable(func):
            raise BadDecay(f"{letter} must be a function of one number, got {func!r}")
        self.letter = letter
        self.code = fingerprint(func, log)
        label = name if name is not None else getattr(func, "__name__", "")
        if not label or label == "<lambda>":
            label = f"lambda-{self.code[:8]}"
        if "'" in label or "\\" in label or not label.isprintable():
            raise BadDecay(f"the name of a decay must be printable, without quotes or backslashes, got {label!r}")
        self.name = label
        self.unit = positive_duration(unit, "unit", "unit='1m'")
        self.over = over_arrays(func, f"the decay function {label!r}")

    def sample(self, horizon: Any) -> Iterator[tuple[float, float]]:
        """Ages from 0 to the horizon, and what the function gives for them."""
        longest = positive_duration(horizon, "horizon", "horizon='30d'") / self.unit
        apart = np.geomspace(min(1e-6, longest / 2), longest, _SAMPLES)
        ages = np.unique([0.0, *apart.tolist(), *np.linspace(0, longest, _SAMPLES).tolist()])
        try:
            values = self.over(ages).tolist()
        except Exception as why:  # it is the user's code
            span = f"an age between 0 and {show_duration(duration(horizon))}"
            raise BadDecay(f"{self.letter} fails on {span}: {why!r}; it must take any number from 0 on") from why
        yield from zip(ages.tolist(), values, strict=True)

    def refuse(self, value: float, age: float, rule: str) -> NoReturn:
        """Name the value, the age at which it comes, and the rule it breaks."""
        counted = "" if self.unit == SECOND else f" (in units of {show_duration(self.unit)})"
        raise BadDecay(f"{self.letter} gives {value!r} at age {number_text(float(f'{age:.6g}'))}{counted}, but {rule}")


def _above(high: float, low: float, log: bool) -> bool:
    """Whether one value of a function is above another by more than rounding."""
    if high == low or high == -math.inf:
        return False
    return high - low > _ROUNDING * max(1.0, abs(high)) if log else high > low * (1 + _ROUNDING)


def _keep(direction: str, decay: _Custom) -> _Custom:
    """Remember a decay by its name, so that its text form can be read back."""
    before = _KNOWN.get((direction, decay.name))
    if before is not None and before != decay:
        raise DuplicateName(
            f"another {direction} decay is called {decay.name!r}, and stored states could not tell the two apart; "
            "give this one a name of its own with name="
        )
    _KNOWN[direction, decay.name] = decay
    return decay


def _behaviour(over: Callable[[Floats], Floats], log: bool) -> str:
    """Values at ages from a thousandth to a thousand units: the same in every version of Python, as code is not."""
    try:
        values = over(np.geomspace(1e-3, 1e3, 13)).tolist()
    except ArithmeticError:  # plain Python overflows where compiled code gives inf
        values = []
    return f"{'log ' if log else ''}{' '.join(f'{value:.7g}' for value in values)}"


def _text(direction: str, name: str, unit: int) -> str:
    return f"{direction} user('{name}'{', ' + unit_text(unit) if unit != SECOND else ''})"


def _again(direction: str, func: Callable[[float], float], name: str, unit: int, log: bool) -> Decay:
    """What a pickle gives: the decay of this name if it is known here, else a new one."""
    code = fingerprint(func, log)
    before = _KNOWN.get((direction, name))
    if isinstance(before, (CustomForward, CustomBackward)) and (before.code, before.unit) == (code, unit):
        return before
    over = over_arrays(func, f"the decay function {name!r}")
    if direction == "forward":
        return _keep(direction, CustomForward(name, unit, log, code, func, over))
    return _keep(direction, CustomBackward(name, unit, log, code, func, over))
