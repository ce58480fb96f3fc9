"""Many groups at once: keys to dense ids, pools of state, and the engine that runs a plan over Arrow batches."""

from wane.grouped.engine import HighLevel, LowLevel
from wane.grouped.run import How, Run

__all__ = ["HighLevel", "How", "LowLevel", "Run"]
