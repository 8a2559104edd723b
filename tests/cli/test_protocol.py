"""``tempest-agent eval --standard`` and ``--endurance``: the protocol, its plot and its card."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.evaluation import games as evaluation
from tempest_agent.evaluation.bands import BANDS, pooled_bands
from tempest_agent.evaluation.outcomes import Outcomes
from tempest_agent.evaluation.protocol import protocol_parts
from tempest_agent.plots.protocol import protocol_figure

QUICK = ("--episodes", "1", "--max-ticks", "60")
NAMES = [
    "standard",
    *(f"levels {first}-{last}" for first, last in BANDS),
    "endurance",
    "input delay 1",
    "input delay 2",
]


def evaluate(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["eval", *arguments])


def figures_of(*arguments: str) -> dict[str, Any]:
    """The JSON object that it prints."""
    result = evaluate(*arguments, "--json")
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def stopping_after(number: int) -> Callable[..., Outcomes]:
    """``play_games`` that is interrupted once ``number`` parts are complete."""
    play, calls = evaluation.play_games, iter(range(100))

    def stopped(*arguments: Any) -> Outcomes:
        if next(calls) == number:
            raise KeyboardInterrupt
        return play(*arguments)

    return stopped


def test_the_parts_of_the_protocol_and_their_sizes() -> None:
    parts = protocol_parts("all", seed=7)
    assert [part.name for part in parts] == NAMES
    games = {part.name: part.games for part in parts}
    assert games["standard"] == evaluation.EvaluationGames(seed=7)
    for first, last in BANDS:
        late = games[f"levels {first}-{last}"]
        assert (late.level, late.to_level) == (first, last)
        assert 1_000_000 <= late.most_ticks < 1_010_000
    assert games["endurance"].bonus_life == "none"
    assert games["endurance"].max_ticks == 300_000
    assert [games[f"input delay {delay}"].input_delay for delay in (1, 2)] == [1, 2]
    tenth = protocol_parts("all", seed=7, episodes=10, max_ticks=10_000)
    assert [part.games.episodes for part in tenth] == [10, *[17] * 6, 2, 10, 10]
    assert {part.games.max_ticks for part in tenth} == {6_000, 10_000}


def test_the_protocol_as_json() -> None:
    figures = figures_of("random", "--standard", "all", *QUICK, "--seed", "5")
    parts = figures["parts"]
    assert [part["part"] for part in parts] == NAMES
    assert (figures["policy"], figures["standard"], figures["seed"]) == ("random", "all", 5)
    assert figures["bands"] == pooled_bands(parts[1:7])
    assert sum(band["ticks"] for band in figures["bands"]) == sum(
        part["ticks_mean"] * part["episodes"] for part in parts[1:7]
    )
    assert figures["limit_share"] is None  # Games of 60 ticks.
    assert figures["checkpoint_sha256"] is None
    assert "interrupted" not in figures
    delayed = figures_of("random", *QUICK, "--seed", "5", "--input-delay", "2")
    assert {name: parts[-1][name] for name in delayed if name != "seconds"} == {
        name: value for name, value in delayed.items() if name != "seconds"
    }


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("standard", NAMES[:1]),
        ("bands", NAMES[1:7]),
        ("endurance", NAMES[7:8]),
        ("delays", NAMES[8:]),
    ],
)
def test_one_part_alone(asked: str, names: list[str], tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    figures = figures_of("random", "--standard", asked, *QUICK, "--plot", str(plot))
    assert [part["part"] for part in figures["parts"]] == names
    assert (figures["bands"] is None) == (asked != "bands")
    assert plot.read_text().startswith("<?xml")


def test_several_players_are_in_one_table_and_one_figure() -> None:
    arguments = ("random", "expert", "--standard", "bands", *QUICK)
    figures = figures_of(*arguments)
    assert list(figures) == ["results"]
    lines = evaluate(*arguments).stdout.splitlines()[2:]
    rows = [(line.split()[0], f"levels {line.split()[2]}") for line in lines]
    assert rows == [(player, name) for name in NAMES[1:7] for player in ("random", "expert")]
    (axes,) = protocol_figure(figures["results"]).axes
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == [
        part["deaths_per_1000_ticks"] for each in figures["results"] for part in each["parts"]
    ]


def test_endurance_is_played_without_bonus_lives_to_the_end() -> None:
    figures = figures_of("novice", "--endurance", "--episodes", "4")
    assert (figures["bonus_life"], figures["max_ticks"]) == ("none", 300_000)
    assert figures["ended_share"] == 1.0
    assert sum(figures["deaths"].values()) == 4 * 3
    low, high = figures["ticks_median_ci95"]
    assert low <= figures["ticks_median"] <= high
    cut = figures_of("novice", "--endurance", "--episodes", "4", "--max-ticks", "300")
    assert (cut["ticks_mean"], cut["ended_share"]) == (300.0, 0.0)
    assert figures_of("novice", "--endurance", "--bonus-life", "none", *QUICK)["truncated"] == 1


def test_the_table_of_one_evaluation_shows_bands_and_share() -> None:
    lines = evaluate("random", "--level", "16", "--episodes", "2").stdout
    assert "  in levels 1-16" in lines
    assert "of the estimated limit" not in lines
    assert " % of the estimated limit" in evaluate("random", "--episodes", "1").stdout


def test_the_card_of_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = tmp_path / "new folder" / "card.md"
    arguments = ["champion", "--standard", "all", *QUICK, "--card", str(card)]
    monkeypatch.setattr(sys, "argv", ["tempest-agent", "eval", *arguments])
    result = evaluate(*arguments)
    assert result.exit_code == 0, result.output
    text = card.read_text()
    shipped = resources.files("tempest_agent.checkpoints") / "champion.pt"
    assert text.startswith("# champion\n")
    assert hashlib.sha256(shipped.read_bytes()).hexdigest() in text
    assert "`network.encoder=lanes`" in text
    assert shlex.join(["tempest-agent", "eval", *arguments]) in text
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    assert rows[2:] == NAMES
    assert [path.name for path in card.parent.iterdir()] == ["card.md"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("random", "--standard", "al"), ("'al'", "endurance")),
        (("random", "--standard", "all", "--level", "3"), ("leave --level out",)),
        (("random", "--standard", "bands", "--input-delay", "0"), ("leave --input-delay out",)),
        (("random", "--standard", "all", "--bonus-life", "none"), ("leave --bonus-life out",)),
        (("random", "--standard", "all", "--endurance"), ("leave --endurance out",)),
        (("random", "--endurance", "--bonus-life", "20000"), ("leave --bonus-life 20000 out",)),
        (("champion", "--card", "x.md"), ("add --standard all",)),
        (("champion", "--standard", "bands", "--card", "x.md"), ("add --standard all",)),
        (("random", "--standard", "all", "--card", "x.md"), ("random is a scripted player",)),
        (("champion", "random", "--standard", "all", "--card", "x.md"), ("one by one",)),
        (("champion", "--standard", "all", "--card", "x.txt"), ("x.txt", "end in .md")),
        (("champion", "--standard", "all", "--card", "folder.md"), ("folder.md is a folder",)),
        (("champion", "--standard", "all", "--card", ""), ("--card", "no path")),
    ],
)
def test_mistakes_are_told_before_the_first_game(
    arguments: tuple[str, ...],
    parts: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluation, "play_games", stopping_after(0))
    Path("folder.md").mkdir()
    result = evaluate(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert all(part in result.stderr for part in parts), result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["folder.md"]


def test_ctrl_c_prints_the_parts_that_are_complete_and_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = tmp_path / "card.md"
    card.write_text("old")
    monkeypatch.setattr(evaluation, "play_games", stopping_after(2))
    files = ("--card", str(card), "--plot", str(tmp_path / "plot.png"))
    result = evaluate("champion", "--standard", "all", *QUICK, *files, "--json")
    assert result.exit_code == 130
    assert "2 of 10 evaluations are complete" in result.stderr
    figures = json.loads(result.stdout)
    assert [part["part"] for part in figures["parts"]] == NAMES[:2]
    assert figures["interrupted"] is True
    assert card.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["card.md"]


def test_a_part_that_is_broken_off_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    play = evaluation.play_games

    def stopped(player: Any, games: Any, *arguments: Any) -> Outcomes:
        outcomes = play(player, games, *arguments)
        if games.level == 17:
            raise KeyboardInterrupt
        return outcomes

    monkeypatch.setattr(evaluation, "play_games", stopped)
    arguments = ("random", "--standard", "all", *QUICK)
    figures = json.loads(evaluate(*arguments, "--json").stdout)
    assert figures["interrupted"] is True
    assert [part.get("interrupted") for part in figures["parts"]] == [None, None, True]
    assert "levels 17-32 (interrupted)" in evaluate(*arguments).stdout
