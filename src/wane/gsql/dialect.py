"""The dialect: SQL's ``select``, with ``group by expression as name`` and ``aggregate(...) decay exp(half_life=10s)``.

A text is a file of declarations (:mod:`wane.gsql.declare`), views and queries. Every call is read alike, as a name and
arguments: what a name means is for :mod:`wane.gsql.lower` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser as PlainParser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer as PlainTokenizer

from wane.errors import GsqlError
from wane.gsql.declare import Declaration, declaration, is_declaration
from wane.gsql.place import Text

MOST = 100_000
"""Characters of a text at most."""

DEEPEST = 60
"""How deep parentheses may nest."""


class Decayed(exp.Expression, exp.Func):
    """An aggregate under a decay; `decay` is the decay's text, `since` its landmark's."""

    arg_types = {"this": True, "decay": True, "since": False}  # noqa: RUF012 -- as the library has it


class Gsql(Dialect):
    """What differs from plain SQL."""

    class Tokenizer(PlainTokenizer):
        """As in plain SQL; names may stand in double quotes or backquotes."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012

    class Parser(PlainParser):
        """Calls are names with arguments, none of which is known here."""

        FUNCTIONS: ClassVar[Any] = {}
        FUNCTION_PARSERS: ClassVar[Any] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {}
        NO_PAREN_FUNCTIONS: ClassVar[Any] = {}

        def _parse_window(self, this: Any, alias: bool = False) -> Any:
            """What follows a call: a decay, perhaps."""
            if this is None or not self._match_text_seq("DECAY"):
                return this
            first = self._curr
            if self._match_texts(("FORWARD", "BACKWARD")):
                pass
            self._advance_any(ignore_reserved=True)
            if self._curr and self._curr.token_type == TokenType.L_PAREN:
                depth = 0
                while self._curr:
                    depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(self._curr.token_type, 0)
                    self._advance()
                    if depth == 0:
                        break
            if not first or self._prev.start < first.start:
                self.raise_error("a decay is missing")
            made = Decayed(this=this, decay=exp.Literal.string(self.sql[first.start : self._prev.end + 1]))
            made.args["decay"].meta["start"] = first.start
            made.meta["start"] = start_of(this)
            if self._match_text_seq("SINCE"):
                since = self._parse_primary()
                if since is None:
                    self.raise_error("a time is missing")
                made.set("since", since)
            return made

        def _parse_group(self, skip_group_by_token: bool = False) -> Any:
            if not skip_group_by_token and not self._match(TokenType.GROUP_BY):
                return None
            found = self._parse_csv(lambda: self._parse_alias(self._parse_disjunction(), explicit=True))
            return self.expression(exp.Group(expressions=found))


@dataclass(frozen=True)
class Select:
    """A query; with the name of a view, where it is one."""

    tree: exp.Select
    name: str | None
    at: int


def read(text: str) -> tuple[Text, list[Declaration | Select]]:
    """The statements of a text.

    Raises:
        GsqlError: It cannot be read; the message points at the place.
    """
    if not isinstance(text, str):
        raise GsqlError(f"a query is a text, got a {type(text).__name__}; write 'select ... from TCP group by ...'")
    place = Text(text)
    if len(text) > MOST:
        raise GsqlError(f"queries have at most {MOST:,} characters, got {len(text):,}; split the file")
    found: list[Declaration | Select] = []
    for tokens in _statements(_tokens(place), place):
        if is_declaration(tokens):
            found.append(declaration(tokens, place))
        else:
            found.append(_select(tokens, place))
    if not any(isinstance(one, Select) for one in found):
        raise place.error(len(text), "there is no query; write select ... from TCP group by time/60 as tb")
    return place, found


def _tokens(place: Text) -> list[Token]:
    try:
        tokens: list[Token] = Gsql().tokenize(place.text)
    except TokenError as why:
        raise place.error(len(place.text), f"the text cannot be read: {_first(str(why))}") from None
    depth = 0
    for i, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth > DEEPEST:
            raise place.error(token.start, f"parentheses nest more than {DEEPEST} deep; compute a part in a view")
        if token.token_type == TokenType.DISTINCT and tokens[i + 1 : i + 2] and tokens[i + 1].text == "(":
            # An aggregate here, and elsewhere a word of SQL's own.
            tokens[i] = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
    return tokens


def _statements(tokens: Sequence[Token], place: Text) -> list[list[Token]]:
    """Split at semicolons outside of parentheses, and around declarations, which need none."""
    found: list[list[Token]] = []
    held: list[Token] = []
    depth = lists = 0
    for i, token in enumerate(tokens):
        if (
            depth == 0
            and held
            and (is_declaration(tokens[i : i + 2]) or (is_declaration(held) and lists == _lists(held)))
        ):
            found.append(held)
            held, lists = [], 0
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth, lists = depth - 1, lists + 1
            if depth < 0:
                raise place.error(token.start, "this parenthesis closes nothing; take it away")
        if token.token_type == TokenType.SEMICOLON and depth == 0:
            if held:
                found.append(held)
            held, lists = [], 0
        else:
            held.append(token)
    return [*found, held] if held else found


def _lists(declared: Sequence[Token]) -> int:
    """How many lists in parentheses a declaration has: a scratchpad's size and the types, or these alone."""
    return 2 if declared[1].text.upper() == "UDAF" else 1


def _select(tokens: list[Token], place: Text) -> Select:
    text = place.text
    try:
        # The library is not made for hostile text: whatever it stumbles over, the text is what is wrong.
        trees = Gsql().parser().parse(tokens, text)
    except ParseError as why:
        told = why.errors[0] if why.errors else {}
        at = _offset(text, told.get("line") or 1, told.get("col") or 1, told.get("highlight") or "")
        raise place.error(at, f"this cannot be read: {_first(told.get('description') or str(why))}") from None
    except RecursionError:
        raise place.error(tokens[0].start, "the query nests too deep; compute a part in a view") from None
    except Exception as why:
        raise place.error(tokens[0].start, f"the query cannot be read ({type(why).__name__})") from why
    tree = trees[0] if trees else None
    name = None
    if isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() == "VIEW":
        if not isinstance(tree.this, exp.Table):
            raise place.error(tokens[0].start, "a view has a name and a query: create view NAME as select ...")
        name = tree.this.name
        tree = tree.expression
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise place.error(tokens[0].start, "a query begins with select, and a view with create view NAME as select")
    return Select(tree, name, tokens[0].start)


def start_of(node: Any) -> int | None:
    """Where a part of a query starts, as far as it is known."""
    try:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    except RecursionError:
        return None
    return min(starts) if starts else None


def _offset(text: str, line: int, column: int, highlight: str) -> int:
    begin = 0
    for _ in range(line - 1):
        begin = text.find("\n", begin) + 1
    return begin + max(0, column - max(len(highlight), 1))


def _first(text: str) -> str:
    return text.splitlines()[0].rstrip(". ") if text else "it ends too early"
