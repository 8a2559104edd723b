"""The controls: what a player's action writes into the RAM image before a tick."""

from __future__ import annotations

from .compiled import rule
from .memory import BUTTON_FIRE, BUTTON_ZAP, Ram

FIRE, ZAP = 1, 2
"""Bits of an action's buttons."""

BUTTON_PAIRS = 4
"""Values of an action's buttons, ``fire + 2 * zap``."""

SPINNER_MAX = 31
"""Most knob counts the game uses in one tick: 16 counts are one lane."""

MAX_INPUT_DELAY = 4
"""Most ticks between an action and its effect."""


@rule
def set_inputs(ram: Ram, spin: int, fire: bool, zap: bool) -> None:
    """Put one tick's controls into ``ram``.

    ``spin`` is the signed knob count (positive lowers the lane), ``fire`` whether the button is
    held, ``zap`` whether the superzapper is pressed in this tick.
    """
    ram.spinner_accum = spin & 0xFF
    held = 0
    if fire:
        held |= BUTTON_FIRE
    if zap:
        held |= BUTTON_ZAP
        ram.buttons_latched |= BUTTON_ZAP
    ram.buttons_now = held
