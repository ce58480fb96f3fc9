"""Expressions: their grammar, their values against Python's own floats, their errors and bounds."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wane.errors import BadInput, BadParameter
from wane.expr import FUNCTIONS, MAX_DEPTH, MAX_LENGTH, OPERATORS, Binary, Call, Column, Expr, Negate, Number

V, W = Column("v"), Column("w")
TWO, THREE = Number(2), Number(3)
EXACT = {*OPERATORS, *FUNCTIONS} - {"**", "pow", "log", "log2", "log10", "exp"}
"""The operations that IEEE 754 fixes to the last bit."""


def trees(names: st.SearchStrategy[str], among: set[str]) -> st.SearchStrategy[Expr]:
    def grow(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        calls = [
            st.builds(Call, st.just(name), st.tuples(*[parts] * arity))
            for name, arity in FUNCTIONS.items()
            if name in among
        ]
        binary = st.builds(Binary, st.sampled_from([sign for sign in OPERATORS if sign in among]), parts, parts)
        return st.builds(Negate, parts) | binary | binary | st.one_of(calls)

    numbers = st.floats(0, allow_infinity=False, allow_nan=False).map(abs)
    return st.recursive(st.builds(Number, numbers) | st.builds(Column, names), grow, max_leaves=25)


odd_names = st.sampled_from(["v", "w", "log", "a`b", "``", "é", "1", "a b", "a\nb", "where"])
any_tree = trees(st.text(min_size=1, max_size=5) | odd_names, {*OPERATORS, *FUNCTIONS})
exact_tree = trees(st.sampled_from("vw"), EXACT)


# --- values, against Python's operator and math -------------------------------------------------------------


def ieee(python: Callable[..., Any], on_zero: Callable[..., float]) -> Callable[..., float]:
    """Python's operation, with the answer of IEEE 754 where Python raises."""

    def run(*args: float) -> float:
        try:
            return float(python(*args))
        except ZeroDivisionError:
            return on_zero(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return run


def never(*_: float) -> float:
    raise AssertionError


def divided_by_zero(left: float, right: float) -> float:
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)


def power(left: float, right: float) -> float:
    odd = right % 2 == 1
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and odd else math.inf
    except ValueError:  # zero to a negative power, or a negative number to a fraction
        return math.nan if left else math.copysign(math.inf, left) if odd else math.inf


def logarithm(python: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else ieee(python, never)(x)


def rounded(python: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(python(x)) if math.isfinite(x) else x


def propagating(choose: Callable[..., float]) -> Callable[..., float]:
    return lambda *args: math.nan if any(map(math.isnan, args)) else choose(*args)


ORACLE: dict[str, Callable[..., float]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": ieee(operator.truediv, divided_by_zero),
    "%": ieee(operator.mod, lambda *_: math.nan),
    "**": power,
    "log": logarithm(math.log),
    "log2": logarithm(math.log2),
    "log10": logarithm(math.log10),
    "exp": ieee(math.exp, never),
    "sqrt": ieee(math.sqrt, never),
    "abs": abs,
    "floor": rounded(math.floor),
    "ceil": rounded(math.ceil),
    "pow": power,
    "min": propagating(min),
    "max": propagating(max),
    "where": lambda c, a, b: math.nan if math.isnan(c) else a if c else b,
}


def oracle(expr: Expr, row: dict[str, float]) -> float:
    match expr:
        case Number(value):
            return value
        case Column(name):
            return row[name]
        case Negate(operand):
            return -oracle(operand, row)
        case Binary(sign, left, right):
            return float(ORACLE[sign](oracle(left, row), oracle(right, row)))
        case Call(function, arguments):
            return float(ORACLE[function](*(oracle(argument, row) for argument in arguments)))
    raise AssertionError(expr)


edges = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e308, 5e-324, math.inf, -math.inf, math.nan])
floats = edges | st.floats() | st.floats(-100, 100) | st.integers(-20, 20).map(float)


@pytest.mark.parametrize("name", ORACLE)
@given(st.data())
@settings(deadline=None)
def test_each_operation_against_python(name: str, data: st.DataObject) -> None:
    arity = FUNCTIONS.get(name, 2)
    values = data.draw(st.lists(floats, min_size=arity, max_size=arity))
    arguments = tuple(Column(f"x{i}") for i in range(arity))
    expr = Call(name, arguments) if name in FUNCTIONS else Binary(name, *arguments)
    row = {f"x{i}": value for i, value in enumerate(values)}
    expected = float(ORACLE[name](*values))
    # libraries differ in the last bits of a logarithm or a power
    relative, absolute = (0.0, 0.0) if name in EXACT else (1e-14, 1e-323)
    np.testing.assert_allclose(expr.scalar(row), expected, relative, absolute)
    batch = expr.evaluate({column: np.array([value] * 9) for column, value in row.items()})
    np.testing.assert_allclose(batch, [expected] * 9, relative, absolute)


