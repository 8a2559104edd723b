"""``tempest-agent eval`` of several players from several levels: one table, one plot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from matplotlib.colors import to_hex

from tempest_agent.cli import cli
from tempest_agent.evaluation import games as evaluation
from tempest_agent.evaluation.comparison import compare
from tempest_agent.evaluation.outcomes import Outcomes
from tempest_agent.evaluation.players import find_player
from tempest_agent.plots import figure_files as plots
from tempest_agent.plots.comparison import comparison_figure

SHORT = ("--episodes", "2", "--max-ticks", "200")

SINGLE_KEYS = {
    *("policy", "episodes", "scores", "truncated", "score_mean", "score_iqm", "score_iqm_ci95"),
    *("score_median", "score_max", "level_mean", "level_max", "ticks_mean"),
    *("points_per_1000_ticks", "deaths_per_1000_ticks", "deaths", "seed", "level", "max_ticks"),
    *("input_delay", "bonus_life", "frame_skip", "backend", "checkpoint_sha256"),
    *("checkpoint_step", "seconds", "bands", "limit_share", "ended_share", "ticks_median"),
    *("ticks_median_ci95", "score_median_ci95"),
}


def evaluate(*arguments: str) -> Result:
    """``tempest-agent eval`` with two short games."""
    return CliRunner().invoke(cli, ["eval", *arguments, *SHORT])


def figures_of(*arguments: str) -> dict[str, Any]:
    """The JSON object that it prints."""
    result = evaluate(*arguments, "--json")
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def without_time(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "seconds"}


@pytest.fixture
def games_begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the players whose games were begun; none of them is played."""
    begun: list[str] = []

    def play(player: Any, *_: object) -> None:
        begun.append(player.name)
        raise AssertionError("a game began")

    monkeypatch.setattr(evaluation, "play_games", play)
    return begun


def stopping_after(number: int, error: BaseException) -> Callable[..., Outcomes]:
    """``play_games`` that raises ``error`` once ``number`` evaluations are complete."""
    play, calls = evaluation.play_games, iter(range(1_000))

    def stopped(*arguments: Any) -> Outcomes:
        if next(calls) == number:
            raise error
        return play(*arguments)

    return stopped


def test_each_result_is_what_the_evaluation_of_one_player_prints() -> None:
    figures = figures_of("random", "expert", "--level", "20,1", "--seed", "3")
    assert set(figures) == {"results", "comparison"}
    asked = [("random", 20), ("expert", 20), ("random", 1), ("expert", 1)]
    assert [(row["policy"], row["level"]) for row in figures["results"]] == asked
    for row in figures["results"]:
        alone = figures_of(row["policy"], "--level", str(row["level"]), "--seed", "3")
        assert set(alone) == SINGLE_KEYS
        assert without_time(row) == without_time(alone)


def test_the_comparison_is_with_the_first_player_at_the_same_level() -> None:
    scores = {("a", 1): [10, 20], ("b", 1): [20, 30], ("a", 9): [5, 5, 5], ("b", 9): [5, 5, 5]}
    rows = compare(
        [{"policy": name, "level": level, "scores": s} for (name, level), s in scores.items()]
    )
    # Pairs of level 1: 20 > 10, 20 = 20, 30 > 10, 30 > 20, which is 3.5 of 4; level 9 is all ties.
    assert [row.pop("ci95") for row in rows] == [[0.5, 1.0], [0.5, 0.5]]
    assert rows == [
        {"policy": "b", "level": 1, "probability_of_improvement": 0.875},
        {"policy": "b", "level": 9, "probability_of_improvement": 0.5},
    ]


def test_a_repeated_game_counts_once_in_the_comparison() -> None:
    first = {"policy": "a", "level": 1, "scores": [10, 30, 10], "repeated_games": [2]}
    rows = compare([first, {"policy": "b", "level": 1, "scores": [20]}])
    assert [row["probability_of_improvement"] for row in rows] == [0.5]


