"""A user's own decay: what Definition 1 wants is checked, the age where it breaks is named, and names stay honest."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wane
from wane import _jit
from wane.decay import CustomBackward, CustomForward, Pinned, backward, custom, forward, parse, pinned
from wane.decay.base import ZERO_EXPONENT
from wane.errors import BadDecay, DuplicateName, QueryInPast
from wane.summaries.moments import Moments
from wane.times import SECOND, Nanoseconds, Ticks


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No names but this test's own."""
    monkeypatch.setattr(custom, "_KNOWN", {})


# Pickled by name, and so at the top of the module.


def square(n: float) -> float:
    return n * n


def halving(a: float) -> float:
    return 0.5**a


class Power:
    def __init__(self, exponent: float) -> None:
        self.exponent = exponent

    def __call__(self, n: float) -> float:
        return n**self.exponent


# --- weights ---------------------------------------------------------------------------------------------------


def test_a_function_weighs_like_the_decay_that_is_built_in() -> None:
    rng = np.random.default_rng(2)
    times = Ticks(rng.integers(1, 10**14, 200), "ns")
    now = Nanoseconds(10**14)
    for ours, theirs in [
        (forward(square), parse("poly(2)")),
        (forward(lambda n: 1 + 2 * n * n, name="general", unit="1h"), parse("polynomial(1, 0, 2, unit=1h)")),
        (forward(lambda n: n / 1000, name="grows", log=True), parse("exp(rate=0.001)")),
        (backward(lambda a: (1 + a) ** -1.5, name="hyperbola"), parse("backward poly(1.5)")),
        (backward(lambda a: -a / 1000, name="falls", log=True), parse("exp(rate=0.001)")),
        (backward(lambda a: 3.0 if a < 60 else 0.0, name="an hour", unit="1m"), parse("window(1h)")),
    ]:
        for fixed in (False, True):
            if not fixed or isinstance(ours, CustomBackward):
                mine = Pinned(ours, now) if fixed else ours
                found, expected = mine.weight(times, now, landmark=0), theirs.weight(times, now, landmark=0)
                assert np.allclose(found, expected, rtol=1e-10, atol=1e-300)


def test_a_summary_takes_it_in_bulk_and_one_by_one() -> None:
    values, times = [4.0, 8.0, 3.0, 6.0, 4.0], [105, 107, 103, 108, 104]
    for decay in (forward(square), pinned(backward(halving), now=110)):
        landmark = 100 if decay.needs_landmark else None
        bulk = Moments(decay, landmark=landmark).update(values, times)
        single = Moments(decay, landmark=landmark)
        for value, time in zip(values, times, strict=True):
            single.update(value, time)
        assert single.mean() == pytest.approx(bulk.mean(), rel=1e-14)
        assert single.count(now=110) == pytest.approx(bulk.count(now=110), rel=1e-14)
        again = Moments.from_bytes(bulk.to_bytes())
        assert again.decay is decay or again.decay == decay
        assert again.count(now=110) == bulk.count(now=110)


def test_logarithms_reach_beyond_doubles() -> None:
    steep = forward(lambda n: n * n, name="gaussian", log=True)
    assert steep.weight([9_999, 10_000], now=10_000, landmark=0).tolist() == [pytest.approx(0.0), 1.0]
    mantissas, exponents = steep.locate(Ticks([0, 10_000, 20_000], "s"), 0)
    assert exponents.tolist() == [0, int(1e8 * math.log2(math.e)), int(4e8 * math.log2(math.e))]
    falls = Pinned(backward(lambda a: -a * a, name="gaussian", log=True), 0)
    mantissas, exponents = falls.locate(Ticks([-200, -100, 0], "s"), None)
    assert exponents[0] < exponents[1] < -10_000
    assert mantissas[2] == 1.0
    never = forward(lambda n: -math.inf if n < 5 else 0.0, name="later", log=True)
    assert never.weight([4, 5, 6], now=7, landmark=0).tolist() == [0, 1, 1]
    assert never.wide(np.array([4.0]))[1].tolist() == [ZERO_EXPONENT]
    with pytest.raises(BadDecay, match="beyond all bounds"):
        forward(lambda n: n**3, name="too steep", log=True).weight(1e8, now=1e9, landmark=0)


