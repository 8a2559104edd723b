"""The bridge, the games and the recorder on a real MAME that runs the test program."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from click.testing import CliRunner
from mame_rom.machine import machine, needs_mame, rom_set
from mame_rom.program import (
    DEAD_TICKS,
    DELAY_AFTER,
    DELAY_BEFORE,
    DELAY_CYCLES,
    LANE_CELLS,
    LANE_READ,
    LANES,
    LIFE_TICKS,
    PROGRAM_FILES,
    RANDOM_CELL,
    RANDOM_READ,
    write_rom_set,
)
from numpy.typing import NDArray

from tempest_agent.agent.games.tempest_games import TempestGames
from tempest_agent.cli import cli
from tempest_agent.config import GameConfig
from tempest_agent.envs.engine.batch import GameBatch
from tempest_agent.envs.engine.game_step import TERMINATED, TRUNCATED
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.machine import memory as m
from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, draw
from tempest_agent.envs.mame import process, protocol
from tempest_agent.envs.mame.errors import MachineError, MameError
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.envs.mame.roms import find_rom_set
from tempest_agent.envs.recordings.recording import load_recording
from tempest_agent.envs.recordings.verify import verify_recording
from tempest_agent.errors import UserError
from tempest_agent.evaluation import players
from tempest_agent.evaluation.games import EvaluationGames
from tempest_agent.evaluation.players import RandomGames

pytestmark = [needs_mame, pytest.mark.xdist_group("mame")]

TICK_BY_TICK = GameSettings(skip_idle=False)
RECORDED = 150
"""Ticks of a recording: more than a life and the pause after it."""


@pytest.fixture(scope="module")
def roms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rom_set(tmp_path_factory)


@pytest.fixture(scope="module")
def shared(roms: Path) -> Iterator[MameBatch]:
    """One machine for all tests that only need games of the default settings."""
    with MameBatch(1, TICK_BY_TICK, machine(roms)) as batch:
        yield batch


def act(batch: GameBatch, spin: int, buttons: int) -> int:
    """One step with the same controls everywhere; returns the first game's points."""
    spins = np.full(batch.num_games, spin, np.int8)
    points, _, _ = batch.step(spins, np.full(batch.num_games, buttons, np.uint8))
    return int(points[0])


