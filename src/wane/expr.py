"""Arithmetic expressions of columns, as text: ``v**2``, ``len * (time % 60)**2 / 3600``, ``log(v)``.

The language is small: numbers, column names (in backquotes where they are no identifier, a backquote in a
name written twice), ``+ - * / % **``, comparisons, parentheses and the functions in :data:`FUNCTIONS`. From
loosest to tightest: comparisons, which do not chain; ``+ -``; ``* / %``; unary minus; ``**``, which groups to
the right.

Values are float64 and follow IEEE 754: a division by zero gives an infinity or NaN, without a warning. ``/``
is real division, ``%`` has the sign of the divisor as in Python, and a comparison gives 1 or 0. NaN, which
stands for a missing value, passes through all but two: a power with exponent 0 or base 1 is 1, and a
comparison with NaN is 0 (``!=`` is 1), so that ``where(v == v, v, 0)`` replaces it.

A parsed expression is a tree of frozen nodes, :class:`Number`, :class:`Column`, :class:`Negate`,
:class:`Binary` and :class:`Call`, for other engines to translate. Trees are bounded in depth and length, so
that walking one by recursion never runs out of stack.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wane.errors import BadInput, BadParameter

MAX_DEPTH = 100
"""How many operations may lie within one another; each term of a sum without parentheses is one."""

MAX_LENGTH = 10_000
"""How many characters an expression may have, as it is given and as ``str()`` writes it."""

Values: TypeAlias = NDArray[np.float64]
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _comparison(compare: np.ufunc) -> Callable[[Values, Values], Values]:
    return lambda left, right: np.asarray(compare(left, right), np.float64)


def _where(condition: Values, yes: Values, no: Values) -> Values:
    return np.where(np.isnan(condition), np.nan, np.where(condition != 0, yes, no))


def _power(base: Values, exponent: Values) -> Values:
    # np.power has a shortcut for a constant exponent of 0.5, whose answers at -inf and -0 are not pow's
    return np.square(base) if exponent.ndim == 0 and exponent == 2 else np.float_power(base, exponent)


_COMPARISON, _SUM, _PRODUCT, _MINUS, _POWER, _ATOM = range(6)  # from loosest to tightest

_OPERATORS: dict[str, tuple[int, Callable[[Values, Values], Values]]] = {
    "==": (_COMPARISON, _comparison(np.equal)),
    "!=": (_COMPARISON, _comparison(np.not_equal)),
    "<": (_COMPARISON, _comparison(np.less)),
    "<=": (_COMPARISON, _comparison(np.less_equal)),
    ">": (_COMPARISON, _comparison(np.greater)),
    ">=": (_COMPARISON, _comparison(np.greater_equal)),
    "+": (_SUM, np.add),
    "-": (_SUM, np.subtract),
    "*": (_PRODUCT, np.multiply),
    "/": (_PRODUCT, np.divide),
    "%": (_PRODUCT, np.remainder),
    "**": (_POWER, _power),
}
_FUNCTIONS: dict[str, tuple[int, Callable[..., Values]]] = {
    "log": (1, np.log),
    "log2": (1, np.log2),
    "log10": (1, np.log10),
    "exp": (1, np.exp),
    "sqrt": (1, np.sqrt),
    "abs": (1, np.abs),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "pow": (2, _power),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "where": (3, _where),
}
OPERATORS = tuple(_OPERATORS)
"""The operators a :class:`Binary` may have."""

FUNCTIONS = {name: arity for name, (arity, _) in _FUNCTIONS.items()}
"""The functions a :class:`Call` may name, and how many arguments each takes."""

_NAME = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<name>{_NAME.pattern})
      | `(?P<quoted>(?:[^`]|``)+)`
      | (?P<sign>\*\*|[=!<>]=|[-+*/%<>(),])
      | (?P<stray>.)
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Expr(ABC):
    """An expression. Two are equal when their trees are, and ``Expr.parse(str(expr)) == expr``."""

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise BadParameter(
                f"at most {MAX_DEPTH} operations may lie within one another, and here are {self.depth}; put "
                "parentheses around parts of a long sum, or compute a part beforehand as a column"
            )
        if len(self._text) > MAX_LENGTH:
            raise BadParameter(
                f"an expression has at most {MAX_LENGTH} characters, and this one is written with "
                f"{len(self._text)}; compute a part beforehand as a column"
            )

    @staticmethod
    def parse(text: str) -> Expr:
        """Read an expression.

        Raises:
            BadParameter: The text is no expression, or too long or deep; the message points at the place.

        >>> Expr.parse("v ** 2")
        Binary(operator='**', left=Column(name='v'), right=Number(value=2.0))
        """
        return _Parser(text).parse()

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions it is made of; a number or a column has none."""
        return ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns it reads, sorted."""
        return tuple(sorted({name for part in self.parts for name in part.columns}))

    @cached_property
    def depth(self) -> int:
        """How many operations lie within one another; a number or a column counts as one."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def evaluate(self, columns: Mapping[str, Values]) -> Values:
        """Compute the expression for every row; one pass of NumPy an operation.

        Args:
            columns: The columns by name, of one length; those that it does not read are left alone.

        Returns: One value a row. It may be a column itself, not a copy. An expression without columns is
            repeated to the length of the first column given.

        Raises:
            BadInput: A column is missing, is no column of numbers, or differs in length from another.
        """
        used = {name: _numbers(columns, name) for name in self.columns or tuple(columns)[:1]}
        shapes = {values.shape for values in used.values()}
        if len(shapes) != 1 or len(shape := shapes.pop()) != 1:
            found = ", ".join(f"{name!r} of shape {values.shape}" for name, values in used.items()) or "none"
            raise BadInput(f"columns must have one dimension and one length, got {found}; give columns of one batch")
        result = self._run(used)
        return result if result.shape == shape else np.full(shape, result)

    def scalar(self, values: Mapping[str, float]) -> float:
        """Compute the expression for one row, given by column name; about a microsecond an operation.

        Raises:
            BadInput: A value is missing or is no number.
        """
        return float(self._run({name: _numbers(values, name) for name in self.columns}))

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return self._render()

    def _run(self, columns: Mapping[str, Values]) -> Values:
        with np.errstate(all="ignore"):
            return self._compute(columns)

    @property
    def _level(self) -> int:
        """How tightly it binds."""
        return _ATOM

    @abstractmethod
    def _render(self) -> str: ...

    @abstractmethod
    def _compute(self, columns: Mapping[str, Values], /) -> Values:
        """Compute from columns of one shape; the result has that shape, or none if all rows have the same."""


