"""Queries lowered to plans: every name found, every rule of the language checked, before a row is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from wane import expr as e
from wane import fn, registry
from wane.decay import Exponential, NoDecay, Poly, parse
from wane.errors import BadDecay, BadTime, GsqlError, WaneError
from wane.fn import Fn
from wane.grouped import LowLevel
from wane.gsql import functions
from wane.gsql.classes import METHODS, Call, Output, Part, Scratch
from wane.gsql.declare import Extractor, Udaf
from wane.gsql.dialect import Decayed, Select, read, start_of
from wane.gsql.functions import Asked
from wane.gsql.place import Text, meant
from wane.gsql.program import Clock, Program, Query, Table
from wane.gsql.rows import Copy, Element, Matches, Number, Seconds, Step, Value, Whole
from wane.plan import build, check
from wane.times import SECOND, Nanoseconds, instant

ALIASES = {"sourceip": "srcIP", "destinationip": "destIP", "length": "len", "sourceport": "srcPort"}
"""Other names of columns, for tables that do not have the names themselves."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
    exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CLAUSES = {"expressions", "from_", "where", "group", "having", "with_", "kind"}

Schemas = Mapping[str, Table | pa.Schema]
Leaf = Callable[[exp.Expr], e.Expr | None]


def compile(text: str, tables: Schemas, bindings: Mapping[str, Any] | None = None) -> Program:
    """Read queries, and plan them for tables of known columns.

    Args:
        text: Declarations, views and queries.
        tables: What the queries may name, by name: schemas, or :class:`Table` to say more.
        bindings: What declared names stand for: the name of a built-in aggregate, a class (:mod:`.classes`), or of an
            extractor's function, a function.

    Raises:
        GsqlError: Something is wrong; the message shows the place.
    """
    place, statements = read(text)
    known = {name: table if isinstance(table, Table) else Table(table) for name, table in tables.items()}
    lowering = _Lowering(place, known, dict(bindings or {}))
    try:
        for statement in statements:
            if isinstance(statement, Select):
                lowering.add(statement)
            else:
                lowering.declare(statement)
    except RecursionError:
        raise place.error(0, "a query nests too deep; compute a part in a view") from None
    return Program(tuple(lowering.queries))


class _Lowering:
    """All queries of a text."""

    def __init__(self, place: Text, tables: dict[str, Table], bindings: dict[str, Any]) -> None:
        self.place = place
        self.tables = tables
        self.bindings = {**functions.BOUND, **bindings}
        self.views: dict[str, Query] = {}
        self.queries: list[Query] = []
        self.udafs: dict[str, Udaf] = {}
        self.extractors: dict[str, Extractor] = {}
        self.hidden = 0

    def declare(self, declared: Udaf | Extractor) -> None:
        if declared.name.lower() in {**self.udafs, **self.extractors}:
            raise self.place.error(declared.at, f"{declared.name} is declared twice; take one away")
        if isinstance(declared, Udaf):
            self.udafs[declared.name.lower()] = declared
        else:
            self.extractors[declared.name.lower()] = declared

    def add(self, select: Select, name: str | None = None) -> Query:
        name = name or select.name
        at = select.at if start_of(select.tree) is None else min(select.at, start_of(select.tree) or 0)
        if name is not None and (name in self.views or name in self.tables):
            raise self.place.error(at, f"there is a table or view {name!r} already; choose another name")
        for table in (select.tree.args.get("with_") or exp.With(expressions=[])).expressions:
            if not isinstance(table.this, exp.Select):
                raise self.place.error(at, "with NAME as (...) holds a query that begins with select")
            self.add(Select(table.this, table.alias, at))
        query = _One(self, select.tree, at).lower(name)
        self.queries.append(query)
        if name is not None:
            self.views[name] = query
        return query

    def source(self, tree: exp.Select, at: int) -> tuple[str, Table, Mapping[str, Clock], bool]:
        """The table that a query reads: its name, what it is, what grows with time, and whether it is a view."""
        found = tree.args.get("from_")
        node = None if found is None else found.this
        if node is None:
            raise self.place.error(at, "a query names its table; write select ... from TCP")
        if isinstance(node, exp.Subquery):
            self.hidden += 1
            inner = node.this
            if not isinstance(inner, exp.Select):
                raise self.place.error(at, "from (...) holds a query that begins with select")
            where = start_of(inner)
            query = self.add(Select(inner, None, at if where is None else where), node.alias or f"query {self.hidden}")
            return query.name or "", self._as_table(query), query.clocks, True
        where = start_of(node)
        place = at if where is None else where
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            raise self.place.error(place, "from takes the name of one table, or a query in parentheses")
        extra = sorted(key for key, value in node.args.items() if value and key not in ("this", "alias"))
        if extra:
            raise self.place.error(place, f"{extra[0]} is not part of GSQL; read one table, or chain queries by views")
        name = node.name
        if name in self.views:
            query = self.views[name]
            return name, self._as_table(query), query.clocks, True
        if name not in self.tables:
            there = {**self.tables, **self.views}
            raise self.place.error(place, f"there is no table {name!r}; {meant(name, there, 'the tables are')}")
        table = self.tables[name]
        return name, table, table.clocks, False

    def _as_table(self, query: Query) -> Table:
        """A view as a table; a view over a stream is one."""
        table: Table | None = None
        name = query.source
        while table is None:
            if name in self.views:
                name = self.views[name].source
            else:
                table = self.tables[name]
        return Table(query.schema, None, table.bounded)


