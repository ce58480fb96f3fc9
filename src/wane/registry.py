"""What wane has: each thing's :class:`Spec`, found by name.

A summary, window or monoid is one file that exports one frozen `SPEC`, and one line in its folder's list
(`__init__.pyi`, which editors and type checkers read as well). Everything else (its public name, its row in
``wane list``, its reference page, its laws, its bench case) follows from the `SPEC`. Packages of others join
through the entry-point group ``wane.specs``, whose values are modules that export a `SPEC`.
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
from typing import Any

from wane.errors import DuplicateName, UnknownName

FOLDERS = ("summaries",)
"""The folders with a list, in the order of ``wane list``."""

ENTRY_POINTS = "wane.specs"


class Equality(Enum):
    """How equal two states over the same rows are, however the rows were ordered, split, repeated or merged."""

    IDENTICAL = "identical"
    """The same bytes."""
    EQUAL = "equal"
    """The same answers to 1e-12 of the sum of |weight * value|."""
    GUARANTEED = "guaranteed"
    """Answers within the stated bound or distribution."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything wane knows of one summary, as data.

    Attributes:
        name: Its name in states, queries and lists.
        make: Its class.
        version: The version of its wire form; a reader takes this and every older one.
        title: What it is, in half a line.
        questions: Its questions: methods that give a number, or an array or list of them.
        timeless: Those of them whose answer does not depend on now.
        arguments: What laws ask a question with, for those that need more than now.
        guarantee: What its answers are worth, as a sentence with its parameters.
        space: Its size as a formula.
        time: Its cost per row as a formula.
        paper: Where the algorithm and its guarantee come from.
        equality: Its class of equality.
        counts_repeats: Whether a row that comes again counts again. If not, its state says nothing of how many rows it
            has seen, used or dropped: `rows` and `dropped` are what that very object was given, in this process.
        bounds: For given parameters, by question, how far an answer may be from the exact one, relative to the scale of
            the exact one (the decayed count, mostly). A question of a guaranteed summary is judged if it is here; None
            says that no bound holds for every stream, only with a probability, which its own tests judge.
        decays: The kinds of decay it takes: ``"forward"`` (any), ``"landmark"`` (none and landmark only),
            ``"backward"`` (while now is still open), ``"smooth"`` (backward ones that fall ever more slowly).
        items: What its items are: ``"numbers"`` or ``"any"``.
        weighted: Whether items may have weights.
        ordered: Whether rows must come in the order of their times.
        parameters: Sets of parameters beside the decay that laws, benchmarks and the reference use.
        functions: The names in `wane.fn` that are answered by it.
        absent: Laws that do not hold for it, each with the reason.
        state_bytes: An upper bound of the size of `to_bytes()` for given parameters, whatever the stream.
    """

    name: str
    make: Any
    version: int
    title: str
    questions: tuple[str, ...]
    timeless: tuple[str, ...]
    guarantee: str
    space: str
    time: str
    paper: str
    equality: Equality
    decays: frozenset[str]
    items: str
    weighted: bool = True
    ordered: bool = False
    counts_repeats: bool = True
    parameters: tuple[Mapping[str, Any], ...] = ({},)
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    bounds: Callable[[Mapping[str, Any]], Mapping[str, float | None]] = lambda _: {}
    functions: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    state_bytes: Callable[[Mapping[str, Any]], int]


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
def specs() -> Mapping[str, Spec]:
    """Every registered thing by name; two things of one name are refused."""
    modules = [module for folder in FOLDERS for module in listed(folder).values()]
    modules += [entry.value for entry in metadata.entry_points(group=ENTRY_POINTS)]
    found: dict[str, Spec] = {}
    for module in modules:
        spec: Spec = import_module(module).SPEC
        if spec.name in found and found[spec.name] != spec:
            raise DuplicateName(
                f"{module} and {found[spec.name].make.__module__} both register {spec.name!r}; rename one of them"
            )
        found[spec.name] = spec
    return found


def lookup(name: str) -> Spec:
    """The thing of this name."""
    known = specs()
    if name not in list(known):
        near = difflib.get_close_matches(str(name), known, 1)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise UnknownName(f"nothing is registered as {name!r}; {meant}")
    return known[name]


def takers(decay_kind: str) -> list[str]:
    """The classes that take a kind of decay, for messages that say what to use instead."""
    return [spec.make.__name__ for spec in specs().values() if decay_kind in spec.decays]
