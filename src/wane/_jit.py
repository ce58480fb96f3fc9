"""The one place that meets the compiler: how every kernel of wane is compiled, cached and called.

The policy, once for all kernels:

* **Lazy.** Decorating costs nothing and does not import numba; the first call compiles or loads from the cache.
  A query can be planned, printed and shipped without ever waking the compiler.
* **Declared.** A kernel names its signatures. Nothing is specialised by surprise, a wrong dtype is an error at
  the call, and the names of cache entries do not depend on which call came first.
* **Cached, safely.** Entries live in a folder named after the content of every file that holds kernels, numba's
  version and the bounds-check switch. numba alone would serve a stale caller of a changed helper, would share
  entries between checked and unchecked runs, and two processes that fill one index at once could leave it
  pointing at the other's code. A file lock makes the fill exclusive across processes.
* **Exact.** Of fast-math only this: a multiplication and an addition may be fused, so the last bit of a double may
  differ between kinds of machine, and sums are reordered where a kernel asks for it. NaN matters everywhere. ``nogil``, so that threads run; division by zero gives inf or
  NaN, as in NumPy.

``NUMBA_DISABLE_JIT=1`` runs the plain Python bodies, ``NUMBA_BOUNDSCHECK=1`` compiles in bounds checks, and
``NUMBA_CACHE_DIR`` moves the cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

_COMPILING = threading.RLock()
_SHORT = {
    "f8": "float64",
    "f4": "float32",
    "i8": "int64",
    "i4": "int32",
    "u8": "uint64",
    "u4": "uint32",
    "u1": "uint8",
    "b1": "boolean",
}
_TOKEN = re.compile(r"\b([rw])_([a-z]\d)\b")


def signature(text: str) -> str:
    """Spell out a signature: ``r_f8`` is a read-only contiguous float64 array, ``w_i8`` a writable int64 one.

    Inputs are declared read-only because arrays that come from Arrow are; a writable array is accepted there too.

    >>> signature("void(r_f8, w_i8)")
    "void(Array(float64, 1, 'C', readonly=True), int64[::1])"
    """

    def spell(match: re.Match[str]) -> str:
        dtype = _SHORT[match[2]]
        return f"{dtype}[::1]" if match[1] == "w" else f"Array({dtype}, 1, 'C', readonly=True)"

    return _TOKEN.sub(spell, text)


class Inline:
    """A small function that kernels call; it is compiled into each of them."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = py_func

    def __call__(self, *args: Any) -> Any:
        """Run the plain Python body (kernels use the compiled one)."""
        with np.errstate(all="ignore"):
            return self.py_func(*args)

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiled helper, made on first use."""
        import numba

        return numba.njit(_bind(self.py_func), nogil=True, error_model="numpy", fastmath={"contract"})


class _BitCast(Inline):
    """A helper that reads a number's bits as another type; the compiler needs it spelled out."""

    def __init__(self, py_func: Callable[..., Any], source: str, target: str) -> None:
        super().__init__(py_func)
        self.source = source
        self.target = target

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiler's own instruction."""
        from numba.core import types as nb
        from numba.extending import intrinsic

        made = getattr(nb, self.target)(getattr(nb, self.source))

        def cast(typing: Any, number: Any) -> Any:
            def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return builder.bitcast(args[0], context.get_value_type(sig.return_type))

            return made, generate

        return intrinsic(cast)


def _bits(number: float) -> int:
    """The bits of a double, as an int64."""
    return np.int64(np.float64(number).view(np.int64))


def _from_bits(bits: int) -> float:
    """The double with these bits."""
    return float(np.int64(bits).view(np.float64))


bits = _BitCast(_bits, "float64", "int64")
from_bits = _BitCast(_from_bits, "int64", "float64")


class Kernel:
    """A compiled function with declared signatures; see the module's policy."""

    def __init__(self, py_func: Callable[..., Any], signatures: tuple[str, ...], reorder: bool) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = py_func
        self.signatures = signatures
        self.reorder = reorder
        self._run: Callable[..., Any] | None = self._interpreted if DISABLED else None

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, compiling it or loading it from the cache the first time."""
        return (self._run or self._compile())(*args)

    def __reduce__(self) -> str:
        """Pickle as the module attribute it is, so that workers find their own compiled copy."""
        return self.py_func.__qualname__

    def _interpreted(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.py_func(*args)

    def _compile(self) -> Callable[..., Any]:
        import numba

        with _COMPILING:
            if self._run is None:
                with _exclusive_cache() as cached:
                    self._run = numba.njit(
                        [signature(s) for s in self.signatures],
                        cache=cached,
                        nogil=True,
                        error_model="numpy",
                        fastmath={"contract", "reassoc"} if self.reorder else {"contract"},
                    )(_bind(self.py_func))
        return self._run


def kernel(*signatures: str, reorder: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a compiled function.

    Args:
        signatures: One or more, in the form of :func:`signature`.
        reorder: Whether sums may be taken in any order, which lets them run in vector registers. For results whose
            class of equality allows it; NaN and infinities keep their meaning.
    """
    return lambda py_func: Kernel(py_func, signatures, reorder)


