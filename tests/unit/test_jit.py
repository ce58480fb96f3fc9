"""The compiler's policy: a cache that is never stale, shared or broken, and errors where a kernel is misused."""

from __future__ import annotations

import fcntl
import functools
import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wane
from wane import _jit
from wane._jit import Kernel, bits, fingerprint, from_bits, inline, kernel, over_arrays, signature

Floats = NDArray[np.float64]
SOURCES = Path(wane.__file__).parent.parent


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return {**kept, "PYTHONPATH": str(SOURCES), **changes}


def run(code: str, *arguments: str, **env: str) -> str:
    """What a fresh process prints."""
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=environment(**env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@inline
def _twice(x: float) -> float:
    return 2 * x


def _add(values: Floats, amount: float, out: Floats) -> None:
    for i in range(values.shape[0]):
        out[i] = _twice(values[i]) + amount


def _added(made: Callable[..., Any]) -> list[float]:
    out = np.empty(3)
    made(np.array([1.0, 2.0, 3.0]), 0.5, out)
    return out.tolist()


ADDED = [2.5, 4.5, 6.5]


def cold() -> Kernel:
    return kernel("void(r_f8, float64, w_f8)")(_add)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    monkeypatch.setattr(_jit, "cache_folder", lambda: tmp_path)
    return tmp_path


def hits(made: Kernel) -> int:
    return sum(made._run.stats.cache_hits.values())  # type: ignore[union-attr]


# --- calling ---------------------------------------------------------------------------------------------------


def test_a_kernel_takes_what_it_declares() -> None:
    made = cold()
    assert _added(made) == ADDED
    values = np.array([1.0, 2.0, 3.0])
    values.flags.writeable = False
    out = np.empty(3)
    made(values, 0.5, out)
    made(out[:0], 1.0, np.empty(0))
    assert out.tolist() == ADDED


def test_read_only_arrow_memory_is_taken() -> None:
    pa = pytest.importorskip("pyarrow")
    values = pa.array([1.0, 2.0, 3.0]).to_numpy()
    assert not values.flags.writeable
    out = np.empty(3)
    cold()(values, 0.5, out)
    assert out.tolist() == ADDED


good, outs = np.zeros(3), np.empty(3)
frozen = np.empty(3)
frozen.flags.writeable = False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.zeros(3, np.float32), 1.0, outs), "float32 array"),
        ((np.zeros(3, np.int64), 1.0, outs), "int64 array"),
        ((np.zeros(3, ">f8"), 1.0, outs), ">f8 array|float64 array"),
        ((np.zeros(6)[::2], 1.0, outs), "strided"),
        ((np.zeros((3, 3)), 1.0, outs), "2 dimensions"),
        ((good, 1.0, frozen), "read-only"),
        ((good, 1.0, np.empty(3, np.float32)), "float32 array"),
        (([0.0], 1.0, outs), "list"),
        ((good, 1.0), "float"),
    ],
)  # fmt: skip
def test_a_kernel_refuses_what_it_does_not_declare(arguments: Any, said: str) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=rf"_add takes .*{said}|unsupported array dtype|not enough arg"
    ) as why:
        cold()(*arguments)
    assert "np.ndarray" not in str(why.value)


def test_an_error_inside_a_kernel_stays_what_it_is() -> None:
    def fails(values: Floats) -> None:
        raise TypeError("of its own")

    with pytest.raises(TypeError, match=r"^of its own$"):
        kernel("void(r_f8)")(fails)(np.zeros(1))


def test_a_kernel_pickles_as_its_name() -> None:
    from wane.times import measure

    assert pickle.loads(pickle.dumps(measure)) is measure


def test_signatures_with_brackets_in_the_result() -> None:
    def ends(values: Floats) -> tuple[float, float]:
        return values[0], values[-1]

    assert kernel("UniTuple(float64, 2)(r_f8)")(ends)(np.array([1.0, 2.0])) == (1.0, 2.0)
    assert signature("void(r_i8, w_u1, float64)") == "void(Array(int64, 1, 'C', readonly=True), uint8[::1], float64)"


def test_helpers_run_as_python_too() -> None:
    assert _twice(4.0) == 8.0
    assert bits(1.0) == 0x3FF0000000000000
    assert from_bits(bits(-math.pi)) == -math.pi
    assert np.isnan(from_bits(bits(math.nan)))


def test_division_by_zero_follows_ieee() -> None:
    def divide(a: Floats, b: Floats, out: Floats) -> None:
        for i in range(a.shape[0]):
            out[i] = a[i] / b[i]

    out = np.empty(3)
    kernel("void(r_f8, r_f8, w_f8)")(divide)(np.array([1.0, -1.0, 0.0]), np.zeros(3), out)
    assert out[:2].tolist() == [math.inf, -math.inf]
    assert math.isnan(out[2])


