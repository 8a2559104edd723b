"""A vector font of capitals, digits and a little punctuation, and the writing of texts.

Each glyph is a set of lines on a grid 4 wide and 6 high; text is laid out in screen units,
16 x 24 at size 1 with 24 from one character to the next.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import int64, rule

from .beam import NORMAL, Beam, line

PITCH = 24.0
_UNIT = 4.0
GLYPH_WIDTH = 4 * _UNIT

# Lines are separated by blanks; each character pair is x and y on the grid.
_LINES: dict[str, str] = {
    "0": "0040460600", "1": "2026", "2": "064643030040", "3": "06464000 0343",
    "4": "060343 4640", "5": "460603434000", "6": "060040430300", "7": "064640",
    "8": "0040460600 0343", "9": "4046060343", "A": "00042644 4440 0242",
    "B": "000636453303 3342413000", "C": "46060040", "D": "00062644422000",
    "E": "46060040 0333", "F": "460600 0333", "G": "460600404323",
    "H": "0006 4640 0343", "I": "0040 0646 2026", "J": "46402002",
    "K": "0006 460340", "L": "060040", "M": "0006244640", "N": "00064046",
    "O": "0040460600", "P": "0006464303", "Q": "0040460600 2240", "R": "0006464303 1340",
    "S": "460603434000", "T": "0646 2620", "U": "06004046", "V": "062046",
    "W": "0600224046", "X": "0046 0640", "Y": "062446 2420", "Z": "06460040",
    "-": "1333", ".": "1020", "!": "2622 2120", "/": "0046",
}  # fmt: skip


def _glyph_tables() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return all glyphs' lines, shape (n, 4), and where those of each byte begin, shape (257,)."""
    lines: list[tuple[float, ...]] = []
    starts = []
    for code in range(256):
        starts.append(len(lines))
        for stroke in _LINES.get(chr(code), "").split():
            points = [
                (int(across) * _UNIT, int(up) * _UNIT)
                for across, up in zip(stroke[::2], stroke[1::2], strict=True)
            ]
            lines += [(*one, *other) for one, other in itertools.pairwise(points)]
    return np.array(lines), np.array([*starts, len(lines)])


_GLYPH_LINES, _GLYPH_STARTS = _glyph_tables()


def encoded(text: str) -> NDArray[np.uint8]:
    """Return a text as the bytes that ``write_text`` takes."""
    return np.frombuffer(text.encode("ascii"), np.uint8)


@rule
def write_glyph(beam: Beam, code: int, left: float, base: float, size: float, colour: int) -> None:
    """Write one character with its lower left corner at (``left``, ``base``).

    A character without a glyph leaves a blank.
    """
    for at in range(_GLYPH_STARTS[code & 0xFF], _GLYPH_STARTS[(code & 0xFF) + 1]):
        line(
            beam,
            left + size * _GLYPH_LINES[at, 0],
            base + size * _GLYPH_LINES[at, 1],
            left + size * _GLYPH_LINES[at, 2],
            base + size * _GLYPH_LINES[at, 3],
            colour,
            NORMAL,
        )


@rule
def write_text(
    beam: Beam, text: NDArray[np.uint8], left: float, base: float, size: float, colour: int
) -> None:
    """Write a text with its lower left corner at (``left``, ``base``)."""
    for place in range(len(text)):
        write_glyph(beam, int64(text[place]), left + PITCH * size * place, base, size, colour)


@rule
def write_centred(
    beam: Beam, text: NDArray[np.uint8], base: float, size: float, colour: int
) -> None:
    """Write a text in the middle, the blank behind its last character counted as the machine's."""
    write_text(beam, text, -PITCH * size * len(text) / 2.0, base, size, colour)


@rule
def write_number(
    beam: Beam, value: int, right: float, base: float, size: float, colour: int
) -> None:
    """Write a number that is not negative, its last digit's right side at ``right``."""
    left = right - GLYPH_WIDTH * size
    rest = int64(value)
    while True:
        write_glyph(beam, 48 + rest % 10, left, base, size, colour)
        rest //= 10
        if rest == 0:
            return
        left -= PITCH * size
