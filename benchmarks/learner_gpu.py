"""Samples a second of the student's update on a GPU, everything on the device.

The network is that of a public attempt at this game: 171 inputs, layers of 512, 512, 256, 256, 128
and 128, dueling, with a spinner head; 0.62 million parameters.  An update draws its rows from a
replay on the device, puts 5-step returns together, makes double-Q targets and the gradient of 4
micro-batches, clips it, steps AdamW and moves the averaged weights.  It is timed twice: as training
calls it, and recorded as one CUDA graph, which leaves nothing for the host to do.

    python benchmarks/learner_gpu.py                 # on a GPU: batch 16,384
    python benchmarks/learner_gpu.py --batch 512 --rows 20000 --updates 5 --device cpu

Prints one line of JSON.  Without a GPU the second figure is null.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tempest_agent.agent.device_replay import DeviceReplay
from tempest_agent.agent.learner import Learner
from tempest_agent.agent.metrics import Metrics
from tempest_agent.agent.networks import Layout
from tempest_agent.agent.replay_rows import AGENT, Rows
from tempest_agent.config import Config, load_config

FEATURES = 171
HIDDEN = "[512, 512, 256, 256, 128, 128]"
GAMES = 1000
MICRO_BATCHES = 4
PUBLIC_RECORD = 786_000
"""Samples a second of the public attempt."""


class NoMetrics(Metrics):
    """Keeps nothing: what a graph has recorded cannot reach the host's sums."""

    def mean(self, name: str, total: Tensor, count: Tensor | float = 1.0) -> None:
        """Nothing."""

    def total(self, name: str, amount: Tensor) -> None:
        """Nothing."""

    def highest(self, name: str, value: Tensor) -> None:
        """Nothing."""

    def lowest(self, name: str, value: Tensor) -> None:
        """Nothing."""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=int, default=16_384, help="rows of an update")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the replay")
    parser.add_argument("--updates", type=int, default=300, help="updates of one repetition")
    parser.add_argument("--repetitions", type=int, default=5, help="the fastest one counts")
    parser.add_argument("--hidden", default=HIDDEN, help="widths of the layers")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile the passes")
    chosen = parser.parse_args(arguments)
    device = torch.device(chosen.device)
    torch.set_float32_matmul_precision("high")
    config = load_config(
        None,
        [
            f"network.hidden={chosen.hidden}",
            f"learner.batch_size={chosen.batch}",
            f"learner.gradient_accumulation_steps={MICRO_BATCHES}",
            f"learner.compile={str(chosen.compile).lower()}",
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

    eager = _seconds(update, chosen.updates, chosen.repetitions, device)
    graph, why = None, "no GPU"
    if device.type == "cuda":
        try:
            replayed = recorded(learner, replay, chosen.batch)
            graph = _seconds(replayed, chosen.updates, chosen.repetitions, device)
            why = ""
        except RuntimeError as error:
            why = " ".join(str(error).split())
    fastest = min(eager, graph) if graph is not None else eager
    parameters = sum(p.numel() for p in learner.online.parameters())
    figures = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "precision": learner.accumulator.precision,
        "compiled": chosen.compile,
        "parameters": parameters,
        "batch": chosen.batch,
        "micro_batches": MICRO_BATCHES,
        "update_samples_per_second": chosen.batch / eager,
        "graph_samples_per_second": None if graph is None else chosen.batch / graph,
        "graph_missing": why,
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


def whole_update(learner: Learner, replay: DeviceReplay, batch: int) -> Callable[[], None]:
    """The whole update without anything that differs from one call to the next on the host.

    Rows are drawn on the device.  The target network stays as it is: training moves it once in
    hundreds of updates.
    """
    learner.metrics = NoMetrics()
    optimizer = learner.optimizer
    for group in optimizer.param_groups:
        group["capturable"] = replay.device.type == "cuda"
    weights = torch.ones(batch, device=replay.device)
    average, online = (
        [*network.parameters()] for network in (learner.followers.average, learner.online)
    )

    def update() -> None:
        rows = torch.randint(len(replay), (batch,), device=replay.device)
        learner.gradients(replay.assembled(rows, weights), 0.0)
        norm = torch.nn.utils.clip_grad_norm_(online, learner.learner.max_grad_norm)
        # Fused optimisers leave everything as it is where this is 1.
        optimizer.found_inf = 1.0 - torch.isfinite(norm).float()  # type: ignore[attr-defined]
        optimizer.step()
        learner.bootstrap.online.refresh()
        with torch.no_grad():
            torch._foreach_lerp_(average, online, 1.0 - learner.learner.ema_decay)

    return update


def recorded(learner: Learner, replay: DeviceReplay, batch: int) -> Callable[[], None]:
    """``whole_update`` as one CUDA graph."""
    update = whole_update(learner, replay, batch)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            update()
    torch.cuda.current_stream().wait_stream(side)
    learner.optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


def _seconds(
    update: Callable[[], None], updates: int, repetitions: int, device: torch.device
) -> float:
    """Of one update, in the fastest repetition."""
    for _ in range(3):
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
