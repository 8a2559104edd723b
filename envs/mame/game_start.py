"""How a game is started on the real machine: switches, start button, level, first play tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine import memory as m

from . import protocol
from .connection import MameMachine
from .errors import MachineError
from .mame_options import MameOptions
from .protocol import Dialogue, Frame

GAME_STATE, MODE_FLAGS, CREDITS, LATCHED = 0x00, 0x05, 0x06, 0x4E
CUR_WAVE, LIVES, BONUS_INTERVAL, LIVES_PER_GAME, DIFFICULTY = 0x9F, 0x48, 0x156, 0x158, 0x16A
_RUNNING = m.MODE_IN_GAME | m.MODE_RUNNING

LIVES_SWITCH = {2: 192, 3: 0, 4: 64, 5: 128}
BONUS_SWITCH = {0: 56, 1: 8, 2: 0, 3: 16, 4: 24, 5: 32, 6: 40, 7: 48}
"""By interval in 10,000 points, 0 for no bonus lives."""
DIFFICULTY_SWITCH = {0: 3, 1: 2, 2: 1}
"""By cell 0x16A: medium, easy, hard."""

_POWER_ON_TICKS = 1000
"""Far more ticks than lie between power-on and the attract mode's first."""
_START_TICKS = 60
"""More ticks than lie between the start button and the level select, or a choice and play."""
_SCREEN_TICKS = 3
"""Ticks after which the level select has been drawn, which corrects what attract mode left."""


@dataclass(frozen=True)
class NewGame:
    """A game to start.

    ``image``: the RAM at the choice of the level, as the simulator sets it up, uint8 ``(2048,)``.
    ``moment``: where in their cycle the machine's random registers are then.  ``stream``: state of
    the simulator's random stream in their place, or 0 for the machine's own random bytes.
    """

    image: NDArray[np.uint8]
    moment: int
    stream: int


def switches(option: Any) -> bytes:
    """Return the commands that turn the operator's switches to a record of ``SWITCHES_DTYPE``."""
    turned = (
        (":DSW2", "Lives", LIVES_SWITCH[int(option["lives"])]),
        (":DSW2", "Bonus Life", BONUS_SWITCH[int(option["bonus_life_interval"])]),
        (":IN2", "Difficulty", DIFFICULTY_SWITCH[int(option["difficulty"])]),
    )
    return b"".join(protocol.set_switch(*switch) for switch in turned)


class GameStarter:
    """Starts games on one machine, whose switches stay as they are.

    The first game goes from power-on through attract mode and the start button to the level
    select, where the machine's state is saved.  Later ones load that state.  A state that does
    not bring the machine back to the last byte is not used again: then games start from attract
    mode, as the first one did.
    """

    def __init__(self, options: MameOptions) -> None:
        self.use_state = options.save_states
        self._saved: NDArray[np.uint8] | None = None

    def start(self, machine: MameMachine, frame: Frame, game: NewGame) -> Dialogue[Frame]:
        """Bring ``machine``, standing at ``frame``, to the first play tick of ``game``."""
        machine.phase = "starting a game"
        frame = yield from self._level_select(frame)
        _check(frame, game, (LIVES_PER_GAME, BONUS_INTERVAL, DIFFICULTY), "the switches")
        # A game differs from another by the moment of the choice alone.  To wait for it would take
        # MAME up to minutes, and nothing but the random registers notices the time.
        moment = b"" if game.stream else protocol.set_moment(game.moment)
        # Any press of fire or superzapper chooses; it has to be latched like one.
        choice = protocol.write([(LATCHED, m.BUTTON_FIRE)])
        frame = yield moment + choice + protocol.carry_on()
        _expect(frame, m.STATE_NEW_LIFE, "the choice of a level")
        frame = yield from self._first_life(game)
        _check(frame, game, (CUR_WAVE, LIVES), "the start")
        machine.phase = "playing"
        return frame

    def _level_select(self, frame: Frame) -> Dialogue[Frame]:
        if self.use_state and self._saved is not None:
            frame = yield protocol.load_state() + protocol.go()
            if np.array_equal(frame.ram, self._saved):
                return frame
            self.use_state = False
        frame = yield from _reach_level_select(frame)
        if self.use_state:
            frame = yield protocol.save_state() + protocol.go()
            self._saved = frame.ram
        return frame

    def _first_life(self, game: NewGame) -> Dialogue[Frame]:
        """Play from the tick that starts the first life to the first play tick."""
        cells = [(int(at), int(game.image[at])) for at in m.CONTRACT_ADDRESSES]
        frame = yield protocol.use_stream(game.stream) + protocol.write(cells) + protocol.go()
        for _ in range(_START_TICKS):
            if frame.ram[GAME_STATE] == m.STATE_PLAY:
                return frame
            frame = yield protocol.go()
        raise MachineError(f"play has not started; {_where(frame)}", "starting a game")


def _reach_level_select(frame: Frame) -> Dialogue[Frame]:
    """Insert a coin, press start, and play the level select's first ticks."""
    # A running game is broken off: attract mode follows, as after any game.
    cells = [(MODE_FLAGS, 0), (GAME_STATE, m.STATE_HIGH_SCORES)]
    if frame.ram[MODE_FLAGS] & _RUNNING == 0:
        cells = []
    frame = yield protocol.write(cells) + protocol.go()
    for _ in range(_POWER_ON_TICKS):
        if frame.ram[MODE_FLAGS] & _RUNNING == _RUNNING:
            break
        pressed = int(frame.ram[LATCHED]) | m.BUTTON_START_1
        frame = yield protocol.write([(CREDITS, 1), (LATCHED, pressed)]) + protocol.carry_on()
    else:
        raise MachineError(f"the start button does nothing; {_where(frame)}", "starting a game")
    for _ in range(_START_TICKS):
        if frame.ram[GAME_STATE] == m.STATE_LEVEL_SELECT:
            break
        frame = yield protocol.go()
    _expect(frame, m.STATE_LEVEL_SELECT, "the start button")
    for _ in range(_SCREEN_TICKS):
        frame = yield protocol.go()
    return frame


def _expect(frame: Frame, state: int, after: str) -> None:
    if frame.ram[GAME_STATE] != state:
        name = m.STATE_NAMES[state]
        raise MachineError(f"no {name} after {after}; {_where(frame)}", "starting a game")


def _check(frame: Frame, game: NewGame, cells: tuple[int, ...], what: str) -> None:
    """Raise ``MachineError`` unless the machine agrees about how the game begins."""
    for address in cells:
        wanted, found = int(game.image[address]), int(frame.ram[address])
        if wanted != found:
            raise MachineError(
                f"{what} made {m.name_of(address)} {found} and not {wanted}", "starting a game"
            )


def _where(frame: Frame) -> str:
    state = int(frame.ram[GAME_STATE])
    return f"the machine is in state {m.STATE_NAMES.get(state, hex(state))}"
