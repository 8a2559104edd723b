"""A new game: from an empty RAM image to the first tick of play."""

from __future__ import annotations

from typing import Any

from tempest_agent.envs.machine.compiled import clear, kernel
from tempest_agent.envs.machine.memory import (
    MODE_IN_GAME,
    MODE_RUNNING,
    STATE_NEW_GAME,
    STATE_PLAY,
    Ram,
)
from tempest_agent.envs.machine.randomness import Source

from .level_select import choose_level, new_game
from .tick import tick

ONE_COIN_ONE_CREDIT = 0x02


@kernel
def set_up_game(ram: Ram, source: Source, switches: Any) -> None:
    """Clear ``ram`` and leave it where the level of a game with ``switches`` has been chosen.

    ``switches`` is a record of ``SWITCHES_DTYPE``.  The next tick starts the first life
    (state 02).
    """
    clear(ram)
    ram.dsw1_image = ONE_COIN_ONE_CREDIT
    ram.dsw3_image = switches.difficulty
    ram.bonus_life_interval = switches.bonus_life_interval
    ram.lives_per_game = switches.lives
    ram.mode_flags = MODE_IN_GAME | MODE_RUNNING
    ram.game_state = STATE_NEW_GAME
    new_game(ram, source)
    choose_level(ram, source, switches.level_index, switches.start_bonus_index)


@kernel
def start_game(ram: Ram, source: Source, switches: Any) -> None:
    """Clear ``ram`` and leave it at the first play tick of a game with ``switches``.

    The game starts the machine's own way, except that any level can be chosen.
    """
    set_up_game(ram, source, switches)
    while ram.game_state != STATE_PLAY:
        tick(ram, source)
