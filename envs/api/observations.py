"""What the environment shows: one class per ``obs_type``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tempest_agent.envs.features.floats import as_floats
from tempest_agent.envs.features.layout import NUM_FEATURES, PLAIN_FEATURES
from tempest_agent.envs.machine.memory import RAM_SIZE, as_bytes

PLAIN = "features_plain"
FEATURE_TYPES = ("features", PLAIN)
"""Values of ``obs_type`` that the games' compiled code writes."""


class Observation(ABC):
    """A space of observations, and how they come from codes and images."""

    space: spaces.Box

    @abstractmethod
    def make(self, codes: NDArray[np.int8], ram: NDArray[np.void]) -> NDArray[Any]:
        """Return observations of n games, a new array of shape ``(n, *space.shape)``."""


class FeatureObservation(Observation):
    """The player-centred numbers of ``features.layout``, with the forecast or without it."""

    def __init__(self, plain: bool) -> None:
        count = PLAIN_FEATURES if plain else NUM_FEATURES
        self.space = spaces.Box(-1.0, 1.0, (count,), np.float32)

    def make(self, codes: NDArray[np.int8], ram: NDArray[np.void]) -> NDArray[Any]:
        return as_floats(codes)


class RamObservation(Observation):
    """The machine's 2,048 bytes."""

    def __init__(self) -> None:
        self.space = spaces.Box(0, 255, (RAM_SIZE,), np.uint8)

    def make(self, codes: NDArray[np.int8], ram: NDArray[np.void]) -> NDArray[Any]:
        return as_bytes(ram).copy()


class PictureObservation(Observation):
    """The screen, in colour or grey."""

    def __init__(self, width: int, height: int, grey: bool) -> None:
        from tempest_agent.envs.render.renderer import Renderer

        self._renderer = Renderer(width, height)
        self._grey = grey
        shape = (height, width) if grey else (height, width, 3)
        self.space = spaces.Box(0, 255, shape, np.uint8)

    def make(self, codes: NDArray[np.int8], ram: NDArray[np.void]) -> NDArray[Any]:
        from tempest_agent.envs.render.renderer import grayscale

        pictures = np.empty((len(ram), *self.space.shape), np.uint8)
        for picture, image in zip(pictures, ram, strict=True):
            drawn = self._renderer.draw(image)
            picture[...] = grayscale(drawn) if self._grey else drawn
        return pictures


def observation_of(obs_type: str, screen_size: tuple[int, int]) -> Observation:
    """Return the observation named ``obs_type``."""
    if obs_type in FEATURE_TYPES:
        return FeatureObservation(plain=obs_type == PLAIN)
    if obs_type == "ram":
        return RamObservation()
    return PictureObservation(*screen_size, grey=obs_type == "grayscale")