@dataclass
class _Epoch:
    """The epochs that a query groups by."""

    column: str
    clock: Clock
    length: int
    offset: int


@dataclass
class _Group:
    """What a query groups by, one item."""

    node: exp.Expr
    name: str
    column: str
    """Where the answer has it."""


@dataclass
class _Made:
    """Columns that are made on the way, each once."""

    prefix: str
    values: dict[Value, str] = field(default_factory=dict)

    def name(self, value: Value) -> str:
        return self.values.setdefault(value, f"{self.prefix}{len(self.values)}")

    @property
    def items(self) -> tuple[tuple[str, Value], ...]:
        return tuple((name, value) for value, name in self.values.items())


class _One:
    """One query on its way to a plan."""

    def __init__(self, all_: _Lowering, tree: exp.Select, at: int) -> None:
        self.all = all_
        self.place = all_.place
        self.tree = tree
        self.at = at
        self._refuse_clauses()
        self.source, self.table, self.clocks, self.is_view = all_.source(tree, at)
        self.schema = self.table.schema
        self.made = _Made("wane_made_")  # of rows
        self.late = _Made("wane_late_")  # of answers
        self.used: dict[str, None] = {}
        self.groups: list[_Group] = []
        self.epoch: _Epoch | None = None
        self.asked: dict[Asked, str] = {}
        self.fns: list[Fn] = []
        self.calls: list[Call] = []  # of classes of a user's own
        self.outputs: dict[Output, str] = {}
        self.integers = False
        self.decayed: Decayed | None = None
        self.whole_seconds = False
        """Whether times count as whole seconds, as a spelled-out weight has them."""

    def fail(self, node: Any, why: str) -> NoReturn:
        where = start_of(node) if isinstance(node, exp.Expr) else None
        raise self.place.error(self.at if where is None else where, why) from None

    # --- The query as a whole

    def lower(self, name: str | None) -> Query:
        try:
            return self._grouped(name) if self._is_grouped() else self._chosen(name)
        except GsqlError:
            raise
        except WaneError as why:  # a rule of the plan's own
            self.fail(None, str(why))

    def _refuse_clauses(self) -> None:
        for key, value in self.tree.args.items():
            if value and key not in _CLAUSES:
                part = value[0] if isinstance(value, list) else value
                word = {"joins": "join", "order": "order by", "distinct": "select distinct", "laterals": "lateral"}
                self.fail(
                    part if isinstance(part, exp.Expr) and start_of(part) is not None else self.tree,
                    f"{word.get(key, key)} is not part of GSQL; a query is select ... from ... where ... group by ... "
                    "having ...",
                )

    def _is_grouped(self) -> bool:
        if self.tree.args.get("group") or self.tree.args.get("having"):
            return True
        return any(self._is_aggregate(node) for item in self.tree.expressions for node in item.walk())

    def _is_aggregate(self, node: exp.Expr) -> bool:
        if isinstance(node, Decayed):
            return True
        if not isinstance(node, exp.Anonymous):
            return False
        name = str(node.this).lower()
        return name in functions.AGGREGATES or name in self.all.udafs or name in self.all.extractors

    def _chosen(self, name: str | None) -> Query:
        """A query without groups: some columns of some rows."""
        where = self._where()
        columns: dict[str, Value] = {}
        clocks: dict[str, Clock] = {}
        for item in self.tree.expressions:
            if isinstance(item, exp.Star):
                for column in self.schema.names:
                    self._add_column(item, columns, column, Copy(column))
                    clocks |= {column: self.clocks[column]} if column in self.clocks else {}
                continue
            inner, alias = _unaliased(item)
            if isinstance(inner, exp.Column):
                column = self._column_name(inner)
                self._add_column(item, columns, alias or inner.name, Copy(column))
                clocks |= {alias or inner.name: self.clocks[column]} if column in self.clocks else {}
            else:
                label = alias or f"column_{len(columns) + 1}"
                self._add_column(item, columns, label, Number(self._scalar(inner, self._row_leaf)))
        step = Step(self.made.items, where, tuple(columns.items()))
        schema = step.schema(pa.schema([self.schema.field(column) for column in step.needs]))
        return Query(name, self.source, None, None, (), None, None, False, None, step, schema, clocks)

    def _grouped(self, name: str | None) -> Query:
        where = self._where()
        group = self.tree.args.get("group")
        for item in () if group is None else group.expressions:
            self._add_group(item)
        if self.epoch is None and not self.table.bounded:
            growing = ", ".join(self.clocks) or "none has it"
            self.fail(
                group or self.tree,
                "no column of this group by grows with time, so that nothing would ever close a group of the stream; "
                f"group by one that does ({growing}), as in group by time/60 as tb",
            )
        columns: dict[str, Value] = {}
        for item in self.tree.expressions:
            if isinstance(item, exp.Star):
                self.fail(item, "* of groups is nothing; name keys and aggregates")
            inner, alias = _unaliased(item)
            value, label = self._answer(inner)
            self._add_column(item, columns, alias or _fresh(label, columns), value)
        having = self.tree.args.get("having")
        kept = None if having is None else self._condition(having.this, self._answer_leaf)
        return self._finish(name, where, kept, columns)

    def _finish(self, name: str | None, where: e.Expr | None, kept: e.Expr | None, columns: dict[str, Value]) -> Query:
        if self.outputs:
            return self._by_classes(name, where, kept, columns)
        keys = [group.column for group in self.groups if group.column != "epoch"]
        time, every = self._times(where)
        fns = self.fns or [_ROWS]
        plan = build(fns, keys, time=time, every=every, where=where)
        rows = self._rows_schema(plan.columns)
        check(plan, rows)
        before = None
        if self.made.values:
            before = Step(self.made.items, None, tuple((column, Copy(column)) for column in plan.columns))
        after = Step(self.late.items, kept, tuple(columns.items()))
        answers = LowLevel(plan, rows).answers().schema.remove_metadata()
        schema, clocks = after.schema(answers), self._growing(columns)
        timed = time is not None and _is_time(rows.field(time).type)
        return Query(name, self.source, before, plan, tuple(fns), every, time, timed, None, after, schema, clocks)

    def _by_classes(
        self, name: str | None, where: e.Expr | None, kept: e.Expr | None, columns: dict[str, Value]
    ) -> Query:
        """A query whose aggregates are a user's own."""
        if self.fns:
            self.fail(None, "built-in aggregates and classes of your own do not share a query; put one into a view")
        rows: dict[str, Value] = {}
        if self.epoch is not None:
            rows["epoch"] = self._epoch_start()
        rows |= {group.column: Copy(group.column) for group in self.groups if group.column != "epoch"}
        keys = tuple(rows)
        rows |= {column: Copy(column) for call in self.calls for column in call.columns}
        before = Step(self.made.items, where, tuple(rows.items()))
        schema = before.schema(pa.schema([self.schema.field(column) for column in before.needs]))
        scratch = Scratch(keys, tuple(self.calls), tuple((label, output) for output, label in self.outputs.items()))
        after = Step(self.late.items, kept, tuple(columns.items()))
        made = after.schema(scratch.answers(schema))
        return Query(
            name, self.source, before, None, (), None, None, False, scratch, after, made, self._growing(columns)
        )

    def _growing(self, columns: Mapping[str, Value]) -> dict[str, Clock]:
        """The columns of the answer that grow with time."""
        if self.epoch is None:
            return {}
        clock = Clock(self.epoch.length, self.epoch.offset)
        return {label: clock for label, value in columns.items() if value == self._epoch_value()}

    def _epoch_start(self) -> Value:
        """The second at which a row's epoch starts."""
        assert self.epoch is not None
        column = self._time_column(self.epoch.column, self.epoch.clock)
        if column in self.schema.names and _is_time(self.schema.field(column).type):
            column = self.made.name(Seconds(column))
        length, offset = e.Number(self.epoch.length / SECOND), e.Number(abs(self.epoch.offset) / SECOND)
        away, back = ("+", "-") if self.epoch.offset < 0 else ("-", "+")
        number = e.Call("floor", (e.Binary("/", e.Binary(away, e.Column(column), offset), length),))
        return Whole(e.Binary(back, e.Binary("*", number, length), offset))

    def _rows_schema(self, columns: tuple[str, ...]) -> pa.Schema:
        """The columns that the plan meets."""
        if not self.made.values:
            return pa.schema([self.schema.field(column) for column in columns])
        step = Step(self.made.items, None, tuple((column, Copy(column)) for column in columns))
        return step.schema(pa.schema([self.schema.field(column) for column in step.needs]))

    def _times(self, where: e.Expr | None) -> tuple[str | None, tuple[str, int, int] | None]:
        """The column of times, and the epochs."""
        if self.epoch is not None:
            column = self._time_column(self.epoch.column, self.epoch.clock)
            if self.whole_seconds:
                if self.decayed is not None:
                    why = "a weight spelled out is of whole seconds, and a decay is not; ask them one by one"
                    self.fail(self.decayed, why)
                if _is_time(self.schema.field(column).type):
                    column = self.made.name(Seconds(column))
            return column, (column, Nanoseconds(self.epoch.length), Nanoseconds(self.epoch.offset))
        if any(not isinstance(one.decay, NoDecay) for one in self.fns):
            for name, clock in self.clocks.items():
                return self._time_column(name, clock), None
        return None, None

    def _time_column(self, name: str, clock: Clock) -> str:
        if clock.tick is None:
            return name
        start = e.Binary("*", e.Column(name), e.Number(clock.tick / SECOND))
        offset = e.Number(abs(clock.offset) / SECOND)
        return self.made.name(Whole(e.Binary("-" if clock.offset < 0 else "+", start, offset)))

    def _add_column(self, node: exp.Expr, columns: dict[str, Value], label: str, value: Value) -> None:
        if label in columns:
            self.fail(node, f"two columns of the answer are called {label!r}; name one with as")
        columns[label] = value

    # --- Groups

    def _add_group(self, item: exp.Expr) -> None:
        inner, alias = _unaliased(item)
        name = alias or (inner.name if isinstance(inner, exp.Column) else f"group_{len(self.groups) + 1}")
        if any(group.name == name for group in self.groups):
            self.fail(item, f"two groups are called {name!r}; name one with as")
        if self.epoch is None and (epoch := self._epoch_of(inner)) is not None:
            self.epoch = epoch
            self.groups.append(_Group(inner, name, "epoch"))
            return
        if isinstance(inner, exp.Column):
            column = self._column_name(inner)
        else:
            self.integers = True
            made = self._scalar(inner, self._row_leaf)
            self.integers = False
            if not made.columns:
                self.fail(item, "a group of no column is the same for all rows; leave it out")
            column = self.made.name(Whole(made) if self._is_whole(made) else Number(made))
        self.groups.append(_Group(inner, name, column))

    def _is_whole(self, made: e.Expr) -> bool:
        """Whether an expression is made of whole numbers only, so that its values are whole."""
        return all(
            name not in self.schema.names or not pa.types.is_floating(self.schema.field(name).type)
            for name in made.columns
        )

    def _epoch_of(self, node: exp.Expr) -> _Epoch | None:
        """The epochs that an expression of a growing column means, if it is one: ``time/60``, ``(time + 5)/60/60``."""
        if isinstance(node, exp.Paren):
            return self._epoch_of(node.this)
        if isinstance(node, exp.Column):
            name = self._column_name(node)
            if name not in self.clocks:
                return None
            clock = self.clocks[name]
            self.used[name] = None
            return _Epoch(name, clock, clock.tick or SECOND, clock.offset)
        if not isinstance(node, (exp.Div, exp.Add, exp.Sub)):
            return None
        step = _integer(node.expression)
        inner = self._epoch_of(node.this)
        if inner is None or step is None:
            return None
        if isinstance(node, exp.Div):
            if not 0 < step * inner.length < 2**61:
                self.fail(node, "an epoch must be longer than 0 and shorter than 73 years; divide by another number")
            return _Epoch(inner.column, inner.clock, inner.length * step, inner.offset)
        moved = step * inner.length * (1 if isinstance(node, exp.Add) else -1)
        if abs(inner.offset - moved) > 2**61:
            self.fail(node, "the epochs start more than 73 years from 1970; add a smaller number")
        return _Epoch(inner.column, inner.clock, inner.length, inner.offset - moved)

    def _epoch_value(self) -> Value:
        """The number of an epoch, from the time at which it starts."""
        assert self.epoch is not None
        start: e.Expr = e.Column("epoch")
        if self.epoch.offset:
            sign = "+" if self.epoch.offset < 0 else "-"
            start = e.Binary(sign, start, e.Number(abs(self.epoch.offset) / SECOND))
        return Whole(e.Binary("/", start, e.Number(self.epoch.length / SECOND)))

    def _group_value(self, group: _Group) -> Value:
        return self._epoch_value() if group.column == "epoch" else Copy(group.column)

    def _group_for(self, node: exp.Expr) -> _Group | None:
        if isinstance(node, exp.Column) and not node.table:
            for group in self.groups:
                if group.name == node.name:
                    return group
            column = self._column_name(node, quiet=True)
            for group in self.groups if column is not None else ():
                if isinstance(group.node, exp.Column) and self._column_name(group.node, quiet=True) == column:
                    return group
        return next((group for group in self.groups if group.node == node), None)

    # --- Answers

    def _answer(self, node: exp.Expr) -> tuple[Value, str]:
        """A column of the answer, and what it is called where the query does not say."""
        if isinstance(node, exp.Paren):
            return self._answer(node.this)
        group = self._group_for(node)
        if group is not None:
            return self._group_value(group), node.name if isinstance(node, exp.Column) else group.name
        if self._is_aggregate(node):
            value, label = self._aggregate(node)
            return value, label
        if isinstance(node, exp.Column):
            self._not_grouped(node)
        label = next((str(_call(part).this).lower() for part in node.walk() if self._is_aggregate(part)), "column")
        return Number(self._scalar(node, self._answer_leaf)), label

    def _not_grouped(self, node: exp.Column) -> NoReturn:
        self._column_name(node)
        grouped = ", ".join(group.name for group in self.groups) or "nothing"
        self.fail(node, f"{node.name!r} is neither a group nor inside of an aggregate; the groups are {grouped}")

    def _answer_leaf(self, node: exp.Expr) -> e.Expr | None:
        """A group or an aggregate inside of an expression."""
        group = self._group_for(node)
        if group is not None:
            value = self._group_value(group)
        elif self._is_aggregate(node):
            value = self._aggregate(node)[0]
        elif isinstance(node, exp.Column):
            named = self._named(node.name)
            if named is None:
                self._not_grouped(node)
            return self._answer_leaf(named) or self._scalar(named, self._answer_leaf)
        else:
            return None
        kind = None
        if isinstance(value, Copy) and value.column in self.schema.names:
            kind = self.schema.field(value.column).type
        if kind is not None and not _is_number(kind):
            self.fail(node, f"{node.name!r} is {kind}, and numbers are needed here")
        if isinstance(value, Copy) and any(one.name == value.column and one.question in _LISTS for one in self.fns):
            self.fail(node, "this aggregate gives a list, and a number is needed here; put it into a column of its own")
        return e.Column(value.column) if isinstance(value, Copy) else e.Column(self.late.name(value))

    def _named(self, name: str) -> exp.Expr | None:
        """The item of the select that has a name, for having."""
        for item in self.tree.expressions:
            inner, alias = _unaliased(item)
            if alias == name:
                return inner
        return None

    # --- Aggregates

    def _aggregate(self, node: exp.Expr) -> tuple[Value, str]:
        call = _call(node)
        name = str(call.this).lower()
        own = self._own(call, name)
        if own is not None:
            if isinstance(node, Decayed):
                self.fail(node, f"{name} is a class of your own, and weighs rows itself; leave the decay away")
            return Copy(own), name
        try:
            arguments = _Call(self, call, node if isinstance(node, Decayed) else None)
            asked = self._maker(call, name)(arguments)
            arguments.done()
        except GsqlError:
            raise
        except WaneError as why:
            self.fail(call, str(why))
        self._check_numbers(call, name, asked.fn)
        label = f"{name}_{asked.fn.column.name}" if isinstance(asked.fn.column, e.Column) else name
        if asked.fn.column is not None and label.startswith(f"{name}_wane_"):
            label = name
        if asked not in self.asked:
            self.asked[asked] = f"wane_answer_{len(self.asked)}"
            self.fns.append(asked.fn.alias(self.asked[asked]))
        column = self.asked[asked]
        return (Copy(column) if asked.element is None else Element(column, asked.element)), label

    def _own(self, call: exp.Anonymous, name: str) -> str | None:
        """The column of an aggregate or extractor that is a class of a user's own, or None."""
        extractor = self.all.extractors.get(name)
        inner = name if extractor is None else extractor.aggregate.lower()
        declared = self.all.udafs.get(inner)
        if declared is None or not (part := self._parts(declared, call)):
            return None
        low, high = part
        nodes = list(call.expressions)
        takes, further = declared.takes, () if extractor is None else extractor.further
        if len(nodes) != len(takes) + len(further):
            self.fail(call, f"{name} takes {len(takes) + len(further)} arguments, as declared, got {len(nodes)}")
        made = Call(low, high, tuple(self._argument(node) for node in nodes[: len(takes)]))
        if made not in self.calls:
            self.calls.append(made)
        function, constants = None, tuple(self._constant(node) for node in nodes[len(takes) :])
        if extractor is not None:
            function = self.all.bindings.get(extractor.function)
            if not callable(function):
                self.fail(
                    call, f"{extractor.function!r} is bound to no function; give bindings={{{extractor.function!r}: f}}"
                )
        gives = declared.gives if extractor is None else extractor.gives
        output = Output(self.calls.index(made), function, constants, gives)
        return self.outputs.setdefault(output, f"wane_answer_{len(self.outputs)}")

    def _parts(self, declared: Udaf, call: exp.Anonymous) -> tuple[Part | None, Part] | None:
        """The classes that a declared aggregate is, at the low level and at the high one; None where it is none."""
        found: list[Part | None] = []
        for name, flushes in ((declared.low, True), (declared.high or declared.name, False)):
            if name is None:
                found.append(None)
                continue
            bound = self.all.bindings.get(name, self.all.bindings.get(name.lower()))
            part = self.all.udafs.get(name.lower())
            if not isinstance(bound, type):
                if any(part is not None for part in found):
                    self.fail(call, f"{name!r} is bound to no class, and the low level's is; bind both")
                return None
            if part is None:
                self._bound(declared.name.lower(), call)
            assert part is not None
            lacking = [method for method in (*METHODS, *(["flushme"] if flushes else [])) if not hasattr(bound, method)]
            if lacking:
                raise self.place.error(part.at, f"the class {bound.__name__} of {name!r} has no method {lacking[0]!r}")
            found.append(Part(bound, part.scratchpad))
        assert found[1] is not None
        return found[0], found[1]

    def _argument(self, node: exp.Expr) -> str:
        """The column that a class of a user's own is given."""
        bare = _bare(node)
        if isinstance(bare, exp.Column):
            return str(self._column_name(bare))
        return self.made.name(Number(self._scalar(bare, self._row_leaf)))

    def _constant(self, node: exp.Expr) -> float:
        number = _number(node) if isinstance(node, exp.Literal) and not node.is_string else None
        if number is None:
            self.fail(node, "a number belongs here, which is the same for all rows")
        return int(number.value) if number.value.is_integer() else number.value

    def _check_numbers(self, call: exp.Anonymous, name: str, asked: Fn) -> None:
        """Check what an aggregate of numbers is asked of."""
        column = asked.column
        if isinstance(column, e.Column) and column.name in self.schema.names:
            kind = self.schema.field(column.name).type
            numbers = registry.lookup(asked.summary).items == "numbers"
            if numbers and not (_is_number(kind) or _is_time(kind)):
                self.fail(call, f"column {column.name!r} is {kind}, and {name} is asked of numbers")

    def _maker(self, call: exp.Anonymous, name: str) -> functions.Make:
        """What a name makes: a built-in aggregate, a declared one, or an extractor."""
        if name in self.all.extractors:
            declared = self.all.extractors[name]
            if declared.aggregate.lower() not in {**self.all.udafs, **functions.AGGREGATES, **functions.BOUND}:
                near = meant(declared.aggregate, self.all.udafs, "declared are")
                raise self.place.error(declared.at, f"there is no aggregate {declared.aggregate!r}; {near}")
            bound = self._bound(declared.aggregate.lower(), call)
            for (function, aggregate), make in functions.EXTRACTORS.items():
                if function == declared.function.lower() and aggregate == bound:
                    return make
            there = ", ".join(f"{function} of {aggregate}" for function, aggregate in functions.EXTRACTORS)
            raise self.place.error(declared.at, f"there is no {declared.function} of {bound}; there is {there}")
        if name in self.all.udafs:
            name = self._bound(name, call)
        return functions.AGGREGATES[name]

    def _bound(self, name: str, call: exp.Anonymous) -> str:
        """The built-in aggregate that a declared name stands for."""
        declared = self.all.udafs.get(name)
        for part in () if declared is None else (declared.low, declared.high):
            if part is not None and part.lower() not in self.all.udafs:
                assert declared is not None
                near = meant(part, self.all.udafs, "declared are")
                raise self.place.error(declared.at, f"{declared.name} has a part {part!r} that is not declared; {near}")
        bound = self.all.bindings.get(name, name)
        if bound not in functions.AGGREGATES:
            self.fail(
                call,
                f"{name!r} is declared, and bound to nothing that is there; give bindings={{{name!r}: 'median'}} "
                f"({meant(str(bound), functions.AGGREGATES, 'the aggregates are')})",
            )
        return str(bound)

    # --- Rows

    def _where(self) -> e.Expr | None:
        where = self.tree.args.get("where")
        return None if where is None else self._condition(where.this, self._row_leaf)

    def _row_leaf(self, node: exp.Expr) -> e.Expr | None:
        """A column of the source, as a number."""
        if self._is_aggregate(node):
            self.fail(node, f"{_call(node).this} is an aggregate, and rows are single here; use having, or a view")
        if not isinstance(node, exp.Column):
            return None
        name: str = self._column_name(node)
        kind = self.schema.field(name).type
        if name in self.clocks and self.clocks[name].tick is None and _is_time(kind):
            return e.Column(self.made.name(Seconds(name)))
        if not _is_number(kind):
            self.fail(node, f"column {name!r} is {kind}, and numbers are needed here")
        return e.Column(name)

    def _column_name(self, node: exp.Column, quiet: bool = False) -> Any:
        """The column that is meant: by its name, by its name in other letters, or by another name of it."""
        name, there = node.name, self.schema.names
        if not name or not isinstance(node.this, exp.Identifier):
            self.fail(node, "a column's name belongs here")
        if node.table and node.table not in (self.source, _alias_of(self.tree)):
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

    def _scalar(self, node: exp.Expr, leaf: Leaf) -> e.Expr:
        """A number, of columns that `leaf` knows."""
        if isinstance(node, exp.Paren):
            return self._scalar(node.this, leaf)
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
            return _number(node) or self.fail(node, f"{node.this!r} is no number that a double can hold")
        if isinstance(node, exp.Boolean):
            return e.Number(1.0 if node.this else 0.0)
        if isinstance(node, exp.Neg):
            return e.Negate(self._scalar(node.this, leaf))
        if isinstance(node, exp.Anonymous):
            return self._function(node, leaf)
        if type(node) in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod):
            left, right = self._scalar(node.this, leaf), self._scalar(node.expression, leaf)
            made: e.Expr = e.Binary(_OPERATORS[type(node)], left, right)
            if isinstance(node, exp.Div) and self.integers:
                made = e.Call("floor", (made,))
            return made
        if isinstance(node, _CONDITIONS):
            return self._condition(node, leaf)
        return self.fail(
            node, f"{type(node).__name__.lower()} is not part of GSQL; numbers take + - * / % and functions"
        )

    def _function(self, node: exp.Anonymous, leaf: Leaf) -> e.Expr:
        name = str(node.this).lower()
        if name not in e.FUNCTIONS:
            known = {**e.FUNCTIONS, **functions.AGGREGATES, **self.all.udafs, **self.all.extractors}
            self.fail(node, f"there is no function {str(node.this)!r}; {meant(name, known, 'there are')}")
        if name == "where" and node.expressions:
            first = self._condition(node.expressions[0], leaf)
            rest = [self._scalar(part, leaf) for part in node.expressions[1:]]
            return e.Call(name, (first, *rest))
        return e.Call(name, tuple(self._scalar(part, leaf) for part in node.expressions))

    def _condition(self, node: exp.Expr, leaf: Leaf, negated: bool = False) -> e.Expr:
        """What is 1 where a condition holds, and 0 where it does not or a part of it is null."""
        if isinstance(node, exp.Paren):
            return self._condition(node.this, leaf, negated)
        if isinstance(node, exp.Not):
            return self._condition(node.this, leaf, not negated)
        if isinstance(node, (exp.And, exp.Or)):
            both = isinstance(node, exp.And) != negated
            parts = (self._condition(part, leaf, negated) for part in (node.this, node.expression))
            return e.Call("min" if both else "max", tuple(parts))
        if isinstance(node, exp.Between):
            low = exp.GTE(this=node.this, expression=node.args["low"])
            high = exp.LTE(this=node.this, expression=node.args["high"])
            return self._condition(exp.And(this=low, expression=high), leaf, negated)
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
        made = self._scalar(node, leaf)
        zero = e.Number(0.0)
        if negated:
            return e.Binary("==", made, zero)
        return e.Call("max", (e.Binary("<", made, zero), e.Binary(">", made, zero)))

    def _null(self, node: exp.Expr, leaf: Leaf, negated: bool) -> e.Expr:
        made = self._scalar(node, leaf)
        return e.Binary("==" if negated else "!=", made, made)  # NaN, which stands for null, is not itself

    def _compare(self, node: exp.Expr, left: exp.Expr, right: exp.Expr, operator: str, leaf: Leaf) -> e.Expr:
        left, right = _bare(left), _bare(right)
        if isinstance(left, exp.Literal) and left.is_string:
            left, right, operator = right, left, _TURNED[operator]
        if isinstance(right, exp.Literal) and right.is_string:
            return self._compare_text(node, left, right, operator, leaf)
        one, two = self._scalar(left, leaf), self._scalar(right, leaf)
        return _compared(operator, one, two)

    def _compare_text(self, node: exp.Expr, left: exp.Expr, right: exp.Literal, operator: str, leaf: Leaf) -> e.Expr:
        """A column compared with a text: an address, a time, or a text itself."""
        if not isinstance(left, exp.Column) or leaf != self._row_leaf:
            self.fail(right, "a text is compared with a column of texts, addresses or times, in where")
        name = self._column_name(left)
        kind = self.schema.field(name).type
        text = str(right.this)
        if _is_time(kind):
            try:
                when = instant(text, "the time")
            except BadTime as why:
                self.fail(right, str(why))
            seconds = e.Number(abs(when) / SECOND)
            return _compared(operator, self._scalar(left, leaf), e.Negate(seconds) if when < 0 else seconds)
        if pa.types.is_integer(kind):
            return _compared(operator, e.Column(name), e.Number(float(self._address(right, text, 4))))
        value: str | bytes = text
        if pa.types.is_fixed_size_binary(kind):
            value = self._address(right, text, 6).to_bytes(16)
        elif not _is_text(kind):
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


