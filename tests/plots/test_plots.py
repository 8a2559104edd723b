"""``tempest-agent plot``: what is drawn is what was logged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.plots.training_curves import figure_of, read_curves, training_panels
from tempest_agent.runs.metrics_log import CsvLog

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
    title = "ended training games without the teacher"
    assert lines[(title, "last 50 games")] == [[2e6, 700.0], [3e6, 900.0]]
    assert lines[("Q-values", "highest")] == [[1e6, 3.0], [2e6, 4.0], [3e6, 5.0]]
    assert lines[("Q-values", "bound")] == [[1e6, 9.0]]
    assert lines[("lives lost", "grab")] == [[1e6, 1.0]]
    assert ("loss", "imitation") not in lines


def test_greedy_games_come_first(run: Path) -> None:
    evaluations = CsvLog(run / "evaluations.csv")
    evaluations.write(1_500_000, {"score_iqm": 59_960.0, "score_mean": 58_000.0})
    figure = figure_of({"run": read_curves(run)}, training_panels())
    first = figure.axes[0]
    assert "greedy" in first.get_title()
    assert [line.get_xydata().tolist() for line in first.lines] == [
        [[1.5e6, 59_960.0]],
        [[1.5e6, 58_000.0]],
    ]
    # The training log's own curves are not cut or shifted by the rows of the other file.
    assert figure.axes[1].lines[0].get_xydata().tolist() == [[2e6, 700.0], [3e6, 900.0]]


def test_every_panel_shows_something_and_names_its_axes(run: Path) -> None:
    figure = figure_of({"run": read_curves(run)}, training_panels())
    titles = [axis.get_title() for axis in figure.axes]
    assert "gradient norm before clipping" not in titles  # It was never logged.
    assert not any("greedy" in title for title in titles)  # No games were played yet.
    for axis in figure.axes:
        assert any(line.get_xdata().size for line in axis.lines)
        assert axis.get_xlabel()
        assert axis.get_ylabel()


def test_a_log_of_steps_alone_has_nothing_to_plot(run: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "metrics.csv").write_text("steps\n100\n200\n")
    picture = tmp_path / "curves.png"
    for runs in ([empty], [run, empty]):
        result = plot(*runs, "--out", picture)
        assert result.exit_code == 2, result.output
        assert "nothing to plot of empty" in result.stderr
        assert not picture.exists()
    # A line at no step, which a picture has no place for.
    (empty / "metrics.csv").write_text("steps,loss\n,0.5\n")
    assert "nothing to plot" in plot(empty, "--out", picture).stderr


@pytest.mark.parametrize(("bound", "drawn"), [(9.0, True), (33_000.0, False), (-500.0, False)])
def test_a_bound_far_away_does_not_flatten_the_values(
    tmp_path: Path, bound: float, drawn: bool
) -> None:
    log = CsvLog(tmp_path / "metrics.csv")
    for step, value in ((1, 1.0), (2, 5.0)):
        log.write(step, {"q_max": value, "q_mean": value / 2, "return_bound": bound})
    figure = figure_of({"run": read_curves(tmp_path)}, training_panels())
    axis = next(axis for axis in figure.axes if axis.get_title() == "Q-values")
    low, high = axis.get_ylim()
    assert high - low < 12.0
    label = next(line.get_label() for line in axis.lines if line.get_label().startswith("bound"))
    assert label == ("bound" if drawn else f"bound {bound:,.4g}, off the scale")


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
        ((empty, "--out", out), "no row yet"),
        ((run, run, "--out", out), "given twice"),
        ((run, "--out", tmp_path / "curves.jpeg2"), "must end in one of"),
    ):
        result = plot(*arguments)
        assert result.exit_code == 2, result.output
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert out.read_text() == "old"