@given(exact_tree, st.lists(st.tuples(floats, floats), max_size=5))
@settings(deadline=None)
def test_trees_against_python(expr: Expr, rows: list[tuple[float, float]]) -> None:
    columns = {"v": np.array([v for v, _ in rows], float), "w": np.array([w for _, w in rows], float)}
    before = copy.deepcopy(columns)
    values = [oracle(expr, {"v": v, "w": w}) for v, w in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = expr.evaluate(columns)
        singles = [expr.scalar({"v": v, "w": w}) for v, w in rows]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(singles, values)
    np.testing.assert_equal(columns, before)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_a_constant_exponent_is_no_other_power(exponent: float) -> None:
    base = np.array([-math.inf, -2.0, -0.0, 0.0, 3.0, math.inf, math.nan])
    found = Binary("**", V, W).evaluate({"v": base, "w": np.full(7, exponent)})
    np.testing.assert_array_equal(Expr.parse(f"v ** ({exponent})").evaluate({"v": base}), found)
    singles = [Call("pow", (V, W)).scalar({"v": v, "w": exponent}) for v in base.tolist()]
    np.testing.assert_array_equal(np.signbit(singles), np.signbit(found))
    np.testing.assert_array_equal(singles, found)


def test_the_sign_of_a_remainder_is_the_divisors() -> None:
    assert [Expr.parse("v % w").scalar({"v": v, "w": w}) for v, w in [(7, 3), (-7, 3), (7, -3)]] == [1, 2, -2]


def test_constants_take_the_length_of_the_columns() -> None:
    columns = {"other": np.zeros(3)}
    np.testing.assert_array_equal(Expr.parse("2 * 3").evaluate(columns), [6, 6, 6])
    np.testing.assert_array_equal(Expr.parse("where(1 < 2, 4, 5)").evaluate(columns), [4, 4, 4])
    assert Expr.parse("1 / 0").evaluate({"other": np.zeros(0)}).shape == (0,)
    assert Expr.parse("1 / 0").scalar({}) == math.inf


def test_integers_widen() -> None:
    found = Expr.parse("v / 2").evaluate({"v": np.array([1, 2])})
    np.testing.assert_array_equal(found, [0.5, 1.0])


# --- the grammar --------------------------------------------------------------------------------------------


@given(any_tree)
@settings(deadline=None)
def test_str_parses_back(expr: Expr) -> None:
    again = Expr.parse(str(expr))
    assert again == expr
    assert hash(again) == hash(expr)
    assert str(again) == str(expr)
    assert pickle.loads(pickle.dumps(expr)) == copy.deepcopy(expr) == expr


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("v-w-2", Binary("-", Binary("-", V, W), TWO)),
        ("v/w/2", Binary("/", Binary("/", V, W), TWO)),
        ("v%w*2", Binary("*", Binary("%", V, W), TWO)),
        ("v**w**2", Binary("**", V, Binary("**", W, TWO))),
        ("v+w*2", Binary("+", V, Binary("*", W, TWO))),
        ("v*w+2", Binary("+", Binary("*", V, W), TWO)),
        ("v*w**2", Binary("*", V, Binary("**", W, TWO))),
        ("(v+w)*2", Binary("*", Binary("+", V, W), TWO)),
        ("-v**2", Negate(Binary("**", V, TWO))),
        ("(-v)**2", Binary("**", Negate(V), TWO)),
        ("-v*w", Binary("*", Negate(V), W)),
        ("v**-w**2", Binary("**", V, Negate(Binary("**", W, TWO)))),
        ("v**-w*2", Binary("*", Binary("**", V, Negate(W)), TWO)),
        ("v--w", Binary("-", V, Negate(W))),
        ("--v", Negate(Negate(V))),
        ("v+2<w*3", Binary("<", Binary("+", V, TWO), Binary("*", W, THREE))),
        ("pow(v,w)**2", Binary("**", Call("pow", (V, W)), TWO)),
        (
            "where(v>=-2,log(`a b`),w)",
            Call("where", (Binary(">=", V, Negate(TWO)), Call("log", (Column("a b"),)), W)),
        ),
    ],
)
def test_precedence(text: str, tree: Expr) -> None:
    assert Expr.parse(text) == tree


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" v**2 ", "v ** 2"),
        ("len*(time%60)**2/3600", "len * (time % 60) ** 2 / 3600"),
        ("(v-w)-(2-v)", "v - w - (2 - v)"),
        ("(v**w)**2", "(v ** w) ** 2"),
        ("(-v)**2", "(-v) ** 2"),
        ("-(v*w)", "-(v * w)"),
        ("(v<w)==(w<v)", "(v < w) == (w < v)"),
        ("where(v<w,1,pow(v,.5))", "where(v < w, 1, pow(v, 0.5))"),
        ("1.50e3 + 1. + 1E-7", "1500 + 1 + 1e-07"),
        ("`v` + `a b` + `x``y` + `1`", "v + `a b` + `x``y` + `1`"),
        ("log + log(log)", "log + log(log)"),
        ("größe\n*\t2", "größe * 2"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Expr.parse(text)) == canonical


