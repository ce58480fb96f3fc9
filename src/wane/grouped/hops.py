"""Epochs that overlap, by panes: a row goes into one pane, and the panes of an epoch are merged.

A pane is as long as the epochs' slide. That needs weights that do not depend on the epoch, as under no and exponential
decay, or from a landmark of the query's own. Under any other decay a row goes into each of its epochs by itself, with
the weight that it has there (:class:`wane.grouped.clock.Clock`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from wane.grouped.clock import measured_in_epoch
from wane.grouped.query import Every, Plan

EPOCH = "epoch"


def by_panes(plan: Plan) -> Plan:
    """The plan over panes that rows are reduced by: the same one, where its epochs do not overlap or cannot be cut."""
    every = plan.every
    if every is None or every.hops == 1 or any(measured_in_epoch(state, every) for state in plan.states):
        return plan
    return replace(plan, every=Every(every.step, every.offset))


def spread(partials: pa.RecordBatch, hops: int) -> pa.RecordBatch:
    """Partials of panes as partials of the epochs that they are in: a pane `i` is in the epochs `i` and before it."""
    rows = np.tile(np.arange(partials.num_rows), hops)
    epochs = partials.column(EPOCH).to_numpy()[rows] - np.repeat(np.arange(hops), partials.num_rows)
    at = partials.schema.get_field_index(EPOCH)
    return partials.take(pa.array(rows)).set_column(at, partials.schema.field(at), pa.array(epochs))
