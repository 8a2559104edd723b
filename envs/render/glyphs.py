"""A vector font of capitals, digits and a little punctuation.

Each glyph is a set of lines on a grid 4 wide and 6 high; text is laid out in screen units,
16 x 24 at size 1 with 24 from one character to the next.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .projection import Floats

PITCH = 24.0
_UNIT = 4.0

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


def _parse(lines: str) -> tuple[Floats, ...]:
    return tuple(
        np.array([(int(a), int(b)) for a, b in zip(line[::2], line[1::2], strict=True)], float)
        * _UNIT
        for line in lines.split()
    )


GLYPHS: dict[str, tuple[Floats, ...]] = {char: _parse(lines) for char, lines in _LINES.items()}


@lru_cache(maxsize=256)
def _at_origin(text: str, size: float) -> tuple[Floats, ...]:
    return tuple(
        (line + np.array((PITCH * place, 0.0))) * size
        for place, char in enumerate(text)
        for line in GLYPHS.get(char, ())
    )


def text_lines(text: str, left: float, base: float, size: float = 1.0) -> list[Floats]:
    """Return the lines of ``text`` with its lower left corner at (``left``, ``base``).

    Characters without a glyph leave a blank.
    """
    corner = np.array((left, base))
    return [line + corner for line in _at_origin(text, size)]


def text_width(text: str, size: float = 1.0) -> float:
    """Return the width of ``text`` in screen units."""
    return (PITCH * len(text) - (PITCH - 4 * _UNIT)) * size if text else 0.0
