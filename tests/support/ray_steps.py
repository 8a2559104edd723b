"""Programs that stand for the runs of a sweep on Ray."""

from __future__ import annotations

import sys
from pathlib import Path

from tempest_agent.sweep.executor import Command

BEGIN = """
import os, pathlib, signal, sys, time
def is_watched():
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_text(errors="replace").split("\\0")
        except OSError:
            continue
        if any(word.endswith("parent_watch.py") for word in words) and str(os.getpid()) in words:
            return True
    return False
def wait_for_the_watcher():
    # The worker lets another process see to this one's end, a moment after it has begun.
    while not is_watched():
        time.sleep(0.01)
"""


SAVES = f"""{BEGIN}
def save(*_):
    time.sleep(0.5)
    pathlib.Path("saved").write_text("x")
    sys.exit(130)
wait_for_the_watcher()
signal.signal(signal.SIGTERM, save)
pathlib.Path("began").write_text("x")
time.sleep(1000)
"""


class Steps:
    """A task whose commands are Python programs, done when their outputs are there."""

    def __init__(self, folder: Path, name: str, *programs: str, cpus: int = 1) -> None:
        self.folder, self.name, self.programs, self.cpus = folder, name, programs, cpus

    def output(self, number: int) -> Path:
        return self.folder / f"{self.name}.{number}"

    def next_command(self) -> Command | None:
        for number, program in enumerate(self.programs):
            if not self.output(number).exists():
                log = self.folder / f"{self.name}.log"
                arguments = (sys.executable, "-c", program)
                return Command(arguments, self.output(number), log, self.folder, self.cpus)
        return None
