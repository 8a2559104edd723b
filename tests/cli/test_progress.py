"""Progress lines: rate and time left, and none of it for the time before the first step."""

from __future__ import annotations

import io

import pytest

from tempest_agent.console import progress as progress_module
from tempest_agent.console.progress import Progress, duration, speed


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


def test_lines_state_rate_and_time_left(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress(1_000, "ticks", "eval", stream=stream) as progress:
        clock.now = 100.0  # Compiling.
        progress.update(0)
        assert stream.getvalue() == "eval: 0/1,000 ticks (0 %), starting\n"
        for second in range(1, 31):
            clock.now = 100.0 + second
            progress.update(10 * second)
    lines = stream.getvalue().splitlines()
    assert lines[1:] == [
        "eval: 100/1,000 ticks (10 %), 10/s, 1 min 30 s left",
        "eval: 200/1,000 ticks (20 %), 10/s, 1 min 20 s left",
        "eval: 300/1,000 ticks (30 %), 10/s, 1 min 10 s left",
    ]


def test_the_rate_is_the_present_one(clock: Clock) -> None:
    stream = io.StringIO()
    done = 0
    with Progress(10_000, "decisions", "train", stream=stream) as progress:
        for second in range(1, 101):
            clock.now = float(second)
            done += 100 if second <= 50 else 10
            progress.update(done)
    lines = stream.getvalue().splitlines()
    assert ", 100/s, " in lines[3]
    assert lines[-1] == "train: 5,500/10,000 decisions (55 %), 10/s, 7 min 30 s left"


def test_a_long_wait_is_called_one(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress(1_000, "decisions", "train", stream=stream) as progress:
        for second in range(1, 60):
            clock.now = float(second)
            progress.update(min(10 * second, 100))
    assert stream.getvalue().splitlines()[-1] == "train: 100/1,000 decisions (10 %), waiting"


def test_what_a_resumed_run_had_done_is_not_speed(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress(1_000, "decisions", "train", start=500, stream=stream) as progress:
        for second in range(1, 12):
            clock.now = float(second)
            progress.update(500 + 10 * second)
    assert stream.getvalue() == "train: 600/1,000 decisions (60 %), 10/s, 40 s left\n"


def test_messages_are_lines_of_their_own(clock: Clock) -> None:
    stream, other = io.StringIO(), io.StringIO()
    with Progress(10, "ticks", "play", stream=stream) as progress:
        progress.message("hello")
        progress.message("result", other)
    assert stream.getvalue() == "hello\n"
    assert other.getvalue() == "result\n"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    stream = Terminal()
    with Progress(10, "ticks", "play", stream=stream) as progress:
        for done in range(11):
            progress.update(done)
    assert "play" in stream.getvalue()
    assert "\r" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h 0 min"),
        (90_000, "25 h 0 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("window", "end"), [(30.0, "waiting"), (100.0, "1.6/s, 9 min 40 s left")])
def test_a_longer_window_looks_farther_back(clock: Clock, window: float, end: str) -> None:
    stream = io.StringIO()
    with Progress(1_000, "ticks", "eval", stream=stream, window=window) as progress:
        for second, done in ((0, 0), (2, 10), (20, 100), (40, 100), (60, 100)):
            clock.now = second
            progress.update(done)
    # 90 ticks in 58 seconds, but none since the 20th.
    assert stream.getvalue().splitlines()[-1] == f"eval: 100/1,000 ticks (10 %), {end}"


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0"),
        (0.00123, "0.0012"),
        (0.5, "0.50"),
        (0.996, "1.0"),
        (2, "2.0"),
        (9.94, "9.9"),
        (9.96, "10"),
        (1234.5, "1,234"),
    ],
)
def test_slow_rates_keep_their_digits(rate: float, text: str) -> None:
    assert speed(rate) == text


def test_more_than_all_counts_as_all(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress(1_000, "decisions", "sweep", stream=stream) as progress:
        for second, done in ((1, 8), (11, 1_008), (21, 1_008)):
            clock.now = second
            progress.update(done)
    assert stream.getvalue().splitlines() == [
        "sweep: 1,000/1,000 decisions (100 %), 99/s, 0 s left",
        "sweep: 1,000/1,000 decisions (100 %), 50/s, 0 s left",
    ]


def test_what_is_done_again_is_measured_anew(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress(1_000, "decisions", "sweep", start=100, stream=stream) as progress:
        for second, done in ((1, 500), (11, 600), (21, 50), (31, 50), (32, 60), (42, 80)):
            clock.now = second
            progress.update(done)
    assert stream.getvalue().splitlines() == [
        "sweep: 600/1,000 decisions (60 %), 10/s, 40 s left",
        "sweep: 50/1,000 decisions (5 %), starting",
        "sweep: 50/1,000 decisions (5 %), starting",
        "sweep: 80/1,000 decisions (8 %), 2.0/s, 7 min 40 s left",
    ]


def test_no_bar_goes_below_nothing() -> None:
    stream = Terminal()
    with Progress(1_000, "decisions", "sweep", start=2_000, stream=stream) as progress:
        for done in (900, 1_008, 100, 150, 1_200):
            progress.update(done)
            assert progress._bar is not None
            progress._bar.refresh()
    text = stream.getvalue()
    assert "-" not in text.replace("sweep:", "")
    assert "1.20k" not in text
    assert "2.00k" not in text
