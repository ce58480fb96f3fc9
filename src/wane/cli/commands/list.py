"""``wane list``: what there is, from the facts that each thing registers."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from wane.cli.output import show_table
from wane.registry import Card, MonoidSpec, Spec, WindowSpec, cards, find

HEADS = {
    "summaries": ("name", "answers", "guarantee", "equality", "decays", "space", "paper"),
    "monoids": ("name", "title", "has", "items", "guarantee", "space", "time", "paper"),
    "windows": ("name", "title", "order", "needs", "space", "time", "paper"),
}
"""What the table of each folder shows."""

EXAMPLE = "wane list spacesaving"


def command(
    name: Annotated[str | None, typer.Argument(help="Show all that is known of this one.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the summaries, monoids and windows: what each answers or does, and what that is worth."""
    if as_json:
        found = facts(find(name)) if name else [facts(card) for card in cards().values()]
        print(json.dumps(found, indent=2))
    elif name:
        _show_card(find(name))
    else:
        for folder, head in HEADS.items():
            known = [facts(card) for card in cards().values() if card.folder == folder]
            show_table(head, [[_text(card[fact]) for fact in head] for card in known], folder)
            print()


def facts(card: Card) -> dict[str, Any]:
    """The fact card of one thing, as plain values."""
    own: dict[str, Any] = {}
    if isinstance(card, Spec):
        own = {
            "answers": list(card.questions),
            "timeless": list(card.timeless),
            "functions": [f"fn.{name}" for name in card.functions],
            "equality": card.equality.value,
            "decays": sorted(card.decays),
            "items": card.items,
            "absent laws": dict(card.absent),
            "version": card.version,
        }
    elif isinstance(card, MonoidSpec):
        own = {"has": sorted(card.has), "items": card.items, "native": card.native}
    elif isinstance(card, WindowSpec):
        own = {"order": card.order, "needs": sorted(card.needs), "combines at most": list(card.steps or ())}
    return {
        "name": card.name,
        "kind": card.folder,
        "title": card.title,
        "class": f"{card.make.__module__}.{card.make.__qualname__}",
        "guarantee": card.guarantee,
        **own,
        "space": card.space,
        "time": card.time,
        "paper": card.paper,
    }


def _show_card(found: Card) -> None:
    card = facts(found)
    width = max(map(len, card))
    for fact, value in card.items():
        if value or value == 0:
            print(f"{fact.ljust(width)}  {_text(value)}")
    print()
    print(inspect.getdoc(found.make) or "")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {why}" for name, why in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
