"""Writes docs/reference from what is registered: a page for each thing, the decays, the functions, and an index.

`--check` writes nothing, and fails when a page on disk is not what it should be; `--out DIR` writes elsewhere.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wane import decay, fn
from wane.decay import Decay, parse
from wane.errors import DuplicateName, WaneError
from wane.registry import Spec, specs
from wane.summaries.base import Summary
from wane.times import SECOND, Nanoseconds, duration

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/build_reference.py; change what it is made from, and build it again. -->"
KINDS = {
    "forward": "any forward decay, and a backward one whose time is fixed",
    "landmark": "none and the landmark window, and a backward one whose time is fixed",
    "backward": "any backward decay, with its time still open",
    "smooth": "a backward decay that falls ever more slowly, and at the question any that it dominates",
}
AGES = ("0s", "1s", "10s", "1m", "5m", "30m", "1h")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the pages, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when a page on disk differs")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="DIR", help="the folder of the pages")
    asked = parser.parse_args(arguments)
    made = pages()
    kept = {path.name: path.read_text("utf-8") for path in asked.out.glob("*.md")}
    differing = [name for name in sorted(made | kept) if made.get(name) != kept.get(name)]
    if asked.check:
        for name in differing:
            print(f"{asked.out / name} is out of date; run python docs/build_reference.py", file=sys.stderr)
        return 1 if differing else 0
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in differing:
        if name in made:
            (asked.out / name).write_text(made[name], "utf-8")
        else:
            (asked.out / name).unlink()
    return 0


def pages() -> dict[str, str]:
    """Every page by its file's name."""
    found = {"index.md": _index(), "decays.md": _decays(), "functions.md": _functions()}
    for spec in specs().values():
        name = f"{spec.name}.md"
        if name in found:
            raise DuplicateName(f"the page of {spec.name!r} would take the place of another; rename it")
        found[name] = _page(spec)
    return {name: f"{NOTE}\n\n{text.strip()}\n" for name, text in found.items()}


def _index() -> str:
    rows = [
        f"| [{spec.make.__name__}]({spec.name}.md) | {', '.join(f'`{q}`' for q in spec.questions)} "
        f"| {_cell(spec.guarantee)} | {spec.equality.value} | {_cell(', '.join(sorted(spec.decays)))} |"
        for spec in specs().values()
    ]
    table = ["| summary | answers | guarantee | equality | decays |", "| --- | --- | --- | --- | --- |", *rows]
    return "\n\n".join(
        [
            "# Reference",
            "\n".join(table),
            "[Decays](decays.md) say how weight falls with time, [functions](functions.md) what is asked of groups.",
            "## What all summaries have",
            _prose(Summary),
            *_methods(Summary, [name for name, _ in _public(Summary)], level=3),
        ]
    )


def _page(spec: Spec) -> str:
    make = spec.make
    others = [name for name, _ in _public(make) if name not in spec.questions and not hasattr(Summary, name)]
    timeless = ", ".join(f"`{question}`" for question in spec.timeless)
    facts = {
        "Registered as": f"`{spec.name}`, version {spec.version} on the wire",
        "Guarantee": spec.guarantee,
        "Equality": f"{spec.equality.value} ([what that means](../concepts.md#how-equal-is-equal))",
        "Decays": "; ".join(KINDS[kind] for kind in sorted(spec.decays)),
        "Items": "numbers" if spec.items == "numbers" else "anything",
        "Space": spec.space,
        "Time": spec.time,
        "Answers that do not depend on now": timeless,
        "Asked of groups by": ", ".join(f"[`fn.{name}`](functions.md#{name})" for name in spec.functions),
        "Paper": spec.paper,
    }
    parts = [
        f"# {make.__name__}",
        _sentence(spec.title),
        "\n".join(f"- **{fact}:** {value}" for fact, value in facts.items() if value),
        f"```python\n{make.__name__}{_signature(make)}\n```",
        _prose(make),
        "## Questions",
        *_methods(make, spec.questions, level=3),
    ]
    if others:
        parts += ["## Further methods", *_methods(make, others, level=3)]
    parts.append("[What all summaries have](index.md#what-all-summaries-have): updates, merging, bytes.")
    if spec.absent:
        absent = "\n".join(f"- `{law}`: {why}" for law, why in spec.absent.items())
        parts += ["## Laws that do not hold", absent]
    return "\n\n".join(parts)


