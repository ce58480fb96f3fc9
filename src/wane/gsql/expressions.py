"""Expressions of queries: numbers of columns, conditions, and the columns that must be made for them first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from wane import expr as e
from wane.errors import BadTime, GsqlError, WaneError
from wane.gsql import functions
from wane.gsql.dialect import Decayed, start_of
from wane.gsql.place import Text, meant
from wane.gsql.program import Clock
from wane.gsql.rows import Matches, Seconds, Value
from wane.gsql.trees import alias_of, bare, call_of, is_number, is_text, is_time, literal
from wane.times import SECOND, instant

ALIASES = {"sourceip": "srcIP", "destinationip": "destIP", "length": "len", "sourceport": "srcPort"}
"""Other names of columns, for tables that do not have the names themselves."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
    exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
)  # fmt: skip

Leaf = Callable[[exp.Expr], e.Expr | None]


@dataclass
class Epoch:
    """The epochs that a query groups by."""

    column: str
    clock: Clock
    length: int
    offset: int


@dataclass
class Made:
    """Columns that are made on the way, each once."""

    prefix: str
    values: dict[Value, str] = field(default_factory=dict)

    def name(self, value: Value) -> str:
        """The name of the column that has a value."""
        return self.values.setdefault(value, f"{self.prefix}{len(self.values)}")

    @property
    def items(self) -> tuple[tuple[str, Value], ...]:
        """The columns in the order in which they are made."""
        return tuple((name, value) for value, name in self.values.items())


