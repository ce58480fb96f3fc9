"""Nothing escapes the laws: every file is listed, every listed thing keeps laws, every absence has a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import wane.summaries
from wane import registry
from wane.errors import BadParameter
from wane.registry import Spec
from wane.testing import CAPABILITIES, LAWS, applicable, cases, law

SPECS = registry.specs()

every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def test_every_file_is_listed() -> None:
    (folder,) = wane.summaries.__path__
    there = {
        f"wane.summaries.{path.stem}"
        for path in Path(folder).glob("*.py")
        if path.stem != "base" and path.stem[0] != "_"
    }
    assert there == set(registry.listed("summaries").values())


@every_spec
def test_every_listed_thing_keeps_laws(spec: Spec) -> None:
    assert applicable(spec)
    assert list(cases(spec))


def test_every_law_is_used_and_says_what_it_states() -> None:
    used = {found.name for spec in SPECS.values() for found in applicable(spec)}
    assert {found.name for found in LAWS.values() if found.needs != "compiler"} <= used
    assert {found.needs for found in LAWS.values()} <= set(CAPABILITIES)
    for found in LAWS.values():
        assert found.states.strip().endswith("."), found.name


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        ({"gravity": "it floats"}, "'gravity' absent, which does not exist"),
        ({"size_is_bounded": " "}, "'size_is_bounded' absent without a reason"),
        (dict.fromkeys(LAWS, "it is a stub"), "nothing would be tested"),
    ],
)
def test_a_bad_absence_is_an_error(absent: Mapping[str, str], words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        applicable(replace(SPECS["moments"], absent=absent))


def test_an_absent_law_does_not_apply() -> None:
    spec = replace(SPECS["moments"], absent={"size_is_bounded": "it keeps everything"})
    assert [found for found in applicable(SPECS["moments"]) if found not in applicable(spec)] == [
        LAWS["size_is_bounded"]
    ]


def test_a_law_needs_a_known_capability() -> None:
    with pytest.raises(BadParameter, match="no capability 'wings'"):
        law("wings")
