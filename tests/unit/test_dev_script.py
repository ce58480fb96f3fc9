"""`./dev` on machines of every kind, without a network: PATH holds stand-ins that write down their calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

DEV = Path(__file__).parents[2] / "dev"
BASH = shutil.which("bash") or "/bin/bash"
TOOLS = ("cat", "chmod", "cksum", "cp", "dirname", "flock", "mkdir", "mktemp", "readlink", "rm", "sleep")
THIS_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"

# The real interpreter answers what is asked in code; what would install or run anything is only written down.
PYTHON = f"""
case "$1 ${{2-}}" in
    -V*) echo "Python 3.11.9" ;;
    -c*) exec '{sys.executable}' -c "$2" ;;
    "-m venv") note "$*"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
    "-m pip") note "$*"; [[ ! -f $HOME/pip ]] || . "$HOME/pip" ;;
    "-m wane") printf '<%s>' "${{@:3}}" "${{JAVA_HOME-none}}"; exit 7 ;;
    "-m pytest")
        note "pytest $(printf '<%s>' "${{@:3}}") ${{NUMBA_DISABLE_JIT+nojit}}${{NUMBA_BOUNDSCHECK+bounds}}" ;;
    "-m mypy") note mypy; exit 1 ;;
    *) note "$*" ;;