def test_what_a_tree_tells() -> None:
    expr = Expr.parse("where(w >= -2, log(`a b`), v) % 3")
    assert expr.columns == ("a b", "v", "w")
    assert expr.depth == 5
    assert expr != Expr.parse("where(w >= -2, log(`a b`), v) % 4")
    assert len({expr, Expr.parse(str(expr))}) == 1
    assert [str(part) for part in expr.parts] == ["where(w >= -2, log(`a b`), v)", "3"]
    assert TWO.parts == V.parts == ()
    assert TWO.columns == ()
    assert Negate(V).parts == (V,)


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "the expression ends where a number", 0),
        ("v +", "the expression ends where a number", 3),
        ("v + * 2", r"'\*' stands where a number", 4),
        ("2x", "'x' stands where an operator or the end", 1),
        ("v w", "'w' stands where an operator or the end", 2),
        ("(v + 2", r"ends where an operator or '\)'", 6),
        ("v)", r"'\)' stands where an operator or the end", 1),
        ("v = 2", "'=' stands where an operator or the end", 2),
        ("v // 2", "'/' stands where a number", 3),
        ("+v", r"'\+' stands where a number", 0),
        ("v + `a b", "'`' stands where a number", 4),
        ("v + ``", "'`' stands where a number", 4),
        ("v ^ 2", r"'\^' stands", 2),
        ("v < w < 2", "comparisons do not chain, and '<' follows another; put parentheses", 6),
        ("v < w == 2", "comparisons do not chain", 6),
        ("2 * lgo(v)", r"there is no function 'lgo'; did you mean 'log'\?", 4),
        ("sqr(v)", "did you mean 'sqrt'", 0),
        ("maxi(v, ^)", "did you mean 'max'", 0),
        ("frobnicate(v)", "no function 'frobnicate'; the functions are log, .*, where", 0),
        ("1 + log(v, w)", "log takes 1 argument, got 2; separate", 4),
        ("pow(v)", "pow takes 2 arguments, got 1", 0),
        ("log()", "log takes 1 argument, got 0", 0),
        ("pow(v w)", r"'w' stands where an operator, ',' or '\)'", 6),
        ("pow(v, )", r"'\)' stands where a number", 7),
        ("v + 1e999", "finite and have no sign, got inf", 4),
        ("a\n+\n)", r"'\)' stands", 4),
        ("v" * 100 + " $ " + "w" * 100, r"'\$' stands", 101),
    ],
)
def test_errors_point_at_the_place(text: str, message: str, place: int) -> None:
    with pytest.raises(BadParameter, match=message) as caught:
        Expr.parse(text)
    *_, shown, caret = str(caught.value).splitlines()
    assert caret.strip() == "^"
    assert len(shown) < 90
    assert (shown + " ")[caret.index("^")] == (text + " ")[place]
    assert caret.index("^") == 2 + min(place, 43)


