"""One game tick, the unit of all rules: 27.34 of them are a second on the machine.

``tick(ram, source)`` advances one RAM image by one tick.  The tick's controls must be in the
image already (``inputs.set_inputs``); ``source`` gives the random bytes.
"""

from __future__ import annotations

from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.compiled import kernel, rule
from tempest_agent.envs.machine.memory import Ram
from tempest_agent.envs.machine.randomness import Source

from .level_select import level_select, new_game
from .play import play
from .score import step_life_flash
from .star_field import step_star_field
from .states import end_life, end_wave, level_entry, new_life, new_life_2, pause
from .warp import warp

BUTTONS_UNSEEN = 0x80
"""buttons_latched bit 7: no state routine has read the buttons in this tick."""


@rule
def run_state(ram: Ram, source: Source) -> None:
    """Run the state's routine; the high-score and attract states are not simulated."""
    state = ram.game_state
    if state == m.STATE_PLAY:
        play(ram, source)
    elif state == m.STATE_WARP:
        warp(ram, source)
    elif state == m.STATE_LEVEL_ENTRY:
        level_entry(ram)
    elif state == m.STATE_PAUSE:
        pause(ram)
    elif state == m.STATE_NEW_LIFE:
        new_life(ram, source)
    elif state == m.STATE_NEW_LIFE_2:
        new_life_2(ram)
    elif state == m.STATE_END_LIFE:
        end_life(ram)
    elif state == m.STATE_END_WAVE:
        end_wave(ram, source)
    elif state == m.STATE_NEW_GAME:
        new_game(ram, source)
    elif state == m.STATE_LEVEL_SELECT:
        level_select(ram, source)


@kernel
def tick(ram: Ram, source: Source) -> None:
    """Advance ``ram`` (one RAM_DTYPE record) by one game tick, in place."""
    step_star_field(ram)
    ram.buttons_latched |= BUTTONS_UNSEEN
    run_state(ram, source)
    step_life_flash(ram)
    ram.frame_counter += 1
    if (ram.buttons_latched & BUTTONS_UNSEEN) != 0:
        ram.buttons_latched = 0
