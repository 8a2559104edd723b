"""Where one learner's process ends: actors on Ray whose games cost a known time and no work.

The actors sleep for as long as their games would take, so a machine with few cores can have many.
Everything else is what ``tempest-agent train --actors N`` does: orders, chunks of real size through
Ray's shared memory, snapshots of real networks, rounds, merging, the replay.  The learner does not
train here: what is found is how many decisions a second it can take in.

    python benchmarks/actors_scaling.py                          # a table over 1 to 16 actors
    python benchmarks/actors_scaling.py --cost-us 0 --actors 1   # no cost: the learner's own limit
    python benchmarks/actors_scaling.py --real --actors 1 2      # games that are really played
    python benchmarks/actors_scaling.py --soak-minutes 15        # an actor killed every 20 seconds

Prints one line of JSON per number of actors, with the memory that only the learner's process, each
actor and all of Ray's own processes hold (unique set size).  The soak ends with an error if a
decision was lost on the way, came twice, or was not stored.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tempest_agent.actors.messages import ActorShare, Chunk, Order
from tempest_agent.actors.ray_executor import RayExecutor
from tempest_agent.actors.remote_games import RemoteGames
from tempest_agent.actors.snapshot import Snapshot
from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.collect.drivers import Drivers
from tempest_agent.agent.collect.source import Played
from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.make_replay import make_replay
from tempest_agent.config import Config, load_config

FEATURES = TEMPEST_LAYOUT.num_features
KEPT = 500_000
"""Rows of the replay."""
ACTOR = "ray::Host"
"""How the actors' processes are called."""
WARM_UP = 2.0
"""Seconds before a measurement."""
TAG = 8
"""The first codes of every row are a number: how many its game had played before."""


class SleepingPlayer:
    """``games`` games that take ``cost`` seconds for a decision of one of them; rows are noise.

    The score of a row is its actor's incarnation.
    """

    def __init__(self, games: int, cost: float, part: ActorShare) -> None:
        self.part, self.games, self.cost = part, games, cost
        self.played = 0
        self.noise = np.random.default_rng(part.actor).integers(
            -127, 128, (1, games, FEATURES), np.int8
        )

    def play(self, order: Order, snapshot: Snapshot) -> Chunk:
        """Sleep, and a chunk of the size of a real one."""
        began = time.perf_counter()
        shape = (order.steps, self.games)
        codes = np.repeat(self.noise, order.steps, axis=0)
        serial = np.arange(self.played, self.played + order.steps)
        codes[:, :, :TAG] = serial.view(np.int8).reshape(-1, 1, TAG)
        self.played += order.steps
        no, small = np.zeros(shape, np.bool_), np.zeros(shape, np.int8)
        columns: dict[str, NDArray[Any]] = {"codes": codes, "reward": np.zeros(shape, np.float32)}
        columns |= dict.fromkeys(("spin", "label_spin", "own_spin"), small)
        columns |= dict.fromkeys(("buttons", "label_buttons", "own_buttons"), small.view(np.uint8))
        columns |= dict.fromkeys(("terminated", "truncated", "zap_legal", "labelled"), no)
        columns |= {"episode_start": no, "game_over": no, "driver": small.view(np.uint8)}
        columns["score"] = np.full(shape, self.part.incarnation)
        last = {
            "codes": codes[-1],
            "zap_legal": no[-1],
            "cut": np.zeros((0, 2), np.int64),
            "final_codes": np.zeros((0, FEATURES), np.int8),
            "final_zap_legal": np.zeros(0, np.bool_),
        }
        time.sleep(max(0.0, began + self.cost * codes.shape[0] * self.games - time.perf_counter()))
        return Chunk(
            self.part.actor,
            self.part.incarnation,
            order.number,
            snapshot.version,
            columns,
            last,
            time.perf_counter() - began,
        )


