"""A new summary is one file and one line; all else follows from its `SPEC`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wane

ROOT = Path(__file__).parents[2]

FILE = '''
"""A decayed count, as small as a summary can be."""

from __future__ import annotations

import math
from typing import Any, Self

from wane import serde
from wane.errors import CorruptState
from wane.registry import Equality, Spec
from wane.summaries.base import Batch, Summary, ldexp


class Dummy(Summary):
    """Decayed count: the sum of weights.

    >>> Dummy("exp(half_life=1m)").update([3.0, 4.0], times=[0, 60]).count(now=60)
    1.5
    """

    _total, _exponent = 0.0, 0

    def count(self, now: Any = None, *, historical: bool = False) -> float:
        """The decayed count."""
        self._settle()
        weight, exponent = self._now(now, historical)
        return ldexp(self._total / weight, self._exponent - exponent)

    def _add_rows(self, values: Any, batch: Batch) -> None:
        for _, loads, exponent in self._weigh(batch):
            self._add(float(loads.sum()), exponent)

    def _add(self, total: float, exponent: int) -> None:
        if total:
            both = max(exponent, self._exponent) if self._total else exponent
            mine = math.ldexp(self._total, max(self._exponent - both, -3000)) if self._total else 0.0
            self._total = mine + math.ldexp(total, max(exponent - both, -3000))
            self._exponent = both

    def _absorb(self, other: Self) -> None:
        self._add(other._total, other._exponent)

    def _parameters(self) -> dict[str, Any]:
        return {}

    def _write(self, writer: serde.Writer) -> None:
        writer.int(self._exponent).float(self._total)

    def _read(self, reader: serde.Reader) -> None:
        self._exponent, self._total = reader.int(), reader.finite()
        if self._total < 0:
            raise CorruptState("a sum of weights in the state is negative")


SPEC = Dummy.SPEC = Spec(
    name="dummy",
    make=Dummy,
    version=1,
    title="a decayed count and nothing else",
    questions=("count",),
    timeless=(),
    guarantee="exact, to 1e-12 of the count",
    space="O(1): 12 bytes",
    time="O(1)",
    paper="Forward Decay (ICDE 2009), Definition 5",
    equality=Equality.EQUAL,
    decays=frozenset({"forward"}),
    items="numbers",
    state_bytes=lambda parameters: 512,
)
'''

LAWS = ("-m", "pytest", "tests/laws", "-m", "not slow", "-p", "no:cacheprovider")
LINE = "from .dummy import Dummy as Dummy\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The package with one more file and one more line, and what else a checkout has."""
    folder = tmp_path_factory.mktemp("checkout")
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(wane.__file__).parent, folder / "src" / "wane", ignore=without)
    for part in ("bench", "docs", "tests/laws"):
        shutil.copytree(ROOT / part, folder / part, ignore=without)
    for part in ("pyproject.toml", "tests/conftest.py"):
        if (ROOT / part).exists():
            shutil.copy(ROOT / part, folder / part)
    (folder / "src" / "wane" / "summaries" / "dummy.py").write_text(FILE, "utf-8")
    with (folder / "src" / "wane" / "summaries" / "__init__.pyi").open("a", encoding="utf-8") as names:
        names.write(LINE)
    return folder


def run(copy: Path, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run([sys.executable, *arguments], cwd=copy, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed(copy):
    (line,) = (line for line in run(copy, "-m", "wane", "list").splitlines() if line.startswith("dummy "))
    assert "count" in line
    assert "exact, to 1e-12 of the count" in line
    assert "A decayed count" not in run(copy, "-m", "wane", "list", "moments")


def test_it_has_a_card(copy):
    card = json.loads(run(copy, "-m", "wane", "list", "dummy", "--json"))
    assert card["class"] == "wane.summaries.dummy.Dummy"
    assert card["title"] == "a decayed count and nothing else"


def test_it_is_public_and_its_states_are_read_back(copy):
    code = "import wane; print(wane.from_bytes(wane.Dummy().update([1.0, 2.0]).to_bytes()), 'Dummy' in dir(wane))"
    assert run(copy, "-c", code) == "<Dummy decay='none', 2 rows> True\n"


def test_it_has_a_page_in_the_reference(copy):
    run(copy, "docs/build_reference.py", "--out", "made")
    page = (copy / "made" / "dummy.md").read_text("utf-8")
    for said in ("# Dummy", "exact, to 1e-12 of the count", "### `count(now=None, *, historical=False)`", ">>> Dummy("):
        assert said in page
    assert "(dummy.md)" in (copy / "made" / "index.md").read_text("utf-8")


@pytest.mark.jit_only
def test_it_has_a_bench_case(copy):
    assert re.search(r"^dummy +a decayed count", run(copy, "-m", "bench", "--quick", "--list"), re.MULTILINE)
    figures = [json.loads(line) for line in run(copy, "-m", "bench", "--quick", "--json", "dummy").splitlines()[1:]]
    assert {figure["case"] for figure in figures} == {"dummy"}
    assert "update in bulk, exp(half_life=5m)" in {figure["what"] for figure in figures}


def test_it_has_every_law_that_applies(copy):
    code = (
        "from wane import registry, testing; print(*[law.name for law in testing.applicable(registry.lookup('dummy'))])"
    )
    laws = run(copy, "-c", code).split()
    assert len(laws) > 20
    said = run(copy, *LAWS, "-k", "dummy", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib")
    assert {name for name in laws if f"-{name}]" in said} == set(laws)


@pytest.mark.jit_only
def test_it_keeps_its_laws(copy):
    said = run(copy, *LAWS, "-k", "dummy and (none or half_life)")  # a few decays; that there are more was seen above
    kept = re.search(r"(\d+) passed", said)
    assert kept, said
    assert int(kept[1]) > 40, said
