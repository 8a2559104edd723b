"""RAM images of the real machine that lie with the tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from places import DATA

from tempest_agent.envs.machine.memory import RAM_SIZE, from_bytes


def recorded_images() -> NDArray[np.void]:
    """Images from play, dives and everything between, on many levels."""
    stored = np.load(DATA / "feature_images.npz")["ram"]
    images = np.zeros((len(stored), RAM_SIZE), np.uint8)
    images[:, : stored.shape[1]] = stored
    return from_bytes(images)
