"""Files of others: what they are is said in a line, and they take no more memory than they may."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import minari
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fake_games import SMALL, FakeGames, FakeTeacher
from places import DATA

from tempest_agent.agent.checkpoints.checkpoint_archive import ForeignFileError
from tempest_agent.agent.checkpoints.checkpoint_files import (
    DamagedCheckpointError,
    newest_checkpoint,
    read_checkpoint,
    read_replay,
    write_replay,
)
from tempest_agent.agent.checkpoints.checkpoint_schema import RUN, check_content
from tempest_agent.agent.checkpoints.policy import load_policy
from tempest_agent.agent.checkpoints.schema_checks import MisfitError
from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN
from tempest_agent.cli import cli
from tempest_agent.config import GameConfig, load_config
from tempest_agent.demonstrations.dataset import load_demonstrations
from tempest_agent.demonstrations.recorder import Recorder
from tempest_agent.envs.archives import ArchiveError, read_arrays
from tempest_agent.envs.recordings.recording import MOST_TICKS, RecordingError, load_recording
from tempest_agent.errors import UserError
from tempest_agent.evaluation.games import EvaluationGames
from tempest_agent.evaluation.players import find_player
from tempest_agent.training.trainer import Trainer

RECORDING = DATA / "recordings" / "level01_random_101.npz"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a run's checkpoint."""
    config = load_config(None, [*SMALL, "run.steps=800", "replay.prioritised=true"])
    games = FakeGames(config.run.num_envs, 0)
    folder = tmp_path_factory.mktemp("run")
    path = Trainer(config, folder, games=games, teacher=FakeTeacher()).run()["checkpoint"]
    found: dict[str, Any] = torch.load(path, weights_only=True)
    return found


def resume(path: Path) -> Trainer:
    return Trainer.resume(path, games=lambda c: FakeGames(c.run.num_envs, 7), teacher=FakeTeacher())


# What is no checkpoint.


def test_other_files_are_told_for_what_they_are(tmp_path: Path) -> None:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", b"x" * 100)
    arrays = io.BytesIO()
    np.savez(arrays, a=np.arange(3))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("letter.txt", "dear reader")
    header = b'{"weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    kinds = {
        "a text file": "Müde bin ich, geh zur Ruh\n".encode() * 400,
        "a text file ": b'{"step": 5}',
        "a model of Stable-Baselines3": zipped.getvalue(),
        "an archive of NumPy arrays": arrays.getvalue(),
        "a ZIP archive of other files": other.getvalue(),
        "a file of safetensors": struct.pack("<Q", len(header)) + header + bytes(4),
        "a picture (PNG)": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "a picture (JPEG)": b"\xff\xd8\xff\xe0" + bytes(100),
        "a pickle": b"\x80\x02}q\x00.",
        "a NumPy array": b"\x93NUMPY\x01\x00" + bytes(50),
        "full of zeros": bytes(10_000),
        "empty": b"",
        "no archive of tensors": bytes(random.Random(1).randbytes(5000)),
    }
    for kind, data in kinds.items():
        path = tmp_path / "some.pt"
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"is not a checkpoint|is damaged") as caught:
            read_checkpoint(path)
        assert kind.strip() in str(caught.value)
        assert "torch" not in str(caught.value)
        assert "weights_only" not in str(caught.value)
    with pytest.raises(UserError, match="is a folder"):
        read_checkpoint(tmp_path)
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(UserError, match="a pipe or a device"):
        read_checkpoint(tmp_path / "pipe.pt")
    with pytest.raises(UserError, match="no checkpoint"):
        read_checkpoint(tmp_path / "missing.pt")


