"""``wane generate``: made-up traffic, to a file or as a stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from wane.errors import BadParameter

if TYPE_CHECKING:
    import pyarrow as pa

    from wane.sources import Traffic

EXAMPLE = "wane generate traffic.pcap --rows 20000 --rate 200 --attack 30s --late 0.05"


def command(
    out: Annotated[str, typer.Argument(help="A .pcap, .parquet or .csv file; - is CSV to standard output.")],
    rows: Annotated[int, typer.Option(min=1, help="Packets.")] = 1_000_000,
    rate: Annotated[float, typer.Option(help="Packets a second.")] = 100_000.0,
    start: Annotated[str, typer.Option(help="When it starts.")] = "2026-01-05T00:00:00Z",
    skew: Annotated[float, typer.Option(help="The Zipf exponent of hosts; 0 makes all alike.")] = 1.0,
    sources: Annotated[int, typer.Option(min=1, help="Source hosts.")] = 10_000,
    destinations: Annotated[int, typer.Option(min=1, help="Destination hosts.")] = 20_000,
    late: Annotated[float, typer.Option(help="The fraction that comes late.")] = 0.0,
    delay: Annotated[str, typer.Option(help="How late at most.")] = "1s",
    repeated: Annotated[float, typer.Option(help="The fraction that repeats another packet.")] = 0.0,
    attack: Annotated[
        str | None, typer.Option(help="A flood from one source after so long.", show_default=False)
    ] = None,
    crowd: Annotated[str | None, typer.Option(help="A flash crowd after so long.", show_default=False)] = None,
    diurnal: Annotated[float, typer.Option(help="How far the rate swings over a day, under 1.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all that is random.")] = 1,
    live: Annotated[bool, typer.Option("--live", help="Write at the rate, as if packets came now.")] = False,
) -> None:
    """Make up traffic; equal options give equal packets."""
    from wane.sources import Attack, Crowd, Traffic, write

    traffic = Traffic(
        rows=rows,
        rate=rate,
        start=start,
        skew=skew,
        sources=sources,
        destinations=destinations,
        late=late,
        delay=delay,
        repeated=repeated,
        attack=None if attack is None else Attack(start=attack),
        crowd=None if crowd is None else Crowd(start=crowd),
        diurnal=diurnal,
        seed=seed,
    )
    if out == "-":
        _to_standard_output(traffic, live)
        return
    if live:
        raise BadParameter("a file is not written at a rate; write to - with --live")
    from wane.cli.progress import progress

    with progress("writing", "packets") as report:
        done = 0

        def told() -> Iterator[pa.RecordBatch]:
            nonlocal done
            for batch in traffic.batches():
                yield batch
                done += batch.num_rows
                report(done, rows)

        written = write(out, told())
    print(f"{written:,} packets in {out}")


def _to_standard_output(traffic: Traffic, live: bool) -> None:
    """Lines of CSV; at the rate of the trace, a tenth of a second's at a time."""
    import pyarrow as pa
    from pyarrow import csv

    from wane.times import SECOND, instant

    options = csv.WriteOptions(include_header=False)
    began, start = time.monotonic(), instant(traffic.start)
    first = True
    for batch in traffic.batches(max(1, int(traffic.rate / 10)) if live else 65_536):
        if live:
            due = (int(batch.column("time")[-1].value) - start) / SECOND
            time.sleep(max(0.0, due - (time.monotonic() - began)))
        if first:
            print(",".join(batch.schema.names))
            first = False
        sys.stdout.flush()
        sink = pa.BufferOutputStream()
        csv.write_csv(batch, sink, options)
        sys.stdout.write(sink.getvalue().to_pybytes().decode())
        sys.stdout.flush()
