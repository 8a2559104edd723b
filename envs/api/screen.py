"""Pictures of a game for ``render()``: drawn in memory, or shown in a window."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tempest_agent.envs.render.renderer import Renderer
    from tempest_agent.envs.render.window import Window


def window_possible() -> bool:
    """Return whether there is a display, and an OpenCV that can open windows on it."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in displays):
        return False
    import cv2

    return re.search(r"GUI:\s+NONE", cv2.getBuildInformation()) is None


class Screen:
    """Creates its renderer and window on first use, also after pickling."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._renderer: Renderer | None = None
        self._window: Window | None = None

    def draw(self, ram: Any, score: int) -> NDArray[np.uint8]:
        """Return the picture of one RAM image, uint8 ``(height, width, 3)``."""
        if self._renderer is None:
            from tempest_agent.envs.render.renderer import Renderer

            self._renderer = Renderer(self.width, self.height)
        return self._renderer.draw(ram, score)

    def open_window(self) -> None:
        """Open the window; raise ``DisplayUnavailable``, one line with the fix, if it cannot."""
        if self._window is None:
            from tempest_agent.envs.render.window import Window

            self._window = Window()

    def show(self, ram: Any, score: int) -> None:
        """Show one RAM image in the window."""
        self.open_window()
        if self._window is not None:
            self._window.show(self.draw(ram, score))

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_renderer": None, "_window": None}
