"""The first start, which compiles, says so; later ones do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
from tempest_agent.envs.arcade.compiled import kernel


@kernel
def add(one: int, other: int) -> int:
    return one + other


@kernel
def subtract(one: int, other: int) -> int:
    return one - other
"""


def test_only_the_first_start_says_that_it_compiles(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(MODULE)
    environment = {**os.environ, "TEMPEST_AGENT_CACHE": str(tmp_path / "cache")}

    def start(code: str) -> str:
        command = [sys.executable, "-c", f"import small; print({code})"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
        )
        assert done.stdout == "(5, 1)\n"
        return done.stderr

    calls = "(small.add(3, 2), small.subtract(3, 2))"
    assert start("(5, 1)") == ""  # Importing compiles nothing.
    assert start(calls) == "compiling the simulator (once, about a minute) ...\n"
    assert start(calls) == ""
    # Another form of a call is compiled in no time.
    assert start("(int(small.add(3.0, 2)), 1)") == ""