class _Call:
    """The arguments of an aggregate in a query, taken one by one; what is left over is refused."""

    def __init__(self, one: _One, call: exp.Anonymous, decayed: Decayed | None) -> None:
        self.one = one
        self.call = call
        self.places: list[exp.Expr] = []
        self.names: dict[str, exp.Expr] = {}
        self.distinct = False
        for argument in call.expressions:
            if isinstance(argument, exp.EQ) and isinstance(argument.this, exp.Column) and self.places:
                self.names[argument.this.name.lower()] = argument.expression
            elif self.names:
                one.fail(argument, "an argument without a name comes before those with one")
            else:
                self.places.append(argument)
        self.decay: Any = "none" if decayed is None else self._decay(decayed)
        one.decayed = one.decayed or decayed
        self.landmark = None if decayed is None or decayed.args.get("since") is None else self._since(decayed)

    def _decay(self, decayed: Decayed) -> Any:
        literal = decayed.args["decay"]
        try:
            return parse(literal.this)
        except BadDecay as why:
            lines = str(why).splitlines()
            at = int(literal.meta["start"])
            if len(lines) == 3 and lines[2].strip() == "^" and len(literal.this) < 60:
                at += len(lines[2]) - 3
            raise self.one.place.error(at, lines[0].removeprefix("cannot read the decay: ")) from None

    def _since(self, decayed: Decayed) -> Any:
        literal = decayed.args["since"]
        if not isinstance(literal, exp.Literal):
            self.one.fail(decayed, "a landmark is a time in quotes, or seconds; write since '2026-01-05'")
        try:
            given = str(literal.this) if literal.is_string else float(literal.this)
            return Nanoseconds(instant(given, "the landmark"))
        except BadTime as why:
            self.one.fail(literal, str(why))

    def rows(self) -> e.Expr | None:
        if len(self.places) == 1 and isinstance(self.places[0], exp.Star):
            self.places.pop()
            return None
        if not self.places:
            return None
        return self.column()

    def column(self) -> e.Expr:
        one = self.one
        if not self.places:
            one.fail(self.call, f"{self.call.this} needs a column; write {str(self.call.this).lower()}(len)")
        node = _bare(self.places.pop(0))
        if isinstance(node, exp.Star):
            one.fail(node, f"{self.call.this} is asked of a column, and * are rows")
        if isinstance(node, exp.Distinct):
            one.fail(self.call, "write distinct(srcIP) for the number of distinct values")
        if isinstance(node, exp.Column):
            name = one._column_name(node)
            return e.Column(name)
        made = one._scalar(node, one._row_leaf)
        if not made.columns:
            one.fail(node, f"{self.call.this} of no column is the same for all rows; use a column")
        return made

    def number(self, name: str, example: str, default: float | None = None) -> float:
        node = self._one(name)
        if node is None:
            if default is None:
                self.one.fail(self.call, f"{self.call.this} needs {name}; write {example}")
            return default
        return self._value(node, name, example)

    def whole(self, name: str, example: str, default: int | None = None) -> int:
        node = self._one(name)
        if node is None:
            if default is None:
                self.one.fail(self.call, f"{self.call.this} needs {name}; write {example}")
            return default
        value = self._value(node, name, example)
        if not value.is_integer():
            self.one.fail(node, f"{name} is a whole number; write {example}")
        return int(value)

    def numbers(self, example: str) -> tuple[float, ...]:
        taken, self.places = self.places, []
        if not taken:
            self.one.fail(self.call, f"{self.call.this} needs numbers; write {example}")
        return tuple(self._value(node, "each", example) for node in taken)

    def seed(self) -> int:
        return self.whole("seed", "seed=1") if "seed" in self.names else 0

    def weight(self) -> Any:
        """A function of the seconds since an epoch's start, as the forward decay that has it as its `g`.

        The paper's seconds are whole, so that the query's time is cut to whole seconds (:meth:`_One._times`).
        """
        one = self.one
        example = f"{self.call.this}(srcIP, exp(time % 60))"
        if not self.places:
            one.fail(self.call, f"{self.call.this} needs a weight; write {example}")
        node = _bare(self.places.pop(0))
        if self.decay != "none":
            one.fail(self.call, f"{self.call.this} has its weight as an argument; write sample(srcIP) decay ...")
        one.whole_seconds = True
        if isinstance(node, exp.Literal) and not node.is_string and (number := _number(node)) and number.value > 0:
            return "none"
        try:
            if isinstance(node, exp.Anonymous) and str(node.this).lower() == "exp" and len(node.expressions) == 1:
                return Exponential(rate=self._times_age(node.expressions[0]))
            if isinstance(node, exp.Anonymous) and str(node.this).lower() == "pow" and len(node.expressions) == 2:
                if self._is_age(node.expressions[0]):
                    return Poly(self._value(node.expressions[1], "the power", "pow(time % 60, 2)"))
            elif (power := self._power_of_age(node)) > 0:
                return Poly(power)
        except BadDecay as why:
            one.fail(node, str(why))
        length = 60 if one.epoch is None else one.epoch.length // SECOND
        return one.fail(
            node,
            f"a weight is exp(x), exp(0.1*x), x, x*x or pow(x, 3) of the seconds x = time % {length} since the epoch's "
            f"start; write {example}",
        )

    def _is_age(self, node: exp.Expr) -> bool:
        """Whether this is ``time % 60``, the seconds since the start of an epoch of 60."""
        node, one = _bare(node), self.one
        if not isinstance(node, exp.Mod) or not isinstance(time := _bare(node.this), exp.Column) or one.epoch is None:
            return False
        length = _integer(node.expression)
        native = one.epoch.clock.tick is None and one.epoch.offset == 0
        return native and one._column_name(time) == one.epoch.column and length == one.epoch.length // SECOND

    def _times_age(self, node: exp.Expr) -> float:
        """The factor of the seconds in ``time % 60``, ``0.1 * (time % 60)`` or ``(time % 60) / 10``; 0 for others."""
        node = _bare(node)
        if self._is_age(node):
            return 1.0
        if isinstance(node, (exp.Mul, exp.Div)):
            left, right = _bare(node.this), _bare(node.expression)
            if isinstance(node, exp.Mul) and isinstance(left, exp.Literal):
                left, right = right, left
            if self._is_age(left) and isinstance(right, exp.Literal):
                factor = self._value(right, "the factor", "exp(0.1*(time % 60))")
                return factor if isinstance(node, exp.Mul) else 1 / factor if factor else 0.0
        return self.one.fail(node, "exp is asked of the seconds since the epoch's start; write exp(time % 60)")

    def _power_of_age(self, node: exp.Expr) -> int:
        """How often the seconds are multiplied with one another; 0 where anything else is."""
        node = _bare(node)
        if self._is_age(node):
            return 1
        if not isinstance(node, exp.Mul):
            return 0
        parts = self._power_of_age(node.this), self._power_of_age(node.expression)
        return sum(parts) if all(parts) else 0

    def named(self, *names: str) -> dict[str, float]:
        return {name: self._value(self.names.pop(name), name, f"{name}=0.01") for name in names if name in self.names}

    def done(self) -> None:
        for node in self.places:
            self.one.fail(node, f"{self.call.this} takes no further argument")
        for name, node in self.names.items():
            near = meant(name, ("epsilon", "delta", "k", "phi"), "there are")
            self.one.fail(node, f"{self.call.this} has no parameter {name!r}; {near}")

    def _one(self, name: str) -> exp.Expr | None:
        if name in self.names:
            return self.names.pop(name)
        return self.places.pop(0) if self.places else None

    def _value(self, node: exp.Expr, name: str, example: str) -> float:
        node = _bare(node)
        sign = 1.0
        if isinstance(node, exp.Neg):
            sign, node = -1.0, node.this
        number = _number(node) if isinstance(node, exp.Literal) and not node.is_string else None
        if number is None:
            self.one.fail(node, f"{name} is a number; write {example}")
        return sign * number.value


