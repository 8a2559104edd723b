"""Whether a run fits into memory, checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tempest_agent.agent.games.tempest_games import tempest_layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.config import Config
from tempest_agent.envs.engine.saved_states import SAVED_SIZE
from tempest_agent.envs.free_memory import too_large
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError

BYTES_PER_PARAMETER = 6 * 4
"""Online, target and averaged weights, their gradient, and both moments of Adam, in float32."""

LANE_FEATURES = 16
"""Lanes that the lanes encoder has channels for."""


def needed_memory(config: Config) -> dict[str, int]:
    """Return the bytes that a run needs at least, by the setting to lower."""
    replay, run = config.replay, config.run
    plans = config.teacher.labels == "plans"
    features = tempest_layout(config.game).num_features
    row_bytes = ReplayBuffer.bytes_per_row(features, replay.prioritised, plans)
    return {
        f"replay.capacity={replay.capacity}": replay.capacity * row_bytes,
        **_network_memory(config, features, BUTTON_PAIRS),
        # Autoreset keeps the end of each game's last episode as well.
        f"run.num_envs={run.num_envs}": 2 * run.num_envs * (SAVED_SIZE + features),
        f"teacher.score_games={config.teacher.score_games}": (
            config.teacher.score_games * SAVED_SIZE if config.teacher.score == 0 else 0
        ),
    }


def _network_memory(config: Config, features: int, pairs: int) -> dict[str, int]:
    """What of ``needed_memory`` the network takes, and one update of it."""
    network, learner = config.network, config.learner
    outputs = pairs * network.spinner_knots
    if network.encoder == "mlp":
        widths = [features, *network.hidden, outputs]
        width_setting, widest = "network.hidden", shown(list(network.hidden))
    else:
        widths = [network.lane_width, network.lane_width, outputs]
        width_setting, widest = "network.lane_width", str(network.lane_width)
    parameters = sum(one * other for one, other in pairwise(widths))
    lanes = LANE_FEATURES if network.encoder == "lanes" else 1
    # Each row and its successor: codes of all, and activations of one micro-batch.
    micro_batch = -(-learner.batch_size // learner.gradient_accumulation_steps)
    rows = 2 * features * learner.batch_size + 4 * lanes * sum(widths) * micro_batch
    return {
        f"{width_setting}={widest}": parameters * BYTES_PER_PARAMETER,
        f"learner.batch_size={learner.batch_size}": rows,
    }


def require_memory(config: Config) -> None:
    """Raise ``UserError`` for a run that cannot fit, naming the largest setting."""
    _require("the run", needed_memory(config))


def require_network(config: Config, features: int, pairs: int) -> None:
    """Raise ``UserError`` for a network, of ``features`` inputs, that cannot fit."""
    _require("the network", _network_memory(config, features, pairs))


def _require(what: str, parts: Mapping[str, int]) -> None:
    problem = too_large(sum(parts.values()))
    if problem is not None:
        most = max(parts, key=lambda name: parts[name])
        raise UserError(f"{what} {problem}; most is taken by {most}: set it lower")
