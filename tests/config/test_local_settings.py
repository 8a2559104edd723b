"""Programs, folders and addresses: no file may choose them."""

from __future__ import annotations

import dataclasses
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from click.testing import CliRunner, Result
from fake_games import SMALL, FakeGames, FakeTeacher

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.cli import cli
from tempest_agent.config import (
    Config,
    ConfigError,
    apply_overrides,
    forget_local,
    from_dict,
    load_config,
    local_options,
    local_settings,
    settings,
    to_dict,
    with_local,
)
from tempest_agent.errors import UserError
from tempest_agent.runs.directory import write_config
from tempest_agent.stability.diagnosis import diagnose
from tempest_agent.sweep.plan import keep_plan, load_variants, make_plan
from tempest_agent.sweep.runs import runs_of
from tempest_agent.training.trainer import Trainer

LOCAL = tuple(local_settings())
USED = ("game.backend=mame", "actors.count=1")
NAMES = {"run.name", "teacher.name", "replay.demonstrations"}
"""Texts that are free and harmless: the beginning of a folder's name below ``runs/``, one of the
teachers, and the name of a data set in the user's own folder of them."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def one_line(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


def value_of(config: Config, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def tree_of(key: str, value: Any) -> dict[str, dict[str, Any]]:
    section, _, name = key.partition(".")
    return {section: {name: value}}


def test_every_free_text_is_known_to_be_harmless_or_local() -> None:
    free = set()
    for section in dataclasses.fields(Config):
        for entry in dataclasses.fields(type(getattr(Config(), section.name))):
            if isinstance(entry.default, str) and entry.metadata["choices"] is None:
                free.add(f"{section.name}.{entry.name}")
    assert free == NAMES | set(LOCAL)
    assert set(LOCAL) == {"game.rom_path", "game.mame_path", "actors.ray_address"}
    assert set(LOCAL) <= {key for key, _, _ in settings()}


@pytest.mark.parametrize("key", LOCAL)
@pytest.mark.parametrize("value", ["/tmp/x", ["/tmp/x"], 5, {"a": "b"}, True])
def test_a_file_that_chooses_is_refused_with_the_option(
    key: str, value: Any, tmp_path: Path
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(tree_of(key, value)))
    for refused in (
        lambda: from_dict(tree_of(key, value)),
        lambda: load_config(file),
        lambda: load_config(file, [f"{key}=mine"]),
    ):
        with pytest.raises(ConfigError) as caught:
            refused()
        assert key in str(caught.value)
        assert local_settings()[key] in str(caught.value)
        assert f"--set {key}=" in str(caught.value)


@pytest.mark.parametrize("key", LOCAL)
def test_the_command_line_chooses_and_no_file_of_ours_keeps_it(key: str, tmp_path: Path) -> None:
    chosen = load_config("smoke", [f"{key}=/tmp/secret"])
    assert value_of(chosen, key) == "/tmp/secret"
    assert "secret" not in json.dumps(to_dict(chosen))
    write_config(tmp_path, to_dict(chosen))
    text = (tmp_path / "config.yaml").read_text()
    assert "secret" not in text
    # Such a file is a configuration as before, and its reader is asked for what is his own.
    again = load_config(tmp_path / "config.yaml", [f"{key}=other"])
    assert value_of(again, key) == "other"
    assert value_of(load_config(tmp_path / "config.yaml"), key) == ""
    assert local_options(chosen) == [local_settings()[key].partition(" ")[0], "/tmp/secret"]
    assert from_dict(to_dict(chosen, local=True), local=True) == chosen


@pytest.mark.parametrize("key", LOCAL)
def test_older_files_of_ours_are_read_without_what_they_chose(key: str, tmp_path: Path) -> None:
    older = to_dict(Config()) | tree_of(key, "/tmp/x")
    assert value_of(from_dict(forget_local(older)), key) == ""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(older))
    (tmp_path / "metrics.csv").write_text("steps,updates\n100,0\n")
    assert not any("/tmp/x" in note for note in diagnose(tmp_path).notes)


@pytest.mark.parametrize("key", LOCAL)
def test_a_resumed_run_asks_for_what_it_was_given(key: str) -> None:
    given = apply_overrides(Config(), [*USED, f"{key}=/tmp/x"])
    for stored in (to_dict(given), forget_local(to_dict(given) | tree_of(key, "/tmp/x"))):
        config = from_dict(forget_local(to_dict(given)))
        with pytest.raises(ConfigError) as caught:
            with_local(config, stored, [])
        assert local_settings()[key] in str(caught.value)
        assert value_of(with_local(config, stored, [f"{key}=mine"]), key) == "mine"
    idle = from_dict(forget_local(to_dict(Config()) | tree_of(key, "/tmp/x")))
    assert value_of(with_local(idle, forget_local(tree_of(key, "/tmp/x")), []), key) == ""


@pytest.mark.parametrize("key", LOCAL)
def test_a_sweep_hands_it_to_its_runs_and_keeps_it_in_no_file(key: str, tmp_path: Path) -> None:
    base = load_config("smoke", [*USED, f"{key}=/tmp/secret"])
    plan = make_plan(base, {}, 1, 1, 10)
    keep_plan(tmp_path, plan)
    [only] = runs_of(plan, tmp_path)
    command = only.next_command()
    assert command is not None
    assert {local_settings()[key].partition(" ")[0], "/tmp/secret"} <= {*command.arguments}
    (only.folder / "checkpoints").mkdir(parents=True)
    (only.folder / "checkpoints" / "step_5.pt").touch()
    resumed = only.next_command()
    assert resumed is not None
    assert "--resume" in resumed.arguments
    assert {local_settings()[key].partition(" ")[0], "/tmp/secret"} <= {*resumed.arguments}
    for file in tmp_path.rglob("*.yaml"):
        assert "secret" not in file.read_text()
    # The same sweep, whatever this machine's paths are; also where an older file names one.
    other = make_plan(load_config("smoke", [*USED, f"{key}=elsewhere"]), {}, 1, 1, 10)
    keep_plan(tmp_path, other)
    tree = yaml.safe_load((tmp_path / "sweep.yaml").read_text())
    section, _, name = key.partition(".")
    tree["base"][section][name] = "/tmp/older"
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(tree))
    keep_plan(tmp_path, other)


@pytest.mark.parametrize("key", LOCAL)
def test_no_variant_chooses(key: str, tmp_path: Path) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text(yaml.safe_dump({"other": {key: "/tmp/x"}}))
    with pytest.raises(UserError) as caught:
        make_plan(load_config("smoke"), load_variants(str(file)), 1, 1, 10)
    assert key in str(caught.value)
    assert "--set" in str(caught.value)


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, Any]]:
    """The folder of a small run, and the content of its only checkpoint."""
    monkeypatch.chdir(tmp_path)
    config = load_config(None, [*SMALL, "run.steps=400"])
    games = FakeGames(config.run.num_envs, 0)
    trainer = Trainer(config, Path("run"), games=games, teacher=FakeTeacher())
    path = Path(trainer.run()["checkpoint"])
    (Path("run") / "run.json").write_text('{"starts": []}')
    write_config(Path("run"), to_dict(config))
    return path, torch.load(path, weights_only=True)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_resuming_somebody_elses_run_starts_none_of_its_programs(
    foreign: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, content = foreign
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    content["config"]["game"] |= {"backend": "mame", "mame_path": str(program), "rom_path": "."}
    torch.save(content, path)
    stored = read_checkpoint(path)["config"]["game"]
    assert stored["mame_path"] is None
    assert stored["rom_path"] is None
    before = files(Path("run"))
    one_line(run("train", "--resume", "run"), "--rom-path")
    one_line(run("train", "--resume", "run", "--rom-path", "."), "--mame")
    one_line(run("train", "--resume", "run", "--set", "game.rom_path=."), "--mame")
    own = ("--set", "game.mame_path=no-such-mame")
    one_line(run("train", "--resume", "run", "--rom-path", ".", *own), "other observations")
    one_line(run("train", "--resume", "run", "--backend", "mame"), "--backend cannot be changed")
    assert files(Path("run")) == before
    assert not (tmp_path / "started").exists()


def test_resuming_somebody_elses_run_connects_to_none_of_its_addresses(
    foreign: tuple[Path, dict[str, Any]],
) -> None:
    path, content = foreign
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        content["config"]["actors"] |= {"count": 1, "ray_address": address}
        torch.save(content, path)
        before = files(Path("run"))
        one_line(run("train", "--resume", "run"), "--ray-address")
        assert files(Path("run")) == before
        with pytest.raises(TimeoutError):
            server.accept()


def test_only_this_machines_settings_may_change_while_resuming(
    foreign: tuple[Path, dict[str, Any]],
) -> None:
    one_line(run("train", "--resume", "run", "--set", "learner.gamma=0.9"), "cannot be changed")
    one_line(run("train", "--resume", "run", "--rom-path", "."), "plays on the simulator")


def test_a_replay_is_looked_for_beside_its_checkpoint_only(
    foreign: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, content = foreign
    assert "folder" not in content["snapshot"]
    for name in ("../replay_400.npz", "/replay_400.npz", "replay_400.npz/x", "x.npz", 5):
        content["snapshot"]["file"] = name
        torch.save(content, path)
        with pytest.raises(UserError, match=r"snapshot\.file"):
            read_checkpoint(path)
