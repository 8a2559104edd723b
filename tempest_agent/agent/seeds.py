"""What the one seed of a run is made into."""

from __future__ import annotations

import numpy as np


def seeds_of(seed: int) -> tuple[int, int]:
    """Seeds of the replay's and of the drivers' draws in a run with ``seed``."""
    replay, drivers = np.random.SeedSequence(seed).generate_state(2)
    return int(replay), int(drivers)
