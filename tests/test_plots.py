"""``tempest-agent plot``: what is drawn is what was logged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.metrics_log import CsvLog
from tempest_agent.plots import figure_of, read_curves, training_panels

PNG = b"\x89PNG\r\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three lines; the score is known from the second on."""
    folder = tmp_path / "run"
    folder.mkdir()
    log = CsvLog(folder / "metrics.csv")
    log.write(1_000_000, {"loss": 0.5, "q_max": 3.0, "return_bound": 9.0, "deaths_grab": 1.0})
    log.write(2_000_000, {"loss": 0.25, "q_max": 4.0, "teacher_free_score": 700.0})
    log.write(3_000_000, {"loss": 0.125, "q_max": 5.0, "teacher_free_score": 900.0})
    return folder


def plot(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["plot", *map(str, arguments)])


def test_the_lines_of_the_figure_are_the_columns_of_the_log(run: Path) -> None:
    curves = read_curves(run)
    np.testing.assert_array_equal(curves["teacher_free_score"], [np.nan, 700.0, 900.0])
    figure = figure_of({"run": curves}, training_panels())
    lines = {
        (axis.get_title(), line.get_label()): line.get_xydata().tolist()
        for axis in figure.axes
        for line in axis.lines
    }
    assert lines[("teacher-free score", "last 50 games")] == [[2.0, 700.0], [3.0, 900.0]]
    assert lines[("Q-values and their bound", "highest")] == [[1.0, 3.0], [2.0, 4.0], [3.0, 5.0]]
    assert lines[("Q-values and their bound", "bound")] == [[1.0, 9.0]]
    assert lines[("lives lost per 1,000 decisions", "grab")] == [[1.0, 1.0]]
    assert ("loss", "imitation") not in lines


def test_several_runs_make_one_picture(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "more" / "run"
    other.mkdir(parents=True)
    (other / "metrics.csv").write_bytes((run / "metrics.csv").read_bytes())
    out = tmp_path / "new" / "curves.png"
    result = plot(run, other, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out)
    assert out.read_bytes().startswith(PNG)
    assert [path.name for path in out.parent.iterdir()] == ["curves.png"]


def test_mistakes_leave_the_old_picture_and_are_named(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "curves.png"
    out.write_text("old")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "metrics.csv").write_text("steps,loss\n1,many\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "metrics.csv").write_text("")
    for arguments, words in (
        ((tmp_path / "nowhere", "--out", out), "is not a run"),
        ((damaged, "--out", out), "cannot be read"),
        ((empty, "--out", out), "no line of metrics yet"),
        ((run, run, "--out", out), "named twice"),
        ((run, "--out", tmp_path / "curves.jpeg2"), "must end in one of"),
    ):
        result = plot(*arguments)
        assert result.exit_code == 2, result.output
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert out.read_text() == "old"
