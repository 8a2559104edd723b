"""Games played in this process."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempest_agent.agent.games.interface import Games, Teacher
from tempest_agent.agent.replay.rows import EXPERT, EXPLORATION, Rows

from .drivers import Drivers
from .plan_labeller import PlanLabeller
from .source import Abandoned, Act, Played


class LocalSource:
    """Games played in this process.

    Args:
        games: what is played.
        act: the student's greedy action.
        teacher: drives its segments and labels every state; None leaves everything to the
            student.
        drivers: draws the driver of each decision.
        labeller: values the plans of some states; None for no such labels.
    """

    def __init__(
        self,
        games: Games,
        act: Act,
        teacher: Teacher | None,
        drivers: Drivers,
        labeller: PlanLabeller | None = None,
    ) -> None:
        self.games, self.act, self.teacher, self.drivers = games, act, teacher, drivers
        self.labeller = labeller
        self.episode_start = np.ones(games.num_games, np.bool_)

    def play(self, expert_ratio: float, epsilon_floor: float) -> Played:
        """Play the next decision of every game; without a teacher ``expert_ratio`` is 0."""
        games, drivers = self.games, self.drivers
        codes = games.observe()
        zap_legal = games.zap_legal()
        driver = drivers.choose(expert_ratio if self.teacher else 0.0, epsilon_floor)
        own_spin, own_buttons = self.act(codes, zap_legal)
        images: Any = games.images() if self.teacher or self.labeller else None
        if self.teacher:
            label_spin, label_buttons = self.teacher.act(images)
        else:
            label_spin, label_buttons = np.zeros_like(own_spin), np.zeros_like(own_buttons)
        explores, expert = driver == EXPLORATION, driver == EXPERT
        spin = np.where(explores, drivers.held_spin, np.where(expert, label_spin, own_spin))
        buttons = np.where(expert, label_buttons, own_buttons)
        buttons = np.where(explores, drivers.held_buttons, buttons)
        # The games overwrite their observation in place; the replay needs the one acted on.
        codes = codes.copy()
        if self.labeller:
            self.labeller.see(*images)
        step = games.step(spin.astype(own_spin.dtype), buttons.astype(np.uint8))
        rows = Rows(
            codes=codes,
            spin=step.spin,
            buttons=step.buttons,
            reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated,
            episode_start=self.episode_start,
            zap_legal=zap_legal,
            driver=driver,
            label_spin=label_spin,
            label_buttons=label_buttons,
            labelled=np.full(driver.size, self.teacher is not None),
            final_codes=step.final_codes,
            final_zap_legal=step.final_zap_legal,
        )
        self.episode_start = step.game_over | step.terminated
        if step.game_over.any():
            drivers.forget(step.game_over)
        late = None
        if self.labeller:
            late = self.labeller.label(step.lost_lives(), step.game_over)
        return Played(rows, step, own_spin, own_buttons, late=late)

    def abandon(self) -> Abandoned:
        """Abandon all running games; the caller is about to reset them."""
        self.episode_start = np.ones_like(self.episode_start)
        self.drivers.forget(self.episode_start)
        if self.labeller:
            self.labeller.forget(self.episode_start)
        return Abandoned(self.episode_start, self.games.observe(), self.games.zap_legal())

    def figures(self) -> dict[str, float]:
        """Return nothing: the decisions themselves say it all."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        state = {
            "games": self.games.state_dict(),
            "drivers": self.drivers.state_dict(),
            "episode_start": self.episode_start,
        }
        if self.labeller:
            state["labels"] = self.labeller.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any], with_games: bool) -> None:
        if with_games:
            self.games.load_state_dict(state["games"])
        self.drivers.load_state_dict(state["drivers"])
        self.episode_start = np.asarray(state["episode_start"]).astype(np.bool_)
        if self.labeller and with_games:
            self.labeller.load_state_dict(state["labels"])
