"""What wane has: each thing's :class:`Card`, found by name.

A summary or window is one file whose class has one frozen `SPEC`, and one line in its folder's list (`__init__.pyi`,
which editors and type checkers read as well); a file of monoids holds a family of them, each with its `SPEC` and line.
Everything else (its public name, its row in ``wane list``, its reference page, its laws, its bench case) follows from
the `SPEC`. Packages of others join through the entry-point group ``wane.specs``, whose values are modules that export a
`SPEC`.
"""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module, metadata
from importlib.resources import files
from typing import Any, ClassVar, TypeVar

from wane.errors import BadParameter, DuplicateName, UnknownName

FOLDERS = ("summaries", "monoids", "windows")
"""The folders with a list, in the order of ``wane list``."""

ENTRY_POINTS = "wane.specs"

Found = TypeVar("Found", bound="Card")


class Equality(Enum):
    """How equal two states over the same rows are, however the rows were ordered, split, repeated or merged."""

    IDENTICAL = "identical"
    """The same bytes."""
    EQUAL = "equal"
    """The same answers to 1e-12 of the sum of |weight * value|."""
    GUARANTEED = "guaranteed"
    """Answers within the stated bound or distribution."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What wane knows of everything that is registered.

    Attributes:
        name: Its name in states, queries and lists.
        make: Its class.
        title: What it is, in half a line.
        guarantee: What its answers are worth, as a sentence with its parameters.
        space: Its size as a formula.
        time: Its cost per row as a formula.
        paper: Where the algorithm and its guarantee come from.
        parameters: Sets of arguments, beside the decay or the monoid, that laws, benchmarks and the reference use. None
            where it is made of what a user gives.
    """

    folder: ClassVar[str]

    name: str
    make: Any
    title: str
    guarantee: str
    space: str
    time: str
    paper: str
    parameters: tuple[Mapping[str, Any], ...] = ({},)