@dataclass(frozen=True)
class Number(Expr):
    """A number: finite and not negative, since a text like ``-2`` is the negation of one."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if not (math.isfinite(self.value) and math.copysign(1.0, self.value) > 0):
            raise BadParameter(
                f"a number in an expression must be finite and have no sign, got {self.value}; negate it, or "
                "give it as a column"
            )
        super().__post_init__()

    def _render(self) -> str:
        return repr(self.value).removesuffix(".0")

    def _compute(self, _: Mapping[str, Values], /) -> Values:
        return np.asarray(self.value)


@dataclass(frozen=True)
class Column(Expr):
    """The value of a column, by its name."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise BadParameter("the name of a column must not be empty, got ''; name the column")
        super().__post_init__()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Its own name."""
        return (self.name,)

    def _render(self) -> str:
        return self.name if _NAME.fullmatch(self.name) else f"`{self.name.replace('`', '``')}`"

    def _compute(self, columns: Mapping[str, Values], /) -> Values:
        return columns[self.name]


@dataclass(frozen=True)
class Negate(Expr):
    """Unary minus."""

    operand: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The operand."""
        return (self.operand,)

    @property
    def _level(self) -> int:
        return _MINUS

    def _render(self) -> str:
        return f"-{_enclose(self.operand, _MINUS)}"

    def _compute(self, columns: Mapping[str, Values], /) -> Values:
        return np.negative(self.operand._compute(columns))


