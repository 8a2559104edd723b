"""The table of an image in any state: play, the dive, the pause before it."""

from __future__ import annotations

from tempest_agent.envs.arcade.player import player_alive
from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import STATE_PAUSE, STATE_PLAY, STATE_WARP, Ram

from .danger import EVERYTHING, forecast
from .dive import forecast_dive
from .table import Table, clear_table


@rule
def foresee(ram: Ram, table: Table, place: int, delay: int) -> None:
    """Fill ``table``: with everything that kills for certain, empty where nothing can.

    ``place``: on the rim, where the player starts from in tick ``delay``.
    """
    state = ram.game_state
    if not player_alive(ram):
        clear_table(table)
    elif state == STATE_PLAY:
        forecast(ram, table, place >> 4, EVERYTHING)
    elif state == STATE_WARP or (state == STATE_PAUSE and ram.next_state == STATE_WARP):
        forecast_dive(ram, table, place, delay)
    else:
        clear_table(table)
