"""Documents run: what they show is what happens."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys

import pytest
from pages import ON_SPARK, PAGES, ROOT, WITH_CODE, runs

import wane

MODULES = sorted(module.name for module in pkgutil.walk_packages(wane.__path__, "wane."))
BUILDER = ROOT / "docs" / "build_reference.py"


@pytest.mark.parametrize("page", [page for page in WITH_CODE if page not in ON_SPARK], ids=lambda page: page.name)
def test_what_a_page_shows_is_what_happens(page):
    runs(page.read_text("utf-8"))


def test_the_readme_and_the_concepts_have_code():
    assert {"README.md", "concepts.md", "index.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nx = 1\n```\n```python\nprint(x)\n```\n```text\n\n```\n",
    ],
)
def test_a_page_that_is_wrong_is_found_out(page):
    with pytest.raises(AssertionError):
        runs(page)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:the decay function:RuntimeWarning")  # with the compiler off
def test_doctests(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, raise_on_error=False).failed == 0


def test_every_summary_shows_an_example():
    for spec in wane.registry.specs().values():
        assert ">>> " in (spec.make.__doc__ or ""), spec.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


# --- The reference


@pytest.fixture(scope="module")
def builder():
    spec = importlib.util.spec_from_file_location("build_reference", BUILDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_up_to_date(builder, capsys):
    assert builder.main(["--check"]) == 0, capsys.readouterr().err


def test_it_is_the_same_in_every_process(builder):
    code = f"import sys; sys.path.insert(0, {str(BUILDER.parent)!r}); import build_reference as b; print(b.pages())"
    for seed in "12":
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert done.stdout == f"{builder.pages()}\n"


def test_a_page_that_differs_is_missing_or_is_left_over_fails_the_check(builder, tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert builder.main([*out, "--check"]) == 1
    assert builder.main(out) == 0
    assert builder.main([*out, "--check"]) == 0
    capsys.readouterr()
    moments, extra = tmp_path / "moments.md", tmp_path / "gone.md"
    moments.write_text(moments.read_text("utf-8").replace("exact", "about"), "utf-8")
    extra.write_text("no longer registered", "utf-8")
    assert builder.main([*out, "--check"]) == 1
    said = capsys.readouterr().err
    assert "moments.md is out of date" in said
    assert "gone.md is out of date" in said
    assert builder.main(out) == 0
    assert builder.main([*out, "--check"]) == 0
    assert not extra.exists()


def test_pages_say_what_the_spec_says(builder):
    pages = builder.pages()
    for spec in wane.registry.specs().values():
        page = pages[f"{spec.name}.md"]
        for fact in (spec.guarantee, spec.space, spec.time, spec.paper, f"{spec.equality.value} ("):
            assert fact in page
        for question in spec.questions:
            assert f"### `{question}(" in page
        assert f"({spec.name}.md)" in pages["index.md"]


def test_every_decay_has_its_place(builder):
    page = builder.pages()["decays.md"]
    for name in wane.decay.__all__:
        made = getattr(wane.decay, name)
        if isinstance(made, type) and issubclass(made, wane.decay.Decay) and not made.__abstractmethods__:
            assert (f"Class `{name}`" in page) or (f"### `{name}`" in page)
    assert "| `exp(half_life=5m)` | 1 | 0.998 | 0.977 | 0.871 | 0.5 |" in page
    assert "| `poly(2)` | 1 | 0.999 | 0.994 | 0.967 | 0.84 | 0.25 | 0 |" in page


def test_docstrings_become_markdown(builder):
    def documented():
        """Say ``x`` of :class:`~wane.Moments`, as in::

            run(1)

        Args:
            first: What
                it is.
            second: Or :meth:`not`.

        >>> documented()
        1
        """

    assert builder._prose(documented) == (
        "Say `x` of `wane.Moments`, as in:\n\n```python\nrun(1)\n```\n\n"
        "**Args:**\n\n- `first`: What it is.\n- `second`: Or `not`.\n\n```pycon\n>>> documented()\n1\n```"
    )
