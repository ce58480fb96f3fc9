"""Small questions about the trees of queries and about the types of columns."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from wane import expr as e
from wane.errors import WaneError
from wane.gsql.dialect import Decayed


def unaliased(node: exp.Expr) -> tuple[exp.Expr, str | None]:
    """An item, and the name it is given."""
    return (node.this, node.alias) if isinstance(node, exp.Alias) else (node, None)


def bare(node: exp.Expr) -> exp.Expr:
    """What parentheses hold."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def call_of(node: exp.Expr) -> exp.Anonymous:
    """The call of an aggregate, decayed or not."""
    found = node.this if isinstance(node, Decayed) else node
    assert isinstance(found, exp.Anonymous)
    return found


def alias_of(tree: exp.Select) -> str:
    """The name that a query gives its table."""
    found = tree.args.get("from_")
    return "" if found is None else str(found.this.alias or "")


def integer(node: exp.Expr) -> int | None:
    """The whole number that this is, or None."""
    node = bare(node)
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit() and len(node.this) < 19:
        return int(node.this)
    return None


def literal(node: exp.Literal) -> e.Number | None:
    """The number that this is, or None where no double holds it."""
    try:
        return e.Number(float(node.this))
    except (ValueError, WaneError):
        return None


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind))


def is_time(kind: pa.DataType) -> bool:
    """Whether values of a type are times."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
