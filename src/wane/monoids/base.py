"""What windows aggregate with: lift an item, combine aggregates in their order, lower the result to an answer.

A monoid is an associative operator with an identity (Definition 1); `lift` and `lower` make more of it than that: a
mean is a sum and a count, lowered to their quotient (Section 2.2). What else it has, such as an inverse, it says as
data, and a window that needs more than there is refuses it when it is made.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from wane import registry
from wane._jit import DISABLED, PLAIN, Layout, layouts, why_not
from wane.errors import BadParameter, Unsupported

SAMPLES = (1.0, 2.5, 4.0, 2.5)
"""What a user's functions are tried on, unless samples are given."""

ITEMS = {"numbers": "float64", "pairs": "Tuple((float64, int64))", "timed": "Tuple((float64, float64))"}
"""The types of what native functions lift."""


class Monoid:
    """An associative operator with an identity, and the way in and out of it.

    Attributes:
        lift: From an item to an aggregate.
        combine: From two aggregates, the older one first, to that of both; associative.
        lower: From an aggregate to an answer.
        identity: The aggregate of nothing.
        inverse: Where there is one, what takes an aggregate out again: ``combine(a, b)`` with ``inverse(a)`` is `b`.
    """

    SPEC: ClassVar[registry.MonoidSpec]

    lift: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any]
    identity: Any
    inverse: Callable[[Any], Any] | None = None
    compiled_lift: Callable[[Any], Any] | None = None
    """Where the way in differs for a column: what kernels lift with."""
    unchecked = False
    """Whether its identity still has to be tried on the first item."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.SPEC.name

    @property
    def has(self) -> frozenset[str]:
        """Its capabilities."""
        return self.SPEC.has

    @property
    def items(self) -> str:
        """What it takes: ``"numbers"``, ``"pairs"``, ``"timed"`` or ``"any"``."""
        return self.SPEC.items

    def layouts(self) -> tuple[Layout, Layout]:
        """How columns of its aggregates and answers lie in memory; `PLAIN` where its functions are not compiled."""
        if DISABLED or not self.SPEC.native or self.items == "any":
            return PLAIN, PLAIN
        return layouts(self.compiled_lift or self.lift, self.combine, self.lower, self.identity, ITEMS[self.items])

    @property
    def lasting(self) -> bool:
        """Whether its compiled kernels may be kept for other processes: not those of a user's functions."""
        return True

    def __repr__(self) -> str:
        return f"<monoid {self.label}>"


class Custom(Monoid):
    """A user's own functions as a monoid; see :func:`monoid`."""

    SPEC = registry.MonoidSpec(
        name="custom",
        make=None,
        title="a user's own functions",
        guarantee="what the functions give; identity and associativity are tried on samples",
        space="as the functions' aggregates",
        time="as the functions",
        paper="Constant-Time Sliding Window Aggregation (IBM Research Report), Section 2.2",
        has=frozenset(),
    )

    def __init__(
        self,
        lift: Callable[[Any], Any],
        combine: Callable[[Any, Any], Any],
        lower: Callable[[Any], Any],
        identity: Any,
        inverse: Callable[[Any], Any] | None,
        has: frozenset[str],
        name: str,
    ) -> None:
        self.lift, self.combine, self.lower = lift, combine, lower
        self.identity, self.inverse = identity, inverse
        self._has, self._name = has, name
        self.numeric = True
        self._found: tuple[Layout, Layout] | None = None

    @property
    def label(self) -> str:
        """Its name."""
        return self._name

    @property
    def has(self) -> frozenset[str]:
        """Its capabilities, as the user said."""
        return self._has

    @property
    def items(self) -> str:
        """Numbers, or anything where it was not made for numbers."""
        return "numbers" if self.numeric else "any"

    @property
    def lasting(self) -> bool:
        """No: what a user's functions depend on is not all in their code."""
        return False

    def layouts(self) -> tuple[Layout, Layout]:
        """Found by compiling; where that fails, a warning says why, once, and plain Python does it."""
        if self._found is None:
            try:
                self._found = super().layouts()
            except Exception as why:  # numba fails in many ways on code that is not for it
                warnings.warn(
                    f"the monoid {self.label} does not compile, so it runs as plain Python, some hundred times slower "
                    f"({why_not(why)})",
                    RuntimeWarning,
                    stacklevel=5,
                )
                self._found = PLAIN, PLAIN
        return self._found