def inline(py_func: Callable[..., Any]) -> Inline:
    """Declare a helper that is compiled into the kernels which call it."""
    return Inline(py_func)


def over_arrays(func: Callable[[float], float], what: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Turn a user's function of one number into one of an array: compiled when it compiles, else slow with a warning.

    Args:
        func: A function of one float that gives a float.
        what: What the function is, for the warning.
    """
    scalar: Callable[[float], float] = func
    if not DISABLED:
        import numba

        try:
            scalar = numba.njit(func, nogil=True, error_model="numpy")

            @numba.njit("void(float64[::1], float64[::1])", nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
            def fill(ages: NDArray[np.float64], out: NDArray[np.float64]) -> None:
                for i in range(ages.shape[0]):
                    out[i] = scalar(ages[i])

            def compiled(ages: NDArray[np.float64]) -> NDArray[np.float64]:
                out = np.empty(ages.shape[0])
                fill(np.array(ages, np.float64), out)
                return out

            return compiled
        except numba.core.errors.NumbaError as why:
            reason = str(why).strip().splitlines()[0]
            warnings.warn(
                f"{what} does not compile, so it runs as plain Python, some hundred times slower ({reason})",
                RuntimeWarning,
                stacklevel=3,
            )

    def interpreted(ages: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([func(float(age)) for age in ages], np.float64)

    return interpreted


def _bind(py_func: Callable[..., Any]) -> types.FunctionType:
    """Give a copy of `py_func` whose helpers are compiled ones; numba reads them from the function's globals."""
    assert isinstance(py_func, types.FunctionType)
    helpers = {
        name: value.compiled
        for name in py_func.__code__.co_names
        if isinstance(value := py_func.__globals__.get(name), Inline)
    }
    bound = types.FunctionType(
        py_func.__code__, {**py_func.__globals__, **helpers}, py_func.__name__, py_func.__defaults__, py_func.__closure__
    )
    bound.__qualname__ = py_func.__qualname__
    bound.__module__ = py_func.__module__
    return bound


@contextlib.contextmanager
def _exclusive_cache() -> Iterator[bool]:
    """Point numba at wane's cache folder, alone among processes; yields whether there is a folder to use."""
    from numba import config

    folder = cache_folder()
    if folder is None:
        yield False
        return
    before = config.CACHE_DIR
    with _locked(folder / "lock"):
        config.CACHE_DIR = str(folder)
        try:
            yield True
        finally:
            config.CACHE_DIR = before


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock on `path`; without lock support (some network disks) declared signatures still keep it safe."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    with path.open("w") as handle:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@functools.cache
def cache_folder() -> Path | None:
    """The folder that compiled kernels are kept in, or None where no folder can be written."""
    import numba

    bounds = "checked" if numba.config.BOUNDSCHECK else "plain"
    leaf = f"{_sources_digest()}-{numba.__version__}-{bounds}"
    roots = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    candidates = [Path(root) / "wane" for root in roots if root]
    with contextlib.suppress(RuntimeError):  # no home folder
        candidates.append(Path.home() / ".cache" / "wane")
    candidates.append(Path(tempfile.gettempdir()) / f"wane-{os.getuid() if hasattr(os, 'getuid') else 0}")
    for root in candidates:
        try:
            (root / leaf).mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root / leaf).close()
        except OSError:
            continue
        if not hasattr(os, "getuid") or (root / leaf).stat().st_uid == os.getuid():  # cached code is run: trust only ours
            return root / leaf
    return None


def _sources_digest() -> str:
    """Digest every file of the package that holds kernels, so that a changed helper never meets a stale caller."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        content = path.read_bytes()
        if b"_jit" in content:
            digest.update(path.name.encode() + b"\0" + content)
    return digest.hexdigest()[:16]