def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


def test_nan_matters_however_sums_are_ordered() -> None:
    for options in ({}, {"reorder": True}, {"fuse": False}):
        made = kernel("float64(r_f8, r_f8)", **options)(_dot)
        assert made(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])) == 321.0
        assert math.isnan(made(np.array([1.0, math.nan]), np.ones(2)))
        assert made(np.array([math.inf, 1.0]), np.ones(2)) == math.inf


def test_without_fusing_every_product_is_rounded() -> None:
    x = 1 + 2.0**-30
    found = kernel("float64(r_f8, r_f8)", fuse=False)(_dot)(np.array([-(x * x), x]), np.array([1.0, x]))
    assert found == 0.0  # fused, the rest of the product would stay


# --- the cache -------------------------------------------------------------------------------------------------


@pytest.mark.jit_only
def test_a_second_kernel_finds_the_first_ones_code(cache: Path) -> None:
    first, second = cold(), cold()
    assert _added(first) == _added(second) == ADDED
    assert (hits(first), hits(second)) == (0, 1)


@pytest.mark.jit_only
@pytest.mark.parametrize("damage", ["cut", "garbage", "gone", "index"])
def test_a_broken_cache_is_healed(cache: Path, damage: str) -> None:
    _added(cold())
    for code in cache.rglob("*.nbi" if damage == "index" else "*.nbc"):
        content = code.read_bytes()
        code.unlink()
        if damage != "gone":
            code.write_bytes(content[: len(content) // 2] if damage == "cut" else os.urandom(200))
    assert _added(cold()) == ADDED
    _added(cold())
    last = cold()
    assert _added(last) == ADDED
    assert hits(last) == 1


@pytest.mark.jit_only
def test_options_do_not_share_code(cache: Path) -> None:
    a, b = np.ones(3), np.ones(3)
    for options in ({}, {"reorder": True}, {"fuse": False}):
        made = kernel("float64(r_f8, r_f8)", **options)(_dot)
        made(a, b)
        assert hits(made) == 0


@pytest.mark.jit_only
def test_eight_threads_call_a_cold_kernel(cache: Path) -> None:
    made = cold()
    gate = threading.Barrier(8)

    def work(_: int) -> list[float]:
        gate.wait()
        return _added(made)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [ADDED] * 8
    assert sum(made._run.stats.cache_misses.values()) == 1  # type: ignore[union-attr]


def test_without_a_folder_kernels_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "cache_folder", lambda: None)
    assert _added(cold()) == ADDED


def test_a_folder_that_cannot_be_written_or_is_not_ours_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = _jit.cache_folder.__wrapped__
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))  # no folder can be made under a file
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find() == tmp_path / "xdg" / "wane"
    assert (tmp_path / "xdg" / "wane").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "first"))
    assert find() == tmp_path / "first" / "wane"
    someone = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: someone)
    assert find() is None


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    script = """
        import fcntl, os, sys, time
        from pathlib import Path
        from wane._jit import _locked
        with _locked(Path(sys.argv[1])):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
        with open(sys.argv[1]) as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(child, 9)
        print("free")
    """
    assert run(script, str(tmp_path / "lock")) == "free"


