"""Films and windows: complete files, and one line of advice where there is no screen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tempest_agent.envs.render import film as film_module
from tempest_agent.envs.render.film import FilmError, FilmWriter
from tempest_agent.envs.render.renderer import FRAMES_PER_SECOND
from tempest_agent.envs.render.window import WINDOW_RECIPE, DisplayUnavailable, Window


def frames_of(path: Path) -> list[NDArray[np.uint8]]:
    """The frames of a film, RGB."""
    video, frames = cv2.VideoCapture(str(path)), []
    while True:
        more, frame = video.read()
        if not more:
            return frames
        frames.append(np.asarray(frame[:, :, ::-1], np.uint8))


def test_a_film_can_be_read_back_in_order_and_in_colour(tmp_path: Path) -> None:
    path = tmp_path / "game.mp4"
    shown = [np.full((64, 48, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255))]
    with FilmWriter(path, size=(48, 64)) as film:
        for _ in range(5):
            film.write(shown[0])
        for _ in range(4):
            film.write(shown[1])
        assert film.frames == 9
    frames = frames_of(path)
    assert len(frames) == 9
    for frame, expected in ((frames[0], shown[0]), (frames[-1], shown[1])):
        assert np.abs(frame.astype(int) - expected).mean() < 12
    assert cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FPS) == pytest.approx(
        FRAMES_PER_SECOND, rel=1e-3
    )


def test_a_film_has_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "game.mp4"
    path.write_bytes(b"older")
    film = FilmWriter(path, size=(48, 64))
    film.write(np.zeros((64, 48, 3), np.uint8))
    assert path.read_bytes() == b"older"
    film.close()
    film.close()
    assert len(frames_of(path)) == 1
    assert os.listdir(tmp_path) == ["game.mp4"]
    with pytest.raises(FilmError, match="closed"):
        film.write(np.zeros((64, 48, 3), np.uint8))


def test_an_interrupted_film_keeps_what_was_filmed(tmp_path: Path) -> None:
    path = tmp_path / "game.mp4"

    def film_until_interrupted() -> None:
        with FilmWriter(path, size=(48, 64)) as film:
            film.write(np.zeros((64, 48, 3), np.uint8))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        film_until_interrupted()
    assert len(frames_of(path)) == 1


def test_a_film_without_frames_leaves_nothing(tmp_path: Path) -> None:
    with FilmWriter(tmp_path / "game.mp4", size=(48, 64)):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "advice"),
    [("game.avi", "end it in .mp4"), ("absent/game.mp4", "create it first"), ("dir.mp4", "folder")],
)
def test_a_bad_target_is_refused_in_one_line(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / "dir.mp4").mkdir()
    with pytest.raises(FilmError, match=advice) as refused:
        FilmWriter(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_folder_without_write_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By a stand-in, because root may write anywhere.
    monkeypatch.setattr(film_module.os, "access", lambda *_: False)
    with pytest.raises(FilmError, match="cannot be written"):
        FilmWriter(tmp_path / "game.mp4")


@pytest.mark.parametrize("name", ["\udcff.mp4", "\udcff/game.mp4"])
def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with pytest.raises(FilmError, match="not valid UTF-8") as refused:
        FilmWriter(path)
    assert str(refused.value).isascii()


def test_a_name_in_other_letters_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "épisode 1.mp4"
    with FilmWriter(path, size=(48, 64)) as film:
        film.write(np.zeros((64, 48, 3), np.uint8))
    assert len(frames_of(path)) == 1


FILM_NOISE = """
import resource, sys
import numpy as np
from tempest_agent.envs.render.film import FilmError, FilmWriter

limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
random = np.random.default_rng(0)
try:
    with FilmWriter(sys.argv[1], size=(96, 96)) as film:
        for _ in range(60):
            film.write(random.integers(0, 255, (96, 96, 3), np.uint8))
