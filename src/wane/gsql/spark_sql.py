"""Programs as plain Spark SQL, where every aggregate is algebraic: a sum, a mean, an extreme of weighted numbers.

By epochs now is the end of each, so that a row's weight is a function of its own time, and no more than a column is
needed. Decays that are known so: none, landmark, ``exp`` and ``poly``.
"""

from __future__ import annotations

from wane import expr as e
from wane.decay import Decay, Exponential, Landmark, NoDecay, Poly
from wane.errors import Unsupported
from wane.fn import Fn
from wane.grouped.query import Every
from wane.gsql.program import Program, Query
from wane.gsql.rows import Copy, Element, Matches, Number, Seconds, Step, Value
from wane.times import SECOND

_PLAIN = {"log": "ln", "log2": "log2", "log10": "log10", "exp": "exp", "sqrt": "sqrt", "abs": "abs", "floor": "floor",
          "ceil": "ceil", "pow": "power"}  # fmt: skip


def spark_sql(program: Program) -> str:
    """The last query of a program, and the views that it reads, as one statement.

    Raises:
        Unsupported: An aggregate or a decay is not algebraic.
    """
    last = program.asked[-1]
    views: list[str] = []
    needed = {last.source}
    for query in reversed(program.queries):
        if query.name in needed and query is not last:
            needed.add(query.source)
            views.insert(0, f"{_name(str(query.name))} AS (\n{_indented(_query(query))}\n)")
    return (f"WITH {', '.join(views)}\n" if views else "") + _query(last)


def _query(query: Query) -> str:
    plan = query.plan
    if query.scratch is not None:
        raise Unsupported("classes of a user's own are no sums in plain SQL; run it with ws.gsql")
    if plan is None:
        return _select(query.after, _name(query.source))
    inner = ["*"]
    made = {} if query.before is None else dict(query.before.made)
    inner += [f"{_value(value)} AS {_name(name)}" for name, value in made.items()]
    if plan.every is not None:
        length, offset = plan.every.length / SECOND, plan.every.offset / SECOND
        since, whole, second = _since(str(plan.time), query, plan.every)
        inner.append(f"({since} - pmod({since}, {whole})) / {whole} AS wane_epoch")
        inner.append(f"pmod({since}, {whole}) / {second} AS wane_age")
    where = "" if plan.where is None else f"\nWHERE {_expr(plan.where)} <> 0"
    rows = f"SELECT {', '.join(inner)}\nFROM {_name(query.source)}"
    kept = f"SELECT *\nFROM (\n{_indented(rows)}\n){where}" if where else rows
    columns, groups = [], []
    if plan.every is not None:
        columns.append(f"wane_epoch * {_double(length)} + {_double(offset)} AS `epoch`")
        groups.append("wane_epoch")
    columns += [_name(key) for key in plan.keys]
    groups += [_name(key) for key in plan.keys]
    columns += [f"{_aggregate(fn, query)} AS {_name(fn.name)}" for fn in query.fns]
    grouped = f"SELECT {', '.join(columns)}\nFROM (\n{_indented(kept)}\n)"
    if groups:
        grouped += f"\nGROUP BY {', '.join(groups)}"
    return _select(query.after, f"(\n{_indented(grouped)}\n)")


def _select(step: Step, source: str) -> str:
    columns = ", ".join(f"{_value(value)} AS {_name(name)}" for name, value in step.columns)
    if step.made:
        made = ", ".join(f"{_value(value)} AS {_name(name)}" for name, value in step.made)
        source = f"(\n{_indented(f'SELECT *, {made}' + chr(10) + f'FROM {source}')}\n)"
    where = "" if step.where is None else f"\nWHERE {_expr(step.where)} <> 0"
    return f"SELECT {columns}\nFROM {source}{where}"


def _aggregate(fn: Fn, query: Query) -> str:
    """One aggregate, of weighted numbers."""
    if fn.summary not in ("moments", "extrema") or fn.question not in _AGGREGATES:
        raise Unsupported(f"{fn} is no algebraic sum, and plain SQL has no such thing; run it with ws.gsql")
    weight = _weight(fn, query)
    if fn.column is None:
        return "CAST(count(*) AS DOUBLE)" if weight is None else f"coalesce(sum({weight}), 0D)"
    value = _expr(fn.column)
    if weight is None:
        return {
            "count": f"CAST(count({value}) AS DOUBLE)",
            "sum": f"coalesce(sum({value}), 0D)",
            "mean": f"avg({value})",
            "var": f"var_pop({value})",
            "std": f"stddev_pop({value})",
            "min": f"min({value})",
            "max": f"max({value})",
        }[fn.question]
    there = f"CASE WHEN {value} IS NOT NULL THEN {weight} END"
    if fn.question in ("var", "std"):
        raise Unsupported(f"{fn} as plain SQL would cancel; run it with ws.gsql")
    return {
        "count": f"coalesce(sum({there}), 0D)",
        "sum": f"coalesce(sum({weight} * {value}), 0D)",
        "mean": f"try_divide(sum({weight} * {value}), sum({there}))",
        "min": f"min({weight} * {value})",
        "max": f"max({weight} * {value})",
    }[fn.question]


