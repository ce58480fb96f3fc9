"""The commands: run, explain, generate, inspect and bench."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

import wane
from wane import fn, local
from wane.cli import main
from wane.cli import progress as module
from wane.cli.app import COMMANDS, app
from wane.cli.commands import bench, demo, explain, generate, inspect, list, run
from wane.sources import ATTACKER, Pcap, Traffic, ip_text, write

WANE = [sys.executable, "-m", "wane"]
COUNT = "select tb, destPort, count(*) as n from TCP group by time/60 as tb, destPort"
EXAMPLES = {
    module.__name__.rpartition(".")[2]: module.EXAMPLE
    for module in (bench, demo, explain, generate, inspect, list, run)
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a capture and a state."""
    monkeypatch.chdir(tmp_path)
    write("traffic.pcap", Traffic(rows=3000, rate=30).batches())
    (tmp_path / "latency.state").write_bytes(wane.Moments("exp(half_life=5m)").update([1.0], [0]).to_bytes())
    return tmp_path


def exact() -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for batch in Pcap("traffic.pcap", "TCP").batches(["time", "destPort"]):
        for row in batch.to_pylist():
            key = int(row["time"].timestamp()) // 60, row["destPort"]
            found[key] = found.get(key, 0) + 1
    return found


# --- Help


def test_every_command_has_an_example():
    assert sorted(EXAMPLES) == sorted(COMMANDS)
    assert {command.name for command in app.registered_commands} == set(COMMANDS)


SLOW_WITHOUT_COMPILER = ("bench", "demo")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.jit_only] * (name in SLOW_WITHOUT_COMPILER)) for name in COMMANDS]
)
def test_help_has_an_example_that_runs(name, folder, capsys):
    assert main([name, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Example: {EXAMPLES[name]}" in said
    program, *arguments = shlex.split(EXAMPLES[name])
    assert program == "wane"
    assert arguments[0] == name
    assert main(arguments) == 0
    assert capsys.readouterr().out


def test_help_says_the_exit_statuses(capsys):
    assert main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for part in ("Exit status: 0 when all went well", "2 for a command that cannot be read", "130 when interrupted"):
        assert part in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell):
    env = {**os.environ, "_WANE_COMPLETE": f"source_{shell}"}
    code = "import sys; from wane.cli import main; sys.exit(main([]))"
    script = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60).stdout
    assert "_WANE_COMPLETE" in script
    if shell == "bash":
        env |= {"_WANE_COMPLETE": "complete_bash", "COMP_WORDS": "wane ge", "COMP_CWORD": "1"}
        found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        assert found.stdout.split() == ["generate"]


# --- run


