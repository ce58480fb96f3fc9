"""Progress of long work, on standard error: a bar at a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from wane.sources.base import Source

EVERY = 10.0
"""Seconds between two lines, where there is no terminal; what is done sooner is done without a line."""

Report = Callable[[int, int], None]


@contextmanager
def progress(what: str, unit: str = "bytes") -> Iterator[Report]:
    """Show how far work has come; gives a function to call with what is done and how much there is in all."""
    if not sys.stderr.isatty():
        yield _lines(what, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole or None)


def _lines(what: str, unit: str) -> Report:
    last = time.monotonic()

    def report(done: int, whole: int) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            share = f" ({done / whole:.0%})" if whole else ""
            print(f"{what}: {done:,} of {whole:,} {unit}{share}", file=sys.stderr)

    return report


class Watched(Source):
    """A source that tells how far it has been read."""

    def __init__(self, source: Source, report: Report) -> None:
        self.source = source
        self.report = report
        self.kind = source.kind
        self.schema = source.schema
        self.paths = source.paths
        self.dropped = source.dropped

    def _rows(self, names: Any) -> Iterator[Any]:
        yield from self.batches(names)

    def batches(self, columns: Iterable[str] | None = None) -> Iterator[Any]:
        """The source's rows."""
        size = self.source.size
        for batch in self.source.batches(columns):
            self.report(min(self.source.position, size), size)
            yield batch
