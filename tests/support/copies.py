"""Programs in processes of their own, each a copy of one that has imported what takes long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_SOURCE = """
import json, os, sys, traceback
import tempest_agent.envs.machine.compiled
for line in sys.stdin:
    order = json.loads(line)
    children = []
    for output, errors in order["streams"]:
        child = os.fork()
        if child:
            children.append(child)
            continue
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, pipe in ((1, output), (2, errors)):
            os.dup2(os.open(pipe, os.O_WRONLY), number)
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["variables"])
        paths = order["variables"].get("PYTHONPATH", "").split(os.pathsep)
        sys.path[1:1] = [path for path in paths if path]
        code = 0
        try:
            exec(order["code"], {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(ends), flush=True)
"""


class Ended(NamedTuple):
    """A program that has ended."""

    returncode: int
    stdout: str
    stderr: str


class Copies:
    """A process that has imported Numba and compiled nothing; ``close`` ends it.

    Args:
        folder: an empty one, for the pipes through which its copies are heard.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SOURCE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, code: str, folder: Path, variables: dict[str, str], times: int = 1
    ) -> list[Ended]:
        """Run ``code``, ``times`` at the same time, in ``folder`` with these ``variables`` only."""
        pipes = [(self._pipe(), self._pipe()) for _ in range(times)]
        streams = [[str(pipe) for pipe in each] for each in pipes]
        order = {"code": code, "folder": str(folder), "variables": variables, "streams": streams}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        # Opening waits for the writer, and each opens both: what they write fits into the pipes.
        opened = [(output.open(), errors.open()) for output, errors in pipes]
        texts = []
        for output, errors in opened:
            with output, errors:
                texts.append((output.read(), errors.read()))
        codes = json.loads(self._process.stdout.readline())
        return [Ended(code, *both) for code, both in zip(codes, texts, strict=True)]

    def _pipe(self) -> Path:
        self._count += 1
        path = self._folder / str(self._count)
        os.mkfifo(path)
        return path

    def close(self) -> None:
        self._process.communicate()
