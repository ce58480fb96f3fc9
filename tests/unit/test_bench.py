from __future__ import annotations

import itertools
import json
import math

import pytest

from bench.__main__ import comparisons, main, names
from bench.registered import DECAYS
from bench.runner import Comparison, Disagreement, Settings, figures
from wane.decay import parse
from wane.registry import specs
from wane.testing.cases import takes

ON_SPARK = ("spark",)
FIELDS = {
    "kind": str,
    "case": str,
    "what": str,
    "against": str | None,
    "ours": float | None,
    "peer": float | None,
    "ratio": float | None,
    "unit": str,
    "target": float | None,
    "ok": bool | None,
    "ours_median": float | None,
    "peer_median": float | None,
}

OF_FINDINGS = ("times", "cycles", "M items/s", "items (none: never)")


def lines(capsys, *arguments: str) -> list[dict]:
    assert main([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.jit_only
@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.spark] * (name in ON_SPARK)) for name in sorted(names())]
)
def test_every_case_runs_and_gives_figures(case, capsys):
    run, *found = lines(capsys, case, "--quick", "--seed", "3")
    assert run["kind"] == "run"
    assert (run["seed"], run["quick"]) == (3, True)
    assert {"processor", "cores", "system", "load"} == set(run["machine"])
    assert {"python", "wane", "numpy", "numba", "pyarrow"} <= set(run["versions"])
    assert found
    for figure in found:
        assert list(figure) == list(FIELDS)
        assert all(isinstance(figure[name], kind) for name, kind in FIELDS.items())
        assert (figure["kind"], figure["case"]) == ("figure", case)
        if figure["ours"] is None:
            assert "none: never" in figure["unit"]
            continue
        counted = figure["unit"] in ("slots", "% lost")  # of which there may be none
        assert figure["ours"] > 0 or (counted and figure["ours"] == 0)
        assert figure["ours"] <= figure["ours_median"] < math.inf
        assert counted or figure["unit"] in ("ns/row", "us/row", "us/call", "ms/call", *OF_FINDINGS)
        assert figure["ok"] is None  # nothing is judged by twenty thousand rows
        assert (figure["against"] is None) == (figure["peer"] is None)
        assert (figure["ratio"] is None) == (not figure["peer"])
        if figure["peer"]:
            assert 0 < figure["peer"] <= figure["peer_median"]
            assert figure["ratio"] == pytest.approx(figure["ours"] / figure["peer"])
    whats = [(figure["what"], figure["against"]) for figure in found]
    assert len(set(whats)) == len(whats)


@pytest.mark.parametrize("name", specs())
def test_everything_registered_is_measured_under_the_decays_it_takes(name):
    whats = {comparison.what for comparison in comparisons(name, Settings(quick=True))}
    taken = [decay for decay in DECAYS if takes(specs()[name], parse(decay))]
    assert taken
    for decay in taken:
        assert any(what.startswith(f"update in bulk, {decay}") for what in whats)
        assert any(what.startswith(f"update with one item, {decay}") for what in whats)


def test_the_cases_are_listed(capsys):
    assert main(["--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ["moments", *specs()])


@pytest.mark.jit_only
def test_without_json_it_is_a_table(capsys):
    assert main(["extrema", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "update in bulk, poly(2)" in said
    assert "processor: " in said


def test_a_case_that_is_not_there_is_named(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["momens"])
    assert f"there is no case 'momens'; the cases are {', '.join(names())}" in capsys.readouterr().err


def test_contestants_take_turns_and_share_the_places():
    calls: list[str] = []
    settings = Settings(quick=True)
    comparison = Comparison(
        what="nothing",
        ours=lambda: calls.append("ours"),
        work=1,
        unit="ns/row",
        peers={"a": lambda: calls.append("a"), "b": lambda: calls.append("b")},
    )
    found = list(figures("case", comparison, settings))
    assert [figure["against"] for figure in found] == ["a", "b"]
    assert calls == ["ours", "a", "b", "ours", "a", "b", "a", "b", "ours"]


def test_units_and_targets(monkeypatch):
    clock = itertools.count(step=1_500_000_000)  # every turn takes a second and a half
    monkeypatch.setattr("bench.runner.time.perf_counter_ns", lambda: next(clock))
    for unit, figure, target, ok in (
        ("ns/row", 1.5e8, 1.4e8, False),
        ("us/call", 1.5e5, 1.5e5, False),
        ("s", 0.15, 0.16, True),
        ("ms/call", 150.0, None, None),
    ):
        comparison = Comparison(what="", ours=lambda: None, work=10, unit=unit, target=target)
        (found,) = figures("case", comparison, Settings())
        assert found["ours"] == pytest.approx(figure)
        assert found["ok"] is ok
        assert found["against"] is found["peer"] is found["ratio"] is None


def test_a_missed_target_is_the_exit_status(monkeypatch, capsys):
    def slow(name: str, settings: Settings):
        yield Comparison(what="slow", ours=lambda: sum(range(1000)), work=1, unit="ns/row", target=0.001)

    monkeypatch.setattr("bench.__main__.comparisons", slow)
    monkeypatch.setattr(Settings, "turn", 0.0)
    assert main(["moments"]) == 1
    assert "MISSED" in capsys.readouterr().out
    assert main(["moments", "--quick"]) == 0


def test_contestants_with_other_answers_are_refused():
    def compare(theirs: float, agree: float | None) -> None:
        comparison = Comparison(
            what="pi", ours=lambda: math.pi, work=1, unit="s", peers={"them": lambda: theirs}, agree=agree
        )
        list(figures("case", comparison, Settings(quick=True)))

    compare(3.1416, 1e-3)
    compare(3.0, None)
    with pytest.raises(Disagreement, match="case, pi: 3"):
        compare(3.1416, 1e-9)
