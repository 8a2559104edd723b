"""Choice of the replay's memory (``replay.storage``)."""

from __future__ import annotations

import logging

import torch

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import Config

from .buffer import ReplayBuffer
from .device_buffer import DeviceReplay

log = logging.getLogger("tempest_agent")

GPU_SHARE = 0.7
"""Share of a GPU's free memory that the replay may take; the rest is for the networks."""


def make_replay(
    config: Config, layout: Layout, num_envs: int, seed: int, device: torch.device
) -> ReplayBuffer:
    """Return the replay of a run that trains on ``device``.

    Raises:
        UserError: it does not fit into the chosen memory.
    """
    replay, learner = config.replay, config.learner
    settings = {
        "n_steps": max(learner.n_steps, learner.n_steps_end),
        "gamma": learner.gamma,
        "trace": learner.trace,
        "seed": seed,
        "prioritised": replay.prioritised,
        "priority_exponent": replay.priority_exponent,
        "stored": layout.stored,
        "stored_counts": layout.stored_counts,
        "plans": config.teacher.labels == "plans",
    }
    if lives_on_device(config, layout, device):
        return DeviceReplay(
            replay.capacity, num_envs, layout.num_features, device=device, **settings
        )
    return ReplayBuffer(replay.capacity, num_envs, layout.num_features, **settings)  # type: ignore[arg-type]


def lives_on_device(config: Config, layout: Layout, device: torch.device) -> bool:
    """Return whether the replay is made of tensors on ``device``."""
    replay = config.replay
    if replay.storage != "auto":
        return replay.storage == "device"
    if device.type != "cuda" or config.teacher.labels == "plans":
        return False
    needed = replay.capacity * ReplayBuffer.bytes_per_row(layout.num_features, replay.prioritised)
    free = torch.cuda.mem_get_info(device)[0]
    if needed > GPU_SHARE * free:
        log.warning(
            "the replay (%.1f GB) is kept in host memory: %.1f GB of the GPU are free",
            needed / 1e9,
            free / 1e9,
        )
        return False
    return True
