"""Values of options that are wrong, empty, huge or written in another way."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.commands.options.types import COUNT, SEED


def assert_refused(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    for part in parts:
        assert part in result.stderr


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.parametrize(
    ("text", "number"), [("3000", 3_000), ("3_000", 3_000), ("3e6", 3_000_000), ("1.5E3", 1_500)]
)
def test_numbers_as_people_write_them(text: str, number: int) -> None:
    assert COUNT.convert(text, None, None) == number


@pytest.mark.parametrize(
    "text", ["1_", "_1", "1__0", "1.5", "1e-3", "2.5e0", "1e300", "nan", "inf", "", "abc", "1,000"]
)
def test_what_is_no_whole_number_is_said_so(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a valid integer"):
        COUNT.convert(text, None, None)


def test_a_seed_of_63_bits_stays_exact() -> None:
    assert SEED.convert(str(2**63 - 1), None, None) == 2**63 - 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--run-dir", ""),
        ("train", "--from", ""),
        ("train", "--resume", ""),
        ("eval", "random", "--plot", ""),
        ("play", "random", "--record", ""),
        ("sweep", "smoke", "--out", ""),
        ("study", "stability", "--out", ""),
        ("plot", ""),
        ("diagnose", ""),
        ("verify", ""),
        ("record", ""),
    ],
)
def test_an_empty_path_is_not_the_current_folder(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(run(*arguments), "'' is no path")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("eval", "random", "--random-bytes", "simulator"), "add --backend mame"),
        (("train", "--resume", "--random-bytes", "machine"), "--random-bytes cannot be changed"),
        (("train", "--resume", "--any-roms"), "--any-roms cannot be changed"),
        (("train", "--eval-games", "9" * 20), "0<=x<=100000"),
        (("sweep", "smoke", "--seeds", "9" * 11), "1<=x<=10000"),
        (("study", "stability", "--steps", "9" * 17, "--out", "new"), "of memory"),
        (("study", "stability", "--out", "file"), "file is a file"),
        (("sweep", "smoke", "--out", "file"), "file is a file"),
        (("train", "--config", "smoke", "--set", "run.name=../x"), "'../x'"),
        (("train", "--config", "smoke", "--set", "run.name=a/b"), "'a/b'"),
        (("train", "--config", "smoke", "--set", "run.name=''"), "''"),
        (("train", "--config", "smoke", "--set", f"run.name={'x' * 300}"), "up to 100"),
    ],
)
def test_nothing_is_begun_with_a_value_that_cannot_be_used(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert_refused(run(*arguments), words)
    assert not Path("runs").exists()
    assert not Path("new").exists()
