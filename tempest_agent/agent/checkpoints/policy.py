"""The student as a player: greedy, from the averaged weights of a checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint, write_checkpoint
from tempest_agent.agent.checkpoints.checkpoint_schema import PLAYER, require_entries
from tempest_agent.agent.inference.deterministic_network import DeterministicNetwork
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import Config, from_dict
from tempest_agent.errors import UserError


class Policy:
    """Greedy decisions of one network.

    Args:
        network: plays; kept in evaluation mode, without gradients.
        config: of the run that trained it; ``frame_skip`` and ``input_delay`` are those it knows.
        step: decisions its training had played.
        sha256: digest of the file it came from.
    """

    def __init__(self, network: QNetwork, config: Config, step: int = 0, sha256: str = "") -> None:
        self.network = network.eval().requires_grad_(False)
        self._exact = DeterministicNetwork(network)
        self.config = config
        self.step = step
        self.sha256 = sha256

    @property
    def frame_skip(self) -> int:
        """Ticks that one of its decisions lasts."""
        return self.config.game.frame_skip

    @property
    def input_delays(self) -> tuple[int, ...]:
        """Ticks between action and effect that it was trained with, without repetitions."""
        return tuple(dict.fromkeys(self.config.game.input_delay))

    def act(
        self, codes: NDArray[np.int8], zap_legal: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """One decision for each of N games.

        A row is decided the same way in any batch, on any machine, with any number of threads
        (see ``exact``).

        Args:
            codes: int8 ``(N, F)`` observation codes.
            zap_legal: bool ``(N,)``; without it no zap is chosen.

        Returns:
            Knob counts int8 ``(N,)`` and buttons (fire + 2 * zap) uint8 ``(N,)``.
        """
        return self._exact.act(codes, zap_legal)


def load_policy(path: str | Path) -> Policy:
    """The player in a checkpoint: its averaged weights, on the CPU.

    Raises:
        UserError: no such file, not a checkpoint, damaged, or of another version.
    """
    path = Path(path)
    content = read_checkpoint(path)
    require_entries(path, content, PLAYER)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    network, config = player_of(content)
    if not network.layout.fire_and_zap:
        raise UserError(
            f"{path} was trained on another environment than Tempest; use HybridDQN.load(path, env)"
        )
    return Policy(network, config, content["step"], digest)


def player_of(content: Mapping[str, Any]) -> tuple[QNetwork, Config]:
    """The network that plays in the ``content`` of a checkpoint, and its configuration."""
    config = from_dict(content["config"])
    network = QNetwork(Layout(**content["layout"]), config.network, config.learner)
    network.load_state_dict(content["learner"]["average"])
    return network, config


def export_policy(source: str | Path, target: Path) -> None:
    """Write only the player of checkpoint ``source`` to ``target``, about a fifth of the size.

    It plays and can be evaluated; training cannot be resumed from it.

    Raises:
        UserError: ``source`` is no checkpoint, or ``target`` cannot be written.
    """
    content = read_checkpoint(source)
    require_entries(Path(source), content, PLAYER)
    about = {name: content[name] for name in (*PLAYER, "spaces") if name in content}
    write_player(target, about, about.pop("learner")["average"])


def write_player(path: Path, about: Mapping[str, Any], average: Mapping[str, Any]) -> None:
    """Write the weights that play, with what there is to say of them."""
    write_checkpoint(path, {**about, "player_only": True, "learner": {"average": average}})
