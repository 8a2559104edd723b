"""Speed of the renderer, on images of the expert's play on all levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tempest_agent.bench.env import SETTINGS
from tempest_agent.bench.figures import Figure, figure
from tempest_agent.bench.timing import fastest
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.render.renderer import Renderer
from tempest_agent.experts import make_teacher

FRAMES = 200
WARM_UP = 150
"""Ticks played before the images are taken, so that the wells are full."""


def measure() -> dict[str, Figure]:
    """Measure frames per second of the full picture and of the small one used as observation."""
    batch = GameBatch(FRAMES, SETTINGS, observe=False)
    batch.reset(seeds=np.random.SeedSequence(2))
    expert = make_teacher("expert")
    for _ in range(WARM_UP):
        batch.step(*expert.act(batch.ram))

    def rate(renderer: Renderer) -> float:
        def run() -> None:
            for image in batch.ram:
                renderer.draw(image)

        def prepare() -> Callable[[], None]:
            return run

        return FRAMES / fastest(prepare)[0]

    return {
        "frames_per_second": figure(rate(Renderer()), "frames/s of 480 x 640 with glow"),
        "frames_per_second_plain": figure(
            rate(Renderer(glow=False)), "frames/s of 480 x 640 without glow"
        ),
        "frames_per_second_small": figure(
            rate(Renderer(84, 84, glow=False)), "frames/s of 84 x 84 without glow"
        ),
    }
