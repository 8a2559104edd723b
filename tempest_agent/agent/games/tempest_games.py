"""The arcade's games and their scripted teacher, in the form that the collector plays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.games.mame_backend import machine_of
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import Config, GameConfig
from tempest_agent.envs.api.backend import make_batch
from tempest_agent.envs.api.observations import PLAIN
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.features.layout import (
    EXISTS,
    FORECAST_FEATURES,
    LANE_FEATURES,
    NUM_FEATURES,
    PENDING_SPIN_FEATURE,
    PLAIN_FEATURES,
    POSITION_FEATURE,
    ZAP_LEGAL_FEATURE,
)
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.mame.errors import machine_errors
from tempest_agent.envs.mame.mame_batch import MameBatch
from tempest_agent.errors import UserError, unknown_name
from tempest_agent.experts import TEACHER_NAMES, Teacher, make_teacher
from tempest_agent.experts.interface import pending_of

from .interface import Step

NO_TEACHER = "none"
"""In place of a teacher's name."""

TEMPEST_LAYOUT = Layout(
    NUM_FEATURES,
    LANE_FEATURES,
    EXISTS,
    POSITION_FEATURE,
    forecast_features=FORECAST_FEATURES,
    pending_spin=PENDING_SPIN_FEATURE,
)
PLAIN_LAYOUT = Layout(PLAIN_FEATURES, LANE_FEATURES, EXISTS, POSITION_FEATURE)
"""Without the forecast."""


def tempest_layout(game: GameConfig) -> Layout:
    """The layout of the games that ``game`` describes."""
    return PLAIN_LAYOUT if game.observation == PLAIN else TEMPEST_LAYOUT


def game_settings(game: GameConfig, numbers: Sequence[int] | None = None) -> GameSettings:
    """The settings of a batch of the games that ``game`` describes: the first, or ``numbers``."""
    delays = list(game.input_delay)
    if numbers is not None:
        delays = [delays[number % len(delays)] for number in numbers]
    return GameSettings(
        start_level=list(game.start_levels),
        lives=game.lives,
        bonus_life=game.bonus_life * 10_000 if game.bonus_life else "none",
        difficulty=game.difficulty,
        frame_skip=game.frame_skip,
        max_ticks=game.max_ticks,
        input_delay=delays,
    )


