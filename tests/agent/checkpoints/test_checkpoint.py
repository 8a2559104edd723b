"""Checkpoints: exact continuation, atomic writing, refusal of everything that is not one."""

from __future__ import annotations

import os
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from same_state import assert_same

from tempest_agent.agent.checkpoints.checkpoint_files import (
    DamagedCheckpointError,
    newest_checkpoint,
    pack,
    prune,
    read_checkpoint,
    read_replay,
    write_checkpoint,
    write_replay,
)
from tempest_agent.agent.checkpoints.policy import export_policy, load_policy
from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.loop.state import state_dict
from tempest_agent.config import Config, load_config, to_dict
from tempest_agent.errors import UserError
from tempest_agent.training.trainer import Trainer

pytestmark = pytest.mark.xdist_group("compiler")


def small(*overrides: str) -> Config:
    return load_config(None, [*SMALL, *overrides])


def fresh(config: Config, folder: Path, **more: Any) -> Trainer:
    games = FakeGames(config.run.num_envs, 0)
    return Trainer(config, folder, games=games, teacher=FakeTeacher(), **more)


def resumed(path: Path, **more: Any) -> Trainer:
    return Trainer.resume(
        path, games=lambda c: FakeGames(c.run.num_envs, 7), teacher=FakeTeacher(), **more
    )


VARIANTS = [
    (),
    ("replay.prioritised=true",),
    ("learner.precision=float16", "learner.gradient_accumulation_steps=2"),
    ("learner.precision=bfloat16", "learner.trace=cut", "learner.n_steps=3", "learner.gamma=0.9"),
    ("learner.loss=iqn", "learner.learning_rate_schedule=cosine"),
    (
        "learner.loss=c51",
        "replay.prioritised=true",
    ),
    ("learner.trace=retrace", "learner.n_steps=3", "learner.gamma=0.9"),
    ("learner.train_freq=3", "learner.gradient_steps=2", "learner.n_steps=4", "learner.gamma=0.9"),
    ("run.compress_replay=false",),
    ("replay.storage=device", "replay.prioritised=true"),
]