@dataclass(frozen=True)
class Binary(Expr):
    """One of :data:`OPERATORS` between two expressions."""

    operator: str
    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        if self.operator not in _OPERATORS:
            known = ", ".join(OPERATORS)
            raise BadParameter(f"there is no operator {self.operator!r}; use one of {known}")
        super().__post_init__()

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The left and the right side."""
        return (self.left, self.right)

    @property
    def _level(self) -> int:
        return _OPERATORS[self.operator][0]

    def _render(self) -> str:
        left, right = {
            _COMPARISON: (_SUM, _SUM),  # comparisons do not chain
            _POWER: (_ATOM, _MINUS),  # groups to the right, and takes a minus there
        }.get(self._level, (self._level, self._level + 1))
        return f"{_enclose(self.left, left)} {self.operator} {_enclose(self.right, right)}"

    def _compute(self, columns: Mapping[str, Values], /) -> Values:
        return _OPERATORS[self.operator][1](self.left._compute(columns), self.right._compute(columns))


@dataclass(frozen=True)
class Call(Expr):
    """One of :data:`FUNCTIONS` of some expressions."""

    function: str
    arguments: tuple[Expr, ...]

    def __post_init__(self) -> None:
        arity = _arity(self.function)
        if len(self.arguments) != arity:
            raise BadParameter(
                f"{self.function} takes {arity} argument{'s' * (arity > 1)}, got {len(self.arguments)}; "
                "separate arguments by commas"
            )
        super().__post_init__()

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.arguments

    def _render(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    def _compute(self, columns: Mapping[str, Values], /) -> Values:
        return _FUNCTIONS[self.function][1](*(argument._compute(columns) for argument in self.arguments))


class _Parser:
    """A parser by precedence climbing, one token ahead."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise BadParameter(f"an expression is a text, got a {type(text).__name__}; write it as in 'v ** 2'")
        if len(text) > MAX_LENGTH:
            raise BadParameter(
                f"an expression has at most {MAX_LENGTH} characters, got {len(text)}; compute a part "
                "beforehand as a column"
            )
        self._text = text
        self._end = 0
        self._advance()

    def parse(self) -> Expr:
        expr = self._expression(_COMPARISON, 0)
        if self._kind != "end":
            self._fail("an operator or the end of the expression")
        return expr

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        assert match is not None
        assert match.lastgroup is not None  # there is always a stray character, or the end
        self._kind, self._token = match.lastgroup, match[match.lastgroup]
        self._start, self._end = match.start(self._kind), match.end()

    def _take(self) -> tuple[str, int]:
        """Give the token and its place, and go on to the next."""
        taken = self._token, self._start
        self._advance()
        return taken

    def _sees(self, sign: str) -> bool:
        return self._kind == "sign" and self._token == sign

    def _operator_level(self) -> int:
        """How tightly the operator ahead binds; -1 if there is none."""
        return _OPERATORS[self._token][0] if self._kind == "sign" and self._token in _OPERATORS else -1

    def _expression(self, loosest: int, nesting: int) -> Expr:
        """Parse as far as operators bind no looser than `loosest`."""
        if nesting > 2 * MAX_DEPTH:  # str() writes up to two levels for one of the tree
            raise self._error(
                f"parentheses and operations nest more than {2 * MAX_DEPTH} deep; compute a part beforehand "
                "as a column",
                self._start,
            )
        left = self._operand(nesting)
        while (level := self._operator_level()) >= loosest:
            operator, place = self._take()
            right = self._expression(_MINUS if level == _POWER else level + 1, nesting + 1)
            left = self._at(place, Binary, operator, left, right)
            if level == self._operator_level() == _COMPARISON:
                raise self._error(
                    f"comparisons do not chain, and {self._token!r} follows another; put parentheses around one",
                    self._start,
                )
        return left

    def _operand(self, nesting: int) -> Expr:
        if self._sees("-"):
            _, place = self._take()
            return self._at(place, Negate, self._expression(_MINUS, nesting + 1))
        if self._sees("("):
            self._advance()
            inner = self._expression(_COMPARISON, nesting + 1)
            self._close("an operator or ')'")
            return inner
        if self._kind == "number":
            token, place = self._take()
            return self._at(place, Number, float(token))
        if self._kind == "quoted":
            token, place = self._take()
            return self._at(place, Column, token.replace("``", "`"))
        if self._kind == "name":
            token, place = self._take()
            return self._call(token, place, nesting) if self._sees("(") else self._at(place, Column, token)
        return self._fail("a number, a column, a function, '-' or '('")

    def _call(self, function: str, place: int, nesting: int) -> Expr:
        self._at(place, _arity, function)  # ahead of any mistake in the arguments
        arguments = []
        self._advance()
        if not self._sees(")"):
            arguments.append(self._expression(_COMPARISON, nesting + 1))
        while self._sees(","):
            self._advance()
            arguments.append(self._expression(_COMPARISON, nesting + 1))
        self._close("an operator, ',' or ')'")
        return self._at(place, Call, function, tuple(arguments))

    def _close(self, expected: str) -> None:
        if not self._sees(")"):
            self._fail(expected)
        self._advance()

    def _at(self, place: int, make: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call `make`, and let its refusals point at the place."""
        try:
            return make(*args, **kwargs)
        except BadParameter as why:
            raise self._error(str(why), place) from None

    def _fail(self, expected: str) -> NoReturn:
        found = "the expression ends" if self._kind == "end" else f"{self._token!r} stands"
        raise self._error(f"{found} where {expected} belongs; correct the text here", self._start)

    def _error(self, message: str, place: int) -> BadParameter:
        begin = max(0, place - 40)
        shown = "".join(c if c.isprintable() else " " for c in self._text[begin : place + 40])
        dots = "..." if begin else ""
        return BadParameter(f"{message}\n  {dots}{shown}\n  {' ' * (len(dots) + place - begin)}^")


def _enclose(expr: Expr, loosest: int) -> str:
    """Write an expression, in parentheses if it binds looser than its place asks for."""
    return str(expr) if expr._level >= loosest else f"({expr})"


def _arity(function: str) -> int:
    if function not in FUNCTIONS:
        close = difflib.get_close_matches(function, FUNCTIONS, 1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"the functions are {', '.join(FUNCTIONS)}"
        raise BadParameter(f"there is no function {function!r}; {hint}")
    return FUNCTIONS[function]


def _numbers(columns: Mapping[str, ArrayLike], name: str) -> Values:
    if name not in columns:
        given = ", ".join(map(repr, columns)) or "none"
        raise BadInput(f"column {name!r} is missing, the columns are {given}; give it or correct the name")
    try:
        return np.asarray(columns[name], np.float64)
    except (TypeError, ValueError) as why:
        raise BadInput(f"column {name!r} must hold numbers: {why}; convert it to float64") from None