esac
"""
WITHOUT_VENV = f"""
[[ $2 != *ensurepip* ]] || exit 1
exec '{sys.executable}' "$@"
"""


@dataclass
class Machine:
    """A checkout, a home and a PATH of nothing but stand-ins and a few tools."""

    top: Path

    def __post_init__(self) -> None:
        for folder in (self.bin, self.home, self.checkout):
            folder.mkdir()
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)
        shutil.copy(DEV, self.checkout / "dev")
        (self.checkout / "requirements.txt").write_text("numpy==2.0\n")
        (self.checkout / "pyproject.toml").write_text("[project]\n")
        self.put("id", "echo 1000")

    @property
    def bin(self) -> Path:
        return self.top / "bin"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def checkout(self) -> Path:
        return self.top / "a checkout"

    def put(self, name: str, body: str, folder: Path | None = None) -> Path:
        """Put a stand-in on PATH, or elsewhere; `note` writes a line into the log."""
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{BASH}\nnote() {{ echo \"$1\" >>'{self.top}/log'; }}\n{body}\n")
        path.chmod(0o755)
        return path

    def put_java(self, version: str, folder: Path | None = None) -> Path:
        return self.put("java", f"""note "java {version}"; echo 'openjdk version "{version}"' >&2""", folder)

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [BASH, str(self.checkout / "dev"), *args],
            cwd=self.home,
            env={"PATH": str(self.bin), "HOME": str(self.home), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args: str, **env: str) -> tuple[int, str, str]:
        process = self.start(*args, **env)
        out, err = process.communicate()
        return process.returncode, out, err

    def log(self) -> list[str]:
        """What was done since the last look."""
        path = self.top / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(bare: Machine) -> Machine:
    """A machine with what it takes."""
    bare.put("python3", PYTHON)
    bare.put_java("17.0.2")
    return bare


def installs(log: list[str]) -> int:
    """Count the times that the pins were installed."""
    return sum(line.startswith("-m pip") and "requirements.txt" in line for line in log)


def test_alone_it_lists_the_commands(bare: Machine) -> None:
    status, out, err = bare.run()
    assert (status, err) == (0, "")
    listed = {line.split()[0] for line in out.splitlines() if line.startswith("  ") and line[2] != " "}
    assert listed == {"demo", "wane", "test", "check", "bench", "docs"}


def test_an_unknown_command_is_named(bare: Machine) -> None:
    status, out, err = bare.run("tset")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "'tset'" in err


@pytest.mark.parametrize("command", ["demo", "wane", "test", "bench"])
def test_without_java_one_sentence(bare: Machine, command: str) -> None:
    bare.put("python3", PYTHON)
    bare.put("apt-get", 'note "apt $*"')
    status, out, err = bare.run(command)
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert "Java 17" in err
    assert bare.log() == []


def test_root_without_apt_cannot_install(bare: Machine) -> None:
    bare.put("python3", PYTHON)
    bare.put("id", "echo 0")
    assert bare.run("wane")[0] == 3


def test_check_needs_no_java(bare: Machine) -> None:
    bare.put("python3", PYTHON)
    assert bare.run("docs")[0] == 0
    assert bare.log()[-1] == "-m mkdocs build --strict"


def test_old_java_will_not_do(machine: Machine) -> None:
    machine.put_java("1.8.0_392")
    assert machine.run("wane")[0] == 3


def test_old_java_home_is_passed_over(machine: Machine) -> None:
    machine.put_java("1.8.0_392", machine.top / "old/bin")
    status, out, _ = machine.run("wane", JAVA_HOME=str(machine.top / "old"))
    assert (status, out) == (7, "<none>")


def test_good_java_home_is_kept(machine: Machine) -> None:
    machine.put_java("11.0.20")
    home = machine.put_java("21", machine.top / "new/bin").parents[1]
    assert machine.run("wane", JAVA_HOME=str(home))[1] == f"<{home}>"


def test_root_with_apt_gets_java(bare: Machine) -> None:
    bare.put("python3", PYTHON)
    bare.put("id", "echo 0")
    java = bare.put_java("17.0.2", bare.top / "package")
    bare.put("apt-get", f"note \"apt $*\"; [[ $1 == update ]] || cp '{java}' '{bare.bin}'")
    assert bare.run("wane")[0] == 7
    update, install = (line for line in bare.log() if line.startswith("apt"))
    assert update.startswith("apt update")
    assert install.endswith("openjdk-17-jre-headless")


def test_without_python_one_sentence(bare: Machine) -> None:
    bare.put("python3", "exit 127")  # a shim of a version that is not there
    bare.put("python", "exit 1")  # older than it should be
    status, out, err = bare.run("check")
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert "Python 3.11" in err


def test_a_python_that_runs_is_found(machine: Machine) -> None:
    machine.put("python3", "exit 127")
    machine.put("python3.12", PYTHON)
    assert machine.run("wane")[0] == 7


def test_the_named_python_goes_first(machine: Machine) -> None:
    machine.put("python3", 'note "python3 was run"; exit 127')
    assert machine.run("wane", PYTHON=str(machine.put("mine", PYTHON)))[0] == 7
    assert "python3 was run" not in machine.log()


def test_python_without_ensurepip_names_the_package(machine: Machine) -> None:
    machine.put("python3", WITHOUT_VENV)
    status, out, err = machine.run("check")
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert f"apt-get install {THIS_PYTHON}-venv" in err


def test_root_with_apt_gets_ensurepip(machine: Machine) -> None:
    machine.put("python3", WITHOUT_VENV)
    machine.put("id", "echo 0")
    whole = machine.put("python3", PYTHON, machine.top / "package")
    machine.put("apt-get", f"note \"apt $*\"; [[ $1 == update ]] || cp '{whole}' '{machine.bin}'")
    assert machine.run("docs")[0] == 0
    assert any(line.endswith(f" {THIS_PYTHON}-venv") for line in machine.log())


def test_arguments_and_status_pass_through(machine: Machine) -> None:
    assert machine.run("wane", "a b", "", "*", "--all")[:2] == (7, "<a b><><*><--all><none>")
    assert machine.run("demo", "x y")[:2] == (7, "<demo><x y><none>")


def test_the_second_start_installs_nothing(machine: Machine) -> None:
    machine.run("wane")
    assert installs(machine.log()) == 1
    assert machine.run("wane")[2] == ""
    assert machine.log() == []


@pytest.mark.parametrize("changed", ["requirements.txt", "pyproject.toml"])
def test_changed_pins_are_installed(machine: Machine, changed: str) -> None:
    machine.run("wane")
    machine.log()
    (machine.checkout / changed).write_text("changed\n")
    machine.run("wane")
    log = machine.log()
    assert installs(log) == 1
    assert not any(line.startswith("-m venv") for line in log)


def test_an_upgraded_python_is_noticed(machine: Machine) -> None:
    machine.run("wane")
    machine.log()
    machine.put("python", PYTHON.replace("3.11.9", "3.11.10"), machine.checkout / ".venv/bin")
    machine.run("wane")
    assert installs(machine.log()) == 1


def test_a_moved_checkout_is_installed_again(machine: Machine) -> None:
    machine.run("wane")
    machine.log()
    machine.checkout.rename(machine.top / "elsewhere")
    machine.checkout.symlink_to(machine.top / "elsewhere")
    machine.run("wane")
    assert f"-e {machine.top / 'elsewhere'}" in " ".join(machine.log())


def test_a_failed_install_is_told_and_redone(machine: Machine) -> None:
    (machine.home / "pip").write_text("echo 'no such version' >&2; exit 1\n")
    status, _, err = machine.run("wane")
    assert status == 1
    assert "no such version" in err
    (machine.home / "pip").unlink()
    machine.log()
    assert machine.run("wane")[0] == 7
    assert installs(machine.log()) == 1


def test_an_interrupted_install_is_repaired(machine: Machine) -> None:
    (machine.home / "pip").write_text("kill -9 $PPID; exit 1\n")
    machine.run("wane")
    (machine.home / "pip").unlink()
    machine.log()
    packages = machine.checkout / ".venv/lib/python3.11/site-packages"
    for name in ("whole-1.dist-info", "half-1.dist-info", "~umpy"):
        (packages / name).mkdir(parents=True)
    (packages / "whole-1.dist-info/RECORD").touch()
    assert machine.run("wane")[0] == 7
    assert installs(machine.log()) == 1
    assert os.listdir(packages) == ["whole-1.dist-info"]


def test_a_broken_environment_is_made_anew(machine: Machine) -> None:
    machine.put("python", "exit 127", machine.checkout / ".venv/bin")
    assert machine.run("wane")[0] == 7
    assert f"-m venv --clear {machine.checkout}/.venv" in machine.log()


@pytest.mark.skipif(not shutil.which("flock"), reason="without flock there is no lock")
def test_two_at_once_install_once(machine: Machine) -> None:
    (machine.home / "pip").write_text("sleep 0.1\n")
    starts = [machine.start("wane") for _ in range(2)]
    for start in starts:
        start.communicate()
    assert [start.returncode for start in starts] == [7, 7]
    assert installs(machine.log()) == 1


SPREAD = "<-n><auto><--dist><worksteal>"
"""Over all cores."""


def pytests(log: list[str]) -> list[str]:
    """The runs of pytest, with what was switched on for them."""
    return [line.removeprefix("pytest ") for line in log if line.startswith("pytest ")]


def test_test_runs_on_spark_and_then_the_rest_three_times(machine: Machine) -> None:
    assert machine.run("test")[0] == 0
    assert pytests(machine.log()) == [
        "<-m><spark and not slow> ",
        f"<-m><not spark and not slow>{SPREAD} ",
        f"<-m><not spark and not slow and not jit_only>{SPREAD} nojit",
        f"<-m><not spark and not slow>{SPREAD} bounds",
    ]


def test_test_all_adds_the_slow_ones(machine: Machine) -> None:
    assert machine.run("test", "--all")[0] == 0
    assert pytests(machine.log())[:2] == ["<-m><spark> ", f"<-m><not spark>{SPREAD} "]


def test_test_with_arguments_is_one_run(machine: Machine) -> None:
    machine.run("test", "tests/unit", "-k", "a or b", "--all")
    assert pytests(machine.log()) == ["<-m><><tests/unit><-k><a or b> "]


def test_check_goes_on_after_a_failure(machine: Machine) -> None:
    status, out, err = machine.run("check")
    assert status == 1
    assert err.splitlines()[-1] == "dev: check failed: mypy"
    steps = [line[3:] for line in out.splitlines() if line.startswith("== ")]
    assert steps == ["ruff format", "ruff check", "mypy", "import layers", "reference", "docs", "pins"]
