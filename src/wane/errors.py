"""Every exception that wane raises on purpose.

One tree under :class:`WaneError`, so that ``except wane.errors.WaneError`` catches them all and nothing else.
Each class also derives from the built-in exception a caller would expect, and each message names the value,
the rule it breaks and the remedy.
"""

from __future__ import annotations


class WaneError(Exception):
    """Base of every exception that wane raises on purpose."""


class BadParameter(WaneError, ValueError):
    """A parameter of a summary, decay, window or query breaks its rule."""


class BadDecay(BadParameter):
    """A decay that does not exist, cannot be parsed, or breaks Definition 1 of the forward-decay paper."""


class GsqlError(BadParameter):
    """A query that cannot be read or run; the message shows the place, which is `line` and `column`, from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class BadTime(WaneError, ValueError):
    """A time or a duration in a form that cannot be read, or outside what its unit can hold."""


class BadInput(WaneError, ValueError):
    """Items, times or weights that cannot be used: lengths that differ, a wrong type, a negative weight."""


class BeforeLandmark(BadInput):
    """An item older than the landmark, under the policy ``before="error"``."""


class QueryInPast(WaneError, ValueError):
    """``now`` lies before the newest item, so that some weights would pass 1."""


class EmptyWindow(WaneError, IndexError):
    """An item was to be evicted from a window that has none."""


class TooLate(BadInput):
    """An item later than the lateness that a window was promised."""


class Unsupported(WaneError, TypeError):
    """A thing asked of something that cannot do it; the message names what can."""


class MergeRefused(WaneError, ValueError):
    """Two states that no honest merge exists for: another kind, other parameters, another landmark."""


class CorruptState(WaneError, ValueError):
    """Bytes that are no state of wane's, or are one that was cut or changed on the way."""


class DuplicateName(WaneError, ValueError):
    """Two registered things claim one name."""


class UnknownName(WaneError, KeyError):
    """No registered thing has this name."""

    def __str__(self) -> str:
        """Give the message itself: `KeyError` would print its repr."""
        return str(self.args[0]) if self.args else ""


class MissingExtra(WaneError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""
