"""A user's own decay: a Python function of one number, compiled, and checked against Definition 1.

A custom decay goes by its name: that is what its text form, and so a stored state, carries. A process that reads
such a state must have defined the decay under that name; pickling takes the function along.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wane._jit import over_arrays
from wane.decay.base import Backward, Decay, Floats, Forward, Ints, from_log2, number_text, positive_duration, split
from wane.decay.base import unit_text as _unit_text
from wane.errors import BadDecay, DuplicateName
from wane.times import SECOND, duration, show_duration

_KNOWN: dict[tuple[str, str], Decay] = {}
_SAMPLES = 241
_LOG2_E = math.log2(math.e)


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
                f"{self} gives {values[at]!r} at age {number_text(float(ages[at]))} s; a decay must be finite and 0 or "
                "more (for one that overflows, give its logarithm and log=True)"
            )
        return from_log2(values * _LOG2_E) if self.log else split(values)


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function; the copy is compiled where it arrives."""
        return _again, ("backward", self.func, self.name, self.unit, self.log)

    def of_age(self, ages: Floats) -> Floats:
        """``f(age) / f(0)``, refused where it is not in [0, 1]."""
        values = self.over(np.append(ages * (SECOND / self.unit), 0.0))
        weights = np.exp(values[:-1] - values[-1]) if self.log else values[:-1] / values[-1]
        bad = ~((weights >= 0) & (weights <= 1))
        if bad.any():
            at = int(np.argmax(bad))
            raise BadDecay(
                f"{self} gives weight {weights[at]!r} at age {number_text(float(ages[at]))} s; Definition 1 wants "
                "weights from 0 to 1"
            )
        return np.asarray(weights, np.float64)


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
    label, size, over, values, ages = _prepare(g, name, unit, log, horizon, "g")
    for at, value in enumerate(values):
        if not (math.isfinite(value) or (log and value == -math.inf)) or (value < 0 and not log):
            _refuse("g", value, ages[at], "a forward decay must be finite and 0 or more", log)
        if at and value < values[at - 1]:
            _refuse(
                "g", value, ages[at], f"it was {values[at - 1]!r} before: a forward decay never falls as time grows", log
            )
    if values[-1] == (-math.inf if log else 0):
        raise BadDecay(f"g is 0 at every age up to {show_duration(duration(horizon))}; it must rise above 0")
    return _keep("forward", CustomForward(label, size, log, _digest(g), g, over))


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
    label, size, over, values, ages = _prepare(f, name, unit, log, horizon, "f")
    if not (math.isfinite(values[0]) and (log or values[0] > 0)):
        _refuse("f", values[0], 0.0, "a backward decay must be positive at age 0, whose weight is 1", log)
    for at in range(1, len(values)):
        value = values[at]
        if math.isnan(value) or (value < 0 and not log):
            _refuse("f", value, ages[at], "a backward decay must be 0 or more", log)
        if value > values[at - 1]:
            _refuse("f", value, ages[at], f"it was {values[at - 1]!r} before: a backward decay never rises with age", log)
    return _keep("backward", CustomBackward(label, size, log, _digest(f), f, over))


def known(direction: str, name: str, unit: int) -> Decay | None:
    """The custom decay of this name in this process, if it was defined."""
    found = _KNOWN.get((direction, name))
    return found if found is not None and getattr(found, "unit", None) == unit else None


def names() -> list[str]:
    """The names of all custom decays of this process."""
    return sorted({name for _, name in _KNOWN})


def _prepare(
    func: Callable[[float], float], name: str | None, unit: Any, log: bool, horizon: Any, letter: str
) -> tuple[str, int, Callable[[Floats], Floats], list[float], list[float]]:
    if not callable(func):
        raise BadDecay(f"{letter} must be a function of one number, got {func!r}")
    label = name if name is not None else getattr(func, "__name__", "")
    if not label or label == "<lambda>":
        label = f"lambda-{_digest(func)[:8]}"
    if "'" in label or "\\" in label or not label.isprintable():
        raise BadDecay(f"the name of a decay must be printable, without quotes or backslashes, got {label!r}")
    size = positive_duration(unit, "unit", 'unit="1m"')
    over = over_arrays(func, f"the decay function {label!r}")
    longest = positive_duration(horizon, "horizon", 'horizon="30d"') / size
    ages = [0.0, *np.geomspace(min(1e-6, longest / 2), longest, _SAMPLES - 1).tolist()]
    try:
        values = [float(v) for v in over(np.array(ages))]
    except (ArithmeticError, ValueError, TypeError) as why:
        raise BadDecay(f"{letter} fails on an age between 0 and {show_duration(duration(horizon))}: {why}") from why
    return label, size, over, values, ages


def _refuse(letter: str, value: float, age: float, rule: str, log: bool) -> None:
    hint = "; for one that overflows, give its logarithm and log=True" if math.isinf(value) and not log else ""
    raise BadDecay(f"{letter} gives {value!r} at age {number_text(float(f'{age:.6g}'))}, but {rule}{hint}")


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


def _text(direction: str, name: str, unit: int) -> str:
    return f"{direction} user('{name}'{', ' + _unit_text(unit) if unit != SECOND else ''})"


def _again(direction: str, func: Callable[[float], float], name: str, unit: int, log: bool) -> Decay:
    before = _KNOWN.get((direction, name))
    cls = CustomForward if direction == "forward" else CustomBackward
    if before is not None and isinstance(before, cls) and (before.code, before.unit, before.log) == (_digest(func), unit, log):
        return before
    over = over_arrays(func, f"the decay function {name!r}")
    return _keep(direction, cls(name, unit, log, _digest(func), func, over))


def _digest(func: Callable[..., Any]) -> str:
    """Tell two functions apart by what they do: their code, constants and captured values."""
    digest = hashlib.sha256()

    def feed(code: CodeType) -> None:
        digest.update(code.co_code)
        digest.update(repr(code.co_names).encode())
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                feed(constant)
            else:
                digest.update(repr(constant).encode())

    code = getattr(func, "__code__", None)
    if isinstance(code, CodeType):
        feed(code)
        for cell in getattr(func, "__closure__", None) or ():
            digest.update(repr(cell.cell_contents).encode())
    else:
        digest.update(repr(func).encode())
    return digest.hexdigest()[:16]