@pytest.mark.parametrize("overrides", VARIANTS)
def test_half_a_run_twice_is_the_whole_run(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    config = small("run.steps=800", *overrides)
    lines: dict[str, list[dict[str, float]]] = {"whole": [], "parts": []}
    whole = fresh(config, tmp_path / "whole", on_metrics=lines["whole"].append)
    whole.run()

    def until_half(trainer: Trainer) -> Any:
        def on_metrics(line: dict[str, float]) -> None:
            lines["parts"].append(line)
            if line["steps"] == 400:
                trainer.request_stop()

        return on_metrics

    first = fresh(config, tmp_path / "parts")
    first.loop.on_metrics = until_half(first)
    assert first.run()["steps"] == 400
    second = resumed(tmp_path / "parts", on_metrics=lines["parts"].append)
    assert second.steps == 400
    second.run()
    assert_same(state_dict(whole.loop), state_dict(second.loop))
    assert_same(whole.loop.replay.arrays(), second.loop.replay.arrays())
    for a, b in zip(lines["whole"], lines["parts"], strict=True):
        for name in ("steps", "epsilon", "expert_ratio", "learning_rate", "importance", "updates"):
            assert a[name] == b[name]
    games = FakeGames(100, seed=3)
    one, two = (load_policy(t.last_checkpoint or "") for t in (whole, second))
    for a, b in zip(
        one.act(games.observe(), games.zap_legal()),
        two.act(games.observe(), games.zap_legal()),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_resuming_from_the_middle_of_a_run_is_exact_too(tmp_path: Path) -> None:
    config = small("run.steps=1200", "run.keep_checkpoints=9", "run.checkpoint_interval=400")
    saved: list[tuple[Path, bytes]] = []

    def keep_replay(path: Path) -> None:
        snapshot = path.with_name(path.name.replace("step_", "replay_")).with_suffix(".npz")
        saved.append((snapshot, snapshot.read_bytes()))

    whole = fresh(config, tmp_path, on_checkpoint=keep_replay)
    whole.run()
    assert [p.name for p, _ in saved] == [f"replay_{n}.npz" for n in (400, 800, 1200)]
    saved[1][0].write_bytes(saved[1][1])
    state = state_dict(whole.loop)
    again = resumed(tmp_path / "checkpoints" / "step_800.pt")
    again.run()
    assert_same(state, state_dict(again.loop))


def test_schedules_of_a_longer_resumed_run_are_the_stored_ones(tmp_path: Path) -> None:
    fresh(small("run.steps=400"), tmp_path).run()
    longer = resumed(tmp_path, steps=800)
    assert longer.loop.curriculum.schedules.learning_rate.last == 400
    assert longer.run()["steps"] == 800


def test_without_its_replay_a_run_refills_before_it_learns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = fresh(small("run.steps=480"), tmp_path).run()
    for file in (tmp_path / "checkpoints").glob("replay_*"):
        file.unlink()
    trainer = resumed(tmp_path, steps=480 + 960)
    assert "filling it with 320 new decisions before the next update" in caplog.text
    weights = trainer.loop.learner.state_dict()["online"]
    before = {name: tensor.clone() for name, tensor in weights.items()}
    trainer.config = small(f"run.steps={480 + 304}")
    trainer.run()
    assert trainer.loop.learner.updates == result["updates"]
    assert_same(before, trainer.loop.learner.state_dict()["online"])
    trainer.config = small(f"run.steps={480 + 960}")
    trainer.run()
    assert trainer.loop.learner.updates > result["updates"]


def test_every_file_we_write_is_plain(tmp_path: Path) -> None:
    config = small("run.steps=400")
    trainer = fresh(config, tmp_path)
    trainer.loop.teacher_score = np.float64(3.0)
    trainer.run()
    files = list((tmp_path / "checkpoints").glob("*.pt"))
    assert {f.name for f in files} == {"step_400.pt", "best.pt", "good.pt"}
    for file in files:
        torch.load(file, weights_only=True)
    for file in (tmp_path / "checkpoints").glob("*.npz"):
        assert all(array.dtype != object for array in np.load(file, allow_pickle=False).values())


def test_objects_are_refused_when_written() -> None:
    with pytest.raises(TypeError, match=r"(Posix|Windows)Path"):
        pack({"where": [Path("x")]})


class Payload:
    def __reduce__(self) -> Any:
        return os.mkdir, ("executed",)


def test_a_crafted_file_is_refused_and_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"format": "tempest-agent checkpoint", "x": Payload()}, tmp_path / "evil.pt")
    (tmp_path / "raw.pt").write_bytes(pickle.dumps(Payload(), protocol=2))
    for name in ("evil.pt", "raw.pt"):
        with pytest.raises(UserError, match=name) as caught:
            load_policy(tmp_path / name)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "executed").exists()


def test_what_is_not_a_checkpoint_is_named_in_one_line(tmp_path: Path) -> None:
    result = fresh(small("run.steps=400"), tmp_path / "run").run()
    good = Path(result["checkpoint"]).read_bytes()
    content = torch.load(result["checkpoint"], weights_only=True)
    files: dict[str, tuple[bytes | None, str]] = {
        "missing.pt": (None, "no checkpoint"),
        "empty.pt": (b"", "damaged or not a checkpoint"),
        "text.pt": (b"hello, this is text", "not"),
        "half.pt": (good[: len(good) // 2], "damaged"),
    }
    for name, (data, words) in files.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=words) as caught:
            load_policy(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    torch.save({"weights": torch.zeros(3)}, tmp_path / "foreign.pt")
    with pytest.raises(UserError, match="not a checkpoint of tempest-agent"):
        load_policy(tmp_path / "foreign.pt")
    torch.save({**content, "schema": 99}, tmp_path / "newer.pt")
    with pytest.raises(UserError, match="checkpoint version 99"):
        load_policy(tmp_path / "newer.pt")
    del content["learner"]["average"]["value_head.bias"]
    torch.save(content, tmp_path / "lacking.pt")
    with pytest.raises(UserError, match="does not fit"):
        load_policy(tmp_path / "lacking.pt")
    with pytest.raises(UserError, match="folder"):
        load_policy(tmp_path)


def test_a_damaged_newest_checkpoint_does_not_end_a_run(tmp_path: Path) -> None:
    fresh(small("run.steps=400"), tmp_path).run()
    (tmp_path / "checkpoints" / "step_9999.pt").write_bytes(b"half a file")
    assert newest_checkpoint(tmp_path / "checkpoints").name == "step_400.pt"
    assert resumed(tmp_path).steps == 400


def flip(path: Path, at: int, count: int = 40) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + count] = bytes(255 - byte for byte in data[at : at + count])
    path.write_bytes(bytes(data))


def test_wrong_numbers_inside_a_tensor_are_noticed(tmp_path: Path) -> None:
    path = Path(fresh(small("run.steps=400"), tmp_path).run()["checkpoint"])
    weights = torch.load(path, weights_only=True)["learner"]["average"]
    tensor = max(weights.values(), key=lambda each: each.numel())
    place = path.read_bytes().index(tensor.numpy().tobytes())
    flip(path, place + 100)
    torch.load(path, weights_only=True)  # Does not look at the checksums.
    with pytest.raises(DamagedCheckpointError, match=r"step_400\.pt is damaged .*wrong checksum"):
        load_policy(path)


def test_a_damaged_byte_anywhere_is_refused_or_without_effect(tmp_path: Path) -> None:
    path = tmp_path / "step_1.pt"
    write_checkpoint(path, {"numbers": torch.arange(50), "text": "abc", "nested": {"x": [1, 2]}})
    write_replay(tmp_path / "replay_1.npz", "stamp", {"rows": np.arange(50)})
    whole, snapshot = path.read_bytes(), (tmp_path / "replay_1.npz").read_bytes()
    content = read_checkpoint(path)
    refused = 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole)
        flip(path, place, 3)
        try:
            assert_same(read_checkpoint(path), content)
        except DamagedCheckpointError:
            refused += 1
    assert refused > 50
    for place in range(0, snapshot.index(b"PK\x01\x02"), 3):  # Up to its table of contents.
        (tmp_path / "replay_1.npz").write_bytes(snapshot)
        flip(tmp_path / "replay_1.npz", place, 3)
        arrays = read_replay(tmp_path / "replay_1.npz", "stamp", {"rows": 400})
        assert arrays is None or np.array_equal(arrays["rows"], np.arange(50))


