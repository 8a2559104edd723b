"""Fill the replay with demonstrations before a run starts (``replay.demonstrations``).

As in Hester et al. 2018, "Deep Q-learning from demonstrations", the student learns from them as
from its own games, with the actions as labels for imitation.  Unlike there, they are overwritten
in time, because the teacher keeps labelling the states that the student visits.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.rows import EXPERT, Rows
from tempest_agent.agent.replicas import Replicas
from tempest_agent.config import Config, GameConfig
from tempest_agent.demonstrations.dataset import Episode, load_demonstrations
from tempest_agent.envs.features.layout import ZAP_LEGAL_FEATURE
from tempest_agent.errors import UserError

log = logging.getLogger("tempest_agent")


def take_demonstrations(replay: ReplayBuffer, config: Config, replicas: Replicas) -> None:
    """Fill ``replay`` as the configuration says.

    Args:
        replay: of this process.
        config: of the whole run; names the data set and the share of all replays to fill.
        replicas: the processes that train together.

    Raises:
        UserError: no such data set, or one that does not fit this run.
    """
    game, most = config.game, int(config.replay.capacity * config.replay.demonstrations_share)
    episodes = load_demonstrations(config.replay.demonstrations, game)
    count = prefill(replay, episodes, game, most, replicas.rank, replicas.size)
    log.info("%d decisions of %s are in the replay", count, config.replay.demonstrations)


def prefill(
    replay: ReplayBuffer,
    episodes: Iterable[Episode],
    game: GameConfig,
    most: int,
    part: int = 0,
    parts: int = 1,
) -> int:
    """Store up to ``most`` steps of ``episodes``, and return how many were stored in all parts.

    The steps are laid out in the replay's columns, equally many in each.  If a column ends within
    a game, the game counts as truncated there, with a bootstrap from the next state.

    Args:
        replay: is filled.
        episodes: the source.
        game: settings of the run.
        most: largest number of steps stored in all parts together.
        part, parts: this replay holds columns ``part``, ``part + parts``, ... of all.

    Raises:
        UserError: less than one step per column.
    """
    columns = replay.num_envs * parts
    chosen, count = _first(episodes, most)
    length = count // columns
    if length == 0:
        raise UserError(
            f"the demonstrations provide {count} decisions, too few for the "
            f"{columns} games of run.num_envs: record more, or raise replay.demonstrations_share"
        )
    rows = _rows(chosen, game)
    # Row t of column e is step e * length + t: a column is one piece of the games.
    order = np.arange(columns * length).reshape(columns, length)
    rows["truncated"][order[:, -1]] |= ~rows["terminated"][order[:, -1]]
    rows["episode_start"][order[:, 0]] = True
    order = order[part::parts]
    for step in range(length):
        replay.add(Rows(**{name: column[order[:, step]] for name, column in rows.items()}))
    return columns * length


def _first(episodes: Iterable[Episode], most: int) -> tuple[list[Episode], int]:
    chosen: list[Episode] = []
    count = 0
    for episode in episodes:
        chosen.append(episode)
        count += len(episode)
        if count >= most:
            break
    return chosen, min(count, most)


def _rows(episodes: list[Episode], game: GameConfig) -> dict[str, Any]:
    """Return all steps one after the other, as the collector would have stored them."""
    codes = np.concatenate([episode.codes[:-1] for episode in episodes])
    following = np.concatenate([episode.codes[1:] for episode in episodes])
    spin = np.concatenate([episode.spin for episode in episodes])
    died = np.concatenate([episode.died for episode in episodes])
    points = np.concatenate([episode.points for episode in episodes])
    last = np.cumsum([len(episode) for episode in episodes]) - 1
    over = np.zeros(len(spin), np.bool_)
    over[last] = True
    terminated = np.zeros(len(spin), np.bool_)
    terminated[last] = [episode.terminated for episode in episodes]
    truncated = over & ~terminated
    if game.life_loss_terminal:
        terminated |= died
    legal = codes[:, ZAP_LEGAL_FEATURE] > 0
    chosen = np.concatenate([episode.buttons for episode in episodes])
    buttons = np.where(legal, chosen, chosen & 1).astype(np.uint8)
    reward = points.astype(np.float32) * np.float32(game.reward_scale)
    reward -= died * np.float32(game.death_penalty)
    return {
        "codes": codes,
        "spin": spin,
        "buttons": buttons,
        "reward": reward,
        "terminated": terminated,
        "truncated": truncated,
        "episode_start": np.concatenate(([True], (over | terminated)[:-1])),
        "zap_legal": legal,
        "driver": np.full(len(spin), EXPERT, np.uint8),
        "label_spin": spin,
        "label_buttons": buttons,
        "labelled": np.ones(len(spin), np.bool_),
        "final_codes": following,
        "final_zap_legal": following[:, ZAP_LEGAL_FEATURE] > 0,
    }
