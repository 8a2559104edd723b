"""``sweep --ray-address`` is stopped by a signal that comes inside ``ray.init``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tempest_agent.cli import cli
from tempest_agent.sweep import ray_executor as ray_tasks


class Interrupted:
    """A Ray that gets a signal before, or after, it has put its own handler of SIGTERM there."""

    def __init__(self, number: int, has_taken_over: bool) -> None:
        self.number, self.has_taken_over = number, has_taken_over
        self.tries = self.shutdowns = 0

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None:
        self.tries += 1

        def exit_as_ray(number: int, _frame: Any) -> None:
            sys.exit(number)

        if self.has_taken_over:
            signal.signal(signal.SIGTERM, exit_as_ray)
        signal.raise_signal(self.number)

    def shutdown(self) -> None:
        self.shutdowns += 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("has_taken_over", [False, True])
def test_a_signal_while_ray_begins_stops_the_sweep_as_at_any_other_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, has_taken_over: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    ray = Interrupted(number, has_taken_over)
    monkeypatch.setattr(ray_tasks, "import_ray", lambda: ray)
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    result = CliRunner().invoke(cli, ["sweep", "smoke", "--ray-address", "auto", "--out", "out"])
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "tempest-agent: interrupted"
    assert "Traceback" not in result.stderr
    assert ray.tries == 1
    assert ray.shutdowns >= 1
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    # No run has begun, and the folder is free.
    assert sorted(path.name for path in Path("out").iterdir()) == [".lock", "sweep.yaml"]