class Expressions:
    """A query that can tell what its columns are.

    Attributes:
        place: The text, for messages.
        at: Where the query starts.
        tree: The query.
        source: The name of its table.
        schema: The table's columns.
        clocks: Those of them that grow with time.
        made: Columns that are made of the table's.
        epoch: The epochs that it groups by.
        known: The names of declared aggregates and extractors.
        integers: Whether ``/`` divides without a rest.
        decayed: An aggregate that has a decay.
        whole_seconds: Whether times count as whole seconds, as a spelled-out weight has them.
    """

    place: Text
    at: int
    tree: exp.Select
    source: str
    schema: pa.Schema
    clocks: Mapping[str, Clock]
    known: Mapping[str, Any]

    def __init__(self) -> None:
        self.made = Made("wane_made_")
        self.epoch: Epoch | None = None
        self.integers = False
        self.decayed: Decayed | None = None
        self.whole_seconds = False

    def fail(self, node: Any, why: str) -> NoReturn:
        """Refuse the query, at a part of it."""
        where = start_of(node) if isinstance(node, exp.Expr) else None
        raise self.place.error(self.at if where is None else where, why) from None

    def is_aggregate(self, node: exp.Expr) -> bool:
        """Whether this is a call of an aggregate."""
        if isinstance(node, Decayed):
            return True
        if not isinstance(node, exp.Anonymous):
            return False
        name = str(node.this).lower()
        return name in functions.AGGREGATES or name in self.known

    # --- Rows

    def _where(self) -> e.Expr | None:
        where = self.tree.args.get("where")
        return None if where is None else self.condition(where.this, self.row_leaf)

    def row_leaf(self, node: exp.Expr) -> e.Expr | None:
        """A column of the source, as a number."""
        if self.is_aggregate(node):
            self.fail(node, f"{call_of(node).this} is an aggregate, and rows are single here; use having, or a view")
        if not isinstance(node, exp.Column):
            return None
        name: str = self.column_name(node)
        kind = self.schema.field(name).type
        if name in self.clocks and self.clocks[name].tick is None and is_time(kind):
            return e.Column(self.made.name(Seconds(name)))
        if not is_number(kind):
            self.fail(node, f"column {name!r} is {kind}, and numbers are needed here")
        return e.Column(name)

    def column_name(self, node: exp.Column, quiet: bool = False) -> Any:
        """The column that is meant: by its name, by its name in other letters, or by another name of it."""
        name, there = node.name, self.schema.names
        if not name or not isinstance(node.this, exp.Identifier):
            self.fail(node, "a column's name belongs here")
        if node.table and node.table not in (self.source, alias_of(self.tree)):
            self.fail(node, f"{node.table!r} is not the table of this query, which is {self.source!r}")
        if there.count(name) == 1:
            return name
        folded = [column for column in there if column.lower() == name.lower()]
        if len(folded) == 1:
            return folded[0]
        other = ALIASES.get(name.lower())
        if other is not None and there.count(other) == 1:
            return other
        if quiet:
            return None
        return self.fail(
            node, f"there is no column {name!r} in {self.source!r}; {meant(name, there, 'the columns are')}"
        )

    # --- Expressions

    def scalar(self, node: exp.Expr, leaf: Leaf) -> e.Expr:
        """A number, of columns that `leaf` knows."""
        if isinstance(node, exp.Paren):
            return self.scalar(node.this, leaf)
        found = leaf(node)
        if found is not None:
            return found
        try:
            return self._operation(node, leaf)
        except GsqlError:
            raise
        except WaneError as why:
            self.fail(node, str(why))

    def _operation(self, node: exp.Expr, leaf: Leaf) -> e.Expr:
        if isinstance(node, exp.Literal):
            if node.is_string:
                self.fail(node, f"a number belongs here, and not the text {node.this!r}")
            return literal(node) or self.fail(node, f"{node.this!r} is no number that a double can hold")
        if isinstance(node, exp.Boolean):
            return e.Number(1.0 if node.this else 0.0)
        if isinstance(node, exp.Neg):
            return e.Negate(self.scalar(node.this, leaf))
        if isinstance(node, exp.Anonymous):
            return self._function(node, leaf)
        if type(node) in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod):
            left, right = self.scalar(node.this, leaf), self.scalar(node.expression, leaf)
            made: e.Expr = e.Binary(_OPERATORS[type(node)], left, right)
            if isinstance(node, exp.Div) and self.integers:
                made = e.Call("floor", (made,))
            return made
        if isinstance(node, _CONDITIONS):
            return self.condition(node, leaf)
        return self.fail(
            node, f"{type(node).__name__.lower()} is not part of GSQL; numbers take + - * / % and functions"
        )

    def _function(self, node: exp.Anonymous, leaf: Leaf) -> e.Expr:
        name = str(node.this).lower()
        if name not in e.FUNCTIONS:
            known = {**e.FUNCTIONS, **functions.AGGREGATES, **self.known}
            self.fail(node, f"there is no function {str(node.this)!r}; {meant(name, known, 'there are')}")
        if name == "where" and node.expressions:
            first = self.condition(node.expressions[0], leaf)
            rest = [self.scalar(part, leaf) for part in node.expressions[1:]]
            return e.Call(name, (first, *rest))
        return e.Call(name, tuple(self.scalar(part, leaf) for part in node.expressions))

    def condition(self, node: exp.Expr, leaf: Leaf, negated: bool = False) -> e.Expr:
        """What is 1 where a condition holds, and 0 where it does not or a part of it is null."""
        if isinstance(node, exp.Paren):
            return self.condition(node.this, leaf, negated)
        if isinstance(node, exp.Not):
            return self.condition(node.this, leaf, not negated)
        if isinstance(node, (exp.And, exp.Or)):
            both = isinstance(node, exp.And) != negated
            parts = (self.condition(part, leaf, negated) for part in (node.this, node.expression))
            return e.Call("min" if both else "max", tuple(parts))
        if isinstance(node, exp.Between):
            low = exp.GTE(this=node.this, expression=node.args["low"])
            high = exp.LTE(this=node.this, expression=node.args["high"])
            return self.condition(exp.And(this=low, expression=high), leaf, negated)
        if isinstance(node, exp.In):
            if not node.expressions:
                self.fail(node, "in takes a list of values; write in (80, 443)")
            found = [self._compare(node, node.this, part, "!=" if negated else "==", leaf) for part in node.expressions]
            made = found[0]
            for other in found[1:]:
                made = e.Call("min" if negated else "max", (made, other))
            return made
        if isinstance(node, exp.Is):
            if not isinstance(node.expression, exp.Null):
                self.fail(node, "is takes null; write is null or is not null")
            return self._null(node.this, leaf, negated)
        if type(node) in _OPERATORS and isinstance(node, exp.Predicate):
            operator = _OPERATORS[type(node)]
            return self._compare(node, node.this, node.expression, _NEGATED[operator] if negated else operator, leaf)
        made = self.scalar(node, leaf)
        zero = e.Number(0.0)
        if negated:
            return e.Binary("==", made, zero)
        return e.Call("max", (e.Binary("<", made, zero), e.Binary(">", made, zero)))

    def _null(self, node: exp.Expr, leaf: Leaf, negated: bool) -> e.Expr:
        made = self.scalar(node, leaf)
        return e.Binary("==" if negated else "!=", made, made)  # NaN, which stands for null, is not itself

    def _compare(self, node: exp.Expr, left: exp.Expr, right: exp.Expr, operator: str, leaf: Leaf) -> e.Expr:
        left, right = bare(left), bare(right)
        if isinstance(left, exp.Literal) and left.is_string:
            left, right, operator = right, left, _TURNED[operator]
        if isinstance(right, exp.Literal) and right.is_string:
            return self._compare_text(node, left, right, operator, leaf)
        one, two = self.scalar(left, leaf), self.scalar(right, leaf)
        return _compared(operator, one, two)

    def _compare_text(self, node: exp.Expr, left: exp.Expr, right: exp.Literal, operator: str, leaf: Leaf) -> e.Expr:
        """A column compared with a text: an address, a time, or a text itself."""
        if not isinstance(left, exp.Column) or leaf != self.row_leaf:
            self.fail(right, "a text is compared with a column of texts, addresses or times, in where")
        name = self.column_name(left)
        kind = self.schema.field(name).type
        text = str(right.this)
        if is_time(kind):
            try:
                when = instant(text, "the time")
            except BadTime as why:
                self.fail(right, str(why))
            seconds = e.Number(abs(when) / SECOND)
            return _compared(operator, self.scalar(left, leaf), e.Negate(seconds) if when < 0 else seconds)
        if pa.types.is_integer(kind):
            return _compared(operator, e.Column(name), e.Number(float(self._address(right, text, 4))))
        value: str | bytes = text
        if pa.types.is_fixed_size_binary(kind):
            value = self._address(right, text, 6).to_bytes(16)
        elif not is_text(kind):
            self.fail(right, f"column {name!r} is {kind}, which is not compared with a text")
        made = e.Column(self.made.name(Matches(name, operator, value)))
        return e.Binary("!=", made, e.Number(0.0))

    def _address(self, node: exp.Expr, text: str, version: int) -> int:
        try:
            address = ip_address(text)
        except ValueError:
            address = None
        if address is None or address.version != version:
            example = "10.0.0.1" if version == 4 else "2001:db8::1"
            self.fail(node, f"{text!r} is no address of IPv{version}; write '{example}'")
        return int(address)


def _compared(operator: str, left: e.Expr, right: e.Expr) -> e.Expr:
    if operator == "!=":  # which would hold for NaN
        return e.Call("max", (e.Binary("<", left, right), e.Binary(">", left, right)))
    return e.Binary(operator, left, right)
