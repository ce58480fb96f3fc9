"""The registry: found by name, near misses named, duplicates refused, other packages' specs joined in."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator
from importlib import metadata

import pytest

from wane import registry
from wane.errors import BadParameter, DuplicateName, UnknownName, WaneError
from wane.registry import CAPABILITIES, Equality, Spec, cards, find, listed, lookup, monoids, specs, takers, windows
from wane.summaries.moments import SPEC as MOMENTS

FAKE = "a_package_of_another"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cards.cache_clear()
    yield
    cards.cache_clear()


def bring(monkeypatch: pytest.MonkeyPatch, *found: Spec) -> None:
    """Install packages, each with an entry point to a module that exports a spec."""
    entries = []
    for number, spec in enumerate(found):
        module = types.ModuleType(f"{FAKE}{number}")
        module.SPEC = spec  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        entries.append(metadata.EntryPoint(spec.name, module.__name__, registry.ENTRY_POINTS))

    def entry_points(group: str) -> list[metadata.EntryPoint]:
        return entries if group == registry.ENTRY_POINTS else []

    monkeypatch.setattr(metadata, "entry_points", entry_points)


def test_a_list_is_what_the_stub_says() -> None:
    assert listed("summaries")["Moments"] == "wane.summaries.moments"
    assert listed("summaries")["Extrema"] == "wane.summaries.extrema"
    with pytest.raises(ModuleNotFoundError):
        listed("no_such_folder")


def test_every_listed_name_is_registered_under_its_class() -> None:
    made = {spec.make.__name__ for spec in specs().values()}
    assert set(listed("summaries")) <= made
    for name, spec in specs().items():
        assert name == spec.name
        assert spec.make.SPEC is spec
        assert isinstance(spec.equality, Equality)
        assert lookup(name) is spec


def test_each_folder_has_its_own() -> None:
    for folder, known in (("summaries", specs()), ("monoids", monoids()), ("windows", windows())):
        assert {card.make.__name__ for card in known.values()} == set(listed(folder))
        assert {card.folder for card in known.values()} == {folder}
        assert all(find(name) is card and card.make.SPEC is card for name, card in known.items())
    assert list(cards()) == [*specs(), *monoids(), *windows()]
    with pytest.raises(UnknownName, match="nothing is registered as 'daba'"):
        lookup("daba")


def test_a_monoid_cannot_claim_what_there_is_not() -> None:
    with pytest.raises(BadParameter, match=f"sum claims to be 'quick'; there are {', '.join(CAPABILITIES)}"):
        dataclasses.replace(monoids()["sum"], has=frozenset({"quick"}))


def test_an_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(
        UnknownName, match=r"^nothing is registered as 'momments'; did you mean 'moments'\?$"
    ) as unknown:
        lookup("momments")
    assert isinstance(unknown.value, KeyError)
    assert isinstance(unknown.value, WaneError)
    with pytest.raises(UnknownName, match=r"'xyzzy'; there are .*moments"):
        lookup("xyzzy")


def test_a_spec_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        MOMENTS.name = "other"  # type: ignore[misc]


def test_another_package_joins_through_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, dataclasses.replace(MOMENTS, name="theirs", decays=frozenset({"landmark"})))
    assert lookup("theirs").title == MOMENTS.title
    assert lookup("moments") is MOMENTS
    assert list(specs())[-1] == "theirs"
    assert "Moments" in takers("landmark")
    assert takers("no such kind") == []


def test_two_things_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, dataclasses.replace(MOMENTS, title="something else"))
    with pytest.raises(DuplicateName, match=rf"{FAKE}0 and wane.summaries.moments both register 'moments'; rename one"):
        specs()
    two = [dataclasses.replace(MOMENTS, name="theirs", title=title) for title in ("one", "two")]
    bring(monkeypatch, *two)
    with pytest.raises(DuplicateName, match=r"both register 'theirs'"):
        lookup("moments")


def test_the_same_thing_twice_is_no_duplicate(monkeypatch: pytest.MonkeyPatch) -> None:
    bring(monkeypatch, MOMENTS)
    assert lookup("moments") is MOMENTS
