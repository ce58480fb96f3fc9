"""A real cluster of three processes, with workers in executors of their own, and Spark Connect: the same answers.

Servers listen on the loopback address only, and are ended by their own process ids.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import elsewhere
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from grouped_trace import HOLISTIC, SIMPLE, check_heavy, check_quantiles, close, trace

import wane
from wane import local

HOME = Path(pyspark.__file__).parent
HERE = Path(__file__).parent
PATIENCE = 300
"""Seconds that anything may take."""


@contextlib.contextmanager
def server(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    """A Java process of Spark's; gives the file that it logs to."""
    log = folder / f"{name}.log"
    paths = os.pathsep.join([str(Path(wane.__file__).parents[1]), str(HERE.parent), str(HERE)])
    env = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_HOST": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": paths,
        "SPARK_WORKER_DIR": str(folder / f"{name}.work"),
    }
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments], stdout=out, stderr=out, env=env, cwd=folder
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def logged(log: Path, pattern: str) -> str:
    """What a server logs, once it does."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1] if found.groups() else found[0]
        time.sleep(0.2)
    raise AssertionError(f"nothing like {pattern!r} was logged: {log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers with an executor each."""
    folder = tmp_path_factory.mktemp("cluster")
    deploy = "org.apache.spark.deploy"
    with contextlib.ExitStack() as stack:
        given = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = stack.enter_context(server(folder, "master", f"{deploy}.master.Master", *given))
        url = logged(master, r"Starting Spark master at (spark://127.0.0.1:\d+)")
        for i in range(2):
            mine = (f"{deploy}.worker.Worker", *given, "--cores", "1", "--memory", "1g", url)
            logged(stack.enter_context(server(folder, f"worker{i}", *mine)), "Successfully registered with master")
        yield url


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table = trace(1)
    # Spark's times have a zone.
    stamped = table.set_column(0, "time", table.column("time").cast(pa.timestamp("us", "UTC")))
    pq.write_table(stamped, path)
    return path


def driver(url: str, rows: Path, answers: Path, pause: float = 0.0) -> subprocess.Popen[bytes]:
    """The process that asks."""
    paths = [str(Path(wane.__file__).parents[1]), str(HERE.parent)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SPARK_LOCAL_IP": "127.0.0.1"}
    env["PYSPARK_PYTHON"] = sys.executable
    with (answers / "driver.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, str(HERE.parent / "elsewhere.py"), url, str(rows), str(answers), str(pause)],
            stdout=log,
            stderr=log,
            env=env,
        )


def finished(process: subprocess.Popen[bytes], answers: Path) -> None:
    """Wait for the process that asks, and end it where it takes too long."""
    try:
        assert process.wait(PATIENCE) == 0, (answers / "driver.log").read_text()[-3000:]
    finally:
        process.kill()


def check(rows: Path, answers: Path) -> None:
    """Judge what the driver wrote."""
    log = (answers / "driver.log").read_text()[-3000:]
    assert (answers / "scan.parquet").exists(), log
    table = pq.read_table(rows)
    both = pq.read_table(answers / "both.parquet")
    check_heavy(table, both)
    check_quantiles(table, both)
    sure = (*SIMPLE, *HOLISTIC[1:])
    for name, fns in (("both", sure), ("native", elsewhere.NATIVE), ("scan", SIMPLE)):
        wanted = local.group(table, "port", every=elsewhere.EVERY).agg(*fns)
        found = pq.read_table(answers / f"{name}.parquet").select(wanted.schema.names)
        order = [("epoch", "ascending"), ("port", "ascending")]
        one, two = found.sort_by(order).to_pylist(), wanted.sort_by(order).to_pylist()
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert close(a, b), f"{a}\n{b}"


def test_a_cluster(cluster: str, rows: Path, tmp_path: Path) -> None:
    process = driver(cluster, rows, tmp_path)
    finished(process, tmp_path)
    check(rows, tmp_path)


def test_an_executor_killed_in_the_middle_changes_nothing(cluster: str, rows: Path, tmp_path: Path) -> None:
    before = executors()
    process = driver(cluster, rows, tmp_path, pause=2.0)
    until = time.monotonic() + PATIENCE
    fresh: set[int] = set()
    while len(fresh) < 2 and time.monotonic() < until:
        time.sleep(0.2)
        fresh = executors() - before
    assert len(fresh) == 2
    while not (workers := children(max(fresh))) and time.monotonic() < until:
        time.sleep(0.1)
    assert workers, "no Python worker was started"
    os.kill(max(fresh), signal.SIGKILL)
    finished(process, tmp_path)
    assert "Lost executor" in (tmp_path / "driver.log").read_text()
    check(rows, tmp_path)


def test_spark_connect(rows: Path, tmp_path: Path) -> None:
    submit = (
        "org.apache.spark.deploy.SparkSubmit",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    )
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    with server(tmp_path, "connect", *submit, "--master", "local[2]", *given, "spark-internal") as log:
        port = logged(log, r"Spark Connect server started at: \S*?:(\d+)")
        process = driver(f"sc://127.0.0.1:{port}", rows, tmp_path)
        finished(process, tmp_path)
    check(rows, tmp_path)


def executors() -> set[int]:
    """The process ids of the executors that run."""
    return {pid for pid, command in processes() if "CoarseGrainedExecutorBackend" in command}


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]


def processes() -> Iterator[tuple[int, str]]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield int(path.parent.name), path.read_bytes().decode(errors="replace")