def test_run_as_a_table(folder, capsys):
    assert main(["run", "-e", COUNT, "--from", "TCP=traffic.pcap"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["tb", "destPort", "n"]
    found = {(int(tb), int(port)): int(n.replace(",", "")) for tb, port, n in map(str.split, lines)}
    assert found == exact()


def test_run_as_csv_json_and_parquet(folder, capsys):
    options = ["run", "-e", COUNT, "--from", "TCP=*.pcap"]
    assert main([*options, "--out", "csv"]) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert {(int(row["tb"]), int(row["destPort"])): float(row["n"]) for row in rows} == exact()
    assert main([*options, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(row["tb"], row["destPort"]): row["n"] for row in lines} == exact()
    assert main([*options, "--out", "parquet", "--to", "answer.parquet"]) == 0
    found = {(row["tb"], row["destPort"]): row["n"] for row in pq.read_table("answer.parquet").to_pylist()}
    assert found == exact()
    assert main([*options, "--out", "csv", "--to", "answer.csv"]) == 0
    assert capsys.readouterr().out == ""
    assert (folder / "answer.csv").read_text().startswith("tb,destPort,n\n")
    assert main([*options, "--to", "answer.txt"]) == 0
    assert (folder / "answer.txt").read_text().startswith("      tb  destPort")


def test_lists_bytes_and_addresses_are_for_people_or_for_programs(folder, capsys):
    text = "select tb, srcIP, top(destIP, 2) as topIP, quantiles(len, 0.5, 0.9) as q, count(*) from TCP "
    options = ["run", "-e", text + "group by time/60 as tb, srcIP having count(*) > 20", "--from", "TCP=traffic.pcap"]
    assert main([*options, "--rows", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "172." in out[1]
    assert "10." in out[1].split("172.")[1]
    assert out[2].startswith("... and ")
    assert main([*options, "--out", "csv"]) == 0
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(json.loads(row["topIP"])) == 2
    assert main(["run", "-e", "select time, srcIP6 from TCP", "--from", "TCP=traffic.pcap", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]).keys() == {"time", "srcIP6"}


def test_run_files_of_several_queries(folder, capsys, monkeypatch):
    (folder / "queries.gsql").write_text(COUNT + ";\nselect count(*) from IP; -- two\n")
    options = ["--from", "TCP=traffic.pcap", "--from", "IP=traffic.pcap"]
    assert main(["run", "queries.gsql", *options]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.split()[:3] == ["tb", "destPort", "n"]
    assert second.split() == ["count", "3,000"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("select count(*) from IP"))
    assert main(["run", "-", *options]) == 0
    assert capsys.readouterr().out.split() == ["count", "3,000"]
    assert main(["run", "queries.gsql", *options, "--to", "x.txt"]) == 1
    assert "--to names one file" in capsys.readouterr().err


def test_what_was_dropped_is_told_apart(folder, capsys):
    data = (folder / "traffic.pcap").read_bytes()
    (folder / "cut.pcap").write_bytes(data[:-5])
    assert main(["run", "-e", "select count(*) from IP", "--from", "IP=cut.pcap"]) == 0
    captured = capsys.readouterr()
    assert captured.out.split() == ["count", "3,000"]
    assert captured.err == "wane: 1 dropped: broken record\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give a file of queries"),
        (["x.gsql", "-e", "select 1"], "give a file of queries"),
        (["x.gsql"], "'x.gsql' cannot be read"),
        (["-e", "select 1", "--from", "TCP"], "--from is NAME=PATH, got 'TCP'"),
        (["-e", "select 1", "--from", "T=a", "--from", "T=b"], "names T twice"),
        (["-e", "select 1", "--from", "T=none.pcap"], "there is no file 'none.pcap'"),
        (["-e", "select lenn from T", "--from", "T=traffic.pcap"], "did you mean 'len'"),
        (["-e", "select len from T", "--from", "T=traffic.pcap", "--engine", "duck"], "--engine is local or spark"),
        (["-e", "select len from T", "--from", "T=traffic.pcap", "--out", "xml"], "--out is one of"),
        (["-e", "select len from T", "--from", "T=traffic.pcap", "--out", "parquet"], "add --to"),
        (["-e", "select len from T", "--from", "T=traffic.pcap", "--format", "cvs"], "did you mean 'csv'"),
    ],
)
def test_what_cannot_be_run_is_one_message_and_status_1(folder, capsys, arguments, says):
    assert main(["run", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("wane: ")
    assert says in captured.err


def test_a_reader_that_goes_away_is_no_news(folder):
    reading, writing = os.pipe()
    os.close(reading)
    options = ["run", "-e", "select time, srcIP from TCP", "--from", "TCP=traffic.pcap", "--out", "csv"]
    with os.fdopen(writing, "w") as gone:
        process = subprocess.run([*WANE, *options], stdout=gone, stderr=subprocess.PIPE, timeout=60)
    assert (process.stderr, process.returncode) == (b"", 1)


# --- explain


def test_explain_shows_the_plan_and_reads_nothing(folder, capsys):
    assert main(["explain", "-e", COUNT, "--from", "TCP=traffic.pcap"]) == 0
    said = capsys.readouterr().out
    for part in ("query from TCP", "group by time every 1m, destPort", "moments(*) decay none", "tb grows with time"):
        assert part in said


# --- generate


def test_generated_files_are_the_traffic_asked_for(folder, capsys):
    options = [
        "--rows",
        "4000",
        "--rate",
        "100",
        "--late",
        "0.1",
        "--delay",
        "2s",
        "--attack",
        "10s",
        "--crowd",
        "20s",
        "--repeated",
        "0.1",
        "--seed",
        "5",
    ]
    for name in ("x.pcap", "x.parquet", "x.csv"):
        assert main(["generate", name, *options]) == 0
        assert capsys.readouterr().out == f"4,000 packets in {name}\n"
    tables = [local.group(name, "srcIP").agg(fn.count()) for name in ("x.pcap", "x.parquet", "x.csv")]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert ATTACKER in tables[0]["srcIP"].to_pylist()
    assert ip_text(ATTACKER) == "203.0.113.66"


def test_generated_rows_may_come_at_their_rate():
    began = time.monotonic()
    command = [*WANE, "generate", "-", "--rows", "400", "--rate", "200", "--live"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    head, *lines = process.stdout.splitlines()
    assert head == "time,srcIP,destIP,srcPort,destPort,len,protocol"
    assert len(lines) == 400
    assert time.monotonic() - began > 1.5


def test_wrong_options_of_generate(folder, capsys):
    for options, says in (
        (["x.txt"], "must end in one of"),
        (["x.pcap", "--live"], "write to - with --live"),
        (["x.pcap", "--late", "2"], "late must be a fraction"),
        (["x.pcap", "--attack", "soon"], "soon"),
    ):
        assert main(["generate", *options]) == 1
        assert says in capsys.readouterr().err
    assert not (folder / "x.pcap").exists()


# --- inspect


def test_inspect_a_summary(folder, capsys):
    assert main(["inspect", "latency.state"]) == 0
    said = capsys.readouterr().out
    for part in ("moments", "exp(half_life=5m)", "exact", "rows"):
        assert part in said
    assert main(["inspect", "latency.state", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["summary"] == "moments"
    assert facts["rows"] == 1
    assert facts["bytes"] == (folder / "latency.state").stat().st_size


def test_inspect_a_table_of_states(folder, capsys):
    table = local.group("traffic.pcap", "destPort", every=("time", "1m")).states(fn.count(), fn.sum("len"))
    pq.write_table(table, "states.parquet")
    assert main(["inspect", "states.parquet", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["groups"] == table.num_rows
    assert "group by time every 1m, destPort" in facts["plan"]
    assert main(["inspect", "states.parquet"]) == 0
    assert "every 1m" in capsys.readouterr().out


def test_inspect_what_is_no_state(folder, capsys):
    (folder / "x").write_bytes(b"hello")
    (folder / "y.parquet").write_bytes(b"PAR1 not really")
    pq.write_table(local.group("traffic.pcap").agg(fn.count()), "z.parquet")
    for name, says in (
        ("x", "state"),
        ("y.parquet", "broken Parquet"),
        ("z.parquet", "no plan"),
        ("none", "cannot be"),
    ):
        assert main(["inspect", name]) == 1
        assert says in capsys.readouterr().err


# --- Progress without a terminal


def test_long_work_tells_how_far_it_is_by_lines(monkeypatch, capsys):
    monkeypatch.setattr(module, "EVERY", 0.0)
    with module.progress("reading") as report:
        report(500, 1000)
        report(1000, 0)
    assert capsys.readouterr().err == "reading: 500 of 1,000 bytes (50%)\nreading: 1,000 of 0 bytes\n"
