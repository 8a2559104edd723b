"""The replay in tensors, on the CPU here, against the one in arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from replay_rows import FEATURES, check_against_reference, make_rows

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.buffer import ReplayBuffer
from tempest_agent.agent.replay.device_buffer import DeviceReplay
from tempest_agent.agent.replay.device_priorities import DevicePriorities
from tempest_agent.agent.replay.make_replay import lives_on_device
from tempest_agent.agent.replay.rows import Batch, Rows
from tempest_agent.config import load_config
from tempest_agent.training.trainer import Trainer

CPU = torch.device("cpu")
GAMES = 3


def pair(**settings: Any) -> tuple[ReplayBuffer, DeviceReplay]:
    settings = {"n_steps": 4, "gamma": 0.9, "seed": 5} | settings
    return (
        ReplayBuffer(GAMES * 17, GAMES, FEATURES, **settings),
        DeviceReplay(GAMES * 17, GAMES, FEATURES, device=CPU, **settings),
    )


def as_arrays(batch: Batch) -> Batch:
    columns = batch._asdict()
    path = columns.pop("path")
    arrays: dict[str, Any] = {name: np.asarray(column) for name, column in columns.items()}
    if path is not None:
        arrays["path"] = type(path)(*(np.asarray(column) for column in path))
    return Batch(**arrays)


def assert_equal(host: Batch, device: Batch) -> None:
    device = as_arrays(device)
    bootstraps = host.discounts > 0
    for name, wanted in host._asdict().items():
        found = getattr(device, name)
        if name == "path":
            if wanted is not None:
                valid = wanted.valid > 0
                np.testing.assert_array_equal(found.valid, wanted.valid)
                for one, other in zip(found, wanted, strict=True):
                    np.testing.assert_array_equal(one[valid], other[valid])
        elif name.startswith("next"):
            np.testing.assert_array_equal(found[bootstraps], wanted[bootstraps], name)
        elif name in ("returns", "discounts", "weights"):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7, err_msg=name)
        else:
            np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("trace", ["uncorrected", "cut", "retrace"])
@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("n_steps", [1, 4])
def test_equal_draws_give_equal_batches(trace: str, prioritised: bool, n_steps: int) -> None:
    """From the first decision, around the ring three times, with games begun anew in between."""
    host, device = pair(trace=trace, prioritised=prioritised, n_steps=n_steps)
    random, history = np.random.default_rng(1), list[Rows]()
    for t in range(55):
        history.append(make_rows(t, GAMES, random))
        for buffer in (host, device):
            buffer.add(history[-1])
        if t % 20 == 19:
            final = make_rows(t, GAMES, random)
            for buffer in (host, device):
                buffer.end_games(final.final_codes, final.final_zap_legal)
            open_ended = ~history[-1].terminated & ~history[-1].truncated
            history[-1] = history[-1]._replace(
                truncated=history[-1].truncated | open_ended,
                final_codes=np.where(
                    open_ended[:, None], final.final_codes, history[-1].final_codes
                ),
                final_zap_legal=np.where(
                    open_ended, final.final_zap_legal, history[-1].final_zap_legal
                ),
            )
        if t >= 1:
            batch = device.sample(30, 0.6)
            check_against_reference(device, history, as_arrays(batch))
            assert_equal(host.sample(30, 0.6), batch)
            errors = random.exponential(size=30).astype(np.float32)
            rows, first = np.unique(np.asarray(batch.rows), return_index=True)
            host.update_priorities(rows, errors[first])
            device.update_priorities(torch.from_numpy(rows), torch.from_numpy(errors[first]))
            np.testing.assert_array_equal(
                device.ages(batch.rows), host.ages(np.asarray(batch.rows))
            )
    if prioritised:
        np.testing.assert_allclose(device.priorities.numpy(), host.priorities.numpy(), rtol=1e-12)


def test_room_for_truncated_games_is_used_again() -> None:
    _, device = pair()
    random = np.random.default_rng(0)
    for t in range(200):
        device.add(make_rows(t, GAMES, random, ends=0.5))
        assert device._places.keys() == device.final_observations.keys()
        places = list(device._places.values())
        assert len(set(places)) == len(places)
    assert len(device._final_zap) == 64


@pytest.mark.parametrize("back", [False, True])
def test_a_snapshot_goes_into_either_kind(back: bool) -> None:
    host, device = pair(prioritised=True)
    source, target = (device, host) if back else (host, device)
    random = np.random.default_rng(0)
    for t in range(30):
        source.add(make_rows(t, GAMES, random, ends=0.3))
    target.load(source.arrays(), source.state_dict())
    assert_equal(host.sample(40, 0.5), device.sample(40, 0.5))


def test_rows_without_priority_are_never_drawn() -> None:
    tree = DevicePriorities(100, CPU)
    tree.set(np.array([3, 50, 98]), np.array([1.0, 2.0, 1.0]))
    rows = tree.sample(4000, np.random.default_rng(0))
    counts = torch.bincount(rows, minlength=100)
    assert counts.nonzero().flatten().tolist() == [3, 50, 98]
    assert counts[[3, 50, 98]].tolist() == [1000, 2000, 1000]


def run_of(folder: Path, steps: int, *overrides: str) -> Trainer:
    config = load_config(None, [*SMALL, f"run.steps={steps}", *overrides])
    return Trainer(config, folder, games=FakeGames(16, 0), teacher=FakeTeacher())


@pytest.mark.parametrize("overrides", [(), ("learner.gradient_accumulation_steps=3",)])
def test_a_run_is_the_same_in_either_memory(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    weights = []
    for storage in ("host", "device"):
        trainer = run_of(tmp_path / storage, 1200, f"replay.storage={storage}", *overrides)
        trainer.run()
        assert isinstance(trainer.loop.replay, DeviceReplay) == (storage == "device")
        weights.append(trainer.loop.learner.state_dict()["online"])
    for name, one in weights[0].items():
        torch.testing.assert_close(weights[1][name], one, rtol=1e-3, atol=1e-5)


def test_which_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, layout = torch.device("cuda"), Layout(100)
    small, large = (load_config(None, [f"replay.capacity={n}"]) for n in (400_000, 40_000_000))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2_000_000_000, 0))
    assert lives_on_device(small, layout, gpu)
    assert not lives_on_device(large, layout, gpu)
    assert not lives_on_device(small, layout, CPU)
    assert lives_on_device(load_config(None, ["replay.storage=device"]), layout, CPU)
    assert not lives_on_device(load_config(None, ["replay.storage=host"]), layout, gpu)


def test_what_it_takes_is_said() -> None:
    host, device = pair()
    assert host.memory == "51 rows of 13 bytes, 0 MB of the host"
    assert device.memory.endswith("of the device cpu")