def monoid(
    *,
    lift: Callable[[Any], Any],
    combine: Callable[[Any, Any], Any],
    lower: Callable[[Any], Any],
    identity: Any,
    inverse: Callable[[Any], Any] | None = None,
    commutative: bool = False,
    idempotent: bool = False,
    samples: Iterable[Any] | None = None,
    name: str = "custom",
) -> Monoid:
    """Make a monoid of one's own functions: compiled for whole columns if they compile, else slow with a warning.

    Args:
        lift: From an item to an aggregate.
        combine: From two aggregates, the older one first, to that of both; it must be associative.
        lower: From an aggregate to an answer.
        identity: The aggregate of nothing: combined with any other it gives the other.
        inverse: What takes an aggregate out again, for windows that subtract.
        commutative: Whether the order of the arguments of `combine` does not matter.
        idempotent: Whether an aggregate combined with itself is itself.
        samples: Items to try all this on; without them some numbers, or the first item that a window meets.
        name: What messages call it.

    >>> gmean = monoid(
    ...     lift=lambda v: (math.log(v), 1),
    ...     combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ...     lower=lambda a: math.exp(a[0] / a[1]),
    ...     identity=(0.0, 0),
    ... )
    >>> round(gmean.lower(gmean.combine(gmean.lift(2.0), gmean.lift(8.0))), 9)
    4.0
    >>> monoid(lift=float, combine=max, lower=float, identity=2.0)
    Traceback (most recent call last):
    wane.errors.BadParameter: identity must change nothing, and custom combines 2.0 with 1.0 to 2.0; give the \
aggregate of no items
    """
    for what, func in (("lift", lift), ("combine", combine), ("lower", lower), ("inverse", inverse)):
        if not callable(func) and not (what == "inverse" and func is None):
            raise BadParameter(f"{what} must be a function, got {func!r}")
    flags = {"commutative": commutative, "idempotent": idempotent, "invertible": inverse is not None}
    has = frozenset(flag for flag, there in flags.items() if there)
    made = Custom(_of_one(lift), _of_two(combine), _of_one(lower), identity, inverse, has, name)
    tried = SAMPLES if samples is None else tuple(samples)
    made.unchecked = not check(made, tried, given=samples is not None)
    made.numeric = not made.unchecked and all(isinstance(sample, (int, float)) for sample in tried)
    return made