_AGGREGATES = ("count", "sum", "mean", "var", "std", "min", "max")


def _weight(fn: Fn, query: Query) -> str | None:
    """The weight of a row at the end of its epoch; None is 1."""
    decay: Decay = fn.decay
    if isinstance(decay, (NoDecay, Landmark)) and fn.landmark is None:
        return None
    plan = query.plan
    if plan is None or plan.every is None or fn.landmark is not None:
        raise Unsupported(f"{fn} as plain SQL needs epochs, and no landmark of its own; run it with ws.gsql")
    length = _double(plan.every.length / SECOND)
    if isinstance(decay, Exponential):
        return f"exp({_double(decay.alpha)} * (wane_age - {length}))"
    if isinstance(decay, Poly):
        return f"power(wane_age / {length}, {_double(decay.beta)})"
    raise Unsupported(f"{fn} has no short form in plain SQL; run it with ws.gsql")


def _since(time: str, query: Query, every: Every) -> tuple[str, str, str]:
    """How long after the start of some epoch a row is, the length of an epoch, and a second, in one unit.

    Times are whole microseconds, of which no digit is lost.
    """
    made = {} if query.before is None else dict(query.before.made)
    if query.timed and time not in made:
        micros = f"unix_micros(CAST({_name(time)} AS TIMESTAMP))"
        return f"({micros} - ({every.offset // 1000}L))", f"{every.length // 1000}L", "1000000D"
    seconds = _value(made[time]) if time in made else _name(time)
    return f"(CAST({seconds} AS DOUBLE) - {_double(every.offset / SECOND)})", _double(every.length / SECOND), "1D"


def _value(value: Value) -> str:
    if isinstance(value, Copy):
        return _name(value.column)
    if isinstance(value, Seconds):
        return f"unix_seconds({_name(value.column)})"
    if isinstance(value, Number):
        return _expr(value.expr)
    if isinstance(value, Matches):
        literal = f"X'{value.value.hex()}'" if isinstance(value.value, bytes) else _text(value.value)
        operator = {"==": "=", "!=": "<>"}.get(value.operator, value.operator)
        return f"coalesce(CAST({_name(value.column)} {operator} {literal} AS DOUBLE), 0D)"
    if isinstance(value, Element):
        raise Unsupported("plain SQL has no quantiles with a guarantee; run it with ws.gsql")
    return f"CAST(floor({_expr(value.expr)}) AS BIGINT)"


def _expr(expr: e.Expr) -> str:
    """An expression of doubles; null stands for what is missing."""
    if isinstance(expr, e.Number):
        return _double(expr.value)
    if isinstance(expr, e.Column):
        return f"nullif(CAST({_name(expr.name)} AS DOUBLE), DOUBLE('NaN'))"
    if isinstance(expr, e.Negate):
        return f"(-{_expr(expr.operand)})"
    if isinstance(expr, e.Binary):
        return _binary(expr.operator, _expr(expr.left), _expr(expr.right))
    assert isinstance(expr, e.Call)
    parts = [_expr(part) for part in expr.arguments]
    if expr.function == "where":
        return f"CASE WHEN {parts[0]} IS NULL THEN NULL WHEN {parts[0]} <> 0 THEN {parts[1]} ELSE {parts[2]} END"
    if expr.function in ("min", "max"):
        least = "least" if expr.function == "min" else "greatest"
        return f"CASE WHEN {parts[0]} + {parts[1]} IS NULL THEN NULL ELSE {least}({parts[0]}, {parts[1]}) END"
    return f"CAST({_PLAIN[expr.function]}({', '.join(parts)}) AS DOUBLE)"


def _binary(operator: str, left: str, right: str) -> str:
    if operator in ("+", "-", "*"):
        return f"({left} {operator} {right})"
    if operator == "/":
        return f"try_divide({left}, {right})"
    if operator == "%":
        return f"pmod({left}, {right})"
    if operator == "**":
        return f"power({left}, {right})"
    compare = {"==": "=", "!=": "<>"}.get(operator, operator)
    missing = "1D" if operator == "!=" else "0D"  # as with NaN, which stands for null
    return f"coalesce(CAST(({left} {compare} {right}) AS DOUBLE), {missing})"


def _double(number: float) -> str:
    return f"{number!r}D" if number >= 0 else f"(-{-number!r}D)"


def _name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
