"""The networks behind Stable-Baselines3's policy interface."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import get_device
from torch import Tensor
from typing_extensions import Self

from tempest_agent.agent.checkpoints.checkpoint_files import (
    existing,
    read_checkpoint,
    with_suffix,
)
from tempest_agent.agent.checkpoints.checkpoint_schema import PLAYER, require_entries
from tempest_agent.agent.checkpoints.policy import player_of, write_player
from tempest_agent.agent.games.action_forms import form_of
from tempest_agent.agent.games.spaces import spaces_from, spaces_to
from tempest_agent.agent.inference.greedy import choose_to_act
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import Config, to_dict
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, unknown_name


class HybridPolicy(BasePolicy):
    """Greedy actions of a network, in the environment's form.

    Args:
        observation_space: a ``Box``; its observations are flattened.
        action_space: one that ``action_forms`` knows.
        lr_schedule: not used; the learner has its own.
        network: whose values, or policy, are maximised.
        config: of ``network``.

    Attributes:
        encoder: the class's ``network.encoder``.
        step: decisions played before the last update.
    """

    encoder: ClassVar[str] = "mlp"

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Callable[[float], float],
        network: QNetwork,
        config: Config,
    ) -> None:
        super().__init__(observation_space, action_space)
        self.network, self.config, self.step = network, config, 0
        self.form = form_of(action_space)
        # Tempest's int8 codes arrive as the features they encode.
        self._unit = network.layout.unit if network.layout.stored == "uint8" else 1.0

    def save(self, path: str | pathlib.Path) -> None:
        """Write the player to ``path``: a checkpoint that ``HybridDQN.load`` reads too.

        Args:
            path: gets ``.pt`` if it has no suffix.

        Raises:
            UserError: it cannot be written; the previous file stays.
        """
        about = {
            "config": to_dict(self.config),
            "layout": dataclasses.asdict(self.network.layout),
            "spaces": spaces_to(self.observation_space, self.action_space),
            "step": self.step,
        }
        write_player(with_suffix(path), about, self.network.state_dict())

    @classmethod
    def load(cls, path: str | pathlib.Path, device: torch.device | str = "auto") -> Self:
        """Load the policy of a file of ``save``, or of any checkpoint.

        Args:
            path: with or without ``.pt``.
            device: ``auto``, ``cpu`` or ``cuda``.

        Raises:
            UserError: no such file, not a checkpoint, damaged, of another version, or of a policy
                of another class.
        """
        path = existing(pathlib.Path(path))
        content = read_checkpoint(path)
        require_entries(path, content, PLAYER)
        network, config = player_of(content)
        kind = policy_class(policy_name(config.network.encoder))
        if not issubclass(kind, cls) and not issubclass(cls, kind):
            raise UserError(f"{path} holds a {kind.__name__}: load it with {kind.__name__}.load")
        make: Any = cls if issubclass(cls, kind) else kind
        observation, action = spaces_from(content, network.layout)
        network.eval().requires_grad_(False)
        policy: Self = make(observation, action, lambda _: 0.0, network, config)
        policy.step = int(content["step"])
        policy.set_training_mode(False)
        return policy.to(get_device(device))

    def predict(
        self,
        observation: NDArray[Any] | dict[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[NDArray[Any], ...] | None]:
        """Return the best action of one observation, or of N.

        Returns:
            One action of the action space, or N of them: an array where an action is one, else a
            list; and ``state``, unchanged.  Greedy, whatever ``deterministic``.
        """
        self.set_training_mode(False)
        features, is_batch = self.obs_to_tensor(observation)
        with torch.no_grad():
            chosen = self._predict(features, deterministic).cpu().numpy()
        actions = self.form.each(chosen[:, 0].astype(np.int64), chosen[:, 1])
        return (actions if is_batch else actions[0]), state

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        """Return the discrete value and the position in [-1, 1] of each row, ``(B, 2)``."""
        features = observation.float().reshape(len(observation), -1) * self._unit
        # Tempest ignores a zap that would do nothing, so all values are legal.
        shape = len(features), self.network.layout.num_pairs
        legal = torch.ones(shape, dtype=torch.bool, device=features.device)
        choice = choose_to_act(self.network, self.network, features, legal)
        return torch.stack((choice.pair.float(), choice.position), dim=1)


class MlpQPolicy(HybridPolicy):
    """Flat layers on any observation of numbers."""


class LaneQPolicy(HybridPolicy):
    """Weights shared over the lanes of Tempest's features."""

    encoder = "lanes"


POLICIES: dict[str, type[HybridPolicy]] = {"LaneQPolicy": LaneQPolicy, "MlpQPolicy": MlpQPolicy}


def policy_class(policy: Any) -> type[HybridPolicy]:
    """Return the class of a policy, given by name or as the class.

    Raises:
        UserError: another name or thing.
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise UserError(unknown_name("policy", policy, POLICIES))
        return POLICIES[policy]
    if isinstance(policy, type) and issubclass(policy, HybridPolicy):
        return policy
    raise UserError(
        f"policy={shown(policy)} must be 'MlpQPolicy', 'LaneQPolicy' or a subclass of "
        "HybridPolicy; the environment comes second: HybridDQN('MlpQPolicy', env)"
    )


def policy_name(encoder: str) -> str:
    """Return the name of the policy with ``encoder``."""
    return "LaneQPolicy" if encoder == "lanes" else "MlpQPolicy"
