"""Declarations of aggregates and extractors, as Gigascope has them.

``int UDAF char(36) approx_median(int)`` declares an aggregate: what it gives, the bytes of its scratchpad, its name and
what it takes; ``[low, high]`` before the name says which two do its work at the two levels.
``int EXTR percentile_fcn approx_quantile percentile(int; int)`` makes ``percentile(len, 95)`` stand for
``percentile_fcn(approx_quantile(len), 95)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wane.gsql.place import Text, meant

TYPES = ("int", "uint", "llong", "ullong", "float", "bool", "string", "vstring", "v_str", "ip")
"""Types that a declaration may name."""


@dataclass(frozen=True)
class Udaf:
    """An aggregate.

    Attributes:
        name: What queries call it.
        gives: The type of its answer.
        takes: The types of its arguments.
        scratchpad: The bytes its state may have at the low level.
        low: The aggregate that does the low level's part, or None for itself.
        high: The one that does the high level's part.
        at: Where it is declared.
    """

    name: str
    gives: str
    takes: tuple[str, ...]
    scratchpad: int
    low: str | None
    high: str | None
    at: int


@dataclass(frozen=True)
class Extractor:
    """A name for a function of an aggregate.

    Attributes:
        name: What queries call it.
        gives: The type of its answer.
        function: The function.
        aggregate: The aggregate that it is called on.
        takes: The types of the aggregate's arguments.
        further: The types of the function's further arguments.
        at: Where it is declared.
    """

    name: str
    gives: str
    function: str
    aggregate: str
    takes: tuple[str, ...]
    further: tuple[str, ...]
    at: int


Declaration = Udaf | Extractor


def is_declaration(tokens: Sequence[Any]) -> bool:
    """Whether a statement declares something."""
    return len(tokens) > 1 and tokens[1].text.upper() in ("UDAF", "EXTR")


def declaration(tokens: Sequence[Any], place: Text) -> Declaration:
    """Read a declaration."""
    reader = _Reader(tokens, place)
    at = reader.at
    gives = reader.type()
    if reader.word("UDAF or EXTR").upper() == "EXTR":
        function, aggregate, name = (reader.word(what) for what in ("a function", "an aggregate", "a name"))
        takes, further = reader.types(True)
        reader.end()
        return Extractor(name, gives, function, aggregate, takes, further, at)
    reader.expect("char")
    reader.expect("(")
    scratchpad = reader.number()
    reader.expect(")")
    low = high = None
    if reader.sees("["):
        reader.expect("[")
        low = reader.word("the low level's aggregate")
        reader.expect(",")
        high = reader.word("the high level's aggregate")
        reader.expect("]")
    name = reader.word("a name")
    takes, _ = reader.types(False)
    reader.end()
    return Udaf(name, gives, takes, scratchpad, low, high, at)


class _Reader:
    def __init__(self, tokens: Sequence[Any], place: Text) -> None:
        self.tokens = tokens
        self.place = place
        self.next = 0

    @property
    def at(self) -> int:
        if self.next < len(self.tokens):
            return int(self.tokens[self.next].start)
        return int(self.tokens[-1].end) + 1

    def sees(self, text: str) -> bool:
        return self.next < len(self.tokens) and self.tokens[self.next].text.lower() == text

    def expect(self, text: str) -> None:
        if not self.sees(text):
            raise self.place.error(self.at, f"{text!r} belongs here; write int UDAF char(36) name(int)")
        self.next += 1

    def word(self, what: str) -> str:
        at = self.at
        if self.next >= len(self.tokens) or not self.tokens[self.next].text.isidentifier():
            raise self.place.error(at, f"{what} belongs here; write int UDAF char(36) name(int)")
        self.next += 1
        return str(self.tokens[self.next - 1].text)

    def type(self) -> str:
        at, found = self.at, self.word("a type").lower()
        if found not in TYPES:
            raise self.place.error(at, f"there is no type {found!r}; {meant(found, TYPES, 'the types are')}")
        return found

    def number(self) -> int:
        at = self.at
        text = self.tokens[self.next].text if self.next < len(self.tokens) else ""
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
            raise self.place.error(at, "a scratchpad has a whole number of bytes; write char(36)")
        self.next += 1
        return int(text)

    def types(self, parted: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The types in parentheses, those after a semicolon apart."""
        parts: list[list[str]] = [[]]
        self.expect("(")
        while not self.sees(")"):
            parts[-1].append(self.type())
            if parted and self.sees(";"):
                self.expect(";")
                parts.append([])
                parted = False
            elif not self.sees(")"):
                self.expect(",")
        self.expect(")")
        return tuple(parts[0]), tuple(parts[-1]) if len(parts) > 1 else ()

    def end(self) -> None:
        if self.next < len(self.tokens):
            raise self.place.error(self.at, "nothing may follow a declaration; end it with a semicolon")
