"""Points and bonus lives: six BCD digits that wrap at 1,000,000."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import MODE_IN_GAME, Ram

SCORE_WRAP = 1_000_000
LIVES_MAX = 6


@rule
def score_of(ram: Ram) -> int:
    """Return player 1's score as a number, 0 to 999,999."""
    value = int64(0)
    for byte in range(2, -1, -1):
        digits = int64(ram.score_p1[byte])
        value = value * 100 + (digits >> 4) * 10 + (digits & 0x0F)
    return value


@rule
def add_points(ram: Ram, points: int) -> None:
    """Add ordinary points (up to 10,000) and give the bonus life they may bring."""
    if (ram.mode_flags & MODE_IN_GAME) == 0:
        return
    before = score_of(ram)
    after = (before + points) % SCORE_WRAP
    _write_score(ram, after)
    if after // 10_000 != before // 10_000:
        _bonus_life_at(ram, after // 10_000)


@rule
def add_start_bonus(ram: Ram, points: int) -> None:
    """Add an amount whose own ten-thousands, where it has any, decide about the bonus life."""
    if (ram.mode_flags & MODE_IN_GAME) == 0:
        return
    top = points // 10_000
    if top == 0:
        add_points(ram, points)
        return
    after = (score_of(ram) + points) % SCORE_WRAP
    _write_score(ram, after)
    interval = int64(ram.bonus_life_interval)
    # The machine compares the two as bytes, the amount's in BCD.
    if interval != 0 and (top // 10) * 16 + top % 10 >= interval:
        _give_life(ram)
    else:
        _bonus_life_at(ram, after // 10_000)


@rule
def _write_score(ram: Ram, value: int) -> None:
    for byte in range(3):
        digits = value % 100
        ram.score_p1[byte] = (digits // 10) * 16 + digits % 10
        value //= 100


@rule
def _bonus_life_at(ram: Ram, ten_thousands: int) -> None:
    interval = int64(ram.bonus_life_interval)
    if interval == 0:
        return
    if interval == 1:
        _give_life(ram)
    elif interval == 2:
        if ten_thousands % 2 == 0:
            _give_life(ram)
    elif ten_thousands > 0 and ten_thousands % interval == 0:
        _give_life(ram)


@rule
def _give_life(ram: Ram) -> None:
    if ram.lives[0] < LIVES_MAX:
        ram.lives[0] += 1
        ram.life_flash = 0x20


@rule
def step_life_flash(ram: Ram) -> None:
    """Count down the ticks in which a new life makes the well flash; 0xFF is none.

    On the machine the display does it, after the tick in which the life is given too.
    """
    if ram.life_flash & 0x80 == 0:
        ram.life_flash -= 1
