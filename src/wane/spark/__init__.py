"""wane on Spark, batch and streaming: ``import wane.spark as ws``.

The same descriptions as everywhere (:mod:`wane.fn`), over any DataFrame, classic or Connect; nothing here reaches into
the JVM. Arrow record batches go in and come out, and two functions over them do the work (:mod:`wane.grouped`).
"""

from wane.errors import MissingExtra

try:
    import pyspark  # noqa: F401
except ImportError:
    raise MissingExtra("wane.spark needs PySpark: pip install 'wane[spark]'") from None

from wane.spark.group import Grouped, group
from wane.spark.pcap import register
from wane.spark.session import session, tune

__all__ = ["Grouped", "group", "register", "session", "tune"]
