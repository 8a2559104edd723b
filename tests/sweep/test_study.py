"""The study of stability, warm starts, and that both leave other files alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from fake_games import SMALL, FakeGames, FakeTeacher

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.cli import cli
from tempest_agent.config import load_config
from tempest_agent.errors import UserError
from tempest_agent.plots.figure_files import save_figure
from tempest_agent.plots.study import study_figure
from tempest_agent.sweep.stability_study import (
    BARE,
    RESCUE,
    VARIANTS,
    Variant,
    run_study,
    settings_of,
)
from tempest_agent.training.trainer import Trainer


def test_the_study_changes_what_it_says() -> None:
    configs = {variant.name: settings_of(variant, 48_000, 3) for variant in VARIANTS}
    unstable, recovery = configs["unstable"].learner, configs["recovery"].learner
    assert (unstable.learning_rate, unstable.tau, unstable.n_steps) == (0.003, 0.012, 8)
    assert (recovery.learning_rate, recovery.tau, recovery.n_steps) == (0.001, 0.005, 5)
    assert (unstable.gradient_accumulation_steps, recovery.gradient_accumulation_steps) == (1, 4)
    for config in (configs["unstable"], configs["recovery"], configs["unstable_accumulation"]):
        # Each decision is learned from eight times.
        rows = config.learner.gradient_steps * config.learner.batch_size
        assert rows / config.run.num_envs == 8
    assert not configs["unstable"].guard.enabled
    assert configs["guarded"].guard.enabled
    assert configs["guarded"].learner == configs["unstable"].learner
    assert set(RESCUE) == {"learning_rate", "tau", "n_steps", "accumulation"}
    for change in BARE:
        section, name = change.partition("=")[0].split(".")
        assert (
            getattr(getattr(configs["bare"], section), name)
            != getattr(getattr(configs["default"], section), name)
            or name == "tau"
        )


def test_a_study_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    two = (Variant("unstable", "unstable"), Variant("recovery", "recovery", start="unstable"))
    folder, said = tmp_path / "study", list[str]()
    first = run_study(folder, 1_000, 5, said.append, two[:1])
    assert list(first["runs"]) == ["unstable"]
    before = (folder / "unstable/metrics.csv").read_bytes()
    both = run_study(folder, 1_000, 5, said.append, two)
    assert both["runs"]["unstable"] == first["runs"]["unstable"]
    assert (folder / "unstable/metrics.csv").read_bytes() == before
    assert both["runs"]["recovery"]["steps"] >= 1_000
    assert not both["stopped"]
    json.dumps(both, allow_nan=False)
    # Its checkpoints are not offered as the newest agent.
    assert not (tmp_path / "checkpoints/latest.pt").exists()
    save_figure(study_figure(folder, both["runs"]), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match="another study"):
        run_study(folder, 1_000, 6, said.append, two)
    with pytest.raises(UserError, match="not empty"):
        run_study(tmp_path, 1_000, 5, said.append, two)


def test_a_warm_start_takes_the_networks_alone(tmp_path: Path) -> None:
    config = load_config(None, [*SMALL, "run.steps=1600"])
    Trainer(config, tmp_path / "a", games=FakeGames(16, 0), teacher=FakeTeacher()).run()
    path = tmp_path / "a/checkpoints/step_1600.pt"
    other = load_config(None, [*SMALL, "run.steps=1600", "learner.learning_rate=1e-4"])
    trainer = Trainer(other, tmp_path / "b", games=FakeGames(16, 0), teacher=FakeTeacher())
    trainer.start_from(path)
    stored, learner = read_checkpoint(path)["learner"], trainer.loop.learner
    for name, network in (
        ("online", learner.online),
        ("target", learner.followers.target),
        ("average", learner.followers.average),
    ):
        for key, tensor in network.state_dict().items():
            assert torch.equal(tensor, stored[name][key])
    assert (trainer.steps, learner.updates, dict(learner.optimizer.state)) == (0, 0, {})
    wider = load_config(None, [*SMALL, "network.hidden=[32, 32]"])
    trainer = Trainer(wider, tmp_path / "c", games=FakeGames(16, 0), teacher=FakeTeacher())
    with pytest.raises(UserError, match=r"does not fit these settings.*network"):
        trainer.start_from(path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("study", "stabilty"), "did you mean 'stability'"),
        (("train", "--config", "smoke", "--from", "none.pt"), "no checkpoint none.pt"),
        (("train", "--resume", "--from", "none.pt"), "--from cannot be changed while resuming"),
    ],
)
def test_mistakes_are_named(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 2
    assert words in result.stderr
    assert not list(tmp_path.rglob("run.json"))
