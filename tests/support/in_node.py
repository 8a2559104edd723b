"""Runs the page's module in node, the way a page does, and returns what it wrote."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from places import ROOT, SUPPORT

from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.engine.state_check import STATE_SIZE
from tempest_agent.envs.machine.memory import LANES, RAM_SIZE
from tempest_agent.envs.machine.randomness import TAPE_DTYPE

STATIC = ROOT / "tempest_agent" / "web" / "static"
DECISION = 8
"""Bytes of a decision: knob counts, buttons, and six of a digest of the RAM image."""


def run(what: str, **job: Any) -> NDArray[np.uint8]:
    """Return the bytes that ``play_in_node.mjs`` writes for a job; bytes in it become files."""
    node = shutil.which("node")
    assert node is not None, "these tests run the page's module in node: apt-get install nodejs"
    with tempfile.TemporaryDirectory() as folder:
        for name, value in job.items():
            if isinstance(value, bytes):
                job[name] = str(Path(folder) / name)
                Path(job[name]).write_bytes(value)
        out = Path(folder) / "out"
        done = subprocess.run(
            [node, str(SUPPORT / "play_in_node.mjs")],
            input=json.dumps({"what": what, "folder": str(STATIC), "out": str(out), **job}),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return np.fromfile(out, np.uint8)


def begun_with(settings: GameSettings, seed: int) -> dict[str, Any]:
    """Return the arguments of the page's ``Game.begin`` for these settings."""
    record = settings.records()[0]
    return {
        "seed": seed,
        "level": int(record["level_index"]) + 1,
        "lives": int(record["lives"]),
        "bonusLife": int(record["bonus_life_interval"]),
        "difficulty": settings.difficulty,
        "bonus": int(record["start_bonus_index"]),
    }


def states_of(settings: GameSettings, seed: int, inputs: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return a game's bytes before the first and after each tick, ``(ticks + 1, STATE_SIZE)``.

    ``inputs``: knob counts and buttons, ``(ticks, 2)``.
    """
    out = run("inputs", switches=begun_with(settings, seed), inputs=inputs.tobytes())
    return out.reshape(-1, STATE_SIZE)


def decisions_of(
    settings: GameSettings, seed: int, player: bytes | str, ticks: int
) -> NDArray[np.uint8]:
    """Return the decisions of a player's game, ``(decisions, DECISION)``."""
    switches = begun_with(settings, seed)
    return run("decides", switches=switches, player=player, ticks=ticks).reshape(-1, DECISION)


def thoughts_of(
    settings: GameSettings, seed: int, player: bytes, ticks: int
) -> NDArray[np.float64]:
    """Return what each lane is worth to a network at each of its decisions, ``(decisions, 16)``."""
    switches = begun_with(settings, seed)
    out = run("thinks", switches=switches, player=player, ticks=ticks)
    return out.view(np.float64).reshape(-1, LANES)


def choices_of(player: bytes, codes: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return a network's knob counts and buttons ``(N, 2)`` for observations ``(N, F)``."""
    return run("chooses", player=player, codes=codes.tobytes()).view(np.int8).reshape(-1, 2)


def ticked_on_tape(
    images: NDArray[np.uint8], tapes: NDArray[np.void]
) -> tuple[NDArray[np.uint8], NDArray[np.void]]:
    """Return images ``(n, 2048)`` and tapes ``(n,)`` after a tick each."""
    out = run("tape", images=images.tobytes(), tapes=tapes.tobytes()).reshape(len(images), -1)
    return out[:, :RAM_SIZE], np.ascontiguousarray(out[:, RAM_SIZE:]).view(TAPE_DTYPE)[:, 0]