def images(batch: GameBatch, ticks: int, seed: int = 0) -> NDArray[np.uint8]:
    """Images of ``ticks`` ticks of all games with controls drawn from ``seed``."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(ticks):
        act(batch, int(generator.integers(-31, 32)), int(generator.integers(0, 2)))
        found.append(m.as_bytes(batch.ram).copy())
    return np.array(found)


def test_controls_act_in_the_tick_they_are_given(shared: MameBatch) -> None:
    shared.reset(seeds=1)
    generator = np.random.default_rng(3)
    position, score = int(shared.ram["rim_pos"][0]), 0
    for tick in range(40):
        spin, fire = int(generator.integers(-31, 32)), int(generator.integers(0, 2))
        points = act(shared, spin, fire)
        position = (position - spin) & 0xFF
        score += 10 * fire
        assert shared.ram["rim_pos"][0] == position
        assert points == 10 * fire
        assert shared.games["score"][0] == score
        assert shared.ram["player_lane"][0] == position >> 4
        assert shared.ram["irq_since_tick"][0] == 0
        assert shared.games["ticks"][0] == tick + 1


def test_a_superzap_acts_once_and_only_where_it_is_legal(shared: MameBatch) -> None:
    shared.reset(seeds=1)
    uses = []
    for _ in range(4):
        act(shared, 0, 2)
        uses.append((int(shared.ram["zap_uses"][0]), int(shared.games["executed_buttons"][0])))
    assert uses == [(1, 2), (2, 2), (2, 0), (2, 0)]


def test_a_game_goes_from_its_first_life_to_its_end(shared: MameBatch) -> None:
    shared.reset(seeds=1)
    lives = []
    for _ in range(1000):
        act(shared, 0, 1)
        lives.append(int(shared.ram["lives"][0, 0]))
        if shared.terminated[0]:
            break
    assert shared.games["status"][0] == TERMINATED
    assert shared.games["score"][0] == 3 * LIFE_TICKS * 10
    assert shared.games["deaths"][0].sum() == 3
    # Between two lives: states 06, 0A, 02, 1E and a pause of 20 ticks.
    assert len(lives) == 3 * (LIFE_TICKS + DEAD_TICKS) + 2 * 24 + 1
    assert lives[0] == 3
    assert lives[-1] == 0
    act(shared, 0, 1)
    assert shared.points[0] == 0
    assert shared.terminated[0]


def test_skipping_idle_ticks_plays_the_same_game(shared: MameBatch, roms: Path) -> None:
    shared.reset(seeds=4)
    while not shared.terminated[0]:
        act(shared, 1, 1)
    with MameBatch(1, GameSettings(), machine(roms)) as skipping:
        skipping.reset(seeds=4)
        idle = 0
        while not skipping.terminated[0]:
            act(skipping, 1, 1)
            idle += int(skipping.games["step_idle_ticks"][0])
        assert skipping.games["ticks"][0] == shared.games["ticks"][0]
        assert skipping.games["idle_ticks"][0] == idle > 50
        assert skipping.games["steps"][0] == skipping.games["ticks"][0] - idle
        assert skipping.games["score"][0] == shared.games["score"][0]


def test_equal_seeds_give_equal_bytes_in_two_machines_at_once(roms: Path) -> None:
    with (
        MameBatch(2, TICK_BY_TICK, machine(roms)) as first,
        MameBatch(1, TICK_BY_TICK, machine(roms)) as second,
    ):
        first.reset(seeds=[5, 6])
        second.reset(seeds=[6])
        one, two = images(first, 40), images(second, 40)
        assert np.array_equal(one[:, 1], two[:, 0])
        # The machines' chance differs from game to game.
        assert not np.array_equal(one[:, 0, LANE_CELLS], one[:, 1, LANE_CELLS])
        assert None not in first.pids
        assert len({*first.pids, *second.pids}) == 3


def test_a_reset_is_exact_and_another_seed_another_game(shared: MameBatch) -> None:
    runs = {}
    for seed in (8, 9, 8, 9, 8):
        shared.reset(seeds=seed)
        assert shared.games["ticks"][0] == 0
        run = images(shared, 40)
        assert np.array_equal(runs.setdefault(seed, run), run)
    assert not np.array_equal(runs[8], runs[9])
    assert shared._starters[0].use_state


def test_a_state_that_is_not_exact_is_replaced_by_the_games_own_way(shared: MameBatch) -> None:
    shared.reset(seeds=2)
    starter = shared._starters[0]
    assert starter._saved is not None
    right = starter._saved
    try:
        starter._saved = right ^ np.uint8(1)
        shared.reset(seeds=2)
        assert not starter.use_state
        assert shared.ram["game_state"][0] == m.STATE_PLAY
        for _ in range(3):  # Out of a running game, too.
            act(shared, 3, 1)
            shared.reset(seeds=3)
            assert shared.games["score"][0] == 0
            assert shared.ram["lives"][0, 0] == 3
        assert act(shared, 3, 1) == 10
    finally:
        starter._saved, starter.use_state = right, True


OPTIONS: list[dict[str, Any]] = [
    {"start_level": 40, "lives": 5, "bonus_life": "none", "difficulty": "hard"},
    {"start_level": 99, "lives": 2, "bonus_life": 70_000, "difficulty": "easy"},
    {"start_level": 17, "lives": 4, "bonus_life": 10_000, "start_bonus": True},
]
STARTED = [
    *(0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x3D, 0x40, 0x41, 0x42, 0x46, 0x48, 0x9F),
    *(0x102, 0x156, 0x158, 0x16A, 0x16B, 0x200, 0x201, 0x202, 0x3AA, 0x3AB),
    *range(0x3AC, 0x3BC),
]
"""Cells of a new game's first play tick that do not depend on chance and that the program keeps."""