# --- Definition 1 ----------------------------------------------------------------------------------------------


def dips(n: float) -> float:
    return n if n < 100 or n > 200 else 50.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: forward(dips), r"g gives 50.0 at age 1\d\d.*, but it was .* before: a forward decay never falls"),
        (lambda: forward(lambda n: -n), r"g gives -1e-06 at age 1e-06, but a forward decay must be"),
        (lambda: forward(lambda n: n - 5), r"g gives -5.0 at age 0, but a forward decay must be finite and 0"),
        (lambda: forward(lambda _: math.nan), r"g gives nan at age 0"),
        (lambda: forward(lambda n: n if n < 1e5 else math.inf), r"g gives inf at age 1\d{5}.*logarithm and log=True"),
        (lambda: forward(lambda _: math.inf, log=True), r"g gives inf at age 0.*finite and 0 or more$"),
        (lambda: forward(lambda n: -n, log=True), r"g gives .* but it was .* before"),
        (lambda: forward(lambda _: 0), r"g is 0 at every age up to 3650d; it must rise above 0"),
        (lambda: forward(lambda n: 0 if n < 100 else 1, horizon=50), r"g is 0 at every age up to 50s"),
        (lambda: backward(lambda a: a), r"f gives 0.0 at age 0.*must be positive and finite at age 0"),
        (lambda: backward(lambda a: math.inf if a == 0 else 1 / a), r"f gives inf at age 0"),
        (lambda: backward(lambda a: 2 - a), r"f gives -0\.\d+ at age 2\.\d+, but a backward decay must be 0 or more"),
        (lambda: backward(lambda a: 1 + math.sin(a)), r"f gives .* but it was .* before: a backward decay never rises"),
        (lambda: backward(lambda a: 1.0 if a < 9 else 2.0), r"f gives 2.0 at age (9|1\d)\.?\d*, but it was 1.0 before"),
        (lambda: backward(lambda a: 1.0 if a < 9 else 2.0, unit="1h"), r"at age [\d.]+ \(in units of 1h\), but it was"),
        (lambda: backward(lambda a: math.nan if a > 100 else 1.0), r"f gives nan at age 1\d\d"),
        (lambda: backward(lambda a: a, log=True), r"f gives 1e-06 at age 1e-06, but it was 0.0 before"),
        (lambda: forward(5), r"g must be a function of one number, got 5"),
        (lambda: backward(None), r"f must be a function of one number, got None"),
        (lambda: forward(square, unit=0), r"unit must be a positive duration, got 0; write unit='1m'"),
        (lambda: forward(square, horizon="soon"), r"horizon must be a length.*'soon'.*write horizon='30d'"),
        (lambda: forward(square, name="it's"), r"printable, without quotes or backslashes, got \"it's\""),
        (lambda: forward(square, name="a\\b"), r"backslashes"),
        (lambda: forward(square, name="a\nb"), r"printable"),
    ],
)  # fmt: skip
def test_what_breaks_definition_1_is_refused_and_the_age_is_named(
    make: Callable[[], Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jit, "DISABLED", True)  # compiling each would take its time, and changes no value
    with pytest.raises(BadDecay, match=said):
        make()
    assert custom.names("forward") == custom.names("backward") == []


def test_a_step_anywhere_in_a_wide_range_is_found() -> None:
    for step in (0.01, 59, 86400, 10**8):

        def rises(a: float, step: float = step) -> float:
            return 1.0 if a < step or a > 3 * step else 1.5

        with pytest.raises(BadDecay, match=r"f gives 1.5 at age"):
            backward(rises, name="steps")


def test_rounding_is_forgiven() -> None:
    # n / (1 + n) levels off at 1, where its last digit wobbles
    assert forward(lambda n: n / (1 + n), name="saturates").weight(10**6, now=10**9, landmark=0) <= 1
    assert backward(lambda a: 1 - a / (1 + a), name="falls").weight(0, now=10**9) < 1e-8
    wobble = backward(lambda a: 1.0 + 1e-15 * math.sin(a), name="wobbles")
    weights = wobble.weight(np.arange(1000.0), now=1000)
    assert ((weights <= 1) & (weights > 1 - 1e-14)).all()


def test_what_a_sample_could_not_show_is_refused_when_it_comes() -> None:
    narrow = backward(lambda a: 2.0 if a == 12345.678 else 1.0, name="a needle")
    assert narrow.weight(0, now=12345) == 1
    with pytest.raises(
        BadDecay, match=r"backward user\('a needle'\) gives weight .*2.0.* at age 12345.678 s; Definition 1"
    ):
        narrow.weight(0, now=12345.678)
    falls = forward(lambda n: 5.0 if n == 12345.678 else n**0, name="a peak")
    with pytest.raises(
        BadDecay, match=r"gives weight .*5.0.* to an item of 12345.678 at 20000; Definition 1.*never fall"
    ):
        falls.weight(12345.678, now=20000, landmark=0)
    breaks = forward(lambda n: math.nan if n == 12345.678 else 1.0, name="a hole")
    with pytest.raises(BadDecay, match=r"forward user\('a hole'\) gives .*nan.* at age 12345.678 s.*log=True"):
        Moments(breaks, landmark=0).update([1.0], [12345.678])


def test_an_item_newer_than_now_is_refused() -> None:
    with pytest.raises(QueryInPast):
        backward(halving).weight(11, now=10)


def test_a_function_that_fails_is_refused() -> None:
    def fails(a: float) -> float:
        return [1.0][int(a)]

    with pytest.raises(BadDecay, match=r"f fails on an age between 0 and 3650d: IndexError.*any number from 0 on"):
        backward(fails)


@pytest.mark.jit_only
def test_what_does_not_compile_works_slowly() -> None:
    table = {n: n for n in range(1000)}

    def looked_up(n: float) -> float:
        return table[min(int(n), 999)]

    with pytest.warns(
        RuntimeWarning, match=r"the decay function 'looked_up' does not compile.*hundred times slower"
    ) as seen:
        slow = forward(looked_up)
    assert seen[0].filename == __file__  # it points at the caller
    assert slow.weight([10, 20], now=40, landmark=0).tolist() == [0.25, 0.5]


@pytest.mark.parametrize("func", [math.log1p, np.log1p], ids=["math", "ufunc"])
def test_functions_of_libraries_are_taken(func: Callable[[float], float]) -> None:
    found = forward(func, name="slow").weight(10, now=100, landmark=0)
    assert found == pytest.approx(math.log(11) / math.log(101), rel=1e-15)


# --- names and pickles -----------------------------------------------------------------------------------------


def test_a_name_means_one_function() -> None:
    first = forward(square)
    assert forward(lambda n: n * n, name="square") == first  # does the same
    for make in (
        lambda: forward(lambda n: n * n * 1.0, name="square"),
        lambda: forward(square, name="square", unit="1m"),
        lambda: forward(square, name="square", log=True),
    ):
        with pytest.raises(
            DuplicateName, match=r"another forward decay is called 'square'.*name of its own with name="
        ):
            make()
    assert parse("forward user('square')") == first
    assert backward(lambda a: 1 / (1 + a), name="square").is_backward  # another direction, another name
    assert custom.names("forward") == custom.names("backward") == ["square"]


def test_a_text_with_another_unit_is_told_the_one_there_is() -> None:
    forward(square, unit="1m")
    with pytest.raises(BadDecay, match=r"with another unit; write forward user\('square', unit=1m\)"):
        parse("forward user('square')")
    with pytest.raises(BadDecay, match="no forward decay 'sqare' is defined in this process; did you mean 'square'"):
        parse("forward user('sqare', unit=1m)")
    with pytest.raises(BadDecay, match="no backward decay 'square' is defined in this process; define it first"):
        parse("backward user('square', unit=1m)")


@pytest.mark.parametrize("kind", ["default", "closure", "global"])
def test_what_a_function_captures_is_part_of_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(power: int) -> CustomForward:
        if kind == "default":
            return forward(lambda n, power=power: n**power, name="power")
        if kind == "closure":
            return forward(lambda n: n**power, name="power")
        monkeypatch.setitem(globals(), "EXPONENT", power)
        return forward(lambda n: n**EXPONENT, name="power")

    assert make(2).weight(5, now=10, landmark=0) == 0.25
    assert make(2) == make(2)
    with pytest.raises(DuplicateName):
        make(3)


EXPONENT = 1


def test_behaviour_tells_functions_of_one_name_apart_where_the_text_does_not() -> None:
    made = [forward(square), forward(lambda n: n**3, name="cube"), forward(lambda n: n * n, name="other")]
    assert made[0].behaviour == made[2].behaviour != made[1].behaviour
    assert forward(lambda n: n * n, name="logs", log=True).behaviour != made[0].behaviour
    assert pinned(backward(halving), now=5).behaviour == backward(halving).behaviour != ""
    assert parse("poly(2)").behaviour == pinned("window(5m)", now=5).behaviour == ""


def test_nameless_functions_are_told_apart() -> None:
    decays = [forward(lambda n: n), forward(lambda n: n * n), forward(lambda n: n * n)]
    assert decays[0] != decays[1] == decays[2]
    assert str(decays[0]).startswith("forward user('lambda-")
    assert [parse(str(decay)) for decay in decays] == decays


def test_decays_pickle_and_come_back_as_the_same() -> None:
    for decay in (
        forward(square, unit="1m"),
        backward(halving, unit="1h"),
        pinned(backward(halving, unit="1h"), now=5),
    ):
        again = pickle.loads(pickle.dumps(decay))
        assert again == decay
        assert hash(again) == hash(decay)
        assert str(again) == str(decay)


@pytest.mark.filterwarnings("ignore:the decay function")
def test_a_callable_object_pickles_by_what_it_is() -> None:
    decay = forward(Power(2.0), name="object")
    again = pickle.loads(pickle.dumps(decay))
    assert again == decay
    assert again.weight(5, now=10, landmark=0) == 0.25
    with pytest.raises(DuplicateName):
        forward(Power(3.0), name="object")


def test_a_pickle_is_read_in_a_fresh_process(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text("def cubed(n): return n ** 3\n\ndef fades(a): return 1 / (1 + a)\n")
    source = Path(wane.__file__).parent.parent
    head = f"import sys, pickle; sys.path[:0] = [{str(tmp_path)!r}, {str(source)!r}]\n"
    write = head + (
        "from wane.decay import forward, backward, pinned\nimport theirs\n"
        "made = [forward(theirs.cubed), backward(theirs.fades, unit='1m')]\n"
        "made.append(pinned(made[1], now=60))\n"
        f"open({str(tmp_path / 'made')!r}, 'wb').write(pickle.dumps(made))"
    )
    read = head + (
        f"a, b, c = pickle.loads(open({str(tmp_path / 'made')!r}, 'rb').read())\n"
        "from wane.decay import parse\n"
        "assert parse(str(a)) is a and parse(str(c)) == c\n"
        "print(a, a.weight(5, now=10, landmark=0), b, b.weight(0, now=60), c, c.weight(0))"
    )
    subprocess.run([sys.executable, "-c", write], check=True)
    found = subprocess.run([sys.executable, "-c", read], check=True, capture_output=True, text=True).stdout.strip()
    assert found == (
        "forward user('cubed') 0.125 backward user('fades', unit=1m) 0.5 backward user('fades', unit=1m) at 1m 0.5"
    )


def test_ages_are_counted_in_the_unit() -> None:
    decay = backward(lambda a: 1.0 if a < 2 else 0.5, name="two days", unit="1d")
    assert decay.weight([0, 86400], now=2 * 86400).tolist() == [0.5, 1.0]
    assert decay.unit == 86400 * SECOND