class TempestGames:
    """``num_games`` arcade games, begun anew as soon as they are over.

    Args:
        num_games: N.
        game: the rules they are played by.
        seed: of all their random streams, or one for each.
        numbers: of the games in the whole run, from 0 on; it decides who has which
            input delay.
    """

    def __init__(
        self,
        num_games: int,
        game: GameConfig,
        seed: int | Sequence[np.random.SeedSequence],
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.num_games = num_games
        self.game = game
        self._seed = seed
        self.layout = tempest_layout(game)
        self._batch = make_batch(
            num_games,
            game_settings(game, numbers),
            machine_of(game),
            autoreset=True,
            plain=self.layout == PLAIN_LAYOUT,
        )

    def reset(self) -> None:
        """Begin all games with the streams of the seed."""
        seed = self._seed
        with machine_errors():
            self._batch.reset(seeds=np.random.SeedSequence(seed) if isinstance(seed, int) else seed)

    def observe(self) -> NDArray[np.int8]:
        """Codes ``(N, F)``, the batch's own array."""
        return self._batch.codes

    def zap_legal(self) -> NDArray[np.bool_]:
        """Whether a zap would do something, ``(N,)``."""
        return self._batch.codes[:, ZAP_LEGAL_FEATURE] > 0

    def images(self) -> tuple[NDArray[np.void], NDArray[np.int16]]:
        """RAM images ``(N,)`` and the inputs under way, see ``PendingInputs``."""
        return self._batch.ram, pending_of(self._batch.games, self._batch.delays)

    def step(self, spin: NDArray[np.int8], buttons: NDArray[np.uint8]) -> Step:
        """One decision of every game, ``frame_skip`` ticks."""
        batch, game = self._batch, self.game
        legal = self.zap_legal()
        ticks_before = batch.games["ticks"].astype(np.int64)
        with machine_errors():
            points, terminated, truncated = batch.step(spin, buttons)
        over = terminated | truncated
        records = np.where(over, batch.last_games, batch.games) if over.any() else batch.games
        died = records["step_death"] >= 0
        reward = points.astype(np.float32) * np.float32(game.reward_scale)
        reward -= died * np.float32(game.death_penalty)
        ends = (terminated | died) if game.life_loss_terminal else terminated
        # With a delay the machine got an older input; the action that was chosen is what the
        # state after it depends on, so that is what is learned from (less an illegal zap).
        late = batch.delays > 0
        taken_spin = np.where(late, spin, records["executed_spin"])
        chosen = np.where(legal, buttons, buttons & 1).astype(np.uint8)
        taken = np.where(late, chosen, records["executed_buttons"])
        return Step(
            reward=reward,
            terminated=ends.copy(),
            truncated=truncated.copy(),
            game_over=over,
            score=records["score"].copy(),
            spin=taken_spin,
            buttons=taken,
            final_codes=batch.last_codes,
            final_zap_legal=batch.last_codes[:, ZAP_LEGAL_FEATURE] > 0,
            ticks=records["ticks"] - ticks_before,
            level=np.where(over, self.levels(batch.last_ram), self.levels()),
            death_cause=records["step_death"].copy(),
        )

    def levels(self, images: NDArray[np.void] | None = None) -> NDArray[np.int64]:
        """Level (from 1) of each image, int64 ``(N,)``; of the present states if left out."""
        ram = self._batch.ram if images is None else images
        return ram["cur_wave"].astype(np.int64) + 1

    def state_dict(self) -> dict[str, Any]:
        batch = self._batch
        states = batch.snapshot() if isinstance(batch, MameBatch) else batch.clone()
        return {"states": states}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        states = np.asarray(state["states"])
        if isinstance(self._batch, MameBatch):
            self._batch.leave_at(states)
        else:
            self._batch.restore(states)

    def close(self) -> None:
        """End the machines, where there are any."""
        self._batch.close()


class TempestTeacher:
    """A teacher whose decisions of one tick are spread over a decision of ``frame_skip`` ticks.

    Args:
        teacher: decides every tick.
        frame_skip: ticks that one decision lasts.
    """

    def __init__(self, teacher: Teacher, frame_skip: int) -> None:
        self.teacher = teacher
        self.frame_skip = frame_skip

    def act(
        self, images: tuple[NDArray[np.void], NDArray[np.int16]]
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Knob counts and buttons, ``(N,)`` each; the knob turns as far as in one tick."""
        ram, pending = images
        spin, buttons = self.teacher.act(ram, pending if pending.shape[1] else None)
        if self.frame_skip > 1:
            # A full turn means "as fast as possible"; anything less is a distance.
            slower = np.round(spin / self.frame_skip).astype(np.int8)
            spin = np.where(np.abs(spin) >= SPINNER_MAX, spin, slower).astype(np.int8)
        return spin, buttons

    def state_dict(self) -> dict[str, Any]:
        """What the teacher remembers."""
        return self.teacher.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""
        self.teacher.load_state_dict(state)


def teacher_of(config: Config) -> TempestTeacher | None:
    """The configured teacher; None where there is none.

    Raises:
        UserError: there is none of that name.
    """
    if config.teacher.name == NO_TEACHER:
        return None
    if config.teacher.name not in TEACHER_NAMES:
        raise UserError(unknown_name("teacher", config.teacher.name, [*TEACHER_NAMES, NO_TEACHER]))
    teacher = make_teacher(config.teacher.name, config.run.seed)
    return TempestTeacher(teacher, config.game.frame_skip)
