"""Spark, batch: decayed answers against its own undecayed functions on the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.runner import Comparison, Settings
from wane import fn
from wane.fn import Fn
from wane.sources import generate

ROWS = 20_000_000
FILES = 8
ROUNDS = 3
EXP = "exp(half_life=10s)"
MINUTE = ("time", "1 minute")


def comparisons(settings: Settings) -> Iterator[Comparison]:
    """Compare whole queries over Parquet files, with rows from a DataFrame and from a scan."""
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F  # noqa: N812

    import wane.spark as ws

    rows = settings.rows(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(FILES):
            made = generate(rows // FILES, rate=10_000, seed=settings.seed * FILES + i)
            # Spark reads no nanoseconds.
            times = made.column("time").cast(pa.timestamp("us", "UTC"), safe=False)
            pq.write_table(made.set_column(0, "time", times), Path(folder) / f"{i}.parquet")
        running = SparkSession.getActiveSession()
        spark = ws.session("local[2]", spark__ui__enabled="false", spark__driver__memory="6g")
        spark.sparkContext.setLogLevel("ERROR")
        df = spark.read.parquet(folder)
        scan = ws.scan(spark, folder)

        def run(asked: DataFrame) -> None:
            asked.write.format("noop").mode("overwrite").save()

        def ours(source: Any, fns: list[Fn], *keys: str, every: Any = MINUTE) -> None:
            run(ws.group(source, *keys, every=every).agg(*fns))

        minute = F.window("time", "1 minute").start.alias("epoch")

        def theirs(*asked: Any, by: tuple[Any, ...] = (minute,)) -> None:
            run(df.groupBy(*by).agg(*asked))

        sums = [fn.count(decay=EXP), fn.sum("len", decay=EXP)]
        yield Comparison(
            what="count and sum by minute, destIP and destPort",
            ours=partial(ours, df, sums, "destIP", "destPort"),
            work=rows,
            unit="ns/row",
            rounds=ROUNDS,
            peers={
                "count and sum, no decay": partial(
                    theirs, F.count("*"), F.sum("len"), by=(minute, F.col("destIP"), F.col("destPort"))
                )
            },
            ratios={"count and sum, no decay": 1.05},
        )
        top = [fn.top("destIP", 10, decay=EXP)]
        approx = partial(theirs, F.expr("approx_top_k(destIP, 10, 1000)"))
        for name, source, ratio in (("a scan", scan, 0.8), ("a DataFrame", df, 1.5)):
            yield Comparison(
                what=f"top 10 by minute, from {name}",
                ours=partial(ours, source, top),
                work=rows,
                unit="ns/row",
                rounds=ROUNDS,
                peers={"approx_top_k": approx},
                ratios={"approx_top_k": ratio},
            )
        quantiles = [fn.quantiles("len", [0.5, 0.99], decay=EXP)]
        percentile = partial(theirs, F.expr("approx_percentile(len, array(0.5, 0.99))"))
        kll = partial(theirs, F.expr("kll_sketch_agg_bigint(len)"))
        for name, source, ratio in (("a scan", scan, 0.5), ("a DataFrame", df, 0.9)):
            yield Comparison(
                what=f"quantiles by minute, from {name}",
                ours=partial(ours, source, quantiles),
                work=rows,
                unit="ns/row",
                rounds=ROUNDS,
                peers={"approx_percentile": percentile, "kll_sketch_agg_bigint": kll},
                ratios={"approx_percentile": ratio} | ({"kll_sketch_agg_bigint": 0.9} if source is scan else {}),
            )
        yield Comparison(
            what="distinct by minute, from a scan",
            ours=partial(ours, scan, [fn.distinct("destIP", decay=EXP)]),
            work=rows,
            unit="ns/row",
            rounds=ROUNDS,
            peers={"approx_count_distinct": partial(theirs, F.expr("approx_count_distinct(destIP, 0.05)"))},
            ratios={"approx_count_distinct": 1.0},
        )
        if running is None:
            spark.stop()