except FilmError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("limit", "advice"), [(1_000, "cannot write to"), (50_000, "could not be written to its end")]
)
def test_where_no_more_can_be_written_the_older_film_stays(
    tmp_path: Path, limit: int, advice: str
) -> None:
    path = tmp_path / "game.mp4"
    path.write_bytes(b"older")
    # A limit on the size of files stands in for a full disk.
    command = [sys.executable, "-c", FILM_NOISE, str(path), str(limit)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert advice in result.stdout
    assert "space" in result.stdout
    assert result.stderr == ""
    assert path.read_bytes() == b"older"
    assert os.listdir(tmp_path) == ["game.mp4"]


def test_a_missing_encoder_is_reported_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mute:
        fourcc = staticmethod(cv2.VideoWriter.fourcc)

        def __init__(self, *_: object) -> None:
            pass

        def isOpened(self) -> bool:  # noqa: N802
            return False

    monkeypatch.setattr(film_module.cv2, "VideoWriter", Mute)
    with pytest.raises(FilmError, match="pip install"):
        FilmWriter(tmp_path / "game.mp4")


@pytest.mark.parametrize(
    "frame", [np.zeros((48, 64, 3), np.uint8), np.zeros((64, 48), np.uint8), np.zeros((64, 48, 3))]
)
def test_a_frame_that_does_not_fit_is_refused(tmp_path: Path, frame: NDArray[np.uint8]) -> None:
    with (
        FilmWriter(tmp_path / "game.mp4", size=(48, 64)) as film,
        pytest.raises(FilmError, match="does not fit"),
    ):
        film.write(frame)


@pytest.mark.parametrize("fps", [0.0, -1.0])
def test_a_speed_that_cannot_be_is_refused(tmp_path: Path, fps: float) -> None:
    with pytest.raises(FilmError, match="positive"):
        FilmWriter(tmp_path / "game.mp4", fps=fps)
    with pytest.raises(ValueError, match="positive"):
        Window(fps=fps)


# ------------------------------------------------------------------------------- window


def test_without_a_display_one_line_tells_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DisplayUnavailable, match="--record") as refused:
        Window()
    assert "\n" not in str(refused.value)


def test_a_headless_opencv_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_built(*_: object) -> None:
        raise cv2.error("not implemented")

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(cv2, "namedWindow", not_built)
    with pytest.raises(DisplayUnavailable, match=re.escape(WINDOW_RECIPE)):
        Window()


class Screen:
    """Stands in for OpenCV's windows: keeps what was shown, and answers with a key."""

    def __init__(self) -> None:
        self.shown: list[NDArray[np.uint8]] = []
        self.waits: list[int] = []
        self.key = -1
        self.visible: float | None = 1.0
        self.destroyed = 0

    def property(self) -> float:
        if self.visible is None:
            raise cv2.error("NULL guiReceiver (please create a window)")
        return self.visible


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    stand_in = Screen()

    def wait(milliseconds: int) -> int:
        stand_in.waits.append(milliseconds)
        return stand_in.key

    def destroy(_: str) -> None:
        stand_in.property()
        stand_in.destroyed += 1

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(cv2, "namedWindow", lambda *_: None)
    monkeypatch.setattr(cv2, "imshow", lambda _, frame: stand_in.shown.append(frame))
    monkeypatch.setattr(cv2, "waitKey", wait)
    monkeypatch.setattr(cv2, "getWindowProperty", lambda *_: stand_in.property())
    monkeypatch.setattr(cv2, "destroyWindow", destroy)
    return stand_in


def test_a_window_shows_frames_in_true_colour_and_returns_the_key(screen: Screen) -> None:
    frame = np.zeros((4, 3, 3), np.uint8)
    frame[..., 0] = 200
    with Window() as window:
        screen.key = ord("a")
        assert window.show(frame) == ord("a")
        assert screen.shown[0][0, 0].tolist() == [0, 0, 200]
        assert all(wait >= 1 for wait in screen.waits)
    assert screen.destroyed == 1


@pytest.mark.parametrize(("key", "visible"), [(27, 1.0), (-1, 0.0), (-1, None), (27, None)])
def test_escape_or_the_close_button_ends_the_show(
    screen: Screen, key: int, visible: float | None
) -> None:
    """``None``: OpenCV's build with Qt, which forgets itself with its last window."""
    window = Window()
    screen.key, screen.visible = key, visible
    window.show(np.zeros((4, 3, 3), np.uint8))
    assert not window.open
    assert window.show(np.zeros((4, 3, 3), np.uint8)) == -1
    assert len(screen.shown) == 1
    window.close()
