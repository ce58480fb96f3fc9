"""``wane list``: what there is, from the facts that each thing registers."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from wane.cli.output import show_table
from wane.registry import Spec, lookup, specs

EXAMPLE = "wane list spacesaving"


def command(
    name: Annotated[str | None, typer.Argument(help="Show all that is known of this one.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the summaries: what each answers, and what its answers are worth."""
    if as_json:
        found = facts(lookup(name)) if name else [facts(spec) for spec in specs().values()]
        print(json.dumps(found, indent=2))
    elif name:
        _show_card(lookup(name))
    else:
        head = ("name", "answers", "guarantee", "equality", "decays", "space", "paper")
        show_table(head, [[_text(facts(spec)[fact]) for fact in head] for spec in specs().values()])


def facts(spec: Spec) -> dict[str, Any]:
    """The fact card of one thing, as plain values."""
    return {
        "name": spec.name,
        "title": spec.title,
        "class": f"{spec.make.__module__}.{spec.make.__qualname__}",
        "answers": list(spec.questions),
        "timeless": list(spec.timeless),
        "functions": [f"fn.{name}" for name in spec.functions],
        "guarantee": spec.guarantee,
        "equality": spec.equality.value,
        "decays": sorted(spec.decays),
        "items": spec.items,
        "space": spec.space,
        "time": spec.time,
        "paper": spec.paper,
        "absent laws": dict(spec.absent),
        "version": spec.version,
    }


def _show_card(spec: Spec) -> None:
    card = facts(spec)
    width = max(map(len, card))
    for fact, value in card.items():
        if value or value == 0:
            print(f"{fact.ljust(width)}  {_text(value)}")
    print()
    print(inspect.getdoc(spec.make) or "")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {why}" for name, why in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