class Ingest:
    """The part of a training process that takes decisions in, with ``actors`` actors."""

    def __init__(self, actors: int, arguments: argparse.Namespace) -> None:
        games = arguments.games
        self.config = config = _config(actors, games, arguments.chunk_steps)
        num_envs = config.run.num_envs
        sleeping = partial(SleepingPlayer, games, arguments.cost_us * 1e-6)
        self.remote = RemoteGames(config, RayExecutor, None if arguments.real else sleeping)
        self.learner = Learner(TEMPEST_LAYOUT, config, torch.device("cpu"))
        drivers = Drivers(num_envs, config.teacher, config.exploration, 1, TEMPEST_LAYOUT)
        replay = make_replay(config, TEMPEST_LAYOUT, num_envs, 1, torch.device("cpu"))
        self.collector = Collector(self.remote.source(self.learner, drivers), replay)
        self.steps = 0

    def collect(self) -> Played:
        """One decision of every game, and one update that costs nothing."""
        played = self.collector.collect(0.0, 0.0)
        self.learner.updates += 1
        self.steps += 1
        return played

    def measure(self, seconds: float) -> dict[str, float]:
        """Figures of ``seconds``, from when all actors have been playing for some time."""
        self.collect()
        began = time.perf_counter()
        while time.perf_counter() - began < WARM_UP:
            self.collect()
        self.remote.figures()
        began, before = time.perf_counter(), self.steps
        while time.perf_counter() - began < seconds:
            self.collect()
        elapsed = time.perf_counter() - began
        decisions = (self.steps - before) * self.config.run.num_envs
        return {"decisions_per_second": decisions / elapsed} | self.remote.figures()


def _config(actors: int, games: int, chunk_steps: int) -> Config:
    config = load_config(None, [])
    return dataclasses.replace(
        config,
        run=dataclasses.replace(config.run, num_envs=actors * games, device="cpu"),
        replay=dataclasses.replace(config.replay, capacity=KEPT),
        actors=dataclasses.replace(
            config.actors, count=actors, chunk_steps=chunk_steps, deadline_seconds=60.0
        ),
    )


def scaling(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One line per number of actors."""
    lines = []
    # One cluster for all lines; the engines of the lines find it.
    cluster = RayExecutor(partial(SleepingPlayer, arguments.games, 0.0))
    for actors in arguments.actors:
        ingest = Ingest(actors, arguments)
        figures = ingest.measure(arguments.seconds)
        line: dict[str, Any] = {"actors": actors, "games": actors * arguments.games}
        line["decisions_per_second"] = round(figures["decisions_per_second"])
        if arguments.cost_us > 0 and not arguments.real:
            wanted = actors * 1e6 / arguments.cost_us
            line["efficiency"] = round(figures["decisions_per_second"] / wanted, 3)
        busy = 1.0 - figures["actors_wait_share"]
        # What it could take in if it never had to wait.
        line["learner_limit"] = round(figures["decisions_per_second"] / max(busy, 1e-3))
        line["learner_waits"] = round(figures["actors_wait_share"], 3)
        line["megabytes_per_second"] = round(figures["actors_bytes_per_second"] / 1e6, 2)
        line["version_lag"] = round(figures["actors_version_lag"], 2)
        line |= memory()
        ingest.remote.close()
        print(json.dumps(line), flush=True)
        lines.append(line)
    cluster.close()
    return lines


def memory() -> dict[str, float]:
    """Megabytes that are held by this process alone, by one actor, and by all the rest of Ray."""
    held = {"actors": [0.0], "ray": [0.0]}
    for pid, name in _descendants(os.getpid()):
        held["actors" if name.startswith(ACTOR) else "ray"].append(_unique(pid))
    actors = held["actors"][1:]
    return {
        "learner_mb": round(_unique(os.getpid())),
        "actor_mb": round(sum(actors) / max(1, len(actors))),
        "ray_mb": round(sum(held["ray"])),
    }


def _unique(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # It has ended meanwhile.
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024.0


class Killer(threading.Thread):
    """Ends a random actor of this process's every ``interval`` seconds, as the kernel would."""

    def __init__(self, interval: float) -> None:
        super().__init__(daemon=True)
        self.interval, self.killed = interval, 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Until ``ended`` is set."""
        while not self.ended.wait(self.interval):
            actors = [pid for pid, name in _descendants(os.getpid()) if name.startswith(ACTOR)]
            with suppress(ProcessLookupError):  # It has ended by itself.
                if actors:
                    os.kill(random.choice(actors), signal.SIGKILL)
                    self.killed += 1


def _descendants(root: int) -> list[tuple[int, str]]:
    """Processes below ``root`` with their names."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, command = (
                    (entry / n).read_text(errors="replace") for n in ("stat", "cmdline")
                )
            except (FileNotFoundError, ProcessLookupError):
                continue
            names[int(entry.name)] = command.replace("\0", " ")
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return [(pid, names[pid]) for pid in found[1:] if pid in names]


