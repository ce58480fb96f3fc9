"""The one place that meets the compiler: how every kernel of wane is compiled, cached and called.

The policy, once for all kernels:

* **Lazy.** Decorating costs nothing and does not import numba; the first call compiles or loads from the cache. A
  query can be planned, printed and shipped without ever waking the compiler.
* **Declared.** A kernel names its signatures. Nothing is specialised by surprise, and a wrong dtype is an error at
  the call, with the compiler off as well.
* **Cached by content.** An entry goes by the fingerprint of all that the code depends on: the kernel's bytecode, its
  helpers and constants, its signatures and options, numba's version and the bounds-check switch. So a changed helper
  never meets a stale caller, checked and unchecked runs do not mix, and one entry serves every copy of the package,
  be it in a zip. A file lock makes filling an entry exclusive, since numba's index of it could otherwise end up
  pointing at another process's code.
* **Exact.** NaN and infinities keep their meaning; division by zero gives them, as in NumPy. Of fast-math only this:
  a multiplication and an addition may be fused, so that the last bit of a double may differ between kinds of
  machine, unless a kernel declines (``fuse=False``); and sums are reordered where a kernel asks for it. Threads run
  side by side (``nogil``).

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
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
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
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal, in which numba prints its messages
_TOKEN = re.compile(r"\b([rw])_([a-z]\d)\b")


def signature(text: str) -> str:
    """Spell out a signature: ``r_f8`` is a read-only contiguous float64 array, ``w_i8`` a writable int64 one.

    Inputs are declared read-only because arrays that come from Arrow are; a writable one is taken there too.

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
        self._compiled: dict[tuple[bool, bool], Any] = {}

    def __call__(self, *args: Any) -> Any:
        """Run the plain Python body (kernels use the compiled one)."""
        with np.errstate(all="ignore"):
            return self.py_func(*args)

    def compiled(self, fuse: bool, counted: bool = True) -> Any:
        """The compiled helper, made on first use."""
        if (fuse, counted) not in self._compiled:
            self._compiled[fuse, counted] = self._compile(fuse, counted)
        return self._compiled[fuse, counted]

    def _compile(self, fuse: bool, counted: bool) -> Any:
        import numba

        options = _options(fuse, counted=counted)
        # Only kernels call it, and it may take what Python cannot give.
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return numba.njit(_bind(self.py_func, fuse, counted), **options)


class _BitCast(Inline):
    """A helper that reads a number's bits as another type; the compiler needs it spelled out."""

    def __init__(self, py_func: Callable[..., Any], source: str, target: str) -> None:
        super().__init__(py_func)
        self.source = source
        self.target = target

    def _compile(self, fuse: bool, counted: bool) -> Any:
        from numba.core import types as nb
        from numba.extending import intrinsic

        made = getattr(nb, self.target)(getattr(nb, self.source))

        def cast(typing: Any, number: Any) -> Any:  # noqa: ARG001 -- numba reads the parameters' names
            def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                return builder.bitcast(args[0], context.get_value_type(sig.return_type))

            return made, generate

        return intrinsic(cast)


def _bits(number: float) -> np.int64:
    """The bits of a double."""
    return np.int64(np.float64(number).view(np.int64))


def _from_bits(bits: int) -> float:
    """The double with these bits."""
    return float(np.int64(bits).view(np.float64))


bits = _BitCast(_bits, "float64", "int64")
from_bits = _BitCast(_from_bits, "int64", "float64")


