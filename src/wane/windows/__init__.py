"""One file for each algorithm; `__init__.pyi` is their list. Names load when they are first used."""

from importlib import import_module

from wane.registry import listed


def __getattr__(name: str) -> object:
    """Load a window's class by its listed name."""
    module = listed("windows").get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """The listed names."""
    return sorted(listed("windows"))