_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
)  # fmt: skip
_LISTS = ("top", "heavy", "quantiles", "sample")
"""Questions whose answers are lists."""


_ROWS = fn.count().alias("wane_rows")


def _compared(operator: str, left: e.Expr, right: e.Expr) -> e.Expr:
    if operator == "!=":  # which would hold for NaN
        return e.Call("max", (e.Binary("<", left, right), e.Binary(">", left, right)))
    return e.Binary(operator, left, right)


def _unaliased(node: exp.Expr) -> tuple[exp.Expr, str | None]:
    return (node.this, node.alias) if isinstance(node, exp.Alias) else (node, None)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _call(node: exp.Expr) -> exp.Anonymous:
    found = node.this if isinstance(node, Decayed) else node
    assert isinstance(found, exp.Anonymous)
    return found


def _alias_of(tree: exp.Select) -> str:
    found = tree.args.get("from_")
    return "" if found is None else str(found.this.alias or "")


def _fresh(label: str, columns: Mapping[str, Value]) -> str:
    name, number = label, 1
    while name in columns:
        number += 1
        name = f"{label}_{number}"
    return name


def _integer(node: exp.Expr) -> int | None:
    node = _bare(node)
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit() and len(node.this) < 19:
        return int(node.this)
    return None


def _number(node: exp.Literal) -> e.Number | None:
    try:
        return e.Number(float(node.this))
    except (ValueError, WaneError):
        return None


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
