"""Registers the environment with Gymnasium."""

from __future__ import annotations

import gymnasium as gym

ENV_ID = "Tempest-v0"


def register() -> None:
    """Make ``gymnasium.make("Tempest-v0")`` and ``make_vec`` work; harmless when called again."""
    if ENV_ID not in gym.registry:
        gym.register(
            id=ENV_ID,
            entry_point="tempest_agent.envs.api.tempest_env:TempestEnv",
            vector_entry_point="tempest_agent.envs.api.vector_env:TempestVectorEnv",
        )