class Witness:
    """Looks at every decision that is stored: each game goes forward one by one, or begins anew."""

    def __init__(self, games: int) -> None:
        self.games = games
        self.serial = np.full(games, -1)
        self.incarnation = np.zeros(games, np.int64)
        self.stored = 0

    def look(self, replay: ReplayBuffer, last: Played) -> None:
        """At the last decision.

        Raises:
            AssertionError: one is missing, came twice, or its games were not ended properly.
        """
        newest = (replay.position - 1) % replay.length
        serial = np.ascontiguousarray(replay.codes[newest, :, :TAG]).view(np.int64)[:, 0]
        incarnation = last.step.score
        new = incarnation > self.incarnation
        expected = np.where(new, 0, self.serial + 1)
        assert (serial == expected).all(), f"expected {expected}, found {serial}"
        assert (incarnation >= self.incarnation).all()
        left = np.zeros(self.games, np.bool_) if last.abandoned is None else last.abandoned.games
        assert (left == new).all()
        self.serial, self.incarnation = serial.copy(), incarnation.copy()
        self.stored += self.games


def soak(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play while actors are killed; every stored decision is looked at."""
    actors, num_envs = arguments.soak_actors, arguments.soak_actors * arguments.games
    ingest = Ingest(actors, arguments)
    witness, killer = Witness(num_envs), Killer(arguments.kill_every)
    replay, remote = ingest.collector.replay, ingest.remote
    witness.look(replay, ingest.collect())
    killer.start()
    end = time.monotonic() + arguments.soak_minutes * 60.0
    while time.monotonic() < end:
        witness.look(replay, ingest.collect())
    killer.ended.set()
    killer.join()
    # To the end of the round that was begun.
    while ingest.steps % arguments.chunk_steps:
        witness.look(replay, ingest.collect())
    figures = remote.figures()
    remote.close()
    line = {
        "minutes": arguments.soak_minutes,
        "actors": actors,
        "killed": killer.killed,
        "restarts": int(figures["actors_restarts"]),
        "steps_counted": int(figures["actors_taken"]),
        "steps_stored": witness.stored,
        "steps_lost_with_actors": int(figures["actors_lost"]),
    }
    print(json.dumps(line), flush=True)
    if line["steps_counted"] != line["steps_stored"]:
        raise SystemExit("steps counted are not steps stored")
    return line


def main(arguments: list[str] | None = None) -> Any:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--actors", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="numbers of actors"
    )
    parser.add_argument("--games", type=int, default=16, help="games of each actor")
    parser.add_argument("--chunk-steps", type=int, default=16, help="decisions of a game per chunk")
    parser.add_argument("--cost-us", type=float, default=200.0, help="of one decision")
    parser.add_argument("--real", action="store_true", help="play, and do not sleep")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured per line")
    parser.add_argument("--soak-minutes", type=float, default=0.0, help="soak instead")
    parser.add_argument("--soak-actors", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=20.0, help="seconds")
    given = parser.parse_args(arguments)
    return soak(given) if given.soak_minutes > 0 else scaling(given)


if __name__ == "__main__":
    main()
