"""What the machine shows of one RAM image, as a display list and its palette.

``write_display_list`` is plain arithmetic on the arrays it is given: it allocates nothing and
reads nothing but the image, so any rasteriser can draw what it writes, in any language that can
call it.  The layout of a row is that of ``beam``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel, rule
from tempest_agent.envs.machine.memory import (
    STATE_FIREWORK,
    STATE_HIGH_SCORE_CHECK,
    STATE_HIGH_SCORES,
    STATE_INITIALS,
    STATE_LEVEL_SELECT,
    STATE_LOGO,
    STATE_NEW_GAME,
    Ram,
    byte_table,
    from_bytes,
)

from . import header, screens
from .actors import draw_claw, draw_enemies
from .beam import CAPACITY, COLUMNS, Beam
from .camera import camera_of
from .effects import draw_explosions, draw_stars
from .objects import draw_enemy_shots, draw_player_shots, draw_queue, draw_spikes
from .palette import COLOURS, fill_palette
from .well import draw_well

_SCREEN_PLAY, _SCREEN_SELECT, _SCREEN_SCORES, _SCREEN_BARE = range(4)
# Of the cell display_state.  Firework, initials and logo are screens of their own, not drawn.
_SCREENS = byte_table(
    [
        {0x08: _SCREEN_SELECT, 0x0A: _SCREEN_SCORES}.get(
            state, _SCREEN_BARE if state in (0x04, 0x06, 0x12, 0x14) else _SCREEN_PLAY
        )
        for state in range(256)
    ],
    _SCREEN_PLAY,
)
# In these states the cells of the objects hold something else, or an older game.
_NO_ACTORS = byte_table([], 0)
_NO_ACTORS[
    [
        STATE_NEW_GAME,
        STATE_HIGH_SCORE_CHECK,
        STATE_INITIALS,
        STATE_HIGH_SCORES,
        STATE_LEVEL_SELECT,
        STATE_LOGO,
        STATE_FIREWORK,
    ]
] = 1


@rule
def _draw_play(beam: Beam, ram: Ram) -> None:
    """Draw the well and all that moves in it."""
    camera = camera_of(ram)
    in_play = _NO_ACTORS[ram.game_state] == 0
    draw_stars(beam, ram, camera)
    draw_well(beam, ram, camera, in_play)
    if in_play:
        draw_queue(beam, ram, camera)
        draw_spikes(beam, ram, camera)
        draw_enemies(beam, ram, camera)
        draw_enemy_shots(beam, ram, camera)
        draw_player_shots(beam, ram, camera)
        draw_claw(beam, ram, camera)
        draw_explosions(beam, ram, camera)


@kernel
def write_display_list(
    ram: Ram,
    cells: NDArray[np.uint8],
    score: int,
    texts: bool,
    segments: NDArray[np.int16],
    used: NDArray[np.int64],
    colours: NDArray[np.uint8],
) -> None:
    """Write the display list of an image.

    Args:
        ram: the image.
        cells: the same 2,048 bytes.
        score: score to show, or ``header.OWN_SCORE`` for the image's own.
        texts: whether to write texts; the lives are drawn without them too.
        segments: where the lines go, int16 ``(CAPACITY, COLUMNS)``.
        used: receives the number of lines, int64 ``(1,)``.
        colours: receives the palette, uint8 ``(16, 3)``, RGB.
    """
    used[0] = 0
    beam = Beam(segments, used)
    fill_palette(ram, colours)
    screen = _SCREENS[ram.display_state]
    if screen == _SCREEN_SELECT:
        screens.draw_level_select(beam, ram, cells, texts)
        return
    if screen == _SCREEN_PLAY:
        _draw_play(beam, ram)
    if not texts:
        header.draw_lives(beam, ram)
        return
    if screen == _SCREEN_SCORES:
        screens.draw_high_scores(beam, cells)
    header.draw_header(beam, ram, cells, score)
    header.draw_messages(beam, ram)


class DisplayList:
    """The display list of one image after another, in arrays that are kept."""

    def __init__(self) -> None:
        self._segments = np.zeros((CAPACITY, COLUMNS), np.int16)
        self._used = np.zeros(1, np.int64)
        self.colours: NDArray[np.uint8] = np.zeros((COLOURS, 3), np.uint8)
        """RGB of each colour index, shape (16, 3)."""

    def write(
        self, cells: NDArray[np.uint8], score: int | None = None, texts: bool = True
    ) -> NDArray[np.int16]:
        """Return the rows of an image's 2,048 bytes, shape (n, 6); good until the next call."""
        own = header.OWN_SCORE if score is None else score
        image = from_bytes(cells[None])[0]
        write_display_list(image, cells, own, texts, self._segments, self._used, self.colours)
        return self._segments[: int(self._used[0])]
