"""Films of a game as MP4 files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.messages import shown

from .renderer import FRAMES_PER_SECOND

_CODEC = "mp4v"

# Read by OpenCV when it first uses FFmpeg: a failure is reported here, in one line.
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")


class FilmError(RuntimeError):
    """A film cannot be written; the message says why and what to do."""


class FilmWriter:
    """Writes RGB frames to an MP4 file.

    The file gets its name when it is closed: until then it is ``.NAME.part.mp4`` beside it, so
    a film that exists is complete.  Leaving the ``with`` block by an error keeps what was
    filmed; a film without frames leaves no file.

    Args:
        path: the file, ending in ``.mp4``; an older one is replaced.
        fps: frames in a second; the default is the machine's own speed.
        size: width and height in pixels.

    Raises:
        FilmError: wrong ending, a name that is not UTF-8, a folder that is missing or cannot be
            written, or an OpenCV without the encoder.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fps: float = FRAMES_PER_SECOND,
        size: tuple[int, int] = (480, 640),
    ) -> None:
        self._path = Path(path)
        self._size = size
        self._frames = 0
        self._writer: cv2.VideoWriter | None = None
        if not fps > 0:
            raise FilmError(f"fps={fps} cannot be filmed: use a positive number")
        _require_target(self._path)
        self._part = self._path.with_name(f".{self._path.stem}.part.mp4")
        _require_space(self._part)
        with _quiet_opencv():
            writer = cv2.VideoWriter(
                str(self._part), cv2.VideoWriter.fourcc(*_CODEC), float(fps), size
            )
        if not writer.isOpened():
            self._part.unlink(missing_ok=True)
            raise FilmError(
                f"this OpenCV cannot encode {_CODEC} video of {size[0]} x {size[1]} pixels: "
                "pip install --force-reinstall opencv-python-headless"
            )
        self._writer = writer

    @property
    def frames(self) -> int:
        """Frames written so far."""
        return self._frames

    def write(self, frame: NDArray[np.uint8]) -> None:
        """Append one RGB frame of shape (height, width, 3), uint8.

        Raises:
            FilmError: the film is closed, or the frame has another shape than the film.
        """
        if self._writer is None:
            raise FilmError(f"{self._path} is closed: open a new FilmWriter to film more")
        width, height = self._size
        if frame.shape != (height, width, 3) or frame.dtype != np.uint8:
            raise FilmError(
                f"a frame of shape {frame.shape} and type {frame.dtype} does not fit the film: "
                f"give uint8 of shape {(height, width, 3)}, or set size to the renderer's "
                "(width, height)"
            )
        with _quiet_opencv():
            self._writer.write(np.ascontiguousarray(frame[:, :, ::-1]))
        self._frames += 1

    def __enter__(self) -> FilmWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish the file and give it its name; closing twice is fine.

        Raises:
            FilmError: not all frames are in the file, as with a full disk.  An older film of the
                same name is kept.
        """
        if self._writer is None:
            return
        with _quiet_opencv():
            self._writer.release()
        self._writer = None
        if not self._frames:
            self._part.unlink(missing_ok=True)
            return
        if not self._path.parent.is_dir():
            raise FilmError(
                f"the film {self._path} is lost: its folder was removed, moved or unmounted while "
                "it was written; film to a folder that stays"
            )
        if not _is_complete(self._part, self._frames):
            self._part.unlink(missing_ok=True)
            raise FilmError(
                f"the film {self._path} could not be written to its end, probably because the "
                "disk is full: free some space or choose another folder"
            )
        self._part.replace(self._path)


def _require_target(path: Path) -> None:
    folder = path.parent
    if path.suffix.lower() != ".mp4":
        raise FilmError(f"{shown(path)} is not a name for an MP4 film: end it in .mp4")
    if path.is_dir():
        raise FilmError(f"{path} is a folder: give the name of a file in it")
    if not folder.is_dir():
        raise FilmError(f"{folder} is not a folder: create it first (mkdir -p {folder})")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FilmError(f"{folder} cannot be written: choose another folder for {path.name}")
    try:
        readable = os.fsencode(path) == str(path).encode()
    except UnicodeEncodeError:
        readable = False
    if not readable:
        # OpenCV takes names in UTF-8 only, and crashes on others.
        raise FilmError(f"{shown(path)} is not valid UTF-8: film to a name in plain letters")


def _require_space(part: Path) -> None:
    """Write a plain file first: it tells why writing fails, the encoder does not.

    The encoder then writes into this file, and not through a link put there.
    """
    try:
        part.unlink(missing_ok=True)
        with part.open("xb") as file:
            file.write(bytes(4096))
    except OSError as error:
        with suppress(OSError):  # Where nothing can be written, nothing can be removed.
            part.unlink(missing_ok=True)
        raise FilmError(
            f"cannot write to {part.parent}: {error.strerror}; free some space or choose another "
            "folder"
        ) from error


def _is_complete(path: Path, frames: int) -> bool:
    """Return whether the film has so many frames, the last one included.

    The encoder continues silently on a full disk, so the file itself is read.
    """
    with _quiet_opencv():
        film = cv2.VideoCapture(str(path))
        try:
            if round(film.get(cv2.CAP_PROP_FRAME_COUNT)) != frames:
                return False
            film.set(cv2.CAP_PROP_POS_FRAMES, frames - 1)
            return bool(film.read()[0])
        finally:
            film.release()


@contextmanager
def _quiet_opencv() -> Iterator[None]:
    before = cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    try:
        yield
    finally:
        cv2.utils.logging.setLogLevel(before)