def test_no_text() -> None:
    with pytest.raises(BadParameter, match="is a text, got a int; write"):
        Expr.parse(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Number(-1.0), "finite and have no sign, got -1.0; negate"),
        (lambda: Number(-0.0), "got -0.0"),
        (lambda: Number(math.nan), "got nan"),
        (lambda: Column(""), "must not be empty"),
        (lambda: Binary("//", V, W), "no operator '//'; use one of ==, .*"),
        (lambda: Call("sine", (V,)), "no function 'sine'; did you mean 'min'"),
        (lambda: Call("max", (V,)), "max takes 2 arguments, got 1"),
        (lambda: Column("x" * (MAX_LENGTH + 1)), f"at most {MAX_LENGTH} characters"),
    ],
)
def test_nodes_that_no_text_gives(build: Callable[[], Expr], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        build()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"v": np.zeros(2)}, "column 'w' is missing, the columns are 'v'; give it"),
        ({}, "column 'v' is missing, the columns are none"),
        ({"v": np.zeros(2), "w": np.zeros(3)}, r"got 'v' of shape \(2,\), 'w' of shape \(3,\); give"),
        ({"v": np.zeros(2), "w": np.zeros(1)}, "one length"),
        ({"v": np.zeros((2, 2)), "w": np.zeros((2, 2))}, "one dimension"),
        (
            {"v": np.array(["a"]), "w": np.zeros(1)},
            "column 'v' must hold numbers: could not convert.*; convert",
        ),
    ],
)
def test_columns_that_do_not_fit(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Expr.parse("v + w").evaluate(columns)


def test_values_that_do_not_fit() -> None:
    with pytest.raises(BadInput, match="got none; give columns of one batch"):
        Expr.parse("1 + 2").evaluate({})
    with pytest.raises(BadInput, match="column 'v' is missing"):
        Expr.parse("v").scalar({"w": 1.0})


# --- bounds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000 + "v" + ")" * 4000,
        "(" * 9000,
        "-" * 9000 + "v",
        "v" + "**v" * 3000,
        "v" + "**-v" * 2000,
        "v" + "+v" * 4000,
        "log(" * 1900 + "v" + ")" * 1900,
        "where(1,2," * 900 + "v" + ")" * 900,
    ],
    ids=lambda text: text[:6],
)
def test_too_deep(text: str) -> None:
    with pytest.raises(BadParameter, match=r"within one another|nest more than"):
        Expr.parse(text)


def test_too_long() -> None:
    assert Expr.parse(" " * (MAX_LENGTH - 1) + "v") == V
    with pytest.raises(BadParameter, match=f"at most {MAX_LENGTH} characters, got {MAX_LENGTH + 1}; compute"):
        Expr.parse(" " * MAX_LENGTH + "v")
    blown_up = "+".join(["(" + "+".join(["9e15"] * 40) + ")"] * 40)
    assert len(blown_up) < MAX_LENGTH
    with pytest.raises(BadParameter, match="this one is written with"):
        Expr.parse(blown_up)


@pytest.mark.parametrize(
    "grow",
    [
        Negate,
        lambda part: Binary("-", V, part),
        lambda part: Binary("+", part, V),
        lambda part: Binary("**", part, V),
        lambda part: Binary("**", V, part),
        lambda part: Binary("*", V, Negate(part)),
        lambda part: Negate(Binary("+", part, V)),
        lambda part: Call("log", (Binary("<", V, part),)),
        lambda part: Call("where", (V, V, part)),
    ],
)
def test_the_deepest_trees_work(grow: Callable[[Expr], Expr]) -> None:
    expr: Expr = V
    while expr.depth <= MAX_DEPTH - 2:
        expr = grow(expr)
    assert Expr.parse(str(expr)) == expr
    assert expr.evaluate({"v": np.ones(2)}).shape == (2,)
    assert hash(expr) == hash(copy.deepcopy(expr))
    assert expr.columns == ("v",)
    assert repr(expr).endswith(")")
    with pytest.raises(BadParameter, match=f"at most {MAX_DEPTH} operations"):
        grow(grow(grow(expr)))


def test_mutated_texts_give_an_expression_or_a_bad_parameter() -> None:
    seeds = [
        "where(v >= -2, log(`a b`), w) % 3",
        "len * (time % 60)**2 / 3600",
        "-v ** -2 + 1.5e3 < min(v, w)",
    ]
    pieces = [
        *"()+-*/%<>=!,`.eE 0v",
        "**",
        "log(",
        "``",
        "\n",
        "\0",
        "é",
        "1e9",
        "\ud800",
        "(" * 300,
        "-" * 300,
    ]
    rng = random.Random(20)
    parsed = 0
    for _ in range(2000):
        text = rng.choice(seeds)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(["", rng.choice(pieces)]) + text[at + rng.randint(0, 3) :]
        try:
            expr = Expr.parse(text)
        except BadParameter as why:
            assert str(why).endswith("^")  # noqa: PT017
        else:
            parsed += 1
            assert Expr.parse(str(expr)) == expr
    assert 100 < parsed < 1900
