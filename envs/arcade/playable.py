"""Which images the rules can play on: those whose cells lead to no place outside a table.

The machine reads its tables at any place that a byte of RAM names.  Beyond a table it finds other
parts of its ROM and RAM, which are not among the rules here.  So a foreign image, which may hold
any bytes, is checked once; the rules then keep these cells within their limits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine import tables as t
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.memory import Ram
from tempest_agent.envs.machine.programs import IS_STEP

from .explosions import BOOM_GRAB
from .superzapper import ZAPS_PER_WAVE

PLAYED_STATES = (
    m.STATE_NEW_GAME,
    m.STATE_NEW_LIFE,
    m.STATE_PLAY,
    m.STATE_END_LIFE,
    m.STATE_PAUSE,
    m.STATE_END_WAVE,
    m.STATE_LEVEL_SELECT,
    m.STATE_LEVEL_ENTRY,
    m.STATE_NEW_LIFE_2,
    m.STATE_WARP,
)
"""Game states that the rules cover."""

IS_PLAYED: NDArray[np.bool_] = np.isin(np.arange(256), PLAYED_STATES)

MOST_WAITING = int(t.WAVES[:, :, t.W_QUEUE].max())
CARGO_MAX = 3

_AT = {cell.name: cell.address for cell in m.CELLS}
_GAME_STATE, _NEXT_STATE, _PLAYER_UP = _AT["game_state"], _AT["next_state"], _AT["player_up"]
_START_BONUS, _SELECT_TOP = _AT["start_bonus_index"], _AT["select_top_index"]
_ZAP_USES, _QUEUE_COUNT = _AT["zap_uses"], _AT["queue_count"]
_ENEMY_TOP, _SHOT_TOP = _AT["enemy_top_slot"], _AT["enemy_shot_top_slot"]
_FLIPPER_SCRIPT, _CARGO = _AT["flipper_script"], _AT["tanker_cargo"]
_KIND, _LANE, _PC = _AT["enemy_kind"], _AT["enemy_lane"], _AT["enemy_script_pc"]
_SHOT_LANE, _QUEUE_LANE, _BOOM = _AT["player_shot_lane"], _AT["queue_lane"], _AT["boom_type"]


@rule
def misfit(ram: Ram) -> int:
    """Return the address of a cell that leads the rules out of a table; -1 if there is none."""
    state = ram.game_state
    if state == m.STATE_HIGH_SCORE_CHECK:
        return -1
    if not IS_PLAYED[state]:
        return _GAME_STATE
    if state == m.STATE_PAUSE and not IS_PLAYED[ram.next_state]:
        return _NEXT_STATE
    if ram.player_up > 1:
        return _PLAYER_UP
    if ram.start_bonus_index[0] > t.LAST_ENTRY:
        return _START_BONUS
    if ram.select_top_index > t.LAST_ENTRY:
        return _SELECT_TOP
    if ram.zap_uses > ZAPS_PER_WAVE:
        return _ZAP_USES
    if ram.queue_count > MOST_WAITING:
        return _QUEUE_COUNT
    if ram.enemy_top_slot >= m.ENEMY_SLOTS:
        return _ENEMY_TOP
    if ram.enemy_shot_top_slot >= m.ENEMY_SHOT_SLOTS:
        return _SHOT_TOP
    if not IS_STEP[ram.flipper_script]:
        return _FLIPPER_SCRIPT
    for entry in range(4):
        if ram.tanker_cargo[entry] > CARGO_MAX:
            return _CARGO + entry
    if state in (m.STATE_NEW_GAME, m.STATE_LEVEL_SELECT, m.STATE_NEW_LIFE):
        # What the slots hold is older, such as the firework's particles, and is cleared unread.
        return -1
    return _misfit_in_well(ram)


@rule
def _misfit_in_well(ram: Ram) -> int:
    """Return the same for the slots; what an empty slot holds does not matter."""
    for slot in range(m.ENEMY_SLOTS):
        if ram.enemy_depth[slot] != 0:
            if (ram.enemy_kind[slot] & m.KIND_MASK) > m.FUSEBALL:
                return _KIND + slot
            if ram.enemy_lane[slot] >= m.LANES:
                return _LANE + slot
            if not IS_STEP[ram.enemy_script_pc[slot]]:
                return _PC + slot
    for shot in range(m.PLAYER_SHOT_SLOTS):
        if ram.player_shot_depth[shot] != 0 and ram.player_shot_lane[shot] >= m.LANES:
            return _SHOT_LANE + shot
    for boom in range(m.BOOM_SLOTS):
        if ram.boom_depth[boom] != 0 and ram.boom_type[boom] > BOOM_GRAB:
            return _BOOM + boom
    for entry in range(m.QUEUE_SLOTS):
        if ram.queue_depth[entry] != 0 and ram.queue_lane[entry] >= m.LANES:
            return _QUEUE_LANE + entry
    return -1


@kernel
def _find_misfits(ram: NDArray[np.void], wanted: NDArray[np.bool_]) -> int:
    """Return 2,048 times the number of the first wanted misfit, plus its cell; or -1."""
    for i in range(len(ram)):
        if wanted[i]:
            address = misfit(ram[i])
            if address >= 0:
                return int64(i) * m.RAM_SIZE + address
    return int64(-1)


def find_misfit(ram: NDArray[np.void], wanted: NDArray[np.bool_]) -> tuple[int, str] | None:
    """Return the number of the first image that the rules cannot play, and what is wrong.

    Only images where ``wanted`` is set are checked; ``None`` if all of them are playable.
    """
    found = _find_misfits(ram, wanted)
    if found < 0:
        return None
    image, address = divmod(found, m.RAM_SIZE)
    value = int(m.as_bytes(ram)[image, address])
    return image, f"RAM cell 0x{address:03X} ({m.name_of(address)}) is {value}"
