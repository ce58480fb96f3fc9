"""Spark sessions that are set as wane wants them; what each setting is worth was measured."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping

from pyspark.sql import SparkSession

FREE: Mapping[str, str] = {
    # Under its default of 64 MB Spark measures the batch at every row: 2.2 million rows a second instead of 16.7.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    # Without it a streaming state of 100 MB takes 0.4 s to commit instead of 0.1.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings that a running session takes."""

FIXED: Mapping[str, str] = {
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings that a session is started with."""

_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_TUNED = 1 << 30
_warned: set[int] = set()


def session(master: str | None = None, name: str = "wane", **settings: str) -> SparkSession:
    """A session that is well set for wane: the one that runs, tuned, or else a new one on this machine.

    Args:
        master: Where a new one runs; by default on all cores of this machine.
        name: Its name.
        settings: Further settings of Spark, with ``__`` for each dot: ``spark__driver__memory="4g"``.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    here = (master or "local").startswith("local")
    made = SparkSession.builder.appName(name).master(master or f"local[{cores}]")
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
    }
    if here:
        # Else Spark starts its workers with the first python3 of PATH, which may not have this one's packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    given = {key.replace("__", "."): value for key, value in settings.items()}
    for key, value in {**FIXED, **FREE, **(local if here else {}), **given}.items():
        made = made.config(key, value)
    return made.getOrCreate()


def tune(spark: SparkSession) -> SparkSession:
    """Set on a running session what wane wants of it; gives the session."""
    for key, value in FREE.items():
        spark.conf.set(key, value)
    return spark


def check(spark: SparkSession) -> None:
    """Warn, once a session, where it is not tuned."""
    limit = spark.conf.get(_BATCH, "0") or "0"
    if id(spark) in _warned or (limit.isdigit() and int(limit) >= _TUNED):
        return
    _warned.add(id(spark))
    warnings.warn(
        f"this session is not tuned for wane: with {_BATCH}={limit} Spark measures Arrow batches at every row, up "
        "to 7 times slower; call wane.spark.tune(spark)",
        RuntimeWarning,
        stacklevel=4,
    )
