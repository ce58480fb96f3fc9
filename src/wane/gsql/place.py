"""Places in a query's text, for messages that point at them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from wane.errors import GsqlError

_AROUND = 60  # characters of the line on either side of the caret


class Text:
    """The text of some queries."""

    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, at: int, why: str) -> GsqlError:
        """An error that shows the line (of a long one, the part around the place) with a caret under the place."""
        at = max(0, min(at, len(self.text)))
        begin = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line, column = self.text.count("\n", 0, at) + 1, at - begin + 1
        start = max(begin, at - _AROUND)
        stop = min(len(self.text) if end < 0 else end, at + _AROUND)
        shown = "".join(c if c.isprintable() else " " for c in self.text[start:stop])
        dots = "..." if start > begin else ""
        message = f"line {line}, column {column}: {why}\n  {dots}{shown}\n  {' ' * (len(dots) + at - start)}^"
        return GsqlError(message, line, column)


def meant(word: str, known: Iterable[str], what: str) -> str:
    """What was probably meant, or what there is."""
    there = sorted(known)
    folded = {name.lower(): name for name in there}
    near = difflib.get_close_matches(word.lower(), folded, 1, 0.6)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    return f"{what} {', '.join(there)}" if there else f"{what} none"
