"""Actors on Ray that play in a real MAME, which runs the test program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mame_rom.machine import needs_mame, rom_set

from tempest_agent.actors.remote_games import remote_games
from tempest_agent.config import load_config
from tempest_agent.training.trainer import Trainer

pytestmark = [
    needs_mame,
    pytest.mark.xdist_group("ray"),
    pytest.mark.usefixtures("shared_ray"),
]


@pytest.mark.timeout(900)
def test_an_actor_plays_the_real_game(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two machines in one actor's process: every decision arrives, with the machine's points."""
    roms: Path = rom_set(tmp_path_factory)
    config = load_config(
        "smoke",
        [
            "game.backend=mame",
            f"game.rom_path={roms}",
            "game.strict_roms=false",
            "game.reward_scale=0.01",
            "teacher.name=none",
            "learner.imitation=none",
            "exploration.epsilon_min=1.0",
            "exploration.epsilon_max=1.0",
            "exploration.fire_share=1.0",
            "run.device=cpu",
            "run.num_envs=2",
            "run.steps=60",
            "actors.count=1",
        ],
    )
    trainer = Trainer(config, tmp_path_factory.mktemp("run"), games=remote_games(config))
    try:
        assert trainer.run()["steps"] == 60
    finally:
        trainer.close()
    stored = trainer.loop.replay.arrays()
    # The program gives 10 points for each tick with fire pressed.
    fired = stored["buttons"].ravel()[:60] & 1
    np.testing.assert_allclose(stored["reward"].ravel()[:60], 0.1 * fired, atol=1e-6)
    assert fired.any()
