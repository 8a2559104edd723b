"""The student as a player: greedy, from the averaged weights of a checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.config import Config, ConfigError, from_dict
from tempest_agent.errors import UserError, one_line

from .checkpoint import read_checkpoint, write_checkpoint
from .exact import ExactNetwork
from .networks import Layout, QNetwork


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
        self._exact = ExactNetwork(network)
        self.config = config
        self.step = step
        self.sha256 = sha256

    @property
    def frame_skip(self) -> int:
        """Ticks that one of its decisions lasts."""
        return self.config.game.frame_skip

    @property
    def input_delay(self) -> int:
        """Ticks between action and effect that it was trained with."""
        return self.config.game.input_delay

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
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    network, config = player_of(path, content)
    if not network.layout.fire_and_zap:
        raise UserError(
            f"{path} was trained on another environment than Tempest; use HybridDQN.load(path, env)"
        )
    return Policy(network, config, int(content["step"]), digest)


def player_of(path: Path, content: dict[str, Any]) -> tuple[QNetwork, Config]:
    """The network that plays in the ``content`` of checkpoint ``path``, and its configuration.

    Raises:
        UserError: of another version.
    """
    try:
        config = from_dict(content["config"])
        layout = Layout(**content["layout"])
        network = QNetwork(layout, config.network, config.learner)
        network.load_state_dict(content["learner"]["average"])
        int(content["step"])
    except (KeyError, TypeError, RuntimeError, ConfigError) as error:
        raise UserError(
            f"{path} does not fit this version of tempest-agent ({one_line(error)}); "
            "train again or use the version that wrote it"
        ) from error
    return network, config


def export_policy(source: str | Path, target: Path) -> None:
    """Write only the player of checkpoint ``source`` to ``target``, about a fifth of the size.

    It plays and can be evaluated; training cannot be resumed from it.

    Raises:
        UserError: ``source`` is no checkpoint, or ``target`` cannot be written.
    """
    content = read_checkpoint(source)
    about = {name: content[name] for name in ("config", "layout", "step")}
    if "spaces" in content:  # Earlier versions did not write them.
        about["spaces"] = content["spaces"]
    write_player(target, about, content["learner"]["average"])


def write_player(path: Path, about: Mapping[str, Any], average: Mapping[str, Any]) -> None:
    """Write the weights that play, with what there is to say of them."""
    write_checkpoint(path, {**about, "player_only": True, "learner": {"average": average}})
