"""Decayed and windowed answers over streams in which recent data matters more than old data.

Names load when they are first used: ``import wane`` itself loads neither numba nor pyspark nor pandas.
"""

from importlib import import_module

__version__ = "0.1.0"

_MODULES = (
    "cli",
    "decay",
    "errors",
    "expr",
    "fn",
    "gsql",
    "hashing",
    "local",
    "registry",
    "serde",
    "sources",
    "states",
    "testing",
    "times",
)
_NAMES = {"from_bytes": "wane.summaries.base"}


def __getattr__(name: str) -> object:
    """Load a submodule, a function or a summary's class by name."""
    if name in _MODULES:
        return import_module(f"wane.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if not name.startswith("_"):
        listed = import_module("wane.registry").listed
        if name in listed("summaries"):
            return getattr(import_module("wane.summaries"), name)
    raise AttributeError(f"module 'wane' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    listed = import_module("wane.registry").listed
    return sorted([*_MODULES, *_NAMES, *listed("summaries"), "__version__"])
