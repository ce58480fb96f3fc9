"""The text form of decays: ``exp(half_life=5m)``, ``poly(2)``, ``backward poly(1.5)``, ``window(5m)``, ...

What `str` of a decay gives, this reads back to an equal value. A bad text gives an error with a caret under the
place and, for a near miss, what was probably meant.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from wane.decay import custom
from wane.decay.backward_decays import BackwardPoly, SlidingWindow, SubPoly, SuperExponential
from wane.decay.base import ONE_SECOND, Decay, positive, positive_duration
from wane.decay.forward_decays import Exponential, Landmark, NoDecay, Poly, Polynomial
from wane.decay.pinned import Pinned
from wane.errors import BadDecay, BadTime
from wane.times import Nanoseconds, duration

_TOKENS = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:\s*(?!at\b)[a-zA-Zµμ]+)?"
    r"(?:\s*(?:\d+\.?\d*|\.\d+)\s*[a-zA-Zµμ]+)*)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign>[(),=]))"
)


_SHOWN = 60  # characters of the text on either side of the caret


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str | Decay) -> Decay:
    """Read a decay from its text form; a decay is given back as it is.

    A duration without a unit is in seconds. Raises `BadDecay` with a caret under the place that cannot be read.

    >>> parse("exp(half_life=5m)") == parse("backward exp(half_life = 300s)")
    True
    >>> str(parse("poly(2)"))
    'poly(2)'
    """
    if isinstance(text, Decay):
        return text
    if not isinstance(text, str):
        raise BadDecay(f"a decay is a text or a Decay, got {text!r}; write 'exp(half_life=5m)'")
    parser = _Parser(text)
    try:
        return parser.parse()
    except _Placed as why:
        raise BadDecay(str(why)) from None
    except BadDecay as why:  # a rule that the decay itself keeps
        raise BadDecay(parser.point(parser.head, str(why))) from None


class _Placed(BadDecay):
    """An error whose message shows the place already."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.head = 0
        self.tokens: list[_Token] = []
        self.next = 0
        self.named_at: dict[str, int] = {}

    def parse(self) -> Decay:
        self.tokens = self._split()
        direction = None
        if self._peek().text in ("forward", "backward"):
            direction = self._take().text
        name = self._take()
        self.head = name.at
        if name.kind != "word":
            self.fail(name.at, "a decay starts with its name, such as exp(half_life=5m)")
        args, named = self._arguments() if self._peek().text == "(" else ([], {})
        asked = self._peek().at
        now = self._pinned() if self._peek().text == "at" else None
        if self._peek().kind != "end":
            self.fail(self._peek().at, "nothing may follow the decay")
        make = _MAKERS.get((direction or "either", name.text))
        if make is None:
            self._unknown(direction, name)
        decay = make(_Arguments(self, name, args, named))
        if now is None:
            return decay
        self.head = asked
        return Pinned(decay, now)

    def _pinned(self) -> int:
        self._take()
        token = self._take()
        try:
            return duration(_bare(token.text), "the time after 'at'")
        except BadTime as why:
            self.fail(token.at, str(why))

    def _arguments(self) -> tuple[list[_Token], dict[str, _Token]]:
        self._take()
        args: list[_Token] = []
        named: dict[str, _Token] = {}
        while self._peek().text != ")":
            token = self._take()
            if token.kind == "word" and self._peek().text == "=":
                self._take()
                if token.text in named:
                    self.fail(token.at, f"{token.text} is given twice")
                self.named_at[token.text] = token.at
                named[token.text] = self._value()
            elif token.kind in ("number", "text"):
                if named:
                    self.fail(token.at, "an argument without a name comes before those with one")
                args.append(token)
            else:
                self.fail(token.at, "an argument is a number, a duration such as 5m, or name=value")
            if self._peek().text == ",":
                self._take()
            elif self._peek().text != ")":
                self.fail(self._peek().at, "a comma or a closing parenthesis is missing")
        self._take()
        return args, named

    def _value(self) -> _Token:
        token = self._take()
        if token.kind not in ("number", "text"):
            self.fail(token.at, "a value is a number, a duration such as 5m, or a text in quotes")
        return token

    def _unknown(self, direction: str | None, name: _Token) -> NoReturn:
        other = next((d for d, n in _MAKERS if n == name.text), None)
        if other is not None:
            if direction is None:
                self.fail(name.at, f"{name.text} needs its direction: write '{other} {name.text}(...)'")
            sides = sorted(d for d, n in _MAKERS if n == name.text and d != "either")
            self.fail(name.at, f"{name.text} is no {direction} decay; write '{sides[0]} {name.text}'")
        every = sorted({n for _, n in _MAKERS})
        word = name.text.lower()
        near = [_NICKNAMES[word]] if word in _NICKNAMES else difflib.get_close_matches(word, every, 1, 0.5)
        meant = f"did you mean {near[0]}?" if near else f"the decays are {', '.join(every)}"
        self.fail(name.at, f"there is no decay {name.text!r}; {meant}")

    def _split(self) -> list[_Token]:
        tokens = []
        at = 0
        while self.text[at:].strip():
            match = _TOKENS.match(self.text, at)
            if match is None:
                self.fail(at + len(self.text[at:]) - len(self.text[at:].lstrip()), "this cannot be read")
            kind = match.lastgroup or ""
            tokens.append(_Token(kind, match[kind].strip(), match.start(kind)))
            at = match.end()
        return [*tokens, _Token("end", "", len(self.text))]

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        if token.kind == "end":
            self.fail(token.at, "the text ends too early")
        self.next += 1
        return token

    def fail(self, at: int, why: str) -> NoReturn:
        """Refuse the text, with a caret under a place in it."""
        raise _Placed(self.point(at, why))

    def point(self, at: int, why: str) -> str:
        """A message that shows the text (of a long one, the part around the place) with a caret under the place."""
        start = max(0, at - _SHOWN)
        line = re.sub(r"\s", " ", self.text[start : at + _SHOWN])
        return f"cannot read the decay: {why}\n  {line}\n  {' ' * (at - start)}^"


