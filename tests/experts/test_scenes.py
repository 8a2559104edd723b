"""Scenes set up by hand, and what the expert must do in them."""

from __future__ import annotations

import numpy as np
import pytest
from arena import start_batch
from numpy.typing import NDArray

from tempest_agent.envs.machine.memory import (
    FLIPPER,
    FUSEBALL,
    KIND_CCW,
    KIND_FLIPPING,
    PULSAR,
    RAM_DTYPE,
    STATE_LEVEL_ENTRY,
    STATE_WARP,
)
from tempest_agent.envs.machine.randomness import new_streams
from tempest_agent.envs.machine.switches import Switches
from tempest_agent.experts import ScriptedExpert
from tempest_agent.experts.scripted.decision import LETHAL
from tempest_agent.experts.scripted.weights import Weights

LANE = 6
RIM_WAITING, RIM_FLIPPING = 0x46, 0x4A
PULSAR_MOVING = 0x76
FUSE_ROLLING = 0x6B
STRAIGHT = 0x09


def scene(level: int = 1, lane: int = LANE) -> NDArray[np.void]:
    """An empty well with the player in the middle of ``lane``, and enemies still waiting."""
    ram = np.zeros(1, RAM_DTYPE)
    start_batch(ram, new_streams([np.random.SeedSequence(0)]), Switches(start_level=level).record())
    ram["queue_depth"] = 0
    ram["queue_count"] = 9
    ram["spike_depth"] = 0
    ram["rim_pos"] = lane * 16 + 8
    ram["player_lane"] = lane
    ram["player_lane_ccw"] = lane + 1
    return ram


def put_enemy(
    ram: NDArray[np.void], slot: int, kind: int, lane: int, depth: int, **cells: int
) -> None:
    ram["enemy_kind"][0, slot] = kind
    ram["enemy_lane"][0, slot] = lane % 16
    ram["enemy_lane_ccw"][0, slot] = (lane + 1) % 16
    ram["enemy_depth"][0, slot] = depth
    ram["enemy_script_pc"][0, slot] = STRAIGHT
    ram["enemies_in_well"] += 1
    for name, value in cells.items():
        ram[name][0, slot] = value


def put_enemy_shot(ram: NDArray[np.void], slot: int, lane: int, depth: int) -> None:
    ram["enemy_shot_lane"][0, slot] = lane % 16
    ram["enemy_shot_depth"][0, slot] = depth
    ram["enemy_shot_count"] += 1


def put_own_shots(ram: NDArray[np.void], count: int, lane: int) -> None:
    ram["player_shot_depth"][0, :count] = 0x80
    ram["player_shot_lane"][0, :count] = lane
    ram["player_shot_count"] = count


def plan_of(ram: NDArray[np.void]) -> np.void:
    plan: np.void = ScriptedExpert().explain(ram)[0]
    return plan


def test_leaves_the_lane_of_an_arriving_shot() -> None:
    ram = scene()
    put_enemy_shot(ram, 0, LANE, 0x12)
    assert plan_of(ram)["lane"] != LANE


def test_leaves_a_walker_s_lane_while_it_waits_and_hits_it_at_the_muzzle_when_it_flips() -> None:
    ram = scene()
    put_enemy(ram, 3, FLIPPER | KIND_CCW, LANE, 0x10, enemy_script_pc=RIM_WAITING, enemy_loop=4)
    waiting = plan_of(ram)
    assert waiting["lane"] == LANE + 1, "the lane into which it will flip"
    ram["enemy_kind"][0, 3] |= KIND_FLIPPING
    ram["enemy_script_pc"][0, 3] = RIM_FLIPPING
    ram["enemy_lane"][0, 3] = LANE + 1
    ram["enemy_lane_ccw"][0, 3] = 0x80 | ((ram["lane_angle"][0, LANE] + 8) & 15)
    put_own_shots(ram, 7, 0)
    flipping = plan_of(ram)
    assert flipping["lane"] in (LANE, LANE + 1)
    assert flipping["fire"] == 1, "the last free shot is for this"


def test_a_pulsar_on_the_rim_is_a_walker() -> None:
    ram = scene(level=17)
    put_enemy(ram, 3, PULSAR | KIND_CCW, LANE, 0x10, enemy_script_pc=RIM_WAITING, enemy_loop=3)
    ram["pulse_phase"] = 0xC8
    danger = plan_of(ram)["danger"]
    assert (danger[:2, LANE] >= LETHAL).all()
    assert (danger[2:4, LANE] < LETHAL).all()
    assert danger[:, LANE + 1].max() >= LETHAL


@pytest.mark.parametrize(("phase", "leaves"), [(3, True), (0xC8, False)])
def test_stays_with_a_pulsar_only_while_the_pulse_is_off(phase: int, leaves: bool) -> None:
    ram = scene(level=17)
    put_enemy(ram, 3, PULSAR, LANE, 0x60, enemy_script_pc=PULSAR_MOVING, enemy_loop=30)
    ram["pulse_phase"] = phase
    assert (plan_of(ram)["lane"] != LANE) == leaves


def test_leaves_both_lanes_beside_the_spoke_where_a_fuseball_ends_its_roll() -> None:
    for lane in (LANE - 1, LANE):
        ram = scene(level=33, lane=lane)
        ram["queue_count"] = 0
        put_enemy(
            ram,
            2,
            FUSEBALL | KIND_CCW | KIND_FLIPPING,
            LANE,
            0x10,
            enemy_script_pc=FUSE_ROLLING,
            enemy_loop=1,
            enemy_lane_ccw=0x81,
        )
        plan = plan_of(ram)
        assert (plan["danger"][1:, LANE - 1 : LANE + 1] >= LETHAL).all()
        assert plan["lane"] not in (LANE - 1, LANE)


