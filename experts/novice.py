"""Deliberately weak players: the expert's rules with gaps in attention and knowledge.

A learner that copies a perfect player sees no mistakes, and cannot be seen to surpass it.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.inputs import FIRE, ZAP
from tempest_agent.envs.machine.memory import RAM_DTYPE
from tempest_agent.envs.machine.randomness import STREAM_DTYPE, draw, new_streams
from tempest_agent.envs.messages import shown
from tempest_agent.experts.scripted.decision import PLAN_DTYPE
from tempest_agent.experts.scripted.expert import decide, look_ahead
from tempest_agent.experts.scripted.weights import Weights

from .interface import PendingInputs, check_pending, check_rows, under_way

PRESETS = {"novice": 0.1, "novice-strong": 0.36}
"""Name of a preset and its place on the dial: about 20,000 and 90,000 points from level 1."""

ATTENTION_LEAST = 0.15
PULSARS_KNOWN_FROM = 0.85
FUSEBALLS_KNOWN_FROM = 0.6
SHOTS_KNOWN_FROM = 0.25


def attention_at(level: float) -> float:
    """Return the chance per tick that a novice of ``level`` looks at the game and decides."""
    return ATTENTION_LEAST + (1.0 - ATTENTION_LEAST) * level


def knowledge_at(level: float) -> Weights:
    """Return what a novice of ``level`` knows: walkers and spikes always, more from a level on."""
    return replace(
        Weights(),
        knows_shots=level >= SHOTS_KNOWN_FROM,
        knows_fuseballs=level >= FUSEBALLS_KNOWN_FROM,
        knows_pulsars=level >= PULSARS_KNOWN_FROM,
        zaps_last=False,
    )


@kernel
def novice_batch(
    ram: NDArray[np.void],
    games: NDArray[np.int64],
    pending: PendingInputs,
    streams: NDArray[np.void],
    scratch: NDArray[np.void],
    plans: NDArray[np.void],
    weights: NDArray[np.void],
    attention: float,
    held: NDArray[np.uint8],
    spins: NDArray[np.int8],
    buttons: NDArray[np.uint8],
) -> None:
    """Decide for the games in which the novice looks; in the others it only keeps firing."""
    plan = plans[0]
    for row in range(len(ram)):
        game = games[row]
        chance = draw(streams[game], 0) * 256 + draw(streams[game], 0)
        spins[row] = 0
        buttons[row] = held[game]
        if chance >= attention * 65536.0:
            continue
        delay = under_way(pending[row])
        look_ahead(scratch, ram[row], pending[row][:delay], streams[game])
        decide(scratch[0], ram[row], delay, weights[0], plan)
        spins[row] = plan.spin
        held[game] = plan.fire * FIRE
        buttons[row] = held[game] + plan.zap * ZAP


class Novice:
    """The expert's rules on a dial from 0 (inattentive and ignorant) to 1 (nearly the expert).

    * Attention: it looks in a share of the ticks only, 15 % at level 0 and all at level 1;
      in the others the knob rests and the fire button stays as it was.
    * Knowledge: below 0.25 it does not see enemy shots coming, below 0.6 fuseballs,
      below 0.85 the phase of pulsars.

    Each game has a random stream of its own and remembers its fire button, so the same seed and
    the same images give the same play, independent of other games beside it.
    """

    def __init__(self, level: float, seed: int = 0, name: str | None = None) -> None:
        given: Any = level
        if not isinstance(given, Real) or not 0.0 <= level <= 1.0:
            raise ValueError(
                f"novice level {shown(level)} is off the dial: give a number from 0 to 1"
            )
        self.level = float(level)
        self.name = name or f"novice-{level:g}"
        self._seed = seed
        self._weights = knowledge_at(self.level).record()
        self._streams = np.zeros(0, STREAM_DTYPE)
        self._held = np.zeros(0, np.uint8)
        self._plan = np.zeros(1, PLAN_DTYPE)
        self._scratch = np.zeros(1, RAM_DTYPE)

    @classmethod
    def preset(cls, name: str, seed: int = 0) -> Novice:
        """Return one of the named places on the dial, see ``PRESETS``."""
        return cls(PRESETS[name], seed, name)

    def act(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games; see ``Teacher.act``."""
        rows = check_rows(ram, games)
        inputs = check_pending(ram, pending)
        self._make_room(int(rows.max(initial=-1)) + 1)
        spins = np.zeros(len(ram), np.int8)
        buttons = np.zeros(len(ram), np.uint8)
        novice_batch(
            ram,
            rows,
            inputs,
            self._streams,
            self._scratch,
            self._plan,
            self._weights,
            attention_at(self.level),
            self._held,
            spins,
            buttons,
        )
        return spins, buttons

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Release the button in the games of ``mask``; without one, restart from the seed."""
        if mask is None:
            self._streams = np.zeros(0, STREAM_DTYPE)
            self._held = np.zeros(0, np.uint8)
            return
        self._make_room(len(mask))
        self._held[: len(mask)][mask] = 0

    def state_dict(self) -> dict[str, Any]:
        """Return each game's random stream and fire button."""
        return {"streams": self._streams["state"].copy(), "held": self._held.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict()``; ``ValueError`` for anything else."""
        streams, held = np.asarray(state["streams"], np.uint64), np.array(state["held"], np.uint8)
        if streams.ndim != 1 or held.shape != streams.shape:
            raise ValueError(
                f"the novice's state has streams of shape {streams.shape} and held of shape "
                f"{held.shape}: a number for each game is needed in both"
            )
        if not streams.all() or (held > FIRE).any():
            raise ValueError("the novice's state is damaged: a stream is 0, or held is not 0 or 1")
        self._streams = np.zeros(len(streams), STREAM_DTYPE)
        self._streams["state"] = streams
        self._held = held

    def _make_room(self, games: int) -> None:
        """Make room for ``games`` games; known ones keep what is remembered."""
        known = len(self._streams)
        if games <= known:
            return
        seeds = [np.random.SeedSequence((self._seed, game)) for game in range(known, games)]
        self._streams = np.concatenate([self._streams, new_streams(seeds)])
        self._held = np.concatenate([self._held, np.zeros(games - known, np.uint8)])