def test_the_comparison_printed_belongs_to_the_scores_printed() -> None:
    figures = figures_of("random", "expert", "--level", "1,20")
    assert figures["comparison"] == compare(figures["results"])
    for row, (first, other) in zip(
        figures["comparison"], (figures["results"][:2], figures["results"][2:]), strict=True
    ):
        pairs = [(x > y) + (x == y) / 2 for x in other["scores"] for y in first["scores"]]
        assert row["policy"] == "expert"
        assert row["probability_of_improvement"] == sum(pairs) / len(pairs)


def test_the_table_has_a_line_for_each_player_and_level() -> None:
    arguments = ("random", "expert", "--level", "1,20")
    results, comparison = figures_of(*arguments).values()
    title, header, *lines = evaluate(*arguments).stdout.splitlines()
    assert "2 games each, seed 0, at most 200 ticks" in title
    assert header.endswith("P(better than the first)")
    for line, result in zip(lines, results, strict=True):
        low, high = result["score_iqm_ci95"]
        words = [result["policy"], str(result["level"]), f"{result['score_iqm']:,.0f}"]
        words += [f"{low:,.0f}", "to", f"{high:,.0f}", f"{result['deaths_per_1000_ticks']:.3f}"]
        words += [f"{result['level_mean']:.1f}", str(result["truncated"])]
        assert line.split()[: len(words)] == words
    low, high = comparison[1]["ci95"]
    better = f"{comparison[1]['probability_of_improvement']:.2f} ({low:.2f} to {high:.2f})"
    assert lines[3].endswith(better)
    assert lines[0].endswith(" -")


def test_one_player_at_several_levels_has_nothing_to_be_compared_with() -> None:
    arguments = ("random", "--level", "1,20")
    figures = figures_of(*arguments)
    assert [row["level"] for row in figures["results"]] == [1, 20]
    assert figures["comparison"] == []
    assert "better than" not in evaluate(*arguments).stdout


def test_progress_and_notes_are_not_on_stdout(tmp_path: Path) -> None:
    plot = tmp_path / "new folder" / "scores.svg"
    result = evaluate("random", "expert", "--plot", str(plot), "--json")
    assert result.stdout.count("\n") == 1
    assert "player random" in result.stderr
    assert plot.read_text().startswith("<?xml")