@dataclass(frozen=True, kw_only=True)
class Spec(Card):
    """Everything wane knows of one summary, as data.

    Attributes:
        version: The version of its wire form; a reader takes this and every older one.
        questions: Its questions: methods that give a number, or an array or list of them.
        timeless: Those of them whose answer does not depend on now.
        arguments: What laws ask a question with, for those that need more than now.
        equality: Its class of equality.
        undecayed: Its class where nothing decays and weights are whole numbers that sum to less than ``2**53``, if that
            is another one.
        numbered: Whether rows that carry no ids are told apart by their numbers: then parts that merge need seeds of
            their own, and the class of equality is ``GUARANTEED``, whatever it is for rows with ids.
        counts_repeats: Whether a row that comes again counts again. If not, its state says nothing of how many rows it
            has seen, used or dropped: `rows` and `dropped` are what that very object was given, in this process.
        bounds: For given parameters, by question, how far an answer may be from the exact one, relative to the scale of
            the exact one (the decayed count, mostly). A question of a guaranteed summary is judged if it is here; None
            says that no bound holds for every stream, only with a probability, which its own tests judge.
        decays: The kinds of decay it takes: ``"forward"`` (any), ``"landmark"`` (none and landmark only),
            ``"backward"`` (while now is still open), ``"smooth"`` (backward ones that fall ever more slowly).
        weighted: Whether rows may have weights of their own, beside those that the decay gives them.
        ordered: Whether rows must come in the order of their times.
        items: What its items are: ``"numbers"``, ``"any"``, ``"ids"``, which are whole numbers from 0, or ``"vectors"``
            of numbers, all of one length.
        records: The questions that are answered by a list of records, with the record: a `NamedTuple` of numbers, and
            of an item, which has the type of what was given.
        functions: The names in `wane.fn` that are answered by it.
        absent: Laws that do not hold for it, each with the reason.
        state_bytes: An upper bound of the size of `to_bytes()` for given parameters, whatever the stream.
    """

    folder = "summaries"

    version: int
    questions: tuple[str, ...]
    timeless: tuple[str, ...]
    equality: Equality
    decays: frozenset[str]
    items: str
    undecayed: Equality | None = None
    weighted: bool = True
    ordered: bool = False
    numbered: bool = False
    counts_repeats: bool = True
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bounds: Callable[[Mapping[str, Any]], Mapping[str, float | None]] = lambda _: {}
    records: Mapping[str, type[tuple[Any, ...]]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    state_bytes: Callable[[Mapping[str, Any]], int]


@dataclass(frozen=True, kw_only=True)
class MonoidSpec(Card):
    """Everything wane knows of one monoid, as data.

    Attributes:
        has: Its capabilities, some of :data:`CAPABILITIES`.
        items: What it takes: ``"numbers"``, ``"pairs"`` of a number and what belongs to it, ``"timed"`` pairs of a
            number and its time, or ``"any"``.
        native: Whether its functions compile, so that whole columns go through native code.
        bits: Whether combining gives the same bits in any grouping; if not, the same but for rounding.
    """

    folder = "monoids"

    has: frozenset[str]
    items: str = "numbers"
    native: bool = True
    bits: bool = True

    def __post_init__(self) -> None:
        unknown = self.has - set(CAPABILITIES)
        if unknown:
            raise BadParameter(f"{self.name} claims to be {min(unknown)!r}; there are {', '.join(CAPABILITIES)}")


CAPABILITIES: Mapping[str, str] = {
    "commutative": "the order of its arguments does not matter",
    "invertible": "what was combined can be taken out again",
    "idempotent": "a thing combined with itself is that thing",
}
"""What a monoid may have and a window may need."""


@dataclass(frozen=True, kw_only=True)
class WindowSpec(Card):
    """Everything wane knows of one window, as data.

    Attributes:
        needs: The capabilities that it asks of a monoid, some of :data:`CAPABILITIES`.
        order: The order in which items come and go, in a few words.
        fifo: Whether it is a queue: `insert` at the end, `evict` at the front, `query` of all.
        steps: At most how many times an insert, an evict and a query combine, where that is constant.
        average: The same on average, for windows that are not empty.
        compiled: Whether its text runs compiled as well.
    """

    folder = "windows"

    needs: frozenset[str] = frozenset()
    order: str = "first in, first out"
    fifo: bool = True
    steps: tuple[int, int, int] | None = None
    average: tuple[float, float, float] | None = None
    compiled: bool = True


@functools.cache
def listed(folder: str) -> Mapping[str, str]:
    """The public names of a folder and the modules they are in, read from its list."""
    tree = ast.parse(files(f"wane.{folder}").joinpath("__init__.pyi").read_text("utf-8"))
    return {
        alias.asname or alias.name: f"wane.{folder}.{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }


@functools.cache
def cards() -> Mapping[str, Card]:
    """Every registered thing by name; two things of one name are refused."""
    made = [getattr(import_module(module), name) for folder in FOLDERS for name, module in listed(folder).items()]
    entries = metadata.entry_points(group=ENTRY_POINTS)
    found: dict[str, Card] = {}
    for where, card in [
        *((cls.__module__, cls.SPEC) for cls in made),
        *((entry.value, import_module(entry.value).SPEC) for entry in entries),
    ]:
        if card.name in found and found[card.name] != card:
            raise DuplicateName(
                f"{where} and {found[card.name].make.__module__} both register {card.name!r}; rename one of them"
            )
        found[card.name] = card
    return found


def _in_folder(folder: str) -> Mapping[str, Any]:
    return {name: card for name, card in cards().items() if card.folder == folder}


def specs() -> Mapping[str, Spec]:
    """Every registered summary by name."""
    return _in_folder("summaries")


def monoids() -> Mapping[str, MonoidSpec]:
    """Every registered monoid by name."""
    return _in_folder("monoids")


def windows() -> Mapping[str, WindowSpec]:
    """Every registered window by name."""
    return _in_folder("windows")


def find(name: str, among: Mapping[str, Found] | None = None, what: str = "nothing is registered as") -> Found | Any:
    """The thing of this name, among all or some."""
    known: Mapping[str, Any] = cards() if among is None else among
    if name not in list(known):
        near = difflib.get_close_matches(str(name), known, 1)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise UnknownName(f"{what} {name!r}; {meant}")
    return known[name]


def lookup(name: str) -> Spec:
    """The summary of this name."""
    found: Spec = find(name, specs())
    return found


def takers(decay_kind: str) -> list[str]:
    """The classes that take a kind of decay, for messages that say what to use instead."""
    return [spec.make.__name__ for spec in specs().values() if decay_kind in spec.decays]
