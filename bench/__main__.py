"""``python -m bench [CASE...]``; exit status 1 when a target is missed."""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.registered import case_of
from bench.runner import Comparison, Finding, Settings, figures, record
from wane.cli.output import show_table
from wane.registry import cards

FOLDER = Path(__file__).parent / "cases"
WHAT = {"summaries": "updates", "monoids": "in a window", "windows": "steps"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for."""
    parser = argparse.ArgumentParser("python -m bench", description="Measure wane side by side with its peers.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="the cases to run; all of them by default")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each figure")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data (1)")
    asked = parser.parse_args(arguments)
    known = names()
    for name in asked.cases:
        if name not in known:
            parser.error(f"there is no case {name!r}; the cases are {', '.join(known)}")
    if asked.list:
        show_table(("case", "what"), list(known.items()))
        return 0
    settings = Settings(asked.quick, asked.seed)
    run = record(settings)
    if asked.json:
        print(json.dumps(run))
    else:
        print("; ".join(f"{name}: {fact}" for name, fact in {**run["machine"], **run["versions"]}.items()))
    missed = False
    for name in asked.cases or known:
        found = []
        for comparison in comparisons(name, settings):
            for figure in figures(name, comparison, settings):
                found.append(figure)
                missed |= figure["ok"] is False
                if asked.json:
                    print(json.dumps(figure), flush=True)
        if not asked.json:
            _show(name, found)
    return 1 if missed else 0


def names() -> dict[str, str]:
    """Every case, with what it measures."""
    known = {name: title for name, (_, title) in sorted(_files().items())}
    # What is made only of what a user gives has no case of its own.
    measured = {name: spec for name, spec in cards().items() if spec.parameters}
    return known | {name: f"{spec.title}: {WHAT[spec.folder]}" for name, spec in measured.items() if name not in known}


def comparisons(name: str, settings: Settings) -> Iterator[Comparison | Finding]:
    """What a case compares: what its file says, and what follows from its being registered."""
    if name in (files := _files()):
        module = import_module(f"bench.cases.{files[name][0]}")
        run = getattr(module, name.replace("-", "_") if hasattr(module, "CASES") else "comparisons")
        yield from run(settings)
    if name in cards():
        yield from case_of(cards()[name])(settings)


def _files() -> dict[str, tuple[str, str]]:
    """The cases that have a file: its name, and what they measure.

    A file is one case, or several: then it names them in a dictionary `CASES`, and has a function for each. Nothing is
    imported to find out.
    """
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem == "__init__":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        several = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "CASES"
        ]
        title = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
        for name, what in (several[0] if several else {path.stem: title}).items():
            found[name] = (path.stem, what)
    return found


def _show(name: str, found: Sequence[dict[str, Any]]) -> None:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    verdict = {True: "met", False: "MISSED", None: ""}
    head = ("what", "against", "ours", "peer", "ratio", "unit", "target", "")
    rows = [
        [
            figure["what"],
            figure["against"] or "",
            *(number(figure[field]) for field in ("ours", "peer", "ratio")),
            figure["unit"],
            number(figure["target"]),
            verdict[figure["ok"]],
        ]
        for figure in found
    ]
    show_table(head, rows, name, right=("ours", "peer", "ratio", "target"))


if __name__ == "__main__":
    sys.exit(main())