def _decays() -> str:
    examples: dict[type[Decay], list[Decay]] = {}
    for text in re.findall(r"``(.+?)``", decay.__doc__ or ""):
        try:
            found = parse(text)
        except WaneError:
            continue
        if found not in examples.setdefault(type(found), []):
            examples[type(found)].append(found)
    every = [example for found in examples.values() for example in found]
    classes = [getattr(decay, name) for name in decay.__all__]
    others = [
        cls
        for cls in classes
        if inspect.isclass(cls) and issubclass(cls, Decay) and not inspect.isabstract(cls) and cls not in examples
    ]
    functions = [made for made in classes if inspect.isfunction(made)]
    return "\n\n".join(
        [
            "# Decays",
            _prose(decay),
            "## Weights by age",
            "Of items of some age, where the landmark of those that need one lies an hour before now:",
            _weights(every),
            *_kinds("Forward and backward", examples, lambda cls: cls.is_forward and cls.is_backward),
            *_kinds("Forward", examples, lambda cls: cls.is_forward and not cls.is_backward),
            *_kinds("Backward", examples, lambda cls: cls.is_backward and not cls.is_forward),
            "## Made by functions",
            *(_heading(3, f"{made.__name__}{_signature(made)}", made) for made in functions),
            *(_heading(3, cls.__name__, cls) for cls in others),
        ]
    )


def _kinds(
    title: str, examples: Mapping[type[Decay], Sequence[Decay]], belongs: Callable[[type[Decay]], bool]
) -> Iterator[str]:
    yield f"## {title}"
    for cls, found in examples.items():
        if belongs(cls):
            needs = "\n\nNeeds a landmark." if cls.needs_landmark else ""
            yield _heading(3, " or ".join(map(str, found)), cls, f"Class `{cls.__name__}`. ") + needs


def _weights(examples: Sequence[Decay]) -> str:
    now = 3600
    times = [Nanoseconds(now * SECOND - duration(age)) for age in AGES]
    lines = [f"| decay | {' | '.join(AGES)} |", f"| --- |{' ---: |' * len(AGES)}"]
    for example in examples:
        weights = [example.weight(time, now=now, landmark=0) for time in times]
        lines.append(f"| `{example}` | {' | '.join(f'{weight:.3g}' for weight in weights)} |")
    return "\n".join(lines)


def _functions() -> str:
    functions = [
        (name, made)
        for name, made in vars(fn).items()
        if inspect.isfunction(made) and made.__module__ == fn.__name__ and not name.startswith("_")
    ]
    return "\n\n".join(
        [
            "# Functions",
            _prose(fn),
            *(f"## {name}\n\n`fn.{name}{_signature(made)}`\n\n{_prose(made)}" for name, made in functions),
        ]
    )


def _methods(cls: Any, names: Sequence[str], level: int) -> Iterator[str]:
    for name in names:
        found = inspect.getattr_static(cls, name)
        bound = getattr(cls, name)
        signature = "" if isinstance(found, property) else _signature(bound)
        yield _heading(level, f"{name}{signature}", found.fget if isinstance(found, property) else bound)


def _public(cls: type) -> list[tuple[str, Any]]:
    """The public methods and properties that a class itself defines, in order."""
    return [
        (name, value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, (property, classmethod)))
    ]


def _heading(level: int, title: str, documented: Any, before: str = "") -> str:
    return f"{'#' * level} `{title}`\n\n{before}{_prose(documented)}"


def _signature(made: Any) -> str:
    """The parameters with their defaults, without types and `self`."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(made).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters))


def _prose(documented: Any) -> str:
    """A docstring as Markdown: its sections as lists, its examples as code, its roles as plain names."""
    blocks: list[str] = []
    for block in (inspect.getdoc(documented) or "").split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith(">>>"):
            blocks.append("\n".join(["```pycon", *lines, "```"]))
        elif re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields):", lines[0]):
            blocks.append(f"**{lines[0]}**\n\n{_items(lines[1:])}")
        elif lines[0].startswith("    ") and blocks:
            blocks.append("\n".join(["```python", *(line.removeprefix("    ") for line in lines), "```"]))
        else:
            blocks.append(_inline(re.sub("::$", ":", block, flags=re.MULTILINE)))
    return "\n\n".join(blocks)


def _items(lines: Sequence[str]) -> str:
    """The entries of a section, one an item; what is indented further goes on with the line before."""
    items: list[str] = []
    for line in inspect.cleandoc("\n".join(lines)).split("\n"):
        if line.startswith(" ") and items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line)
    named = [re.sub(r"^(\w+):", r"`\1`:", item) for item in items]
    return "\n".join(f"- {_inline(item)}" for item in named)


def _inline(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