class Kernel:
    """A compiled function with declared signatures; see the module's policy."""

    def __init__(
        self,
        py_func: Callable[..., Any],
        signatures: tuple[str, ...],
        reorder: bool,
        fuse: bool,
        cached: bool = True,
        counted: bool = True,
    ) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = py_func
        self.signatures = signatures
        self.reorder = reorder
        self.fuse = fuse
        self.cached = cached
        self.counted = counted
        self._run: Callable[..., Any] | None = self._interpreted if DISABLED else None

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, compiling it or loading it from the cache the first time."""
        run = self._run or self._compile()
        try:
            return run(*args)
        except TypeError as why:
            if "No matching definition" not in str(why):
                raise
            given = ", ".join(_describe(arg) for arg in args)
            raise TypeError(
                f"the kernel {self.py_func.__qualname__} takes {' or '.join(self.signatures)}, and was given "
                f"({given}); convert the arrays first (see wane._jit.signature)"
            ) from None

    def __reduce__(self) -> str:
        """Pickle as the module attribute it is, so that workers find their own compiled copy."""
        return self.py_func.__qualname__

    def _interpreted(self, *args: Any) -> Any:
        if not any(_fits(declared, args) for declared in self.signatures):
            raise TypeError("No matching definition")
        with np.errstate(all="ignore"):
            return self.py_func(*args)

    def _compile(self) -> Callable[..., Any]:
        with _COMPILING:
            if self._run is None:
                folder = cache_folder() if self.cached else None
                if folder is not None:
                    # Whatever is wrong with a cache (cut entries, a full disk), the answer must not depend on it.
                    with contextlib.suppress(Exception), _entry(folder, self) as stand_in:
                        self._run = self._build(stand_in)
                self._run = self._run or self._build(None)
        return self._run

    def _build(self, stand_in: Path | None) -> Callable[..., Any]:
        import numba

        func = _bind(self.py_func, self.fuse, self.counted)
        if stand_in is not None:
            func.__code__ = func.__code__.replace(co_filename=str(stand_in))
        built: Callable[..., Any] = numba.njit(
            [signature(declared) for declared in self.signatures],
            cache=stand_in is not None,
            **_options(self.fuse, self.reorder, self.counted),
        )(func)
        return built


def kernel(*signatures: str, reorder: bool = False, fuse: bool = True) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a compiled function.

    Args:
        signatures: One or more, in the form of :func:`signature`.
        reorder: Whether sums may be taken in any order, which lets them run in vector registers. For results whose
            class of equality allows it; NaN and infinities keep their meaning.
        fuse: Whether a multiplication and an addition may become one instruction with one rounding. Without it every
            machine gives the same bits.
    """
    return lambda py_func: Kernel(py_func, signatures, reorder, fuse)


def inline(py_func: Callable[..., Any]) -> Inline:
    """Declare a helper that is compiled into the kernels which call it."""
    return Inline(py_func)


class Step:
    """A text with open names: functions that are given when it is closed, such as a monoid's `combine`.

    One text so serves every monoid, and runs as it stands in Python and compiled. What an open name stands for in the
    file is a stand-in that is never called.
    """

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self.py_func = py_func
        self.__doc__ = py_func.__doc__

    def __call__(self, *given: Any) -> Any:
        """Stands where one text calls another; only what is closed can be called."""
        raise NotImplementedError(self.py_func.__qualname__)

    def closed(self, given: Mapping[str, Any]) -> Callable[..., Any]:
        """The text as a Python function, its open names and those of the steps it calls given."""
        return self._close(given, lambda func: func)

    def inlined(self, given: Mapping[str, Any]) -> Inline:
        """The same as a helper to be compiled into kernels."""
        return Inline(self._close(given, helper))

    def kernel(self, given: Mapping[str, Any], *signatures: str, cached: bool, counted: bool) -> Kernel:
        """The same as a kernel. What users gave is not cached: its fingerprint could miss what it depends on."""
        return Kernel(self.inlined(given).py_func, signatures, False, True, cached, counted)

    def _close(self, given: Mapping[str, Any], as_helper: Callable[[Any], Any]) -> types.FunctionType:
        func = self.py_func
        assert isinstance(func, types.FunctionType)
        known: dict[str, Any] = {}
        for name in func.__code__.co_names:
            value = given.get(name, func.__globals__.get(name))
            if isinstance(value, Step):
                known[name] = as_helper(value._close(given, as_helper))
            elif name in given:
                known[name] = as_helper(value) if callable(value) else value
        return _rebound(func, known)


