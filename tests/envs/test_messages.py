"""What messages quote: bounded, on one line, printable, and no ``repr`` of foreign values."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tempest_agent
from tempest_agent.envs import checks, messages
from tempest_agent.envs.messages import LONGEST, LONGEST_PATH, nearest, printable, shown
from tempest_agent.envs.plain_json import parse_json
from tempest_agent.errors import LONGEST_MESSAGE, UserError, one_line, unknown_name


class Hostile:
    """Whoever writes it out is lost."""

    def __repr__(self) -> str:
        raise AssertionError("its __repr__ was run")

    __str__ = __repr__


def doubled(kind: Any, levels: int) -> Any:
    """A value of ``2**levels`` parts that takes the memory of ``levels``."""
    value: Any = "x"
    for _ in range(levels):
        value = kind(value)
    return value


def recursive() -> list[Any]:
    value: list[Any] = []
    value.append({"again": value})
    return value


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (10**20, "100000000000000000000"),
        (-3, "-3"),
        (float("nan"), "nan"),
        (np.float64(2.5), "2.5"),
        (np.array([1, 2]), "array([1, 2])"),
        ("it's", '"it\'s"'),
        ("ä 日本", "'ä 日本'"),
        ((1,), "(1,)"),
        ([1, "two", {"three": 3.0}], "[1, 'two', {'three': 3.0}]"),
        (set(), "{}"),
        (b"\x00a", r"b'\x00a'"),
        (Path("a/b"), "'a/b'"),
        ("a\x1b[31m\nb\u202ec\ud800", r"'a\x1b[31m\nb\u202ec\ud800'"),
        (10**5000, "<a whole number of about 5,001 digits>"),
        (Hostile(), "<Hostile>"),
        (Hostile, f"<class '{__name__}.Hostile'>"),
        (np.zeros(10**6), "<array of float64, shape (1000000,)>"),
        (recursive(), "[{'again': [{'again': [...]}]}]"),
        (nested(100_000), "[[[[[...]]]]]"),
    ],
    ids=shown,  # pytest would write the values out.
)
def test_a_value_is_shown_as_it_would_be_written(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    "value",
    [
        doubled(lambda v: [v, v], 100),
        doubled(lambda v: (v, v), 100),
        doubled(lambda v: {"a": v, "b": v}, 100),
        "x" * 10**6,
        b"\xff" * 10**6,
        ["\U000e0001" * 50] * 10**6,
        list(range(10**6)),
        dict.fromkeys(range(10**6), "\x1b"),
        {Hostile(): Hostile()},
        range(10**5000),
        np.array([{"a": Hostile()}], object),
        np.zeros(2, [("a" * 5000, "u1")]),
    ],
    ids=shown,
)
def test_what_is_shown_is_short_however_large_the_value_is(value: Any) -> None:
    assert 0 < len(shown(value)) <= LONGEST
    assert shown(value).isprintable()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(VALUES)
def test_every_value_is_shown_printable(value: Any) -> None:
    text = shown(value)
    assert len(text) <= LONGEST
    assert text.isprintable()
    if len(repr(value)) < 60 and repr(value).isprintable() and "[[" not in repr(value):
        assert text == repr(value) or "..." in text or "digits" in text


@given(st.text(), st.integers(20, 200))
def test_every_text_is_made_printable(text: str, limit: int) -> None:
    made = printable(text, limit)
    assert len(made) <= limit
    assert made.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert made == " ".join(text.split())


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    made = printable("what " + "x" * 10**6 + " advice", 100)
    assert made.startswith("what x")
    assert made.endswith("x advice")
    assert " ... " in made
    path = Path("/" + "folder/" * 20 + "file")
    assert shown(path) == f"'{path}'"
    assert len(shown(Path("x" * 4000))) <= LONGEST_PATH


def test_an_error_of_the_user_has_an_end() -> None:
    error = UserError("a\x1b]0;title\x07 " + "long " * 10**6 + "; the advice")
    assert len(str(error)) <= LONGEST_MESSAGE
    assert str(error).isprintable()
    assert str(error).endswith("; the advice")
    assert len(one_line(ValueError("x\n" * 10**6))) < 1_000
    assert one_line(ValueError()) == "ValueError"


def test_the_nearest_name() -> None:
    assert nearest("Expert", ["expert", "random"]) == "expert"
    assert nearest("zzz", ["expert", "random"]) is None
    assert nearest("x" * 10**6, ["expert"]) is None
    assert nearest(5, ["expert"]) is None
    assert len(unknown_name("policy", "x" * 10**6, ["expert"])) < 200


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[-Infinity]",
        "1e999",
        "1" * 41,
        "9" * 5000,
        "[" * 100_000,
        '{"a":' * 100_000,
        "",
        "x",
    ],
)
def test_json_without_end_or_numbers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_json(text)
    assert len(str(caught.value)) < 200


def test_plain_json_is_read() -> None:
    assert parse_json('{"a": [1, -2.5, null, true, "x", 9223372036854775807]}') == {
        "a": [1, -2.5, None, True, "x", 2**63 - 1]
    }


# -- no message may write a value out by itself ----------------------------------------------

PRODUCT = Path(tempest_agent.__file__).parent.parent
FOLDERS = ("envs", "experts", "tempest_agent")
ALLOWED = {
    Path(messages.__file__).name: "shown() itself: of plain values that were cut before",
    "build.py": "names in LLVM's language, which writes them in quotes",
    "sources.py": "a digest, which nobody reads",
}


def product_files() -> list[Path]:
    return [file for folder in FOLDERS for file in (PRODUCT / folder).rglob("*.py")]


def raw_quotes(tree: ast.AST) -> list[int]:
    """Lines in which a value is written by ``repr``: ``!r``, ``!a``, ``repr()``, ``%r``."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.conversion in (ord("r"), ord("a")):
            found.append(node.value.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += [node.lineno] * (node.func.id in ("repr", "ascii"))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [node.lineno] * ("%r" in node.value or "!r}" in node.value)
    return found


def test_raw_quotes_are_found() -> None:
    for code in ("f'{a!r}'", "repr(a)", "'%r' % a", "'{!r}'.format(a)", "f'{a!a}'"):
        assert raw_quotes(ast.parse(code)), code
    assert not raw_quotes(ast.parse("f'{shown(a)}'"))


def test_no_message_writes_a_value_out_by_itself() -> None:
    assert len(product_files()) > 100
    wrong = {
        f"{file.relative_to(PRODUCT)}:{line}"
        for file in product_files()
        if file.name not in ALLOWED
        for line in raw_quotes(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert not wrong, f"quote values with shown(): {sorted(wrong)}"


@pytest.mark.parametrize(
    "value", [10**400, "3", None, True, float("nan"), 1j, np.array([1, 2])], ids=shown
)
def test_what_is_no_finite_number_is_said_so(value: Any) -> None:
    with pytest.raises(ValueError, match="a finite number is needed"):
        checks.check_number("x", value)