def _of_one(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function as one of Python's own kind, which the compiler asks for: built-ins and classes are not."""
    return func if isinstance(func, FunctionType) else lambda item: func(item)


def _of_two(func: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return func if isinstance(func, FunctionType) else lambda a, b: func(a, b)


def of_aggregates(monoid: Monoid) -> Monoid:
    """The same operator over aggregates that are lifted already, for windows made of windows."""
    return Custom(_itself, monoid.combine, _itself, monoid.identity, monoid.inverse, monoid.has, monoid.label)


def _itself(aggregate: Any) -> Any:
    return aggregate


def check(monoid: Monoid, samples: Iterable[Any], given: bool = True) -> bool:
    """Try the laws that a monoid claims on some items; False where none of them could be lifted.

    Args:
        monoid: The monoid.
        samples: Items.
        given: Whether these are items it must take.
    """
    lifted = []
    for sample in samples:
        try:
            lifted.append(monoid.lift(sample))
        except Exception:  # a user's function may refuse numbers in any way
            if given:
                raise
    combine, nothing, label = monoid.combine, monoid.identity, monoid.label
    for one in lifted:
        for pair in ((nothing, one), (one, nothing)):
            if not alike(got := combine(*pair), one):
                raise BadParameter(
                    f"identity must change nothing, and {label} combines {pair[0]!r} with {pair[1]!r} to {got!r}; give "
                    "the aggregate of no items"
                )
    for a, b, c in zip(lifted, lifted[1:], lifted[2:], strict=False):
        ab, bc = combine(a, b), combine(b, c)
        if not alike(left := combine(ab, c), right := combine(a, bc)):
            raise BadParameter(
                f"combine must be associative, and {label} makes of {a!r}, {b!r} and {c!r} {left!r} from the left and "
                f"{right!r} from the right; carry what it takes, such as sum and count, and divide in lower"
            )
        if "commutative" in monoid.has and not alike(ab, ba := combine(b, a)):
            raise BadParameter(f"{label} is said to be commutative, and {a!r} and {b!r} give {ab!r} or {ba!r}")
        if "idempotent" in monoid.has and not alike(aa := combine(a, a), a):
            raise BadParameter(f"{label} is said to be idempotent, and {a!r} with itself gives {aa!r}")
        if monoid.inverse is not None and not alike(got := combine(ab, monoid.inverse(a)), b):
            raise BadParameter(
                f"inverse must leave {b!r} where {a!r} is taken out of {ab!r}, and {label} leaves {got!r}"
            )
    return bool(lifted)


def alike(mine: Any, theirs: Any) -> bool:
    """Whether two aggregates are the same, numbers but for rounding."""
    if isinstance(mine, (tuple, list, np.ndarray)) and isinstance(theirs, (tuple, list, np.ndarray)):
        return len(mine) == len(theirs) and all(map(alike, mine, theirs))
    if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
        return mine == theirs or (mine != mine and theirs != theirs) or math.isclose(mine, theirs, rel_tol=1e-9)
    return bool(mine == theirs)


ALIASES = {"avg": "mean", "std": "stddev", "geomean": "gmean"}


def monoid_of(given: Any) -> Monoid:
    """Read a monoid: itself, its class, its name, or several that are computed together.

    >>> monoid_of("max"), monoid_of(["sum", "count"])
    (<monoid max>, <monoid (sum, count)>)
    """
    if isinstance(given, Monoid):
        return given
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, type) and issubclass(given, Monoid):
        return given()
    if isinstance(given, Sequence) and given:
        product: Monoid = registry.monoids()["product"].make(*given)
        return product
    raise BadParameter(f"a monoid is its name, such as 'max', or one of wane.monoids or wane.monoid(), got {given!r}")


@functools.cache
def _named(given: str) -> Monoid:
    """A monoid without arguments by its name: one for all, so that what it compiles is compiled once."""
    every = registry.monoids()
    if given in every and required(every[given]):
        arguments = ", ".join(required(every[given]))
        raise BadParameter(f"{given!r} needs arguments; write wane.monoids.{every[given].make.__name__}({arguments})")
    made: Monoid = registry.find(ALIASES.get(given, given), every, "there is no monoid").make()
    return made


def required(spec: registry.MonoidSpec) -> tuple[str, ...]:
    """The arguments that a registered monoid cannot be made without."""
    found = inspect.signature(spec.make).parameters.values()
    return tuple(
        f"{'*' if one.kind is one.VAR_POSITIONAL else ''}{one.name}"
        for one in found
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    )


def require(monoid: Monoid, needs: frozenset[str], who: str, instead: str) -> None:
    """Refuse a monoid that lacks what a window needs."""
    for lacking in sorted(needs - monoid.has):
        raise Unsupported(
            f"{who} needs a monoid that is {lacking} ({registry.CAPABILITIES[lacking]}), and {monoid.label} is not; "
            f"use {instead}"
        )


PAPER = "Constant-Time Sliding Window Aggregation (IBM Research Report)"
