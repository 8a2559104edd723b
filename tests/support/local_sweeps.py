"""Programs that stand for the runs of a local sweep."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from tempest_agent.sweep.executor import Command


@dataclass
class Scripts:
    """A task of Python scripts, each of which is done once its output is there."""

    name: str
    folder: Path
    scripts: list[str]
    asked: list[str] = field(default_factory=list)

    def next_command(self) -> Command | None:
        for number, script in enumerate(self.scripts):
            output = self.folder / f"{self.name}{number}.out"
            if not output.exists():
                self.asked.append(output.name)
                command = (sys.executable, "-I", "-S", "-c", script)
                return Command(command, output, self.folder / f"{self.name}.log", self.folder)
        return None


WAITS = "import time; print('begun', flush=True); time.sleep(600)"


SAVES = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path("saved").write_text("x")
    sys.exit(130)
signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
time.sleep(600)
"""