class _Arguments:
    """The arguments of one decay, taken by name or place, each checked; whatever is left over is refused."""

    def __init__(self, parser: _Parser, head: _Token, args: list[_Token], named: dict[str, _Token]) -> None:
        self.parser = parser
        self.head = head
        self.args = args
        self.named = named

    def number(self, name: str, example: str) -> float:
        token = self._one(name, example)
        self.parser.head = token.at  # should the decay itself not like it
        try:
            return positive(float(token.text), name, example)
        except ValueError as why:
            self.parser.fail(
                token.at, str(why) if isinstance(why, BadDecay) else f"{name} is a number; write {example}"
            )

    def numbers(self, example: str) -> tuple[float, ...]:
        values = []
        for token in self.args:
            try:
                values.append(float(token.text))
            except ValueError:
                self.parser.fail(token.at, f"a coefficient is a number; write {example}")
            if not 0 <= values[-1] < math.inf:
                self.parser.head = token.at  # where the decay will say why
                break
        self.args = []
        return tuple(values)

    def duration(self, name: str, example: str) -> Nanoseconds:
        token = self._one(name, example)
        try:
            return positive_duration(_bare(token.text), name, example)
        except (BadDecay, BadTime) as why:
            self.parser.fail(token.at, str(why))

    def text(self, name: str, example: str) -> str:
        token = self._one(name, example)
        if token.kind != "text":
            self.parser.fail(token.at, f"{name} is a text in quotes; write {example}")
        return token.text[1:-1]

    def unit(self) -> int:
        return self.duration("unit", "unit=1m") if "unit" in self.named else ONE_SECOND

    def has(self, name: str) -> bool:
        return name in self.named

    def done(self, example: str, *takes: str) -> None:
        for token in self.args:
            self.parser.fail(token.at, f"{self.head.text} takes no such argument; write {example}")
        for name in self.named:
            near = difflib.get_close_matches(name, takes, 1, 0.5)
            meant = f"did you mean {near[0]}?" if near else f"write {example}"
            self.parser.fail(self.parser.named_at[name], f"{self.head.text} has no parameter {name!r}; {meant}")

    def _one(self, name: str, example: str) -> _Token:
        if name in self.named:
            return self.named.pop(name)
        if not self.args or name == "unit":
            self.done(example, name)
            self.parser.fail(self.head.at, f"{self.head.text} needs {name}; write {example}")
        return self.args.pop(0)


