"""A session in a real pseudo-terminal: the progress bar, the table, the interrupt."""

from __future__ import annotations

import os
import re
import sys

import pexpect
import pytest

from wane.sources import Traffic, write

pytestmark = pytest.mark.jit_only  # with the compiler off, its packets take too long


def spawn(folder, *arguments: str) -> pexpect.spawn:
    env = {**os.environ, "TERM": "xterm-256color"}
    env.pop("COLUMNS", None)
    command = ["-m", "wane", *arguments]
    return pexpect.spawn(
        sys.executable, command, cwd=folder, env=env, dimensions=(40, 120), timeout=60, encoding="utf-8"
    )


def test_a_query_shows_a_bar_and_then_a_table(tmp_path):
    write(tmp_path / "traffic.pcap", Traffic(rows=200_000, rate=2000).batches())
    text = "select tb, destPort, count(*) as hits from TCP group by time/60 as tb, destPort"
    session = spawn(tmp_path, "run", "-e", text, "--from", "TCP=traffic.pcap")
    session.expect("reading")
    session.expect("━")  # of the bar
    session.expect("┏")  # of the table
    for name in ("tb", "destPort", "hits"):
        session.expect(name)
    session.expect("443")
    session.expect(pexpect.EOF)
    session.wait()
    session.close()
    assert session.exitstatus == 0


def test_an_interrupt_ends_it_at_once_and_leaves_nothing(tmp_path):
    session = spawn(tmp_path, "generate", "big.pcap", "--rows", "500000000")
    session.expect("writing")
    session.expect("━")
    session.sendintr()
    session.expect(pexpect.EOF)
    session.wait()
    session.close()
    assert session.exitstatus == 130
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", session.before)
    assert "Traceback" not in shown
    assert "Aborted" not in shown
    assert session.before.rfind("\x1b[?25h") >= session.before.rfind("\x1b[?25l")  # the cursor is back
    assert list(tmp_path.iterdir()) == []


def test_an_error_at_a_terminal_shows_the_caret(tmp_path):
    write(tmp_path / "traffic.pcap", Traffic(rows=10).batches())
    session = spawn(tmp_path, "run", "-e", "select lenn from TCP", "--from", "TCP=traffic.pcap")
    session.expect("did you mean 'len'")
    session.expect(r"\^")
    session.expect(pexpect.EOF)
    session.wait()
    session.close()
    assert session.exitstatus == 1