def test_damaged_checkpoints_are_named_and_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (1, 2, 3):
        write_checkpoint(tmp_path / f"step_{step}.pt", {"numbers": torch.arange(500)})
    whole = (tmp_path / "step_3.pt").read_bytes()
    (tmp_path / "step_3.pt").write_bytes(whole[: len(whole) // 2])
    flip(tmp_path / "step_2.pt", len(whole) // 2)
    (tmp_path / "step_2.pt.bad").touch()
    assert newest_checkpoint(tmp_path).name == "step_1.pt"
    assert "step_3.pt is damaged: passed over" in caplog.text
    assert newest_checkpoint(tmp_path, clear=True).name == "step_1.pt"
    assert "step_3.pt is damaged: set aside as step_3.pt.bad" in caplog.text
    assert "step_2.pt is damaged: set aside as step_2.pt.bad2" in caplog.text
    assert (tmp_path / "step_3.pt.bad").read_bytes() == whole[: len(whole) // 2]


def test_a_newer_versions_checkpoint_is_not_passed_over(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "step_1.pt", {})
    content = torch.load(tmp_path / "step_1.pt", weights_only=True)
    torch.save({**content, "schema": 99}, tmp_path / "step_2.pt")
    with pytest.raises(UserError, match="update tempest-agent"):
        newest_checkpoint(tmp_path, clear=True)
    assert (tmp_path / "step_2.pt").exists()


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "step_1.pt"
    write_checkpoint(path, {"step": 1})

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        write_checkpoint(path, {"step": 2})
    assert read_checkpoint(path)["step"] == 1
    assert [f.name for f in tmp_path.iterdir()] == ["step_1.pt"]


def test_old_checkpoints_are_thinned_out(tmp_path: Path) -> None:
    for step in (5, 100, 20, 3000):
        (tmp_path / f"step_{step}.pt").touch()
        (tmp_path / f"replay_{step}.npz").touch()
    (tmp_path / "best.pt").touch()
    prune(tmp_path, 2, tmp_path / "step_3000.pt")
    left = {f.name for f in tmp_path.iterdir()}
    assert left == {"step_100.pt", "step_3000.pt", "replay_3000.npz", "best.pt"}


def test_what_was_written_last_is_never_thinned_out(tmp_path: Path) -> None:
    for step in (100, 200, 150):
        for name in (f"step_{step}.pt", f"replay_{step}.npz"):
            (tmp_path / name).touch()
    prune(tmp_path, 1, tmp_path / "step_150.pt")
    left = {f.name for f in tmp_path.iterdir()}
    assert left == {"step_150.pt", "replay_150.npz", "step_200.pt", "replay_200.npz"}


def test_an_exported_player_plays_the_same_and_is_not_resumed(tmp_path: Path) -> None:
    result = fresh(small("run.steps=400"), tmp_path).run()
    player = tmp_path / "player.pt"
    export_policy(result["checkpoint"], player)
    assert player.stat().st_size < 0.5 * Path(result["checkpoint"]).stat().st_size
    games = FakeGames(100, seed=3)
    whole, alone = load_policy(result["checkpoint"]), load_policy(player)
    for a, b in zip(
        whole.act(games.observe(), games.zap_legal()),
        alone.act(games.observe(), games.zap_legal()),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(UserError, match="holds only a player"):
        resumed(player)


def test_an_exported_player_of_the_shipped_size_is_small(tmp_path: Path) -> None:
    config = Config()
    torch.manual_seed(0)
    learner = Learner(TEMPEST_LAYOUT, config, torch.device("cpu"))
    codes = np.random.default_rng(0).integers(-127, 128, (64, TEMPEST_LAYOUT.num_features))
    legal = np.arange(64) % 2 == 0
    checkpoint, player = tmp_path / "step_5.pt", tmp_path / "player.pt"
    content = {"config": to_dict(config), "layout": asdict(TEMPEST_LAYOUT), "step": 5}
    write_checkpoint(checkpoint, {**content, "learner": learner.state_dict()})
    export_policy(checkpoint, player)
    assert player.stat().st_size < 10_000_000
    whole, alone = load_policy(checkpoint), load_policy(player)
    assert alone.step == 5
    for a, b in zip(
        whole.act(codes.astype(np.int8), legal),
        alone.act(codes.astype(np.int8), legal),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_a_run_of_a_gpu_goes_on_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = Path(fresh(small("run.steps=400"), tmp_path).run()["checkpoint"])
    content = torch.load(path, weights_only=True)
    content["config"]["run"]["device"] = "cuda"
    torch.save(content, path)
    trainer = resumed(path, steps=800)
    assert trainer.loop.device.type == "cpu"
    assert "no GPU" not in caplog.text
    assert "going on on the CPU" in caplog.text
    assert trainer.run()["steps"] == 800
    assert resumed(path, device="cpu").config.run.device == "cpu"
    with pytest.raises(UserError, match="'cuda' is not available"):
        resumed(path, device="cuda")


def test_a_run_of_before_there_was_a_choice_goes_on_with_the_plain_observation(
    tmp_path: Path,
) -> None:
    path = Path(fresh(small("run.steps=400"), tmp_path).run()["checkpoint"])
    content = torch.load(path, weights_only=True)
    del content["config"]["game"]["observation"], content["layout"]["forecast_features"]
    torch.save(content, path)
    assert resumed(path, steps=800).config.game.observation == "features_plain"


def test_a_replay_of_another_checkpoint_is_not_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "replay.npz", stamp=np.array("one"), codes=np.zeros(3))
    assert read_replay(tmp_path / "replay.npz", "two", {"codes": 24}) is None
    assert read_replay(tmp_path / "replay.npz", "one", {"codes": 24}) is not None
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 nonsense")
    assert read_replay(tmp_path / "bad.npz", "one", {"codes": 24}) is None


def test_a_compressed_replay_is_the_same_replay_in_less_space(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    codes = random.integers(-127, 128, (300, 4, 50)) * (random.random((300, 4, 50)) < 0.1)
    arrays = {"codes": codes.astype(np.int8), "reward": random.normal(size=300)}
    largest = {name: array.nbytes for name, array in arrays.items()}
    plain, small = tmp_path / "plain.npz", tmp_path / "small.npz"
    write_replay(plain, "stamp", arrays)
    write_replay(small, "stamp", arrays, compressed=True)
    for path in (plain, small):
        found = read_replay(path, "stamp", largest)
        assert found is not None
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
        assert read_replay(path, "another checkpoint's", largest) is None
    assert small.stat().st_size < 0.5 * plain.stat().st_size
    damaged = bytearray(small.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    small.write_bytes(damaged)
    assert read_replay(small, "stamp", largest) is None


def test_replays_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They were written by ``numpy.savez``."""
    path = tmp_path / "replay.npz"
    np.savez(path, stamp=np.array("stamp"), codes=np.arange(5))
    found = read_replay(path, "stamp", {"codes": 40})
    assert found is not None
    np.testing.assert_array_equal(found["codes"], np.arange(5))