def helper(func: Any) -> Inline:
    """A function of anybody's as a helper."""
    return func if isinstance(func, Inline) else Inline(func)


def step(py_func: Callable[..., Any]) -> Step:
    """Declare a text with open names."""
    return Step(py_func)


@dataclass(frozen=True)
class Layout:
    """How columns of some type are laid out in memory: one cell a value, tuples and rows of arrays as well.

    Attributes:
        dtype: Of an array that holds them; object where nothing is compiled.
        width: The length of one value that is an array, or 0.
        view: Compiled into kernels as ``cells(store)``: a column whose entries are the values themselves.
        counted: Whether what makes the values allocates.
    """

    dtype: np.dtype[Any]
    width: int
    view: Inline
    counted: bool = True

    def store(self, size: int) -> NDArray[Any]:
        """An array with room for some values."""
        return np.zeros((size, self.width) if self.width else size, self.dtype)

    @property
    def signature(self) -> str:
        """How kernels declare it."""
        if self.width:
            return f"{self.dtype}[:, ::1]"
        return "uint8[::1]" if self.dtype.names else f"{self.dtype.name.replace('bool', 'boolean')}[::1]"

    def passed(self, store: NDArray[Any]) -> NDArray[Any]:
        """The array as kernels take it."""
        return store.view(np.uint8) if self.dtype.names else store


def _itself(store: NDArray[Any]) -> NDArray[Any]:
    """What is stored, as it stands."""
    return store


PLAIN = Layout(np.dtype(object), 0, Inline(_itself))
"""The layout where nothing is compiled."""


class _Cells(Inline):
    """Reads bytes as a column of tuples, which NumPy has no type for."""

    def __init__(self, cell: Any) -> None:
        super().__init__(_itself)
        self.cell = cell
        self.name = str(cell)

    def _compile(self, fuse: bool, counted: bool) -> Any:
        from numba.core import types as nb
        from numba.extending import intrinsic

        cgutils: Any = import_module("numba.core.cgutils")
        arrays: Any = import_module("numba.np.arrayobj")
        column = nb.Array(self.cell, 1, "C")

        def view(typing: Any, store: Any) -> Any:  # noqa: ARG001 -- numba reads the parameters' names
            def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                given = arrays.make_array(sig.args[0])(context, builder, args[0])
                made = arrays.make_array(column)(context, builder)
                size = context.get_abi_sizeof(context.get_data_type(self.cell))
                each = context.get_constant(nb.intp, size)
                (length,) = cgutils.unpack_tuple(builder, given.shape, 1)
                arrays.populate_array(
                    made,
                    data=builder.bitcast(given.data, made.data.type),
                    shape=cgutils.pack_array(builder, [builder.sdiv(length, each)]),
                    strides=cgutils.pack_array(builder, [each]),
                    itemsize=each,
                    meminfo=given.meminfo,
                    parent=given.parent,
                )
                if context.enable_nrt:
                    context.nrt.incref(builder, sig.args[0], args[0])
                return made._getvalue()

            return column(store), generate

        return intrinsic(view)


def layouts(lift: Any, combine: Any, lower: Any, identity: Any, item: str) -> tuple[Layout, Layout]:
    """How aggregates and answers are laid out, found by compiling a monoid's functions for one type of item.

    Raises whatever the compiler raises for functions that are not for it.
    """
    if not isinstance(identity, np.ndarray):
        with contextlib.suppress(Exception):  # they allocate
            return _layouts(lift, combine, lower, identity, item, False)
    return _layouts(lift, combine, lower, identity, item, True)