def test_the_lock_excludes(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with _jit._locked(path), path.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


CROWD = """
    import json, sys, time
    from pathlib import Path
    import numpy as np
    import wane.times, wane.decay.exp2, wane.decay.forward_decays as forward
    from wane import _jit
    from wane.decay import parse
    from wane.times import Nanoseconds, Ticks
    folder = Path(sys.argv[1])
    (folder / sys.argv[2]).touch()
    while not (folder / "go").exists():
        time.sleep(0.001)
    decay = parse("exp(half_life=5m)")
    times = Ticks(np.arange(5) * 60 + 1_767_225_600, "s")
    values, base, per = times.since(times.span()[0], *times.span())
    out = np.empty(5)
    decay.fill(values, base, per / 1e9, 0.0, out)
    weights = decay.weight(times, now=times.span()[1] // 10**9)
    seconds = times.seconds_since(0)
    made = [k for m in (wane.times, wane.decay.exp2, forward) for k in vars(m).values() if isinstance(k, _jit.Kernel)]
    used = {id(k): k for k in made if k._run is not None}.values()
    missed = sum(sum(k._run.stats.cache_misses.values()) for k in used)
    print(json.dumps([weights.tolist(), out.tolist(), seconds.tolist(), len(used), missed]))
"""


@pytest.mark.jit_only
def test_many_processes_start_at_once_with_an_empty_cache(tmp_path: Path) -> None:
    def crowd(name: str, size: int) -> list[Any]:
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-c", textwrap.dedent(CROWD), str(folder)]
        env = environment(NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        crowd = [
            subprocess.Popen([*command, str(n)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for n in range(size)
        ]
        while len(list(folder.iterdir())) < size and all(p.poll() is None for p in crowd):
            time.sleep(0.002)
        (folder / "go").touch()
        found = []
        for process in crowd:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            found.append(json.loads(out))
        return found

    powers = [0.5 ** ((4 - n) / 5) for n in range(5)]
    for name, size in (("cold", 8), ("warm", 2)):
        found = crowd(name, size)
        missed = sum(run[-1] for run in found)
        for weights, scaled, seconds, used, _ in found:
            assert np.allclose(weights, powers, rtol=1e-15, atol=0)
            assert np.allclose(scaled, np.array(powers) / powers[0], rtol=1e-14, atol=0)
            assert seconds == [1_767_225_600 + 60 * n for n in range(5)]
            assert used == 4
        # each kernel was compiled by one process, and not at all the second time
        assert missed == (4 if name == "cold" else 0)


PACKAGES = {
    "tiny/__init__.py": "",
    "other/__init__.py": "",
    "other/limits.py": "LIMIT = 100\n",
    "tiny/helper.py": """
        from tiny._jit import inline

        @inline
        def step(x):
            return x + 1

        @inline
        def outer(x):
            return step(x) * 2
    """,
    "other/caller.py": """
        from other import limits
        from other.limits import LIMIT
        from tiny._jit import kernel
        from tiny.helper import outer

        @kernel("int64(r_i8, int64)")
        def at(values, i):
            return outer(values[i]) + LIMIT + limits.LIMIT
    """,
}


@pytest.mark.jit_only
def test_a_changed_helper_or_constant_never_meets_a_stale_caller(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name, text in PACKAGES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(textwrap.dedent(text))
    shutil.copy(_jit.__file__, home / "tiny")

    def answer(where: Path, index: int = 1, **env: str) -> list[str]:
        code = """
            import sys
            import numpy as np
            sys.path.insert(0, sys.argv[1])
            from other.caller import at
            try:
                print(at(np.array([10, 20]), int(sys.argv[2])), sum(at._run.stats.cache_hits.values()))
            except IndexError as why:
                print("IndexError", 0)
        """
        return run(code, str(where), str(index), NUMBA_CACHE_DIR=str(tmp_path / "cache"), **env).split()

    def change(name: str, old: str, new: str) -> None:
        path = home / name
        stat = path.stat()
        assert len(old) == len(new)
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # neither size nor time tell
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)

    assert answer(home) == ["242", "0"]
    assert answer(home, 7, NUMBA_BOUNDSCHECK="1") == ["IndexError", "0"]  # unchecked code is not reused
    change("tiny/helper.py", "x + 1", "x + 2")
    assert answer(home) == ["244", "0"]
    change("other/limits.py", "100", "200")
    assert answer(home) == ["444", "0"]
    change("tiny/helper.py", "x + 2", "x + 1")
    change("other/limits.py", "200", "100")
    # as it was at first, and from a zip elsewhere: the same code, so the same entry
    zipped = shutil.make_archive(str(tmp_path / "packed"), "zip", home)
    assert answer(Path(zipped)) == ["242", "1"]


def test_with_the_compiler_off_numba_is_not_loaded() -> None:
    script = """
        import sys
        import numpy as np
        from wane import _jit
        from wane.decay import parse, forward
        from wane.times import Ticks
        times = Ticks(np.arange(5) * 60 + 1_767_225_600, "s")
        for text in ("exp(half_life=5m)", "exp(rate=0.001)", "window(2m)"):
            print(parse(text).weight(times, now="2026-01-01T00:04:00Z").tolist())
        print(forward(lambda n: n * n, name="square").weight([1.0], now=2, landmark=0)[0])
        print("numba" in sys.modules, _jit.DISABLED)
    """
    off = run(script, NUMBA_DISABLE_JIT="1").splitlines()
    assert off[-1] == "False True"
    if not _jit.DISABLED:
        on = run(script).splitlines()
        assert on[-1] == "True False"
        assert on[:-1] == off[:-1]  # to the last bit


# --- fingerprints ----------------------------------------------------------------------------------------------

RATE = 2
TABLE = np.array([1.0, 2.0])


def _uses_rate(n: float) -> float:
    return n * RATE


def _uses_table(n: float) -> float:
    return n * TABLE[0]


def _uses_another(n: float) -> float:
    return _uses_rate(n)


def _recursive(n: float) -> float:
    return 1 if n < 1 else _recursive(n - 1)


class Power:
    def __init__(self, power: float) -> None:
        self.power = power

    def __call__(self, n: float) -> float:
        return n**self.power


def _closure(power: float) -> Callable[[float], float]:
    return lambda n: n**power


def _default(power: float) -> Callable[[float], float]:
    return eval(f"lambda n, power={power}: n ** power")


def _keyword(power: float) -> Callable[[float], float]:
    return eval(f"lambda n, *, power={power}: n ** power")


def _constant(power: float) -> Callable[[float], float]:
    return eval(f"lambda n: n ** {power}")


def _nested(power: float) -> Callable[[float], float]:
    return eval(f"lambda n: (lambda m: m ** {power})(n)")


def _partial(power: float) -> Callable[[float], float]:
    return functools.partial(math.pow, power)


@pytest.mark.parametrize("make", [_closure, _default, _keyword, _constant, _nested, _partial, Power])
def test_functions_that_do_the_same_have_one_fingerprint_and_others_another(make: Callable[..., Any]) -> None:
    assert fingerprint(make(2)) == fingerprint(make(2))
    assert len({fingerprint(make(power)) for power in (2, 3, 2.5, -2)}) == 4


def test_names_of_arguments_and_attributes_count() -> None:
    assert fingerprint(lambda n: math.sqrt(n)) != fingerprint(lambda n: math.cbrt(n))
    assert fingerprint(math.sqrt) != fingerprint(math.exp)
    assert fingerprint(np.sqrt) != fingerprint(np.exp)
    assert fingerprint(0.0) != fingerprint(-0.0)
    assert fingerprint(1) != fingerprint(True)
    assert fingerprint((1, (2,))) != fingerprint(((1, 2),))
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint(frozenset({"a", "b"})) == fingerprint(frozenset({"b", "a"}))
    assert fingerprint(_recursive) == fingerprint(_recursive)
    assert fingerprint(bits) != fingerprint(from_bits)


def test_what_a_function_looks_up_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    before = [fingerprint(f) for f in (_uses_rate, _uses_another, _uses_table)]
    monkeypatch.setattr(module, "RATE", 3, raising=True)
    monkeypatch.setattr(module, "TABLE", np.array([1.0, 3.0]))
    after = [fingerprint(f) for f in (_uses_rate, _uses_another, _uses_table)]
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    script = """
        import math
        from wane._jit import fingerprint, inline
        import wane.decay.forward_decays as forward
        @inline
        def helper(x): return x + math.pi
        def function(x, table=(1, 2), *, kinds=frozenset({"a", "b", "c"})):
            return helper(x) if x in {"p", "q", "r"} else [y for y in table]
        print(fingerprint(function), fingerprint(forward._turn.py_func))
    """
    assert len({run(script, PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1


# --- a user's function -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "func",
    [math.log1p, np.log1p, lambda n: math.log1p(n), lambda n: int(n) * 2],
    ids=["math", "ufunc", "lambda", "int"],
)
def test_over_arrays_gives_what_the_function_gives(func: Callable[[float], float]) -> None:
    ages = np.array([0.0, 1.0, 2.5, 1e9])
    for form in (ages, np.repeat(ages, 2)[::2]):
        assert np.allclose(over_arrays(func, "it")(form), [float(func(a)) for a in ages.tolist()], rtol=1e-15)
    assert len(over_arrays(func, "it")(ages[:0])) == 0


@pytest.mark.jit_only
def test_over_arrays_takes_a_function_that_is_compiled_already() -> None:
    import numba

    assert over_arrays(numba.njit(lambda n: n * 2), "it")(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


def _evaluated(n: float) -> float:
    return eval("n + 0")


@pytest.mark.jit_only
@pytest.mark.parametrize("func", [_evaluated, Power(2)], ids=["eval", "object"])
def test_what_does_not_compile_runs_slowly_with_a_warning(func: Callable[[float], float]) -> None:
    with pytest.warns(RuntimeWarning, match=r"^decay 'f' does not compile, so it runs as plain Python.*\(.{5,}\)$"):
        slow = over_arrays(func, "decay 'f'")
    assert slow(np.array([1.0, 2.0])).tolist() == [func(1.0), func(2.0)]


@pytest.mark.jit_only
def test_the_warning_is_plain_text() -> None:
    with pytest.warns(RuntimeWarning) as caught:
        over_arrays(_evaluated, "decay 'f'")
    assert str(caught[0].message).isprintable()
    assert "(Failed in" not in str(caught[0].message)