@pytest.mark.parametrize(("flying", "fires"), [(6, True), (7, False), (8, False)])
def test_keeps_a_shot_in_reserve(flying: int, fires: bool) -> None:
    ram = scene()
    put_enemy(ram, 3, FLIPPER, LANE, 0x30)
    put_own_shots(ram, flying, (LANE + 8) % 16)
    plan = plan_of(ram)
    assert plan["lane"] == LANE
    assert plan["fire"] == fires


def test_spends_the_last_shot_while_nobody_is_near() -> None:
    ram = scene()
    put_enemy(ram, 3, FLIPPER, LANE, 0x90)
    put_own_shots(ram, 7, (LANE + 8) % 16)
    assert plan_of(ram)["fire"] == 1


def test_does_not_fire_again_at_an_enemy_towards_which_a_shot_flies() -> None:
    ram = scene()
    put_enemy(ram, 3, FLIPPER, LANE, 0x90)
    put_own_shots(ram, 6, LANE)
    assert plan_of(ram)["fire"] == 0


def surround() -> NDArray[np.void]:
    """Shots arrive in four of the lanes within reach, a walker waits in the fifth."""
    ram = scene()
    for slot, lane in enumerate((LANE - 2, LANE - 1, LANE, LANE + 1)):
        put_enemy_shot(ram, slot, lane, 0x11)
    put_enemy(ram, 6, FLIPPER, LANE + 2, 0x10, enemy_script_pc=RIM_WAITING, enemy_loop=4)
    return ram


def test_zaps_when_surrounded() -> None:
    plan = plan_of(surround())
    assert plan["best"] < -LETHAL / 2
    assert plan["zap"] == 1


@pytest.mark.parametrize(("cell", "value"), [("zap_uses", 2), ("zap_timer", 4)])
def test_does_not_zap_in_vain(cell: str, value: int) -> None:
    ram = surround()
    ram[cell] = value
    assert plan_of(ram)["zap"] == 0


def test_does_not_zap_while_there_is_a_way_out() -> None:
    ram = surround()
    ram["enemy_shot_depth"][0, 0] = 0
    plan = plan_of(ram)
    assert plan["lane"] == LANE - 2
    assert plan["zap"] == 0


@pytest.mark.parametrize(("queue", "zaps"), [(0, True), (1, False)])
def test_the_superzapper_ends_a_wave_of_which_nothing_waits(queue: int, zaps: bool) -> None:
    ram = scene()
    ram["queue_count"] = queue
    assert not plan_of(ram)["zap"], "there is nothing to hit"
    put_enemy(ram, 2, FLIPPER, LANE + 7, 0xA0)
    assert plan_of(ram)["zap"] == zaps
    without = ScriptedExpert(Weights(zaps_last=False))
    assert without.explain(ram)[0]["zap"] == 0
    ram["zap_uses"] = 2
    assert plan_of(ram)["zap"] == 0


def dive(depth: int, tips: dict[int, int], level: int = 9, lane: int = LANE) -> NDArray[np.void]:
    ram = scene(level, lane)
    ram["game_state"] = STATE_WARP
    ram["warp_flag"] = 0x80
    ram["player_depth"] = depth
    ram["warp_speed_int"] = 8
    ram["queue_count"] = 0
    for spiked, tip in tips.items():
        ram["spike_depth"][0, spiked] = tip
    return ram


def test_dives_in_the_free_lane() -> None:
    tips = {lane: 0x90 for lane in range(16) if lane != LANE + 1}
    assert plan_of(dive(0x60, tips))["lane"] == LANE + 1


def test_dives_past_a_lane_whose_tip_is_above() -> None:
    tips = {lane: 0x60 for lane in range(16)}
    tips[LANE] = 0x88
    tips[LANE + 2] = 0
    plan = plan_of(dive(0x80, tips))
    assert plan["lane"] == LANE + 2
    assert plan["spin"] == -31


def test_stays_when_every_other_lane_is_deadly_already() -> None:
    tips = {lane: 0x60 for lane in range(16)}
    tips[LANE] = 0x98
    assert plan_of(dive(0x80, tips))["lane"] == LANE


@pytest.mark.parametrize("case", ["entry", "dead"])
def test_keeps_its_hands_still_when_nothing_can_be_done(case: str) -> None:
    ram = scene()
    put_enemy(ram, 3, FLIPPER, LANE, 0x90)
    if case == "entry":
        ram["game_state"] = STATE_LEVEL_ENTRY
    else:
        ram["player_lane_ccw"] = 0x81
    plan = plan_of(ram)
    assert (plan["spin"], plan["fire"], plan["zap"]) == (0, 0, 0)


def test_never_steers_beyond_the_ends_of_an_open_well() -> None:
    for lane in (0, 14):
        ram = scene(level=8, lane=lane)
        assert ram["well_open"][0]
        put_enemy_shot(ram, 0, lane, 0x11)
        put_enemy(ram, 3, FLIPPER, 15 - lane, 0x90)
        assert 0 <= plan_of(ram)["lane"] <= 14
        assert plan_of(ram)["lane"] != lane


@pytest.mark.parametrize("lane", [LANE - 1, LANE])
def test_under_a_delay_it_leaves_both_lanes_into_which_chance_may_send_a_fuseball(
    lane: int,
) -> None:
    for seed in range(8):
        ram = scene(level=33, lane=lane)
        put_enemy(ram, 2, FUSEBALL, LANE, 0x11, enemy_script_pc=0x64)
        ram["enemies_in_well"] = 1
        resting = np.zeros((1, 1, 2), np.int16)
        spins, _ = ScriptedExpert(seed=seed).act(ram, resting)
        assert (int(ram["rim_pos"][0]) - int(spins[0])) >> 4 not in (LANE - 1, LANE)
