"""The scripted expert: one decision a tick from the RAM image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.arcade.playable import misfit
from tempest_agent.envs.arcade.player import DEAD_VISIBLE
from tempest_agent.envs.arcade.tick import tick
from tempest_agent.envs.game_state.controls import rim_position
from tempest_agent.envs.machine.compiled import int64, kernel, rule
from tempest_agent.envs.machine.inputs import FIRE, ZAP, set_inputs
from tempest_agent.envs.machine.memory import (
    RAM_DTYPE,
    STATE_PAUSE,
    STATE_PLAY,
    STATE_WARP,
    Ram,
)
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, Source
from tempest_agent.experts.interface import PendingInputs, check_pending, check_rows

from .costs import foresee
from .decision import PLAN_DTYPE, Plan
from .dive import value_dive
from .escape import choose_lane
from .fire import decide_fire, decide_zap
from .targets import value_lanes
from .weights import Weights, WeightsRecord

ROLLS = 8
"""Most draws of a future in which the player lives."""


@rule
def decide(ram: Ram, seen: Ram, delay: int, weights: WeightsRecord, plan: Plan) -> None:
    """Fill ``plan`` with the decision for the tick after ``ram``.

    ``seen`` is the image that ``ram`` was rolled forward from by ``delay`` ticks: the same one if
    no inputs are under way.  Both are only read.
    """
    plan.spin = 0
    plan.fire = 0
    plan.zap = 0
    plan.best = 0.0
    place = rim_position(ram)
    plan.lane = place >> 4
    state = ram.game_state
    if ram.player_lane_ccw >= DEAD_VISIBLE:
        return
    if state == STATE_PLAY:
        foresee(ram, seen, delay, weights, plan)
        value_lanes(ram, plan, weights)
        choose_lane(ram, plan, weights)
        plan.fire = int(decide_fire(ram, plan, weights))
        plan.zap = int(decide_zap(ram, plan, weights))
    elif state == STATE_WARP or (state == STATE_PAUSE and ram.next_state == STATE_WARP):
        value_dive(ram, plan, place, weights)
        choose_lane(ram, plan, weights)
        plan.fire = 1


@kernel
def decide_batch(
    ram: NDArray[np.void],
    pending: PendingInputs,
    seed: int,
    sources: NDArray[np.void],
    scratch: NDArray[np.void],
    plans: NDArray[np.void],
    weights: NDArray[np.void],
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
) -> None:
    """Decide for every game, after rolling it through its pending inputs in ``scratch``."""
    plan = plans[0]
    for game in range(len(ram)):
        if pending.shape[1]:
            reseed(sources[0], ram[game], seed)
            look_ahead(scratch, ram[game], pending[game], sources[0])
            decide(scratch[0], ram[game], pending.shape[1], weights[0], plan)
        else:
            decide(ram[game], ram[game], 0, weights[0], plan)
        spins[game] = plan.spin
        buttons[game] = plan.fire * FIRE + plan.zap * ZAP


@rule
def reseed(source: Source, ram: Ram, seed: int) -> None:
    """Start the private random stream from what the image shows, so that equal images agree."""
    shown = np.uint64(seed)
    for byte in (ram.frame_counter, ram.rim_pos, ram.score_p1[0], ram.score_p1[1], ram.pulse_phase):
        shown = (shown ^ np.uint64(byte)) * np.uint64(0x9E3779B97F4A7C15)
        shown ^= shown >> np.uint64(29)
    source.state = shown | np.uint64(1)


@rule
def look_ahead(
    scratch: NDArray[np.void], ram: Ram, inputs: NDArray[np.int16], source: Source
) -> None:
    """Fill ``scratch[0]`` with ``ram`` run through ``inputs`` of shape ``(delay, 2)``.

    Chance comes from ``source``.  If it kills the player, it is drawn again a few times: the
    decision matters only if he lives.  An image that the rules cannot play stays as it is.
    """
    scratch[0] = ram
    if misfit(ram) >= 0:
        return
    for _ in range(ROLLS):
        scratch[0] = ram
        future = scratch[0]
        for step in range(len(inputs)):
            held = int64(inputs[step, 1])
            set_inputs(future, int64(inputs[step, 0]), (held & FIRE) != 0, (held & ZAP) != 0)
            tick(future, source)
        if future.player_lane_ccw < DEAD_VISIBLE or ram.player_lane_ccw >= DEAD_VISIBLE:
            return


class ScriptedExpert:
    """The strong teacher: a pure function of the RAM image and of the inputs under way.

    It knows where each danger will be in the next 16 ticks, takes the best way through them, and
    fires at what it can hit, with a shot in reserve while an enemy is near the rim; the
    superzapper ends each wave.  It never reads a game's random stream: with inputs under way it
    rolls a copy of the game forward on a stream of its own.
    """

    name = "expert"

    def __init__(self, weights: Weights | None = None, seed: int = 0) -> None:
        self.weights = weights or Weights()
        self._weights = self.weights.record()
        self._seed = seed

    def act(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games; see ``Teacher.act``."""
        check_rows(ram, games)
        return self._decide(ram, check_pending(ram, pending), np.zeros(1, PLAN_DTYPE))

    def explain(self, ram: NDArray[np.void]) -> NDArray[np.void]:
        """Return the plan for one image ``(1,)``: danger table, lane values, decision.

        Returns:
            One PLAN_DTYPE record, shape ``(1,)``.
        """
        check_rows(ram, None)
        plan = np.zeros(1, PLAN_DTYPE)
        self._decide(ram[:1], check_pending(ram[:1], None), plan)
        return plan

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Do nothing: there is no memory."""

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dictionary: there is no memory."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no memory."""

    def _decide(
        self, ram: NDArray[np.void], pending: PendingInputs, plan: NDArray[np.void]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Decide for all of ``ram``; ``plan`` keeps the last one.  Nothing is shared by calls."""
        spins = np.zeros(len(ram), np.int8)
        buttons = np.zeros(len(ram), np.uint8)
        stream = np.zeros(1, STREAM_DTYPE)
        scratch = np.zeros(1, RAM_DTYPE)
        decide_batch(ram, pending, self._seed, stream, scratch, plan, self._weights, spins, buttons)
        return spins, buttons
