"""A window that shows frames at game speed, if there is a display."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

import cv2
import numpy as np
from numpy.typing import NDArray

from .renderer import FRAMES_PER_SECOND

_ESCAPE = 27
_RECORD = "or use --record FILE.mp4"

WINDOW_RECIPE = "pip install opencv-python --force-reinstall --no-deps"
"""Puts an OpenCV with windows over the headless one, which stays installed for pip.

Without it, pip would restore the headless files at its next ``install``.
"""


class DisplayUnavailable(RuntimeError):  # noqa: N818  (the name says the condition)
    """There is no display, or this build of OpenCV has no windows; the message names the fix."""


class Window:
    """Shows RGB frames and paces them.

    Args:
        title: text of the title bar.
        fps: frames shown in a second; the default is the machine's own speed.

    Raises:
        DisplayUnavailable: no window can be opened; the message says what to do.
    """

    def __init__(self, title: str = "Tempest", fps: float = FRAMES_PER_SECOND) -> None:
        if not fps > 0:
            raise ValueError(f"fps={fps} cannot be shown: use a positive number")
        _require_display()
        self._title = title
        self._frame_time = 1.0 / fps
        self._due = 0.0
        self._open = True
        try:
            cv2.namedWindow(title, cv2.WINDOW_NORMAL | cv2.WINDOW_KEEPRATIO)
        except cv2.error as error:
            raise DisplayUnavailable(
                f"this OpenCV cannot open windows (headless build): {WINDOW_RECIPE}, {_RECORD}"
            ) from error

    @property
    def open(self) -> bool:
        """False once the user has closed the window or pressed Escape."""
        return self._open

    def show(self, frame: NDArray[np.uint8]) -> int:
        """Show one RGB frame, wait for the time of the next, and return the key pressed or -1.

        The key is OpenCV's code (the character's for letters).  A caller that is too slow is
        not punished by a wait, and does not rush afterwards to catch up.
        """
        if not self._open:
            return -1
        cv2.imshow(self._title, np.ascontiguousarray(frame[:, :, ::-1]))
        now = time.monotonic()
        self._due = max(self._due + self._frame_time, now)
        key = cv2.waitKey(max(1, round((self._due - now) * 1000.0)))
        if key == _ESCAPE or not self._visible():
            self.close()
        return key

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the window; closing twice is fine."""
        if not self._open:
            return
        self._open = False
        with suppress(cv2.error):  # The user has closed it already.
            cv2.destroyWindow(self._title)

    def _visible(self) -> bool:
        try:
            return bool(cv2.getWindowProperty(self._title, cv2.WND_PROP_VISIBLE) >= 1)
        except cv2.error:  # Raised by the build with Qt once its last window is closed.
            return False


def _require_display() -> None:
    # Without the check a build with windows ends the whole process when it finds no display.
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        raise DisplayUnavailable(
            "no display to open a window on (DISPLAY is not set): "
            f"log in with a desktop or ssh -X, {_RECORD}"
        )