@pytest.mark.parametrize("options", OPTIONS)
def test_options_start_the_game_that_the_simulator_starts(
    options: dict[str, Any], roms: Path
) -> None:
    settings = GameSettings(**options, skip_idle=False)
    simulated = GameBatch(1, settings)
    simulated.reset(seeds=0)
    expected = m.as_bytes(simulated.ram)[0]
    with MameBatch(1, settings, machine(roms)) as batch:
        batch.reset(seeds=0)
        found = m.as_bytes(batch.ram)[0]
        cells = STARTED
        if options["start_level"] == 99:
            # Its waves are drawn, so the nymphs' number is; and its well is not the program's.
            cells = [cell for cell in STARTED if cell not in (0x200, 0x201, 0x3AB)]
            cells = [cell for cell in cells if not 0x3AC <= cell < 0x3BC]
        if expected[0x111]:  # An open well puts the player elsewhere than the program's closed one.
            cells = [cell for cell in cells if cell not in (0x200, 0x201)]
        different = [m.name_of(cell) for cell in cells if found[cell] != expected[cell]]
        assert different == []


def test_a_switch_that_does_not_turn_is_noticed(
    roms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempest_agent.envs.mame.mame_batch.switches", lambda _option: b"")
    options = machine(roms, max_restarts=0)
    with (
        MameBatch(1, GameSettings(lives=5), options) as batch,
        pytest.raises(MachineError, match="lives_per_game 3 and not 5"),
    ):
        batch.reset(seeds=0)


def test_levels_are_drawn_and_a_new_game_begins_in_the_step(roms: Path) -> None:
    settings = GameSettings(start_level=[3, 50], max_ticks=10)
    with MameBatch(2, settings, machine(roms), autoreset=True) as batch:
        batch.reset(seeds=11)
        levels = set()
        for step in range(60):
            act(batch, 0, 1)
            levels |= set((batch.ram["cur_wave"] + 1).tolist())
            if (step + 1) % 10 == 0:
                assert batch.truncated.all()
                assert not batch.terminated.any()
                assert (batch.last_games["status"] == TRUNCATED).all()
                assert (batch.last_games["score"] == 100).all()
                assert (batch.games["score"] == 0).all()
                assert (batch.games["ticks"] == 0).all()
            else:
                assert not batch.truncated.any()
        assert levels == {3, 50}


def test_input_delay_holds_every_input_back(roms: Path) -> None:
    settings = GameSettings(skip_idle=False, input_delay=2)
    with MameBatch(1, settings, machine(roms)) as batch:
        batch.reset(seeds=0)
        start = int(batch.ram["rim_pos"][0])
        moved = []
        for spin in (5, 7, 0, 0, 0):
            act(batch, spin, 0)
            moved.append((start - int(batch.ram["rim_pos"][0])) & 0xFF)
        assert moved == [0, 0, 5, 12, 12]


@kernel
def _draw(streams: NDArray[np.void], address: int) -> int:
    return draw(streams[0], address)


def test_the_simulators_random_bytes_reach_the_program(roms: Path) -> None:
    options = machine(roms, random_bytes="simulator")
    simulated = GameBatch(1, TICK_BY_TICK)
    simulated.reset(seeds=3)
    with MameBatch(1, TICK_BY_TICK, options) as batch:
        batch.reset(seeds=3)
        # The program draws nothing before play, and one byte in every tick of it.
        stream = np.zeros(1, STREAM_DTYPE)
        stream["state"] = batch.streams["state"]
        for _ in range(50):
            act(batch, 0, 0)
            assert batch.ram.view(np.uint8)[RANDOM_CELL] == _draw(stream, RANDOM_READ)
            assert batch.streams["state"][0] == stream["state"][0]


def test_states_cannot_be_cloned(shared: MameBatch) -> None:
    with pytest.raises(MameError, match="cannot be cloned; use the simulator"):
        shared.clone()
    with pytest.raises(MameError, match="cannot be restored; use the simulator"):
        shared.restore(np.zeros((1, 1), np.uint8))


NEWER_API = """
local old = emu.register_frame_done
emu.add_machine_frame_notifier = function(callback) old(callback); return {} end
emu.register_frame_done = nil
emu.register_frame = nil
"""


def bridge_after(lines: str, folder: Path) -> Path:
    script = folder / "bridge.lua"
    script.write_text(f"{lines}\ndofile({json.dumps(str(process.BRIDGE))})\n")
    return script


def test_the_newer_lua_interface_is_used_where_it_is(
    roms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "BRIDGE", bridge_after(NEWER_API, tmp_path))
    with MameBatch(1, TICK_BY_TICK, machine(roms)) as batch:
        batch.reset(seeds=0)
        assert act(batch, 0, 1) == 10
        assert batch.failures == []


def test_an_interface_without_what_is_needed_is_reported(
    roms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = bridge_after("emu.register_frame_done = nil", tmp_path)
    monkeypatch.setattr(process, "BRIDGE", script)
    batch = MameBatch(1, TICK_BY_TICK, machine(roms, max_restarts=0))
    with pytest.raises(MachineError, match="no notice of a finished frame"):
        batch.reset(seeds=0)


def test_a_program_that_is_not_the_games_is_reported(tmp_path: Path, roms: Path) -> None:
    other = tmp_path / "tempest1"
    other.mkdir()
    for file in (roms / "tempest1").iterdir():
        (other / file.name).write_bytes(bytes(file.stat().st_size))
    batch = MameBatch(1, TICK_BY_TICK, machine(tmp_path, max_restarts=0, answer_timeout=60.0))
    with pytest.raises(MachineError, match="no game tick for 30 emulated seconds"):
        batch.reset(seeds=0)


def test_a_wrong_checksum_is_refused_by_default(roms: Path) -> None:
    env = gym.make("tempest_agent:Tempest-v0", backend="mame", rom_path=str(roms))
    with pytest.raises(MameError, match=r"136002-113\.d1 \(and 19 more\) differs"):
        env.reset()
    env.close()


def test_a_missing_file_of_the_set_is_named(roms: Path, tmp_path: Path) -> None:
    part = tmp_path / "tempest1"
    part.mkdir()
    for file in sorted((roms / "tempest1").iterdir())[:12]:
        (part / file.name).symlink_to(file)
    batch = MameBatch(1, TICK_BY_TICK, machine(tmp_path))
    with pytest.raises(MameError, match=r"MAME does not find 136002-\d+\.\w+ \(8 files"):
        batch.reset(seeds=0)


def test_buttons_held_are_seen_however_many_interrupts_a_tick_takes(shared: MameBatch) -> None:
    """After a long tick the next one begins at once, and an interrupt may come before it looks."""
    for after in (0, 45, 60, 100, 190):
        shared.reset(seeds=0)
        cells = [(DELAY_BEFORE, 2), (DELAY_AFTER, after)]
        start = shared.command(0, protocol.write(cells) + protocol.go())
        pressed = [1, 1, 0] * 5
        assert [act(shared, 0, buttons) for buttons in pressed] == [10 * each for each in pressed]
        interrupts = (shared.frame(0).cycle - start.cycle) / len(pressed) / 6144
        assert interrupts >= max(9, after * DELAY_CYCLES / 6144) - 0.1


def test_games_of_an_evaluation_differ(shared: MameBatch) -> None:
    """By their moments; the same number is the same game."""
    games = EvaluationGames()
    starts = set()
    for number in range(8):
        games.begin(shared, number)
        starts.add(shared.ram.view(np.uint8)[LANE_CELLS].tobytes())
    assert len(starts) == 8
    games.begin(shared, 0)
    image = shared.ram.tobytes()
    shared.reset()
    assert shared.ram.tobytes() != image
    games.begin(shared, 0)
    assert shared.ram.tobytes() == image


def test_a_moment_is_the_register_so_many_cycles_later(shared: MameBatch) -> None:
    """Bytes of moments k cycles apart share 8 - k bits, as those of one moment read k later do."""
    lanes = []
    for moment in (5, 6, 7):
        shared.moments[:] = moment
        shared.reset()
        lanes.append(shared.ram.view(np.uint8)[LANE_CELLS].copy())
    for earlier, later in pairwise(lanes):
        assert np.array_equal(earlier >> 1, later & 7)


@pytest.mark.parametrize("name", [name for name in PROGRAM_FILES if name != "tempest1"])
def test_the_other_sets_are_found_by_what_is_in_them(name: str, tmp_path: Path) -> None:
    write_rom_set(tmp_path, name)
    assert find_rom_set(machine(tmp_path)) == name
    archive = tmp_path / "mine.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (tmp_path / name).iterdir():
            packed.write(file, file.name)
    assert find_rom_set(machine(archive)) == name
    with pytest.raises(MameError, match=rf"differs from the set {name} "):
        find_rom_set(machine(archive, strict_roms=True))


def test_the_parent_set_is_played(tmp_path: Path) -> None:
    roms = write_rom_set(tmp_path, "tempest")
    command = ["eval", "random", "--backend", "mame", "--rom-path", str(roms), "--any-roms"]
    command += ["--episodes", "1", "--max-ticks", "5"]
    result = CliRunner().invoke(cli, [*command, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rom_set"] == "tempest"
    assert "ROM set tempest (Tempest rev 3, revised hardware) on MAME" in result.stderr
    assert "tempest, on MAME" in CliRunner().invoke(cli, command).stdout


def test_the_environment_is_the_simulators(roms: Path) -> None:
    options = {"backend": "mame", "rom_path": str(roms), "strict_roms": False}
    real = gym.make("tempest_agent:Tempest-v0", **options)
    simulated = gym.make("tempest_agent:Tempest-v0")
    assert real.observation_space == simulated.observation_space
    assert real.action_space == simulated.action_space
    observation, info = real.reset(seed=3)
    _, expected = simulated.reset(seed=3)
    assert observation in real.observation_space
    assert info == expected
    action = {"buttons": np.int64(1), "spinner": np.ones(1, np.float32)}
    observation, reward, terminated, truncated, info = real.step(action)
    assert observation in real.observation_space
    assert (reward, terminated, truncated) == (pytest.approx(0.1), False, False)
    assert (info["executed_spin"], info["score"]) == (31, 10)
    real.close()
    simulated.close()


def test_a_vector_environment_of_machines(roms: Path) -> None:
    env = gym.make_vec(
        "tempest_agent:Tempest-v0",
        num_envs=2,
        backend="mame",
        rom_path=str(roms),
        strict_roms=False,
        lives=2,
    )
    env.reset(seed=1)
    action = {"buttons": np.ones(2, np.int64), "spinner": np.zeros((2, 1), np.float32)}
    scores = []
    for _ in range(2 * LIFE_TICKS + 5):
        _, _, terminated, _, info = env.step(action)
        if terminated.any():
            assert terminated.all()
            scores += info["score"].tolist()
    assert scores == [2 * LIFE_TICKS * 10] * 2
    env.close()


def test_training_goes_on_with_new_games_after_a_resume(roms: Path) -> None:
    settings = GameConfig(
        backend="mame", rom_path=str(roms), strict_roms=False, frame_skip=1, reward_scale=0.01
    )
    spin, fire = np.full(2, 5, np.int8), np.ones(2, np.uint8)
    games = TempestGames(2, settings, seed=3)
    games.reset()
    for _ in range(5):
        assert games.step(spin, fire).reward.tolist() == [pytest.approx(0.1)] * 2
    left_at, state = games.observe().copy(), games.state_dict()
    games.close()
    resumed = TempestGames(2, settings, seed=3)
    resumed.load_state_dict(state)
    assert np.array_equal(resumed.observe(), left_at)
    step = resumed.step(spin, fire)
    assert step.reward.tolist() == [0, 0]
    assert step.truncated.all()
    assert step.game_over.all()
    assert not step.terminated.any()
    assert np.array_equal(step.final_codes, left_at)
    assert step.score.tolist() == [50, 50]
    step = resumed.step(spin, fire)
    assert step.score.tolist() == [10, 10]
    assert not step.truncated.any()
    resumed.close()


def test_training_without_roms_is_refused() -> None:
    with pytest.raises(UserError, match=r"needs game\.rom_path"):
        TempestGames(2, GameConfig(backend="mame"), seed=3)
    games = TempestGames(2, GameConfig(backend="mame", rom_path="/nowhere"), seed=3)
    with pytest.raises(UserError, match="does not exist"):
        games.reset()


@pytest.fixture(scope="module")
def recording(roms: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("recordings") / "mine.npz"
    command = ["record", "--rom-path", str(roms), "--any-roms", "--policy", "random"]
    result = CliRunner().invoke(cli, [*command, "--ticks", str(RECORDED), str(out)])
    assert result.exit_code == 0, result.output
    return out


def test_a_recording_is_read_by_the_verifiers_loader(recording: Path) -> None:
    read = load_recording(recording)
    assert len(read.ram) == RECORDED
    assert read.ram[0, 0] == m.STATE_NEW_LIFE
    play = read.ram[:, 0] == m.STATE_PLAY
    alive = play & (read.ram[:, 0x201] < 0x80)
    # The program draws one byte a tick of play, the lanes at a new life, and nothing elsewhere.
    drawn = alive + LANES * (read.ram[:, 0] == m.STATE_NEW_LIFE)
    assert np.array_equal(np.diff(read.random_offset), drawn)
    assert set(read.random_address.tolist()) == {RANDOM_READ, LANE_READ}
    after = np.flatnonzero(alive)[:-1] + 1
    in_play = read.random_value[read.random_address == RANDOM_READ]
    assert np.array_equal(read.ram[after, RANDOM_CELL], in_play[: len(after)])


def test_what_the_game_saw_is_what_it_was_given(recording: Path) -> None:
    with np.load(recording) as data:
        arrays = {name: data[name] for name in data.files}
    alive = (arrays["ram"][:, 0] == m.STATE_PLAY) & (arrays["ram"][:, 0x201] < 0x80)
    assert np.array_equal(arrays["seen_spin"][alive], arrays["act_spin"][alive])
    assert len(np.unique(arrays["act_spin"][alive])) > 5
    fire = m.BUTTON_FIRE
    assert np.array_equal(arrays["seen_held"][alive] & fire, arrays["act_buttons"][alive] & fire)
    assert (arrays["seen_held"][~alive] == -999).all()
    # Nine interrupts a tick, 6,144 cycles apart up to the instruction they wait for.
    assert set(np.diff(arrays["irq_offsets"]).tolist()) == {9}
    first = arrays["irq_offsets"][:-1].astype(np.int64)
    apart = np.diff(arrays["irq_cycle"].astype(np.int64))[first]
    assert np.abs(apart - 6144).max() < 40
    assert arrays["poked"].tolist() == (np.arange(RECORDED) == 0).astype(int).tolist()
    assert np.abs(np.diff(arrays["cycle"].astype(np.int64)) - 9 * 6144).max() < 40


def test_the_simulator_agrees_where_the_program_keeps_the_rules(recording: Path) -> None:
    """The pause, the second tick of a life and the end of a life are the real game's."""
    result = verify_recording(load_recording(recording))
    for state in ("pause", "new_life_2", "end_life"):
        counts = result["by_state"][state]
        assert counts["exact"] == counts["ticks"] > 0


def test_record_refuses_impossible_places(tmp_path: Path) -> None:
    for out, expected in ((tmp_path / "x.txt", ".npz"), (tmp_path / "no" / "x.npz", "no folder")):
        result = CliRunner().invoke(cli, ["record", "--rom-path", str(tmp_path), str(out)])
        assert result.exit_code == 2
        assert expected in result.stderr


def test_eval_plays_the_fixed_games_one_after_the_other(roms: Path) -> None:
    command = ["eval", "random", "--backend", "mame", "--rom-path", str(roms), "--any-roms"]
    command += ["--episodes", "2", "--max-ticks", str(LIFE_TICKS + 5), "--json"]
    result = CliRunner().invoke(cli, [*command, "--threads", "2"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["backend"] == "mame"
    assert len(figures["scores"]) == 2
    assert figures["truncated"] == 2
    assert figures["ticks_mean"] == LIFE_TICKS + 5
    assert figures["deaths"]["grab"] == 2
    assert figures["rom_set"] == "tempest1"
    assert figures["repeated_games"] == []
    assert "interrupted" not in figures
    alone = CliRunner().invoke(cli, [*command, "--threads", "1"])
    assert json.loads(alone.stdout)["scores"] == figures["scores"]


def test_games_that_repeat_another_are_told_and_count_once(
    roms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EvaluationGames, "moment", lambda _games, number: min(number, 1))
    dice = RandomGames(np.zeros(1, np.int64), 0)
    monkeypatch.setattr(players, "RandomGames", lambda *_: copy.deepcopy(dice))
    command = ["eval", "random", "--backend", "mame", "--rom-path", str(roms), "--any-roms"]
    command += ["--episodes", "4", "--max-ticks", "9", "--threads", "1", "--json"]
    result = CliRunner().invoke(cli, command)
    assert json.loads(result.stdout)["repeated_games"] == [2, 3]
    assert "warning: 2 of 4 games repeat an earlier one" in result.stderr


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MachineError("it is gone", "playing")])
def test_games_that_are_complete_outlive_an_evaluation_that_ends_early(
    error: BaseException, roms: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = EvaluationGames.begin

    def stopped(games: EvaluationGames, batch: GameBatch, number: int) -> None:
        if number == 2:
            raise error
        begin(games, batch, number)

    monkeypatch.setattr(EvaluationGames, "begin", stopped)
    command = ["eval", "random", "--backend", "mame", "--rom-path", str(roms), "--any-roms"]
    command += ["--episodes", "4", "--max-ticks", "9", "--threads", "1", "--json"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    figures = json.loads(result.stdout)
    assert figures["interrupted"] is True
    assert (figures["episodes"], len(figures["scores"])) == (2, 2)
    assert "2 of 4 games are complete" in result.stderr


@pytest.mark.parametrize("command", [["play", "expert"], ["play", "human"], ["eval", "expert"]])
def test_a_machine_that_cannot_be_had_is_told_before_the_player(
    command: list[str], roms: Path
) -> None:
    for options in (["/nowhere"], [str(roms), "--mame", "/bin/true"]):
        result = CliRunner().invoke(cli, [*command, "--backend", "mame", "--rom-path", *options])
        assert result.exit_code == 2
        assert len(result.output.splitlines()) == 1


def test_play_shows_the_same_game(roms: Path) -> None:
    command = ["play", "expert", "--backend", "mame", "--rom-path", str(roms), "--any-roms"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    assert f"game 1: {3 * LIFE_TICKS * 10:,} points" in result.stdout


def test_bench_measures_the_bridge(roms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempest_agent.bench.mame.TICKS", 30)
    monkeypatch.setattr("tempest_agent.bench.mame.ROUNDS", 1)
    monkeypatch.setattr("tempest_agent.bench.mame.STATE_LOADS", 1)
    command = ["bench", "env", "--backend", "mame", "--rom-path", str(roms), "--any-roms"]
    result = CliRunner().invoke(cli, [*command, "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)["figures"]
    speed = figures["mame_ticks_per_second"]
    assert speed["ratio"] == pytest.approx(speed["value"] / speed["baseline"])
    assert figures["bridge_overhead"]["value"] == pytest.approx(1 / speed["ratio"] - 1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["eval", "expert", "--backend", "mame"], "needs --rom-path"),
        (["eval", "expert", "--rom-path", "x"], "add --backend mame"),
        (["bench", "render", "--backend", "mame", "--rom-path", "x"], "measures the simulator"),
        (["eval", "expert", "--backend", "mame", "--rom-path", "/nowhere"], "does not exist"),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], expected: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert expected in result.stderr.splitlines()[-1]
