from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import pytest

from wane import __version__
from wane.cli import main
from wane.errors import UnknownName
from wane.registry import FOLDERS, cards, specs

WANE = [sys.executable, "-m", "wane"]


def run(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WANE, *arguments], capture_output=True, text=True, timeout=60, **more)


def at_a_terminal(*arguments: str, columns: int = 200) -> str:
    """What a person would see."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    process = subprocess.Popen([*WANE, *arguments], stdout=theirs, stderr=theirs, stdin=theirs, env=env)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", seen.decode())


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"wane {__version__}\n"


def test_alone_it_says_what_there_is(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "list" in said
    assert "demo" in said


def test_list_has_a_line_for_everything_registered(capsys):
    assert main(["list"]) == 0
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert [table.splitlines()[0] for table in tables] == list(FOLDERS)
    for table in tables:
        folder, head, *lines = table.splitlines()
        known = [card for card in cards().values() if card.folder == folder]
        assert head.startswith("name ")
        assert [line.split()[0] for line in lines] == [card.name for card in known]
        for line, card in zip(lines, known, strict=True):
            assert card.space in line
            assert card.paper in line
        if folder == "summaries":
            assert head.split() == ["name", "answers", "guarantee", "equality", "decays", "space", "paper"]
            for line, spec in zip(lines, specs().values(), strict=True):
                for fact in (", ".join(spec.questions), spec.guarantee, spec.equality.value):
                    assert fact in line


def test_list_at_a_terminal_is_a_framed_table():
    seen = at_a_terminal("list")
    assert "┃" in seen
    for name in specs():
        assert f"│ {name}" in seen


def test_list_in_a_pipe_has_neither_frames_nor_colours():
    seen = run("list").stdout
    assert seen.isascii()
    assert "\x1b" not in seen


def test_one_card_in_full(capsys):
    assert main(["list", "moments"]) == 0
    said = capsys.readouterr().out
    spec = specs()["moments"]
    for fact in (spec.title, spec.time, "fn.mean", "wane.summaries.moments.Moments", spec.make.__doc__.split("\n")[0]):
        assert fact in said


def test_json_is_all_there_is(capsys):
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [card["name"] for card in found] == list(cards())
    assert main(["list", "moments", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card in found
    assert card["answers"] == ["count", "sum", "mean", "var"]


def test_what_cannot_be_done_is_one_line_and_status_1(capsys):
    assert main(["list", "momens"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "wane: nothing is registered as 'momens'; did you mean 'moments'?\n"


@pytest.mark.parametrize(
    "arguments", [["lst"], ["list", "--colour"], ["demo", "--rows", "many"], ["demo", "--rows", "1"]]
)
def test_what_cannot_be_read_is_status_2(arguments, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: wane" in captured.err


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_news(buffered):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        env = {**os.environ, "PYTHONUNBUFFERED": buffered}
        process = subprocess.run([*WANE, "list"], stdout=gone, stderr=subprocess.PIPE, timeout=60, env=env)
    assert process.stderr == b""
    assert process.returncode == 1


def test_an_interrupt_ends_it_quietly():
    code = """
import signal, sys, time
from wane.cli import main
from wane.sources import Traffic
signal.signal(signal.SIGINT, signal.default_int_handler)
Traffic.table = lambda traffic: (print("working", flush=True), time.sleep(60))
sys.exit(main(["demo"]))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"working\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_without_typer_it_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import wane.cli; sys.exit(wane.cli.main(['list']))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert process.returncode == 1
    assert process.stderr == "wane: the command line needs typer, which is not there; install wane[cli]\n"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("wane.cli", "typer rich numpy pyarrow numba"), ("wane.cli.app", "numpy pyarrow numba rich pandas")],
)
def test_importing_the_command_line_loads_nothing_heavy(module, heavy):
    code = f"import sys, {module}; print([name for name in '{heavy}'.split() if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout == "[]\n"


def test_an_error_of_the_project_says_itself_even_where_python_would_quote_it():
    assert str(UnknownName("it is 'so'")) == "it is 'so'"