def _bare(text: str) -> float | str:
    """A duration without a unit is seconds."""
    text = text.strip("'\"")
    try:
        return float(text) if not text.lstrip("+-").isdigit() else int(text)
    except ValueError:
        return text


def _fixed(decay: Decay) -> Callable[[_Arguments], Decay]:
    def make(args: _Arguments) -> Decay:
        args.done(str(decay))
        return decay

    return make


def _poly(args: _Arguments) -> Decay:
    beta = args.number("beta", "poly(2)")
    args.done("poly(2)")
    return Poly(beta)


def _polynomial(args: _Arguments) -> Decay:
    unit = args.unit()
    coefficients = args.numbers("polynomial(1, 0, 2)")
    args.done("polynomial(1, 0, 2)", "unit")
    return Polynomial(coefficients, unit)


def _half_life_or_rate(args: _Arguments, name: str) -> dict[str, Any]:
    example = f"{name}(half_life=5m) or {name}(rate=0.1)"
    if args.has("rate") and args.has("half_life"):
        args.parser.fail(max(args.parser.named_at.values()), f"give a half_life or a rate, not both: {example}")
    if args.has("rate"):
        found: dict[str, Any] = {"rate": args.number("rate", example)}
    elif args.has("half_life"):
        found = {"half_life": args.duration("half_life", f"{name}(half_life=5m)")}
    elif args.args:
        args.parser.fail(args.args[0].at, f"say which it is: {example}")
    else:
        args.done(example, "half_life", "rate")
        args.parser.fail(args.head.at, f"{name} needs a half_life or a rate; write {example}")
    args.done(example)
    return found


def _exp(args: _Arguments) -> Decay:
    return Exponential(**_half_life_or_rate(args, "exp"))


def _superexp(args: _Arguments) -> Decay:
    return SuperExponential(**_half_life_or_rate(args, "superexp"))


def _window(args: _Arguments) -> Decay:
    length = args.duration("length", "window(5m)")
    args.done("window(5m)")
    return SlidingWindow(length)


def _backward_poly(args: _Arguments) -> Decay:
    unit = args.unit()
    alpha = args.number("alpha", "backward poly(1.5)")
    args.done("backward poly(1.5)", "unit")
    return BackwardPoly(alpha, unit)


def _subpoly(args: _Arguments) -> Decay:
    unit = args.unit()
    args.done("subpoly", "unit")
    return SubPoly(unit)


def _user(direction: str) -> Callable[[_Arguments], Decay]:
    def make(args: _Arguments) -> Decay:
        unit = args.unit()
        name = args.text("name", f"{direction} user('name')")
        args.done(f"{direction} user('name')", "unit")
        found = custom.known(direction, name, unit)
        if found is None:
            near = difflib.get_close_matches(name, custom.names(direction), 1, 0.5)
            if name in near:
                raise BadDecay(
                    f"{name!r} is defined in this process with another unit; write {custom.text_of(direction, name)}"
                )
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise BadDecay(
                f"no {direction} decay {name!r} is defined in this process{meant}; define it first with "
                f"wane.decay.{direction}(function, name={name!r})"
            )
        return found

    return make


_MAKERS: dict[tuple[str, str], Callable[[_Arguments], Decay]] = {}
for _direction, _name, _make in (
    ("both", "none", _fixed(NoDecay())),
    ("both", "exp", _exp),
    ("forward", "landmark", _fixed(Landmark())),
    ("forward", "poly", _poly),
    ("forward", "polynomial", _polynomial),
    ("backward", "window", _window),
    ("backward", "superexp", _superexp),
    ("backward", "subpoly", _subpoly),
):
    _MAKERS["either", _name] = _make
    for _side in ("forward", "backward") if _direction == "both" else (_direction,):
        _MAKERS[_side, _name] = _make
_MAKERS["backward", "poly"] = _backward_poly
_MAKERS["forward", "user"] = _user("forward")
_MAKERS["backward", "user"] = _user("backward")

_NICKNAMES = {
    "exponential": "exp",
    "ewma": "exp",
    "ema": "exp",
    "sliding": "window",
    "monomial": "poly",
    "power": "poly",
    "linear": "poly",
    "quadratic": "poly",
}