def test_a_whole_file_of_others_is_not_taken_for_damage(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    for step, changed in ((100, content), (200, {**content, "step": "x"})):
        torch.save(changed, tmp_path / f"step_{step}.pt")
    with pytest.raises(ForeignFileError, match=r"step_200\.pt"):
        newest_checkpoint(tmp_path, clear=True)
    assert {path.name for path in tmp_path.iterdir()} == {"step_100.pt", "step_200.pt"}


# What is in a checkpoint.

SHARED: list[Any] = ["x"] * 10
for _ in range(12):
    SHARED = [SHARED] * 10

BIAS = ("learner", "average", "value_head.bias")
WRONG: dict[str, tuple[tuple[str, ...], Any]] = {
    "step nan": (("step",), float("nan")),
    "step infinite": (("step",), float("inf")),
    "step text": (("step",), "5"),
    "step tensor": (("step",), torch.tensor(5)),
    "step negative": (("step",), -1),
    "step huge": (("step",), 10**5000),
    "step true": (("step",), True),
    "config number": (("config",), 5),
    "config list": (("config",), [1]),
    "config none": (("config",), None),
    "config section": (("config", "run"), [1]),
    "config value": (("config", "run", "num_envs"), torch.zeros(2)),
    "config name": (("config", "run", "nonsense"), 5),
    "config shared": (("config", "network", "hidden"), SHARED),
    "config giant network": (("config", "network", "hidden"), [10**9, 10**9]),
    "config games": (("config", "run", "num_envs"), 10**12),
    "layout negative": (("layout", "num_features"), -6),
    "layout giant": (("layout", "num_features"), 10**7),
    "layout list": (("layout",), [1]),
    "layout name": (("layout", "other"), 5),
    "layout type": (("layout", "stored"), "object"),
    "layout lane": (("layout", "lane_position"), 6),
    "learner none": (("learner",), None),
    "weights list": (("learner", "average"), [1]),
    "weight nan": (BIAS, lambda old: old * float("nan")),
    "weight shape": (BIAS, torch.zeros(3)),
    "weight type": (BIAS, torch.Tensor.double),
    "weight complex": (BIAS, lambda old: old * 1j),
    "weight view": (BIAS, lambda old: torch.zeros(1).expand(len(old))),
    "weight sparse": (BIAS, torch.Tensor.to_sparse),
    "weight meta": (BIAS, lambda old: torch.zeros(len(old), device="meta")),
    "weight parameter": (BIAS, torch.nn.Parameter),
    "giant view": (("x",), torch.zeros(1).expand(10**12)),
    "text": (("x",), "x" * 20_000_000),
    "bytes": (("x",), bytearray(5)),
    "set": (("x",), {1}),
    "complex": (("x",), 1j),
    "key": (("x",), {(1, 2): 3}),
    "shared": (("x",), SHARED),
    "schema": (("schema",), SHARED),
    "format": (("format",), SHARED),
    "random": (("random", "numpy", "state", "pos"), 10**9),
    "python's random": (("random", "python"), (3, (1, 2), None)),
    "stream": (("replay", "random", "state", "inc"), -1),
    "owed": (("owed",), 2**31),
    "position": (("replay", "position"), 10**6),
    "games": (("collector", "episode_start"), torch.zeros(3, dtype=torch.bool)),
    "guard": (("guard", "_present"), {"nonsense": 1}),
    "optimiser": (("learner", "optimizer", "param_groups", 0, "betas"), ["x", "y"]),
    "moments": (("learner", "optimizer", "state", 0, "exp_avg"), torch.zeros(3)),
    "snapshot": (("snapshot", "file"), "../../etc/passwd"),
    "player": (("player_only",), torch.zeros(3)),
}  # fmt: skip


def changed(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    """``tree`` with another value, or one made of the old, at ``place``; the rest is shared."""
    if not place:
        return value(tree) if callable(value) else value
    tree = copy.copy(tree)
    if isinstance(tree, tuple):
        tree = list(tree)
        tree[place[0]] = changed(tree[place[0]], place[1:], value)
        return tuple(tree)
    first = place[0]
    before = tree.get(first) if isinstance(tree, dict) else tree[first]
    tree[first] = changed(before, place[1:], value)
    return tree


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_entry_is_refused(what: str, tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "step_800.pt"
    place, value = WRONG[what]
    torch.save(changed(content, place, value), path)
    with pytest.raises(UserError, match=str(path)) as caught:
        read_checkpoint(path)
    assert not isinstance(caught.value, DamagedCheckpointError)
    assert len(str(caught.value)) < 700


def test_every_reader_refuses(tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "step_800.pt"
    torch.save({**content, "owed": "x"}, path)
    for read in (load_policy, HybridDQN.load, resume):
        with pytest.raises(UserError, match=r"its entry owed is 'x', not a whole number"):
            read(path)


def test_a_run_that_cannot_fit_is_refused_before_it_is_made(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    path = tmp_path / "step_800.pt"
    torch.save(changed(content, ("config", "replay", "capacity"), 2**61), path)
    with pytest.raises(UserError, match=r"replay\.capacity=\d+: set it lower"):
        resume(path)


def test_lists_nested_without_end_are_refused(tmp_path: Path) -> None:
    """``torch.save`` itself cannot write them."""
    path = tmp_path / "deep.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
    with pytest.raises(ForeignFileError, match="nested over"):
        read_checkpoint(path)


@pytest.mark.parametrize("name", RUN)
def test_a_missing_entry_is_named(name: str, tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "step_800.pt"
    torch.save({key: value for key, value in content.items() if key != name}, path)
    with pytest.raises(UserError, match=f"no entry '{name}'"):
        resume(path)


def test_eval_and_play_and_train_say_it_in_one_line(
    tmp_path: Path, content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({**content, "step": float("nan")}, "wrong.pt")
    Path("run.json").write_text("{}")
    for arguments in (
        ("eval", "wrong.pt"), ("play", "wrong.pt"), ("train", "--resume", "wrong.pt"),
        ("train", "--config", "smoke", "--from", "wrong.pt"),
    ):  # fmt: skip
        result = CliRunner().invoke(cli, list(arguments))
        assert result.exit_code == 2, result.output
        assert result.stderr.strip().count("\n") == 0
        assert "its entry step is nan, not a whole number" in result.stderr


def places(tree: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if before:
        yield before
    items = tree.items() if isinstance(tree, dict) else enumerate(tree[:3])
    for key, value in items:
        if isinstance(value, dict | list | tuple):
            yield from places(value, (*before, key))
        else:
            yield (*before, key)


def test_whatever_an_entry_is_it_is_checked_without_another_error(content: dict[str, Any]) -> None:
    """The values are drawn; with others it is the same test."""
    values = [
        None, True, -1, 0, 7, 2**63, 10**30, -0.5, float("nan"), float("inf"), 1e300, "", "x", b"x",
        [], [1], [None], {}, {"a": 1}, {1: 2}, (), torch.zeros(0), torch.zeros(()), torch.zeros(16),
        torch.full((16,), -1), torch.zeros(16, 2, dtype=torch.uint8), torch.tensor(float("nan")),
    ]  # fmt: skip
    draw = random.Random(0)
    everything = list(places(content))
    refusals = []
    for _ in range(150):
        wrong = changed(content, draw.choice(everything), draw.choice(values))
        try:
            check_content(wrong)
        except MisfitError as error:
            refusals.append(str(error))
    assert len(refusals) > 75
    assert max(map(len, refusals)) < 500
    check_content(copy.copy(content))


# What an archive unpacks to.


def bomb(path: Path, name: str, size: int, declared: int | None = None) -> None:
    """An archive with ``size`` zeros, ``declared`` as another number of bytes."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as entry,
    ):
        for _ in range(size // 2**20):
            entry.write(bytes(2**20))
    if declared is not None:
        data = bytearray(path.read_bytes())
        for sign, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            place = data.index(sign)
            if struct.unpack_from("<I", data, place + at)[0] != 2**32 - 1:
                struct.pack_into("<I", data, place + at, declared)
        path.write_bytes(data)


def test_a_directory_that_lies_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    np.savez(path, codes=np.arange(10_000))
    assert read_arrays(path, {"codes": 80_000}, 80_000)["codes"].sum() == 49_995_000
    with pytest.raises(ArchiveError, match="needs at most 700"):
        read_arrays(path, {"codes": 700}, 700)
    assert read_arrays(path, {"other": 800}, 800) == {}
    for declared in (10, 1000, 2**31):
        bomb(path, "codes.npy", 2**20, declared)
        with pytest.raises((zipfile.BadZipFile, ValueError, EOFError)):
            read_arrays(path, {"codes": 2**40}, 2**40)
        assert read_replay(path, "stamp", {"codes": 2**40}) is None


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("|u1", (10**15,)), ("|u1", (2**40, 2**40)), ("|u1", (-1,)), ("|O", (1,)),
        ("<U0", (10**12,)), ("|V8", (1,)), ("<f8", (3,)), ("<M8[s]", (1,)), ("|S0", (10**12,)),
    ],
)  # fmt: skip
def test_an_array_is_as_large_as_it_says(
    descr: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(tmp_path / "some.npz", "w") as archive:
        archive.writestr("codes.npy", header.getvalue() + bytes(8))
    with pytest.raises(ArchiveError, match="codes"):
        read_arrays(tmp_path / "some.npz", {"codes": 10**6}, 10**6)


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    arrays = {
        "a": np.asfortranarray(np.arange(12, dtype=np.int16).reshape(3, 4)),
        "b": np.zeros((0, 5), np.float32), "c": np.array("text"), "d": np.array(True),
        "e": np.arange(3, dtype=">i4"),
    }  # fmt: skip
    largest = {name: array.nbytes for name, array in arrays.items()}
    np.savez_compressed(tmp_path / "some.npz", **arrays)  # type: ignore[arg-type]
    found = read_arrays(tmp_path / "some.npz", largest, sum(largest.values()))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable


def test_a_recording_holds_an_hour_at_most(tmp_path: Path) -> None:
    with np.load(RECORDING) as file:
        arrays = dict(file)
    load_recording(RECORDING)
    arrays["ram"] = np.zeros((MOST_TICKS + 20, 2048), np.uint8)
    np.savez_compressed(tmp_path / "long.npz", **arrays)
    with pytest.raises(RecordingError, match=r"long\.npz.*at most 204,800,000"):
        load_recording(tmp_path / "long.npz")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(RecordingError, match="no such file"):
        load_recording(tmp_path / "pipe.npz")
    result = CliRunner().invoke(cli, ["record", str(tmp_path / "x.npz"), "--ticks", "200000",
                                      "--rom-path", str(tmp_path)])  # fmt: skip
    assert result.exit_code == 2
    assert "at most 100,000" in result.stderr


def test_a_replay_of_another_shape_changes_nothing(tmp_path: Path, content: dict[str, Any]) -> None:
    """Whatever its arrays are, the run does not begin with them."""
    config = load_config(None, [*SMALL, "run.steps=400"])
    trainer = Trainer(config, tmp_path, games=FakeGames(16, 0), teacher=FakeTeacher())
    path = Path(trainer.run()["checkpoint"])
    rows = trainer.loop.replay.arrays()
    stamp = torch.load(path, weights_only=True)["snapshot"]["stamp"]
    for name in rows:
        wrongs = (rows[name][:-1], rows[name].astype(np.complex64), rows[name][..., None])
        wrong = wrongs[len(name) % 3]
        write_replay(path.with_name("replay_400.npz"), stamp, {**rows, name: wrong})
        with pytest.raises(UserError, match="replay"):
            resume(path)
    write_replay(path.with_name("replay_400.npz"), stamp, rows)
    assert resume(path).steps == 400


# Data sets.


@pytest.fixture
def data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    recorder = Recorder(find_player("random"), EvaluationGames(1, max_ticks=60), "foreign-v0")
    assert recorder.record(0, lambda _ticks: True)
    recorder.close()
    return tmp_path / "foreign-v0" / "data"


def test_a_data_set_makes_no_environment(data_set: Path, tmp_path: Path) -> None:
    """Minari makes the one that the metadata name, any program, where spaces are missing."""
    [episode] = load_demonstrations("foreign-v0", GameConfig())
    assert len(episode) > 0
    file = data_set / "metadata.json"
    metadata = json.loads(file.read_text())
    spec = json.loads(metadata["env_spec"])
    spec |= {"entry_point": "os:mkdir", "kwargs": {"path": str(tmp_path / "executed")}}
    for missing in (["observation_space"], ["action_space"], ["observation_space", "action_space"]):
        wrong = {key: value for key, value in metadata.items() if key not in missing}
        file.write_text(json.dumps({**wrong, "env_spec": json.dumps(spec)}))
        with pytest.raises(UserError, match=r"foreign-v0.* cannot be read"):
            load_demonstrations("foreign-v0", GameConfig())
    assert not (tmp_path / "executed").exists()
    assert minari.__version__
    giant = {"type": "Box", "dtype": "float32", "shape": [10**12], "low": -1.0, "high": 1.0}
    for wrong in (
        {**metadata, "observation_space": json.dumps(giant)},
        {**metadata, "action_space": json.dumps({"type": "Dict", "subspaces": {"a": giant}})},
        {**metadata, "data_format": "arrow"},
        {**metadata, "observation_space": "[" * 5000},
        {**metadata, "observation_space": "5"},
        [],
    ):
        file.write_text(json.dumps(wrong))
        with pytest.raises(UserError, match="foreign-v0"):
            load_demonstrations("foreign-v0", GameConfig())


def test_a_data_set_reads_no_other_file_and_unpacks_no_more_than_it_holds(data_set: Path) -> None:
    path = data_set / "main_data.hdf5"
    whole = path.read_bytes()

    def external(file: h5py.File) -> None:
        file["episode_0"]["rewards"] = h5py.ExternalLink("other.hdf5", "x")

    def elsewhere(file: h5py.File) -> None:
        place = [("other.bin", 0, 800)]
        file["episode_0"].create_dataset("rewards", (100,), "f8", external=place)

    def giant(file: h5py.File) -> None:
        file["episode_0"].create_dataset("rewards", (10**12,), "f8", chunks=(1000,))

    for name, spoil in {"links": external, "another file": elsewhere, "unpacks": giant}.items():
        path.write_bytes(whole)
        with h5py.File(path, "a") as file:
            del file["episode_0"]["rewards"]
            spoil(file)
        with pytest.raises(UserError, match=name):
            load_demonstrations("foreign-v0", GameConfig())
    path.write_bytes(whole)
    assert len(list(load_demonstrations("foreign-v0", GameConfig()))) == 1
    with pytest.raises(DamagedCheckpointError):
        read_checkpoint(path)
