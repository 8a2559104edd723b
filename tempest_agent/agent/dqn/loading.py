"""A ``HybridDQN`` made from a checkpoint: of ``save``, of a training run, or a player."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.agent.checkpoints.checkpoint_schema import PLAYER, RUN, require_entries
from tempest_agent.agent.checkpoints.run_checkpoints import MISFITS
from tempest_agent.agent.games.spaces import spaces_from
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import from_dict
from tempest_agent.errors import UserError, one_line

from .policies import policy_name

if TYPE_CHECKING:
    from .hybrid_dqn import HybridDQN


def load_model(
    cls: Any, path: pathlib.Path, env: Any, device: torch.device | str, kwargs: dict[str, Any]
) -> HybridDQN:
    """The model, of class ``cls``, that the checkpoint ``path`` holds; see ``HybridDQN.load``."""
    content = read_checkpoint(path)
    require_entries(path, content, PLAYER if content.get("player_only") else RUN)
    try:
        config = from_dict(content["config"])
        layout = Layout(**content["layout"])
        policy = policy_name(config.network.encoder)
        model: HybridDQN = cls(
            policy, env, config=config, device=device, _init_setup_model=False, **kwargs
        )
        if env is None:
            model.observation_space, model.action_space = spaces_from(content, layout)
        if model.exploration_fraction is None:
            model.exploration_fraction = content.get("exploration_fraction")
        model.layout = layout
        model._setup_model()
        if model.layout != layout:
            raise UserError(
                f"{path} was trained on other observations or actions than {env} has; give an "
                "environment like that one"
            )
        _fill(model, content, kwargs)
    except MISFITS as error:
        raise UserError(
            f"{path} does not fit this version of tempest-agent or the arguments given "
            f"({one_line(error)}); use the version and settings that wrote it"
        ) from error
    return model


def _fill(model: HybridDQN, content: dict[str, Any], kwargs: dict[str, Any]) -> None:
    if content.get("player_only"):
        model.set_parameters({"average": content["learner"]["average"]}, exact_match=False)
        model.num_timesteps = model.policy.step = int(content["step"])
        return
    planned, table = model.schedules, model.rate_table
    model._load_counters(content)
    if kwargs.get("learning_rate") is not None:
        model.schedules = replace(model.schedules, learning_rate=planned.learning_rate)
        model.rate_table = table
    collector = content["collector"]
    alike = collector is not None and model.env is not None
    if alike and model.n_envs == int(content["config"]["run"]["num_envs"]):
        model.collector.load_state_dict(collector, model.num_timesteps, with_games=False)
        model.replay.load_random(content["replay"])
        if content.get("curriculum"):
            model.curriculum.load_state_dict(content["curriculum"])
    if model.env is not None:
        model._restart_rates()
