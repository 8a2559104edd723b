"""Samples a second of the student's update on a GPU, everything on the device.

The network is that of a public attempt at this game: 171 inputs, layers of 512, 512, 256, 256, 128
and 128, dueling, with a spinner head; 0.62 million parameters.  An update draws its rows from a
replay on the device, puts 5-step returns together, makes double-Q targets and the gradient of 4
micro-batches, clips it, steps AdamW, moves the averaged weights and keeps its metrics.  It is timed
as training makes it, twice: kernel by kernel, and with ``learner.compile``, which on a GPU records
all of it as one CUDA graph.

    python benchmarks/learner_gpu.py                 # on a GPU: batch 16,384
    python benchmarks/learner_gpu.py --batch 512 --rows 20000 --updates 5 --device cpu

Prints one line of JSON.  Without a GPU the second figure is null: nothing can be recorded.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.device_buffer import DeviceReplay
from tempest_agent.agent.replay.rows import AGENT, Rows
from tempest_agent.agent.update.graph_update import GraphUpdate
from tempest_agent.config import Config, load_config

FEATURES = 171
HIDDEN = "[512, 512, 256, 256, 128, 128]"
GAMES = 1000
MICRO_BATCHES = 4
PUBLIC_RECORD = 786_000
"""Samples a second of the public attempt."""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, default=16_384, help="rows of an update")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the replay")
    parser.add_argument("--updates", type=int, default=20, help="updates of one repetition")
    parser.add_argument("--repetitions", type=int, default=5, help="the fastest one counts")
    parser.add_argument("--hidden", default=HIDDEN, help="widths of the layers")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args(arguments)
    device = torch.device(chosen.device)
    torch.set_float32_matmul_precision("high")
    config = load_config(
        None,
        [
            f"network.hidden={chosen.hidden}",
            f"learner.batch_size={chosen.batch}",
            f"learner.gradient_accumulation_steps={MICRO_BATCHES}",
            f"replay.capacity={max(chosen.rows, chosen.batch)}",
            "replay.storage=device",
            "replay.learning_starts=1",
            "learner.imitation=none",
            "run.num_envs=1",
        ],
    )
    torch.manual_seed(0)
    replay = filled(chosen.rows, config, device)
    learner = Learner(Layout(FEATURES), config, device)

    def update() -> None:
        learner.update(replay.sample(chosen.batch), 1e-4, 0.0)

    plain = _seconds(update, chosen.updates, chosen.repetitions, device)
    graph = None
    if device.type == "cuda":
        whole = GraphUpdate(learner, replay)

        def graphed() -> None:
            whole(chosen.batch, 0.0, 1e-4, 0.0)

        # Recorded during the first calls; many are needed, as one takes less than a millisecond.
        graph = _seconds(graphed, 20 * chosen.updates, chosen.repetitions, device)
    fastest = plain if graph is None else min(plain, graph)
    figures = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "precision": learner.precision.precision,
        "parameters": sum(p.numel() for p in learner.online.parameters()),
        "batch": chosen.batch,
        "micro_batches": MICRO_BATCHES,
        "update_samples_per_second": chosen.batch / plain,
        "graph_samples_per_second": None if graph is None else chosen.batch / graph,
        "samples_per_second": chosen.batch / fastest,
        "times_public_record": chosen.batch / fastest / PUBLIC_RECORD,
    }
    print(json.dumps(figures))
    return figures


def filled(rows: int, config: Config, device: torch.device) -> DeviceReplay:
    """A replay on ``device`` full of random rows, one code in ten above 0."""
    games = min(GAMES, rows // 20)
    replay = DeviceReplay(
        rows, games, FEATURES, device=device,
        n_steps=config.learner.n_steps, gamma=config.learner.gamma,
    )  # fmt: skip
    random = np.random.default_rng(0)
    nothing = np.zeros(games, np.bool_)
    for _ in range(replay.length):
        codes = random.integers(-127, 128, (games, FEATURES), np.int8)
        codes *= random.random(codes.shape, np.float32) < 0.1
        replay.add(
            Rows(
                codes=codes,
                spin=random.integers(-31, 32, games, np.int8),
                buttons=random.integers(0, 4, games, np.uint8),
                reward=random.random(games, np.float32),
                terminated=random.random(games) < 0.005,
                truncated=nothing,
                episode_start=nothing,
                zap_legal=~nothing,
                driver=np.full(games, AGENT, np.uint8),
                label_spin=np.zeros(games, np.int8),
                label_buttons=np.zeros(games, np.uint8),
                labelled=nothing,
                final_codes=codes,
                final_zap_legal=nothing,
            )
        )
    return replay


def _seconds(
    update: Callable[[], None], updates: int, repetitions: int, device: torch.device
) -> float:
    """Of one update, in the fastest repetition."""
    for _ in range(5):
        update()
    best = float("inf")
    for _ in range(repetitions):
        _wait(device)
        began = time.perf_counter()
        for _ in range(updates):
            update()
        _wait(device)
        best = min(best, (time.perf_counter() - began) / updates)
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
