"""The text form of decays: what is printed reads back to an equal value, and a bad text shows where it is bad."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wane.decay import (
    BackwardPoly,
    Decay,
    Exponential,
    Landmark,
    NoDecay,
    Pinned,
    Poly,
    Polynomial,
    SlidingWindow,
    SubPoly,
    SuperExponential,
    backward,
    forward,
    parse,
)
from wane.errors import BadDecay, WaneError
from wane.times import SECOND, Nanoseconds

lengths = st.integers(1, 10**19).map(Nanoseconds) | st.sampled_from([60, 3600, 0.25]).map(
    lambda s: Nanoseconds(s * SECOND)
)
positives = st.floats(0, exclude_min=True, allow_infinity=False)
DECAYS: st.SearchStrategy[Decay] = st.one_of(
    st.just(NoDecay()),
    st.just(Landmark()),
    st.builds(Poly, st.floats(0, 1000, exclude_min=True)),
    st.builds(
        Polynomial, st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=5).filter(any).map(tuple), lengths
    ),
    st.builds(Exponential, lengths),
    st.builds(Exponential, rate=st.floats(1e-200, 6e8)),
    st.builds(SlidingWindow, lengths),
    st.builds(BackwardPoly, positives, lengths),
    st.builds(SuperExponential, lengths),
    st.builds(SuperExponential, rate=positives),
    st.builds(SubPoly, lengths),
)
PINNED = st.builds(Pinned, DECAYS.filter(lambda d: d.is_backward), st.integers(-(10**20), 10**20))


@settings(max_examples=300)
@given(DECAYS | PINNED)
def test_what_is_printed_reads_back(decay: Decay) -> None:
    again = parse(str(decay))
    assert again == decay
    assert str(again) == str(decay)
    assert parse(decay) is decay


@pytest.mark.parametrize(
    ("text", "decay"),
    [
        ("none", NoDecay()), ("forward none", NoDecay()), ("backward none", NoDecay()), ("none()", NoDecay()),
        ("landmark", Landmark()), ("forward landmark", Landmark()), (" landmark ( ) ", Landmark()),
        ("poly(2)", Poly(2)), ("poly(beta=2.5)", Poly(2.5)), ("forward poly( 2 )", Poly(2)), ("poly(2,)", Poly(2)),
        ("poly(1e-3)", Poly(0.001)), ("poly(.5)", Poly(0.5)), ("poly(5.)", Poly(5)), ("poly(+2)", Poly(2)),
        ("polynomial(1, 0, 2)", Polynomial((1, 0, 2))), ("polynomial(1,0,2,unit=1m)", Polynomial((1, 0, 2), 60)),
        ("polynomial(0 , 1e10)", Polynomial((0, 1e10))),
        ("exp(half_life=5m)", Exponential(300)), ("exp( half_life = 5 minutes )", Exponential(300)),
        ("backward exp(half_life=300)", Exponential(300)), ("exp(half_life='5m')", Exponential(300)),
        ('exp(half_life="1 hour 30 minutes")', Exponential(5400)), ("exp(half_life=1h30m)", Exponential(5400)),
        ("exp(half_life=1h 30m 1.5s)", Exponential(5401.5)), ("exp(half_life=0.5)", Exponential(0.5)),
        ("exp(half_life=1e3s)", Exponential(1000)), ("exp(half_life=3µs)", Exponential(Nanoseconds(3000))),
        ("exp(half_life=3μs)", Exponential(Nanoseconds(3000))), ("exp(rate=0.1)", Exponential(rate=0.1)),
        ("window(5m)", SlidingWindow(300)), ("backward window(length=7d)", SlidingWindow(7 * 86400)),
        ("window(300)", SlidingWindow(300)), ("window('5m')", SlidingWindow(300)),
        ("backward poly(1.5)", BackwardPoly(1.5)), ("backward poly(alpha=1.5, unit=1h)", BackwardPoly(1.5, 3600)),
        ("backward poly(unit=1h, alpha=1.5)", BackwardPoly(1.5, 3600)),
        ("superexp(half_life=5m)", SuperExponential(300)), ("superexp(rate=1e-05)", SuperExponential(rate=1e-5)),
        ("subpoly", SubPoly()), ("backward subpoly", SubPoly()), ("subpoly(unit=1m)", SubPoly(60)),
        ("window(5m) at 1h", Pinned(SlidingWindow(300), 3600 * SECOND)),
        ("window(5m) at '1h'", Pinned(SlidingWindow(300), 3600 * SECOND)),
        ("window(5m) at 1h30m", Pinned(SlidingWindow(300), 5400 * SECOND)),
        ("subpoly at -5m", Pinned(SubPoly(), -300 * SECOND)),
        ("none at 0s", Pinned(NoDecay(), 0)), ("none\tat\n5", Pinned(NoDecay(), 5 * SECOND)),
    ],
)  # fmt: skip
def test_every_way_to_write_a_decay(text: str, decay: Decay) -> None:
    assert parse(text) == decay


@pytest.mark.parametrize(
    ("decay", "text"),
    [
        (Poly(2), "poly(2)"), (Poly(2.5), "poly(2.5)"), (Poly(1e-9), "poly(1e-09)"),
        (Exponential(300), "exp(half_life=5m)"), (Exponential(rate=0.1), "exp(rate=0.1)"),
        (Polynomial((1, 0, 2)), "polynomial(1, 0, 2)"),
        (Polynomial((1, 0.5), 3600), "polynomial(1, 0.5, unit=1h)"), (BackwardPoly(1.5), "backward poly(1.5)"),
        (BackwardPoly(1.5, 60), "backward poly(1.5, unit=1m)"), (SubPoly(), "subpoly"),
        (SubPoly(60), "subpoly(unit=1m)"),
        (SlidingWindow(7 * 86400), "window(1w)"), (SuperExponential(rate=2), "superexp(rate=2)"),
        (Pinned(SlidingWindow(300), 3600 * SECOND), "window(5m) at 1h"),
    ],
)  # fmt: skip
def test_texts_are_short_and_in_the_units_of_people(decay: Decay, text: str) -> None:
    assert str(decay) == text


BAD: list[tuple[str, str, str]] = [
    # text, place of the caret, and what is said there
    ("", "^", "ends too early"),
    ("   ", "   ^", "ends too early"),
    ("poly", "^", "poly needs beta; write poly(2)"),
    ("poly()", "^", "poly needs beta; write poly(2)"),
    ("poly(", "     ^", "ends too early"),
    ("poly(2", "      ^", "a comma or a closing parenthesis is missing"),
    ("poly(2 3)", "       ^", "a comma or a closing parenthesis is missing"),
    ("poly(2))", "       ^", "nothing may follow the decay"),
    ("poly(2) x", "        ^", "nothing may follow the decay"),
    ("poly(2, 3)", "        ^", "poly takes no such argument"),
    ("poly(x)", "     ^", "an argument is a number"),
    ("quadratic", "^", "there is no decay 'quadratic'; did you mean poly?"),
    ("linear", "^", "did you mean poly?"),
    ("poly(0)", "     ^", "beta must be a positive number, got 0.0; write poly(2)"),
    ("poly(-2)", "     ^", "got -2.0"),
    ("poly(1e999)", "     ^", "got inf"),
    ("poly(2m)", "     ^", "beta is a number; write poly(2)"),
    ("poly(2000)", "     ^", "at most 1000, got 2000"),
    ("poly(beta=2, beta=3)", "             ^", "beta is given twice"),
    ("poly(2, beta=3)", "     ^", "poly takes no such argument"),
    ("poly(beta=3, 2)", "             ^", "comes before those with one"),
    ("poly(bta=2)", "     ^", "has no parameter 'bta'; did you mean beta?"),
    ("forward poly(bta=2)", "             ^", "did you mean beta?"),
    ("$", "^", "cannot be read"),
    ("poly(2)\n\t$", "         ^", "cannot be read"),
    ("5m", "^", "starts with its name"),
    ("(poly)", "^", "starts with its name"),
    ("polly(2)", "^", "there is no decay 'polly'; did you mean poly?"),
    ("Exp(half_life=5m)", "^", "did you mean exp?"),
    ("ewma(5m)", "^", "did you mean exp?"),
    ("sliding(5m)", "^", "did you mean window?"),
    ("backward windw(5m)", "         ^", "did you mean window?"),
    ("xyzzy(5m)", "^", "the decays are exp, landmark, none, poly"),
    ("forward window(5m)", "        ^", "window is no forward decay; write 'backward window'"),
    ("backward landmark", "         ^", "landmark is no backward decay; write 'forward landmark'"),
    ("user('mine')", "^", "user needs its direction: write 'forward user(...)'"),
    ("backward user('nobody')", "         ^", "no backward decay 'nobody' is defined in this process"),
    ("backward user(nobody)", "              ^", "an argument is a number"),
    ("backward user(5)", "              ^", "name is a text in quotes"),
    ("exp", "^", "exp needs a half_life or a rate"),
    ("exp()", "^", "exp needs a half_life or a rate"),
    ("exp(5m)", "    ^", "say which it is: exp(half_life=5m) or exp(rate=0.1)"),
    ("exp(halflife=5m)", "    ^", "did you mean half_life?"),
    ("exp(half_life=5m, rate=1)", "                  ^", "not both"),
    ("exp(rate=1, half_life=5m)", "            ^", "not both"),
    ("exp(half_life=5m, unit=1m)", "                  ^", "exp has no parameter 'unit'"),
    ("exp(half_life=)", "              ^", "a value is a number, a duration such as 5m"),
    (
        "exp(half_life=-5m)",
        "              ^",
        "half_life must be a positive duration, got '-5m'; write exp(half_life=5m)",
    ),
    ("exp(half_life=5 parsecs)", "              ^", "got '5 parsecs'"),
    ("exp(half_life=1e400s)", "              ^", "64 bits"),
    ("exp(half_life='5m)", "              ^", "cannot be read"),
    ("exp(rate=5m)", "         ^", "rate is a number"),
    ("exp(rate=1e300)", "         ^", "6.93e+08 a second"),
    ("polynomial", "^", "needs a coefficient above 0"),
    ("polynomial(1, 2, -3, -4)", "                 ^", "0 or more, got -3.0"),
    ("polynomial(1, 1e999, unit=1h)", "              ^", "must be finite"),
    ("polynomial(1, -2)", "              ^", "0 or more, got -2.0"),
    ("polynomial(1, 2m)", "              ^", "a coefficient is a number"),
    ("polynomial(1, unit=0)", "                   ^", "unit must be a positive duration"),
    ("window", "^", "window needs length; write window(5m)"),
    ("window(lenght=5m)", "       ^", "did you mean length?"),
    ("subpoly(5)", "        ^", "subpoly takes no such argument"),
    ("superexp(5m)", "         ^", "superexp(half_life=5m)"),
    ("backward poly(1.5, unti=1m)", "                   ^", "did you mean unit?"),
    ("poly(2) at 1h", "        ^", "is forward, and needs no fixed time"),
    ("window(5m) at", "             ^", "ends too early"),
    ("window(5m) at noon", "              ^", "the time after 'at'"),
    ("window(5m) at 1h 5", "                 ^", "nothing may follow"),
]


@pytest.mark.parametrize(("text", "caret", "said"), BAD, ids=[repr(text) for text, _, _ in BAD])
def test_a_bad_text_shows_the_place_and_the_remedy(text: str, caret: str, said: str) -> None:
    with pytest.raises(BadDecay) as refused:
        parse(text)
    assert type(refused.value) is BadDecay
    message, shown, pointer = str(refused.value).split("\n")
    assert message.startswith("cannot read the decay: ")
    assert said in message
    assert shown == "  " + re.sub(r"\s", " ", text)
    assert pointer == "  " + caret


def test_of_a_long_text_the_part_around_the_place_is_shown() -> None:
    with pytest.raises(BadDecay) as refused:
        parse("polynomial(" + "1, " * 500 + "x)")
    shown, pointer = str(refused.value).split("\n")[1:]
    assert len(shown) < 130
    assert shown[pointer.index("^")] == "x"
    assert shown.endswith("1, 1, x)")


@pytest.mark.parametrize("bad", [None, 5, b"poly(2)", ["poly(2)"], object()])
def test_what_is_no_text_is_refused(bad: Any) -> None:
    with pytest.raises(BadDecay, match=r"a decay is a text or a Decay, got .*; write 'exp\(half_life=5m\)'"):
        parse(bad)


PIECES = [
    "poly", "exp", "window", "backward", "user", "at", "half_life", "rate", "(", ")", ",", "=", " ", "5m", "-1", "'x'",
    "1e9",
]  # fmt: skip


@settings(max_examples=300)
@given(st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_gives_a_decay_or_a_bad_decay(text: str) -> None:
    with contextlib.suppress(BadDecay):
        assert parse(str(parse(text))) == parse(text)


def test_a_users_decay_goes_by_its_name() -> None:
    steep = forward(lambda n: n**3, name="text steep")
    assert str(steep) == "forward user('text steep')"
    assert parse("forward user('text steep')") is steep
    assert parse('forward user(name="text steep")') is steep
    slow = backward(lambda a: 1 / (1 + a), name='text é "slow"', unit="1h")
    assert str(slow) == "backward user('text é \"slow\"', unit=1h)"
    assert parse(str(slow)) is slow
    assert parse(f"{slow} at 5s") == Pinned(slow, 5 * SECOND)
    for text in ("backward user('text steep')", "forward user('text steep', unit=1h)", "forward user('text stepe')"):
        with pytest.raises(WaneError, match="is defined in this process"):
            parse(text)
    with pytest.raises(BadDecay, match=r"did you mean 'text steep'\?"):
        parse("forward user('text stepe')")
