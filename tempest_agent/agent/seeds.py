"""What the one seed of a run becomes."""

from __future__ import annotations

import random

import numpy as np
import torch


def seeds_of(seed: int) -> tuple[int, int]:
    """Return the seeds of the replay's and of the drivers' draws in a run with ``seed``."""
    replay, drivers = np.random.SeedSequence(seed).generate_state(2)
    return int(replay), int(drivers)


def seed_of(seed: int, rank: int) -> int:
    """Return the seed of a rank: the run's for rank 0, unrelated ones for the others."""
    if rank == 0:
        return seed
    return int(np.random.SeedSequence(seed, spawn_key=(rank,)).generate_state(1)[0])


def generator_seed(seed: int) -> int:
    """Return ``seed`` for NumPy's global generator, which takes 32 bits."""
    return seed if seed < 2**32 else int(np.random.SeedSequence(seed).generate_state(1)[0])


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the global generators of Python, NumPy and torch, as SB3's algorithms do."""
    seed = generator_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if device.type == "cuda":
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
