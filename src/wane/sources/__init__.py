"""Where rows come from: each source yields Arrow record batches."""

from wane.sources.base import Source
from wane.sources.csv import Csv
from wane.sources.formats import FORMATS, open_source
from wane.sources.generator import ATTACKER, Attack, Crowd, Traffic, batches, generate, ip_text
from wane.sources.parquet import Parquet
from wane.sources.pcap import Pcap
from wane.sources.worldcup98 import WorldCup98
from wane.sources.write import write

__all__ = [
    "ATTACKER",
    "FORMATS",
    "Attack",
    "Crowd",
    "Csv",
    "Parquet",
    "Pcap",
    "Source",
    "Traffic",
    "WorldCup98",
    "batches",
    "generate",
    "ip_text",
    "open_source",
    "write",
]
