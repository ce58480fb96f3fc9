"""wane on Spark, batch and streaming: ``import wane.spark as ws``.

The same descriptions as everywhere (:mod:`wane.fn`), over any DataFrame, classic or Connect; nothing here reaches into
the JVM. Arrow record batches go in and come out, and two functions over them do the work (:mod:`wane.grouped`).
"""

from typing import TYPE_CHECKING, Any

from wane.errors import MissingExtra

try:
    import pyspark  # noqa: F401
except ImportError:
    raise MissingExtra("wane.spark needs PySpark: pip install 'wane[spark]'") from None

from wane.spark.group import Grouped, group
from wane.spark.pcap import register
from wane.spark.scan import Scan, scan
from wane.spark.session import session, tune

if TYPE_CHECKING:
    from wane.spark.sql import gsql

__all__ = ["Grouped", "Scan", "group", "gsql", "register", "scan", "session", "tune"]


def __getattr__(name: str) -> Any:
    """Load GSQL when it is first used: it needs an extra of its own."""
    if name == "gsql":
        from wane.spark.sql import gsql

        return gsql
    raise AttributeError(f"module 'wane.spark' has no attribute {name!r}")