def _layouts(lift: Any, combine: Any, lower: Any, identity: Any, item: str, counted: bool) -> tuple[Layout, Layout]:
    numba: Any = import_module("numba")
    unify = import_module("numba.core.registry").cpu_target.typing_context.unify_types

    def result(func: Any, *given: Any) -> Any:
        made = helper(func).compiled(True, counted)
        made.compile(given)
        return made.overloads[given].signature.return_type

    def both(first: Any, second: Any) -> Any:
        found = unify(first, second)
        if found is None:
            raise TypeError(f"aggregates are {first} here and {second} there")
        return found

    lifted = result(lift, numba.core.sigutils.normalize_signature(f"void({item})")[0][0])
    cell = both(numba.typeof(identity), lifted)
    while cell != (wider := both(cell, result(combine, cell, cell))):
        cell = wider
    width = len(identity) if isinstance(identity, np.ndarray) else 0
    return _layout(cell, width, counted), _layout(result(lower, cell), 0, counted)


def _layout(cell: Any, width: int, counted: bool) -> Layout:
    from numba.core.registry import cpu_target

    dtype = _dtype(cell)
    if not dtype.names:
        return Layout(dtype, width, Inline(_itself), counted)
    context = cpu_target.target_context
    if context.get_abi_sizeof(context.get_data_type(cell)) != dtype.itemsize:
        raise TypeError(f"{cell} has no layout that NumPy shares")
    return Layout(dtype, 0, _Cells(cell), counted)


def _dtype(cell: Any) -> np.dtype[Any]:
    nb: Any = import_module("numba.core.types")
    from numba.np.numpy_support import as_dtype

    if isinstance(cell, nb.BaseTuple):
        return np.dtype([(f"f{i}", _dtype(part)) for i, part in enumerate(cell.types)], align=True)
    if isinstance(cell, nb.Literal):
        return _dtype(cell.literal_type)
    return np.dtype(as_dtype(cell.dtype if isinstance(cell, nb.Array) else cell))


class _Cycles(Inline):
    """Reads the processor's counter of cycles."""

    def _compile(self, fuse: bool, counted: bool) -> Any:
        from numba.core import types as nb
        from numba.extending import intrinsic

        ir: Any = import_module("llvmlite.ir")

        def read(typing: Any) -> Any:  # noqa: ARG001 -- numba reads the parameters' names
            def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
                counter = ir.FunctionType(ir.IntType(64), [])
                return builder.call(builder.module.declare_intrinsic("llvm.readcyclecounter", fnty=counter), [])

            return nb.int64(), generate

        return intrinsic(read)


cycles = _Cycles(time.perf_counter_ns)
"""The processor's counter of cycles in kernels (0 on machines that keep it to themselves), nanoseconds in Python."""


def why_not(error: Exception) -> str:
    """What the compiler says is wrong with a user's function, in a line."""
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines()]
    return next((line for line in lines if line and not line.startswith("Failed in ")), repr(error))


