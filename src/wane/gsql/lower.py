"""Queries lowered to plans: every name found, every rule of the language checked, before a row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from wane import expr as e
from wane import fn, registry
from wane.decay import NoDecay
from wane.errors import GsqlError, WaneError
from wane.fn import Fn
from wane.grouped import LowLevel
from wane.gsql import functions
from wane.gsql.arguments import CallArguments
from wane.gsql.classes import METHODS, Call, Output, Part, Scratch
from wane.gsql.declare import Extractor, Udaf
from wane.gsql.dialect import Decayed, Select, read, start_of
from wane.gsql.expressions import Epoch, Expressions, Made
from wane.gsql.functions import Asked
from wane.gsql.place import Text, meant
from wane.gsql.program import Clock, Program, Query, Table
from wane.gsql.rows import Copy, Element, Number, Seconds, Step, Value, Whole
from wane.gsql.trees import bare, call_of, integer, is_number, is_time, literal, unaliased
from wane.plan import build, check
from wane.times import SECOND, Nanoseconds

_CLAUSES = {"expressions", "from_", "where", "group", "having", "with_", "kind"}

Schemas = Mapping[str, Table | pa.Schema]


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

    def source(self, tree: exp.Select, at: int) -> tuple[str, Table, Mapping[str, Clock]]:
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
            return query.name or "", self._as_table(query), query.clocks
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
            return name, self._as_table(query), query.clocks
        if name not in self.tables:
            there = {**self.tables, **self.views}
            raise self.place.error(place, f"there is no table {name!r}; {meant(name, there, 'the tables are')}")
        table = self.tables[name]
        return name, table, table.clocks

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
class _Group:
    """What a query groups by, one item."""

    node: exp.Expr
    name: str
    column: str
    """Where the answer has it."""


class _One(Expressions):
    """One query on its way to a plan."""

    def __init__(self, all_: _Lowering, tree: exp.Select, at: int) -> None:
        super().__init__()
        self.all = all_
        self.place = all_.place
        self.tree = tree
        self.at = at
        self._refuse_clauses()
        self.source, self.table, self.clocks = all_.source(tree, at)
        self.schema = self.table.schema
        self.known = {**all_.udafs, **all_.extractors}
        self.late = Made("wane_late_")  # of answers
        self.groups: list[_Group] = []
        self.asked: dict[Asked, str] = {}
        self.fns: list[Fn] = []
        self.calls: list[Call] = []  # of classes of a user's own
        self.outputs: dict[Output, str] = {}

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
        return any(self.is_aggregate(node) for item in self.tree.expressions for node in item.walk())

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
            inner, alias = unaliased(item)
            if isinstance(inner, exp.Column):
                column = self.column_name(inner)
                self._add_column(item, columns, alias or inner.name, Copy(column))
                clocks |= {alias or inner.name: self.clocks[column]} if column in self.clocks else {}
            else:
                label = alias or f"column_{len(columns) + 1}"
                self._add_column(item, columns, label, Number(self.scalar(inner, self.row_leaf)))
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
            inner, alias = unaliased(item)
            value, label = self._answer(inner)
            self._add_column(item, columns, alias or _fresh(label, columns), value)
        having = self.tree.args.get("having")
        kept = None if having is None else self.condition(having.this, self._answer_leaf)
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
        timed = time is not None and is_time(rows.field(time).type)
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
        if column in self.schema.names and is_time(self.schema.field(column).type):
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
                if is_time(self.schema.field(column).type):
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
        inner, alias = unaliased(item)
        name = alias or (inner.name if isinstance(inner, exp.Column) else f"group_{len(self.groups) + 1}")
        if any(group.name == name for group in self.groups):
            self.fail(item, f"two groups are called {name!r}; name one with as")
        if self.epoch is None and (epoch := self._epoch_of(inner)) is not None:
            self.epoch = epoch
            self.groups.append(_Group(inner, name, "epoch"))
            return
        if isinstance(inner, exp.Column):
            column = self.column_name(inner)
        else:
            self.integers = True
            made = self.scalar(inner, self.row_leaf)
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

    def _epoch_of(self, node: exp.Expr) -> Epoch | None:
        """The epochs that an expression of a growing column means, if it is one: ``time/60``, ``(time + 5)/60/60``."""
        if isinstance(node, exp.Paren):
            return self._epoch_of(node.this)
        if isinstance(node, exp.Column):
            name = self.column_name(node)
            if name not in self.clocks:
                return None
            clock = self.clocks[name]
            return Epoch(name, clock, clock.tick or SECOND, clock.offset)
        if not isinstance(node, (exp.Div, exp.Add, exp.Sub)):
            return None
        step = integer(node.expression)
        inner = self._epoch_of(node.this)
        if inner is None or step is None:
            return None
        if isinstance(node, exp.Div):
            if not 0 < step * inner.length < 2**61:
                self.fail(node, "an epoch must be longer than 0 and shorter than 73 years; divide by another number")
            return Epoch(inner.column, inner.clock, inner.length * step, inner.offset)
        moved = step * inner.length * (1 if isinstance(node, exp.Add) else -1)
        if abs(inner.offset - moved) > 2**61:
            self.fail(node, "the epochs start more than 73 years from 1970; add a smaller number")
        return Epoch(inner.column, inner.clock, inner.length, inner.offset - moved)

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
            column = self.column_name(node, quiet=True)
            for group in self.groups if column is not None else ():
                if isinstance(group.node, exp.Column) and self.column_name(group.node, quiet=True) == column:
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
        if self.is_aggregate(node):
            value, label = self._aggregate(node)
            return value, label
        if isinstance(node, exp.Column):
            self._not_grouped(node)
        label = next((str(call_of(part).this).lower() for part in node.walk() if self.is_aggregate(part)), "column")
        return Number(self.scalar(node, self._answer_leaf)), label

    def _not_grouped(self, node: exp.Column) -> NoReturn:
        self.column_name(node)
        grouped = ", ".join(group.name for group in self.groups) or "nothing"
        self.fail(node, f"{node.name!r} is neither a group nor inside of an aggregate; the groups are {grouped}")

    def _answer_leaf(self, node: exp.Expr) -> e.Expr | None:
        """A group or an aggregate inside of an expression."""
        group = self._group_for(node)
        if group is not None:
            value = self._group_value(group)
        elif self.is_aggregate(node):
            value = self._aggregate(node)[0]
        elif isinstance(node, exp.Column):
            named = self._named(node.name)
            if named is None:
                self._not_grouped(node)
            return self._answer_leaf(named) or self.scalar(named, self._answer_leaf)
        else:
            return None
        kind = None
        if isinstance(value, Copy) and value.column in self.schema.names:
            kind = self.schema.field(value.column).type
        if kind is not None and not is_number(kind):
            self.fail(node, f"{node.name!r} is {kind}, and numbers are needed here")
        if isinstance(value, Copy) and any(one.name == value.column and one.question in _LISTS for one in self.fns):
            self.fail(node, "this aggregate gives a list, and a number is needed here; put it into a column of its own")
        return e.Column(value.column) if isinstance(value, Copy) else e.Column(self.late.name(value))

    def _named(self, name: str) -> exp.Expr | None:
        """The item of the select that has a name, for having."""
        for item in self.tree.expressions:
            inner, alias = unaliased(item)
            if alias == name:
                return inner
        return None

    # --- Aggregates

    def _aggregate(self, node: exp.Expr) -> tuple[Value, str]:
        call = call_of(node)
        name = str(call.this).lower()
        own = self._own(call, name)
        if own is not None:
            if isinstance(node, Decayed):
                self.fail(node, f"{name} is a class of your own, and weighs rows itself; leave the decay away")
            return Copy(own), name
        try:
            arguments = CallArguments(self, call, node if isinstance(node, Decayed) else None)
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
        inner = bare(node)
        if isinstance(inner, exp.Column):
            return str(self.column_name(inner))
        return self.made.name(Number(self.scalar(inner, self.row_leaf)))

    def _constant(self, node: exp.Expr) -> float:
        number = literal(node) if isinstance(node, exp.Literal) and not node.is_string else None
        if number is None:
            self.fail(node, "a number belongs here, which is the same for all rows")
        return int(number.value) if number.value.is_integer() else number.value

    def _check_numbers(self, call: exp.Anonymous, name: str, asked: Fn) -> None:
        """Check what an aggregate of numbers is asked of."""
        column = asked.column
        if isinstance(column, e.Column) and column.name in self.schema.names:
            kind = self.schema.field(column.name).type
            numbers = registry.lookup(asked.summary).items == "numbers"
            if numbers and not (is_number(kind) or is_time(kind)):
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


_LISTS = ("top", "heavy", "quantiles", "sample")
"""Questions whose answers are lists."""


_ROWS = fn.count().alias("wane_rows")


def _fresh(label: str, columns: Mapping[str, Value]) -> str:
    name, number = label, 1
    while name in columns:
        number += 1
        name = f"{label}_{number}"
    return name
