"""What an aggregate is called with in a query."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from wane import expr as e
from wane.decay import Exponential, Poly, parse
from wane.errors import BadDecay, BadTime
from wane.gsql.dialect import Decayed
from wane.gsql.expressions import Expressions
from wane.gsql.place import meant
from wane.gsql.trees import bare, integer, literal
from wane.times import SECOND, Nanoseconds, instant


class CallArguments:
    """The arguments of an aggregate in a query, taken one by one; what is left over is refused."""

    def __init__(self, one: Expressions, call: exp.Anonymous, decayed: Decayed | None) -> None:
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
        """A column, or None for ``*``."""
        if len(self.places) == 1 and isinstance(self.places[0], exp.Star):
            self.places.pop()
            return None
        if not self.places:
            return None
        return self.column()

    def column(self) -> e.Expr:
        """A column or an expression of columns."""
        one = self.one
        if not self.places:
            one.fail(self.call, f"{self.call.this} needs a column; write {str(self.call.this).lower()}(len)")
        node = bare(self.places.pop(0))
        if isinstance(node, exp.Star):
            one.fail(node, f"{self.call.this} is asked of a column, and * are rows")
        if isinstance(node, exp.Distinct):
            one.fail(self.call, "write distinct(srcIP) for the number of distinct values")
        if isinstance(node, exp.Column):
            name = one.column_name(node)
            return e.Column(name)
        made = one.scalar(node, one.row_leaf)
        if not made.columns:
            one.fail(node, f"{self.call.this} of no column is the same for all rows; use a column")
        return made

    def number(self, name: str, example: str, default: float | None = None) -> float:
        """A number, by place or name."""
        node = self._one(name)
        if node is None:
            if default is None:
                self.one.fail(self.call, f"{self.call.this} needs {name}; write {example}")
            return default
        return self._value(node, name, example)

    def whole(self, name: str, example: str, default: int | None = None) -> int:
        """A whole number, by place or name."""
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
        """All the numbers that are left."""
        taken, self.places = self.places, []
        if not taken:
            self.one.fail(self.call, f"{self.call.this} needs numbers; write {example}")
        return tuple(self._value(node, "each", example) for node in taken)

    def seed(self) -> int:
        """The seed of random numbers, by name."""
        return self.whole("seed", "seed=1") if "seed" in self.names else 0

    def weight(self) -> Any:
        """A function of the seconds since an epoch's start, as the forward decay that has it as its `g`.

        The paper's seconds are whole, so that the query's time is cut to whole seconds (:meth:`_One._times`).
        """
        one = self.one
        example = f"{self.call.this}(srcIP, exp(time % 60))"
        if not self.places:
            one.fail(self.call, f"{self.call.this} needs a weight; write {example}")
        node = bare(self.places.pop(0))
        if self.decay != "none":
            one.fail(self.call, f"{self.call.this} has its weight as an argument; write sample(srcIP) decay ...")
        one.whole_seconds = True
        if isinstance(node, exp.Literal) and not node.is_string and (number := literal(node)) and number.value > 0:
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
        node, one = bare(node), self.one
        if not isinstance(node, exp.Mod) or not isinstance(time := bare(node.this), exp.Column) or one.epoch is None:
            return False
        length = integer(node.expression)
        native = one.epoch.clock.tick is None and one.epoch.offset == 0
        return native and one.column_name(time) == one.epoch.column and length == one.epoch.length // SECOND

    def _times_age(self, node: exp.Expr) -> float:
        """The factor of the seconds in ``time % 60``, ``0.1 * (time % 60)`` or ``(time % 60) / 10``; 0 for others."""
        node = bare(node)
        if self._is_age(node):
            return 1.0
        if isinstance(node, (exp.Mul, exp.Div)):
            left, right = bare(node.this), bare(node.expression)
            if isinstance(node, exp.Mul) and isinstance(left, exp.Literal):
                left, right = right, left
            if self._is_age(left) and isinstance(right, exp.Literal):
                factor = self._value(right, "the factor", "exp(0.1*(time % 60))")
                return factor if isinstance(node, exp.Mul) else 1 / factor if factor else 0.0
        return self.one.fail(node, "exp is asked of the seconds since the epoch's start; write exp(time % 60)")

    def _power_of_age(self, node: exp.Expr) -> int:
        """How often the seconds are multiplied with one another; 0 where anything else is."""
        node = bare(node)
        if self._is_age(node):
            return 1
        if not isinstance(node, exp.Mul):
            return 0
        parts = self._power_of_age(node.this), self._power_of_age(node.expression)
        return sum(parts) if all(parts) else 0

    def named(self, *names: str) -> dict[str, float]:
        """Those of some parameters that are given by name."""
        return {name: self._value(self.names.pop(name), name, f"{name}=0.01") for name in names if name in self.names}

    def done(self) -> None:
        """Refuse what is left over."""
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
        node = bare(node)
        sign = 1.0
        if isinstance(node, exp.Neg):
            sign, node = -1.0, node.this
        number = literal(node) if isinstance(node, exp.Literal) and not node.is_string else None
        if number is None:
            self.one.fail(node, f"{name} is a number; write {example}")
        return sign * number.value
