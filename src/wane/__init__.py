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
    "monoids",
    "registry",
    "serde",
    "sources",
    "states",
    "testing",
    "times",
    "windows",
)
_NAMES = {"from_bytes": "wane.summaries.base", "monoid": "wane.monoids.base", "roll": "wane.windows._roll"}
_FOLDERS = ("summaries", "windows")


def __getattr__(name: str) -> object:
    """Load a submodule, a function, or the class of a summary or window by name."""
    if name in _MODULES:
        return import_module(f"wane.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if not name.startswith("_"):
        listed = import_module("wane.registry").listed
        for folder in _FOLDERS:
            if name in listed(folder):
                return getattr(import_module(f"wane.{folder}"), name)
    raise AttributeError(f"module 'wane' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    listed = import_module("wane.registry").listed
    return sorted([*_MODULES, *_NAMES, *(name for folder in _FOLDERS for name in listed(folder)), "__version__"])