def over_arrays(func: Callable[[float], float], what: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Turn a user's function of one number into one of an array: compiled if it compiles, else slow with a warning.

    Args:
        func: A function of one float that gives a float.
        what: What the function is, for the warning.
    """
    if not DISABLED:
        try:
            return _compiled_over_arrays(func)
        except Exception as why:  # numba fails in many ways on code that is not for it
            warnings.warn(
                f"{what} does not compile, so it runs as plain Python, some hundred times slower ({why_not(why)})",
                RuntimeWarning,
                stacklevel=4,
            )

    def interpreted(ages: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([func(float(age)) for age in ages], np.float64)

    return interpreted


def _compiled_over_arrays(
    func: Callable[[float], float],
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    import numba

    scalar = numba.njit(func, **_options(False)) if isinstance(func, types.FunctionType) else func

    @numba.njit("void(float64[::1], float64[::1])", **_options(False))
    def fill(ages: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        for i in range(ages.shape[0]):
            out[i] = scalar(ages[i])

    def compiled(ages: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty(ages.shape[0])
        fill(np.array(ages, np.float64), out)
        return out

    return compiled


def fingerprint(*things: Any) -> str:
    """Tell functions (and values) apart by what they do: code, constants, defaults, what they captured and call.

    Functions of other packages than the first one's count by their names alone, unless they are :class:`Inline`.
    """
    digest = hashlib.sha256()
    _Feeder(digest.update).feed(things)
    return digest.hexdigest()[:32]


class _Feeder:
    """Walks through what a function depends on, each part once."""

    def __init__(self, update: Callable[[bytes], None]) -> None:
        self.update = update
        self.package: str | None = None
        self.seen: dict[int, Any] = {}

    def feed(self, thing: Any) -> None:
        self.update(f"<{type(thing).__name__}>".encode())
        if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes)):
            self.update(repr(thing).encode())
        elif isinstance(thing, (np.ndarray, np.generic)) and not thing.dtype.hasobject:
            self.update(f"{thing.dtype.str}{thing.shape}".encode() + thing.tobytes())
        elif isinstance(thing, tuple):
            self._all(thing)
        elif isinstance(thing, frozenset):
            self._all(sorted(thing, key=repr))
        elif isinstance(thing, types.CodeType):
            self._all([thing.co_code, thing.co_consts, thing.co_names, thing.co_freevars, thing.co_argcount])
            self.feed(thing.co_exceptiontable)
        elif id(thing) in self.seen:
            self.update(b"again")
        else:
            self.seen[id(thing)] = thing
            self._feed_once(thing)

    def _feed_once(self, thing: Any) -> None:
        """Feed what may contain itself, or be shared."""
        if isinstance(thing, list):
            self._all(thing)
        elif isinstance(thing, dict):
            self._all([*thing.items()])
        elif isinstance(thing, set):
            self._all(sorted(thing, key=repr))
        elif isinstance(thing, types.FunctionType):
            self._feed_function(thing)
        elif isinstance(thing, Inline):
            # Compiled into its caller: followed into whatever package it is from.
            before, self.package = self.package, thing.py_func.__module__.partition(".")[0]
            self._all([thing.py_func, type(thing)._compile])
            self._all([value for name, value in sorted(vars(thing).items()) if isinstance(value, str)])
            self.package = before
        elif isinstance(py_func := getattr(thing, "py_func", None), types.FunctionType):  # numba's
            self.feed(py_func)
        elif isinstance(thing, functools.partial):
            self._all([thing.func, thing.args, thing.keywords])
        elif hasattr(thing, "__qualname__") or isinstance(thing, (types.ModuleType, np.ufunc)):
            self._name(thing)
        else:
            self._name(type(thing))
            self.feed(vars(type(thing)).get("__call__"))
            self.feed(vars(thing) if hasattr(thing, "__dict__") else repr(thing))

    def _feed_function(self, func: types.FunctionType) -> None:
        package = (func.__module__ or "").partition(".")[0]
        self.package = self.package or package
        if package != self.package:
            self._name(func)
            return
        self._all([func.__code__, func.__defaults__, func.__kwdefaults__])
        self._all([cell.cell_contents for cell in func.__closure__ or ()])
        names = sorted(_names(func.__code__))
        found = [func.__globals__[name] for name in names if name in func.__globals__]
        # What may be an attribute of a module counts as if it were one.
        modules = [thing for thing in found if isinstance(thing, types.ModuleType)]
        self._all(found)
        self._all([getattr(module, name) for module in modules for name in names if hasattr(module, name)])

    def _all(self, things: Any) -> None:
        self.update(f"{len(things)}:".encode())
        for thing in things:
            self.feed(thing)

    def _name(self, thing: Any) -> None:
        name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
        self.update(f"{getattr(thing, '__module__', '')}.{name};".encode())


def _names(code: types.CodeType) -> set[str]:
    """The names that a function's code and the functions inside it look up."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return {*code.co_names}.union(*inner)


def _options(fuse: bool, reorder: bool = False, counted: bool = True) -> dict[str, Any]:
    """What the compiler may do; code that allocates nothing need not count references to arrays, which costs."""
    flags = {name for name, wanted in (("contract", fuse), ("reassoc", reorder)) if wanted}
    options = {"nogil": True, "error_model": "numpy", "fastmath": flags or False}
    return options if counted else {**options, "_nrt": False}


def _bind(py_func: Callable[..., Any], fuse: bool, counted: bool = True) -> types.FunctionType:
    """Give a copy of `py_func` whose helpers are compiled ones; numba reads them from the function's globals."""
    assert isinstance(py_func, types.FunctionType)
    helpers = {
        name: value.compiled(fuse, counted)
        for name in py_func.__code__.co_names
        if isinstance(value := py_func.__globals__.get(name), Inline)
    }
    return _rebound(py_func, helpers)


def _rebound(py_func: types.FunctionType, known: Mapping[str, Any]) -> types.FunctionType:
    """A copy of a function with some of its globals changed."""
    bound = types.FunctionType(
        py_func.__code__,
        {**py_func.__globals__, **known},
        py_func.__name__,
        py_func.__defaults__,
        py_func.__closure__,
    )
    bound.__qualname__ = py_func.__qualname__
    bound.__module__ = py_func.__module__
    return bound


def _fits(declared: str, args: tuple[Any, ...]) -> bool:
    """Whether arrays have the types that a signature declares, as the compiler would check."""
    wanted = declared.rstrip(")").rpartition("(")[2].split(",")
    if len(wanted) != len(args):
        return "[" in declared or "Array" in declared  # spelled out, with commas of its own
    for text, arg in zip(wanted, args, strict=True):
        match = _TOKEN.fullmatch(text.strip())
        if match is None:
            continue
        dtype = "bool" if match[2] == "b1" else _SHORT[match[2]]
        if not (isinstance(arg, np.ndarray) and arg.ndim == 1 and arg.dtype == dtype):
            return False
        if not arg.flags.c_contiguous or (match[1] == "w" and not arg.flags.writeable):
            return False
    return True


def _describe(arg: Any) -> str:
    if not isinstance(arg, np.ndarray):
        return type(arg).__name__
    notes = ["" if arg.flags.c_contiguous else ", strided", "" if arg.flags.writeable else ", read-only"]
    return f"{arg.dtype} array of {arg.ndim} dimension{'s'[: arg.ndim != 1]}{''.join(notes)}"


@contextlib.contextmanager
def _entry(folder: Path, made: Kernel) -> Iterator[Path]:
    """Hold the cache entry of one kernel, alone among processes.

    numba files an entry under the path and content of a function's source file. The function is given a stand-in for
    it, whose name holds the fingerprint: an empty file, which is also what is locked.
    """
    import numba

    config: Any = numba.config
    options = _options(made.fuse, made.reorder, made.counted)
    switches = (numba.__version__, bool(config.BOUNDSCHECK), made.signatures, options)
    stand_in = folder / f"{made.py_func.__module__}-{fingerprint(made.py_func, switches)}.py"
    before = config.CACHE_DIR
    with _locked(stand_in):
        config.CACHE_DIR = str(folder)
        try:
            yield stand_in
        except Exception:
            for broken in folder.glob(f"*/{stand_in.stem}.*"):
                broken.unlink()
            raise
        finally:
            config.CACHE_DIR = before


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock on a file; without lock support (some network disks) the worst is a second compilation."""
    with path.open("a") as handle:
        try:
            import fcntl
        except ImportError:  # not a POSIX system
            yield
            return
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:  # said aloud: a process forked meanwhile has the file open too, and would keep the lock
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)


@functools.cache
def cache_folder() -> Path | None:
    """The folder that compiled kernels are kept in, or None where no folder can be written."""
    roots = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    candidates = [Path(root) / "wane" for root in roots if root]
    with contextlib.suppress(RuntimeError):  # no home folder
        candidates.append(Path.home() / ".cache" / "wane")
    user = os.getuid() if hasattr(os, "getuid") else 0
    candidates.append(Path(tempfile.gettempdir()) / f"wane-{user}")
    for folder in candidates:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if not hasattr(os, "getuid") or folder.stat().st_uid == user:  # what is cached is run: trust only ours
            return folder
    return None