@pytest.mark.usefixtures("games_begun")
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("random", "exprt"), ("'exprt'", "did you mean 'expert'")),
        (("random", "gone.pt"), ("gone.pt", "path")),
        (("random", "expert", "random"), ("random is given twice",)),
        (("random", "--level", "1,100"), ("100", "1<=x<=99")),
        (("random", "--level", "1,x"), ("'x'", "--level")),
        (("random", "--level", "1,,2"), ("'1,,2'", "1,17,33")),
        (("random", "--level", "4,1,4"), ("level 4", "twice")),
        (("random", "--plot", "scores.jpeg2"), ("--plot scores.jpeg2", ".png")),
        (("random", "--plot", "file/scores.png"), ("file is a file: give a folder",)),
        (("random", "--plot", "folder.png"), ("--plot folder.png", "folder")),
    ],
)
def test_mistakes_are_told_before_the_first_game(
    arguments: tuple[str, ...],
    parts: tuple[str, ...],
    games_begun: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no folder")
    Path("folder.png").mkdir()
    assert_refused(evaluate(*arguments), *parts)
    assert games_begun == []


def test_a_plot_needs_matplotlib_before_the_first_game(
    games_begun: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _name: None)
    assert_refused(evaluate("random", "--plot", str(tmp_path / "x.png")), "tempest-agent[plots]")
    assert games_begun == []


def assert_refused(result: Result, *parts: str) -> None:
    """The user's mistake: exit code 2 and one line on stderr with ``parts``."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    for part in parts:
        assert part in result.stderr


def test_an_evaluation_that_is_broken_off_leaves_its_complete_games(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are marked, counted, and compared with nothing."""
    play = evaluation.play_games

    def stopped(player: Any, games: Any, *arguments: Any) -> Outcomes:
        outcomes = play(player, games, *arguments)
        if player.name == "expert":
            raise KeyboardInterrupt
        return outcomes

    monkeypatch.setattr(evaluation, "play_games", stopped)
    result = evaluate("random", "expert", "novice", "--json")
    assert result.exit_code == 130
    assert "1 of 3 evaluations are complete" in result.stderr
    assert "2 of 2 games are complete" in result.stderr
    figures = json.loads(result.stdout)
    assert [row.get("interrupted") for row in figures["results"]] == [None, True]
    assert figures["comparison"] == []
    table = evaluate("random", "expert", "novice").stdout
    assert table.splitlines()[-1].startswith("expert (2 games)")
    alone = json.loads(evaluate("expert", "--json").stdout)
    assert (alone["interrupted"], alone["episodes"]) == (True, 2)


def test_without_a_name_the_newest_checkpoint_is_scored(games_begun: list[str]) -> None:
    latest = find_player("latest")
    assert evaluate().stderr.startswith(latest.description)
    assert games_begun == [latest.name]


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_prints_what_is_complete(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = tmp_path / "scores.png"
    plot.write_text("old")
    monkeypatch.setattr(evaluation, "play_games", stopping_after(2, KeyboardInterrupt()))
    arguments = ("random", "expert", "novice", "--plot", str(plot))
    result = evaluate(*arguments, *(["--json"] if as_json else []))
    assert result.exit_code == 130
    assert "2 of 3" in result.stderr
    assert result.stderr.splitlines()[-1] == "tempest-agent: interrupted"
    if as_json:
        figures = json.loads(result.stdout)
        assert [row["policy"] for row in figures["results"]] == ["random", "expert"]
        assert [row["policy"] for row in figures["comparison"]] == ["expert"]
    else:
        assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == ["random", "expert"]
    assert plot.read_text() == "old"


def test_ctrl_c_in_the_first_games_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "play_games", stopping_after(0, KeyboardInterrupt()))
    result = evaluate("random", "expert")
    assert result.exit_code == 130
    assert result.stdout == ""


def row(policy: str, level: int, iqm: float, low: float, high: float) -> dict[str, Any]:
    interval = [low, high]
    games = {"episodes": 5, "seed": 0, "scores": [iqm]}
    return {"policy": policy, "level": level, "score_iqm": iqm, "score_iqm_ci95": interval, **games}


def test_the_figure_of_one_level_has_a_bar_a_player() -> None:
    axes = comparison_figure([row("a", 1, 20, 10, 40), row("b", 1, 50, 45, 60)]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    for number, (mean, low, high) in enumerate(((20, 10, 40), (50, 45, 60))):
        dot, _, (bar,) = axes.containers[number]
        assert (list(dot.get_xdata()), list(dot.get_ydata())) == ([mean], [number])
        assert bar.get_segments()[0].tolist() == [[low, number], [high, number]]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # The first one is on top.


def test_the_figure_of_several_levels_has_a_curve_a_player() -> None:
    rows = [row("a", 9, 20, 10, 40), row("b", 9, 50, 45, 60), row("a", 1, 5, 5, 5)]
    axes = comparison_figure([*rows, row("b", 1, 7, 6, 9)]).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    curves = [container[0] for container in axes.containers]
    assert [list(curve.get_xdata()) for curve in curves] == [[1, 9], [1, 9]]
    assert [list(curve.get_ydata()) for curve in curves] == [[5, 20], [7, 50]]
    assert len({to_hex(curve.get_color()) for curve in curves}) == 2
    bars = axes.containers[1][2][0].get_segments()
    assert [bar.tolist() for bar in bars] == [[[1, 6], [1, 9]], [[9, 45], [9, 60]]]
