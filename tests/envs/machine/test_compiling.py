"""The first start, which compiles, says so; later ones do not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from copies import Copies

from tempest_agent.envs.machine.compiled import rule

MODULE = """
from tempest_agent.envs.machine.compiled import kernel


@kernel
def add(one: int, other: int) -> int:
    return one + other


@kernel
def subtract(one: int, other: int) -> int:
    return one - other
"""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    started = Copies(tmp_path_factory.mktemp("pipes"))
    yield started
    started.close()


def test_only_the_first_start_says_that_it_compiles(tmp_path: Path, copies: Copies) -> None:
    (tmp_path / "small.py").write_text(MODULE)
    environment = {**os.environ, "TEMPEST_AGENT_CACHE": str(tmp_path / "cache")}

    def start(code: str) -> str:
        [done] = copies.run(f"import small; print({code})", tmp_path, environment)
        assert (done.returncode, done.stdout) == (0, "(5, 1)\n"), done.stderr
        return done.stderr

    calls = "(small.add(3, 2), small.subtract(3, 2))"
    assert start("(5, 1)") == ""  # Importing compiles nothing.
    assert start(calls) == "compiling the simulator (once, about a minute) ...\n"
    assert start(calls) == ""
    # Another form of a call is compiled in no time.
    assert start("(int(small.add(3.0, 2)), 1)") == ""
    # What is kept of one copy, such as another environment's, serves the next, unless it differs.
    (tmp_path / "copy").mkdir()
    moved = (tmp_path / "small.py").rename(tmp_path / "copy" / "small.py")
    environment["PYTHONPATH"] = str(tmp_path / "copy")
    assert start(calls) == ""
    moved.write_text(f"{MODULE}\n# And no more.\n")
    assert start(calls) == "compiling the simulator (once, about a minute) ...\n"


def test_code_is_that_of_all_the_sources_it_was_built_from(tmp_path: Path, copies: Copies) -> None:
    """Those too that lie in a third folder, and are reached through a second function."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "player").mkdir()
    (tmp_path / "rules" / "__init__.py").touch()
    constant = tmp_path / "rules" / "constant.py"
    (tmp_path / "rules" / "add.py").write_text(
        "from tempest_agent.envs.machine.compiled import rule\n"
        "from rules.constant import MORE\n\n\n"
        "@rule\ndef add(one):\n    return one + MORE\n"
    )
    (tmp_path / "player" / "play.py").write_text(
        "from tempest_agent.envs.machine.compiled import kernel\n"
        "from rules.add import add\n\n\n"
        "@kernel\ndef play(one):\n    return add(one)\n"
    )
    places = os.pathsep.join(map(str, (tmp_path, tmp_path / "player")))
    environment = {**os.environ, "TEMPEST_AGENT_CACHE": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = places
    for more in (1, 20):  # Of another length, which Python notices too.
        constant.write_text(f"MORE = {more}\n")
        [done] = copies.run("import play; print(play.play(1))", tmp_path, environment)
        assert (done.returncode, done.stdout) == (0, f"{1 + more}\n"), done.stderr


@rule
def weighted(value: int, weight: int) -> int:
    return value * 10 + weight


@rule
def weigh_thrice(value: int) -> int:
    return weighted(value, 1) + weighted(value, weight=2) + weighted(3, value)


@rule
def joined(tens: int, ones: int) -> int:
    return tens * 10 + ones


def test_a_rule_is_compiled_once_for_all_constants() -> None:
    assert weigh_thrice(4) == 41 + 42 + 34
    assert len(cast(Any, weighted).signatures) == 1


def test_python_can_call_a_rule() -> None:
    assert joined(4, 1) == 41
    assert joined(ones=1, tens=np.uint8(200)) == 2001
    with pytest.raises(TypeError):
        joined(4)  # type: ignore[call-arg]
