"""GSQL: the query language of the papers, with decays; on sqlglot, which nothing else imports.

>>> import pyarrow as pa
>>> from wane import local
>>> packets = pa.table({"time": [0, 30, 65], "destIP": [1, 1, 2], "len": [40, 60, 100]})
>>> query = "select tb, destIP, sum(len*(time % 60)*(time % 60))/3600 as recent from TCP group by time/60 as tb, destIP"
>>> local.gsql(query, {"TCP": packets}).to_pylist()
[{'tb': 0, 'destIP': 1, 'recent': 15.0}, {'tb': 1, 'destIP': 2, 'recent': 0.6944444444444444}]
"""

from wane.errors import GsqlError, MissingExtra

try:
    import sqlglot  # noqa: F401
except ImportError:
    raise MissingExtra("GSQL needs sqlglot: pip install 'wane[gsql]'") from None

from wane.gsql.lower import compile
from wane.gsql.program import Clock, Program, Query, Table

__all__ = ["Clock", "GsqlError", "Program", "Query", "Table", "compile"]
