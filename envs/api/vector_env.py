"""``TempestVectorEnv``: many games as one Gymnasium vector environment, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tempest_agent.envs.checks import check_one_of, check_whole, is_whole
from tempest_agent.envs.engine.batch import MOST_GAMES, StepOutput
from tempest_agent.envs.engine.report import REPORT_SIZE, REPORTED
from tempest_agent.envs.engine.saved_states import SAVED_SIZE, restore_saved, saved_states
from tempest_agent.envs.engine.seeds import check_seed, listed_seeds
from tempest_agent.envs.engine.settings import LARGEST_LIMIT
from tempest_agent.envs.engine.step_kernels import ENDED, NOTED, REFUSED
from tempest_agent.envs.free_memory import too_large
from tempest_agent.envs.machine.memory import as_bytes
from tempest_agent.envs.messages import shown

from .action_spaces import action_form
from .backend import make_batch
from .info import cause_names, describe_games, masked, no_names
from .observations import FEATURE_TYPES, PLAIN, observation_of
from .options import EnvOptions
from .rewards import REWARD_PARTS, Rewards
from .screen import Screen
from .tempest_env import RENDER_FPS, check_reset_options


class TempestVectorEnv(VectorEnv[NDArray[Any], Any, NDArray[Any]]):
    """``num_envs`` games of Tempest, each the same as a ``TempestEnv`` of its seed.

    Args:
        num_envs: number of games.
        render_mode: ``None`` or ``"rgb_array"``.
        max_episode_steps: truncate games after so many steps (like ``max_steps``).
        autoreset_mode: an ``AutoresetMode`` or its value: ``"NextStep"`` (the step after the end
            ignores its action and returns the new game's first observation with reward 0),
            ``"SameStep"`` (the new game's first observation comes at once, the old game's last one
            in ``info["final_obs"]``) or ``"Disabled"`` (finished games wait for ``reset`` with
            ``options={"reset_mask": ...}``).
        num_threads: threads that share the games.  The results do not depend on it.
        **options: as for ``TempestEnv``.

    ``info`` holds arrays with an entry per game; ``_name`` says for which games ``name`` is set.
    A step returns new arrays; of ``info``, the masks and what is empty or 0 everywhere are
    read-only.

    Raises ``ValueError`` or ``TypeError`` for options that the game does not have.
    """

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int = 1,
        **options: Any,
    ) -> None:
        if render_mode == "human":
            raise ValueError(
                "render_mode='human': a window shows one game; make it with gymnasium.make()"
            )
        if max_episode_steps is not None:
            hint = "None leaves max_steps as it is"
            check_whole("max_episode_steps", max_episode_steps, 1, LARGEST_LIMIT, hint)
            own = options.get("max_steps")
            if own is None or (is_whole(own) and own > max_episode_steps):
                options = {**options, "max_steps": max_episode_steps}
        _require_memory(num_envs)
        self.options = EnvOptions.from_keywords({**options, "render_mode": render_mode})
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        # On the instance: a change of the class would reach every other vector environment.
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": ["rgb_array"],
            "render_fps": RENDER_FPS,
        }
        self.num_envs = num_envs
        self.render_mode = render_mode
        self._form = action_form(self.options.action_type, self.options.spinner_knots)
        self._observation = observation_of(self.options.obs_type, self.options.screen_size)
        self.batch = make_batch(
            num_envs,
            self.options.game,
            self.options.machine,
            autoreset=self.autoreset_mode == AutoresetMode.SAME_STEP,
            observe=self.options.obs_type in FEATURE_TYPES,
            plain=self.options.obs_type == PLAIN,
            num_threads=num_threads,
        )
        self.single_action_space = self._form.space
        self.action_space = self._form.batched(num_envs)
        self.single_observation_space = self._observation.space
        self.observation_space = batch_space(self._observation.space, num_envs)
        self._rewards = Rewards(self.options.reward, num_envs)
        self._screen = Screen(*self.options.render_size)
        self._next_seed = self.options.seed
        self._float_games = num_envs if self.options.obs_type in FEATURE_TYPES else 0
        self._quiet_info = _quiet_info(num_envs)
        self._over: NDArray[np.bool_] | None = None
        """The games that are over since the last step; ``None`` where none is."""
        self._started = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start new games.

        ``seed``: ``s`` gives game ``i`` the seed ``s + i``; a list gives each its own.
        ``options={"reset_mask": mask}``: only where the bool array ``mask`` is True.
        """
        check_reset_options(options, ("reset_mask",))
        each = listed_seeds(seed, self.num_envs)
        for one in [seed] if each is None else each:
            check_seed(one)
        mask = self._reset_mask((options or {}).get("reset_mask"))
        if seed is None and not self._started:
            seed = self._next_seed
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
        self.batch.reset(mask, seed)
        self._rewards.begin(self.batch.ram, mask)
        if self._over is not None:
            self._over = _some(self._over & ~mask)
        self._started = True
        info = describe_games(self.batch.games, self.batch.ram)
        return self._observe(), masked({**info, **self._no_rewards()}, mask)

    def step(
        self, actions: Any
    ) -> tuple[
        NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Play one step of every game; ``ValueError`` if ``actions`` do not fit the space."""
        waiting = self._over
        if waiting is not None and self.autoreset_mode == AutoresetMode.DISABLED:
            raise RuntimeError(
                f"games {shown(np.flatnonzero(waiting).tolist())} are over: with autoreset "
                "disabled, call reset(options={'reset_mask': terminated | truncated}) before the "
                "next step"
            )
        out = StepOutput(
            np.empty((self._float_games, self.batch.num_codes), np.float32),
            np.empty((self.num_envs, REPORT_SIZE), np.int64),
            np.empty((2, self.num_envs), np.bool_),
            np.empty((2, self.num_envs)),
            float(self.options.reward.reward_scale),
        )
        happened = self._play(actions, out)
        rewards, points = out.rewards
        terminated, truncated = out.ends
        info: dict[str, Any] = dict(zip(REPORTED, out.report.T, strict=True))
        info.update(self._quiet_info, reward_points=points)
        if waiting is not None or happened != 0 or not self._rewards.only_points:
            rewards = self._add_events(info, out, happened, waiting)
        observations = out.observations if self._float_games else self._observe()
        return observations, rewards, terminated, truncated, info

    def ram(self) -> NDArray[np.uint8]:
        """Return a copy of every machine's RAM, uint8 ``(num_envs, 2048)``."""
        return as_bytes(self.batch.ram).copy()

    def clone_states(self) -> NDArray[np.uint8]:
        """Return the whole state of every game, uint8, one row a game.

        A state is the RAM image, random stream, score, counters and pending inputs.
        """
        return saved_states(self.batch)

    def restore_states(self, states: NDArray[np.uint8]) -> NDArray[Any]:
        """Go back to states of ``clone_states()``, and return their observations.

        They may come from another instance with as many games and the same ``input_delay``.
        Raises ``ValueError`` for anything else.
        """
        restore_saved(self.batch, states)
        self._rewards.begin(self.batch.ram, np.ones(self.num_envs, np.bool_))
        self._over = _some(self.batch.games["status"] != 0)
        self._started = True
        return self._observe()

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Return a picture of every game if ``render_mode`` is ``"rgb_array"``."""
        if self.render_mode is None:
            gym.logger.warn(
                "render() without a render_mode draws nothing: "
                "make the environment with render_mode='rgb_array'"
            )
            return None
        scores = self.batch.games["score"]
        return tuple(
            self._screen.draw(image, int(score))
            for image, score in zip(self.batch.ram, scores, strict=True)
        )

    def close_extras(self, **_kwargs: Any) -> None:
        """End the threads."""
        self._screen.close()
        self.batch.close()

    def _observe(self) -> NDArray[Any]:
        return self._observation.make(self.batch.codes, self.batch.ram)

    def _no_rewards(self) -> dict[str, NDArray[np.float64]]:
        return {name: np.zeros(self.num_envs) for name in REWARD_PARTS}

    def _play(self, actions: Any, out: StepOutput) -> int:
        """Play one step of the games that are not over, and fill ``out``; return what happened."""
        parts = self._form.parts(actions)
        if parts is not None and self.batch.play_actions is not None:
            try:
                happened = self.batch.play_actions(*parts, *out)
            except TypeError:  # Not the kernel's types of arrays.
                happened = REFUSED
            if happened != REFUSED:
                return happened
        self.batch.step(*self._form.decode(actions, self.num_envs), out)
        return self.batch.happened

    def _add_events(
        self,
        info: dict[str, Any],
        out: StepOutput,
        happened: int,
        waiting: NDArray[np.bool_] | None,
    ) -> NDArray[np.float64]:
        """Return the rewards of a step, and in ``info`` what not every step has.

        ``waiting``: games that were over before.
        """
        batch = self.batch
        ended = batch.terminated | batch.truncated if happened & ENDED else None
        renewed = ended if self.autoreset_mode == AutoresetMode.SAME_STEP else None
        rewards, parts = self._reward_parts(renewed)
        if waiting is not None:
            self._reset_finished(waiting, out)
            for values in (rewards, *parts.values()):
                values[waiting] = 0.0
            ended = _some(batch.terminated | batch.truncated)
        self._over = ended if renewed is None else None
        info.update(parts)
        if happened & NOTED:
            info["death_cause"], info["terminal_cause"] = cause_names(batch.games)
        if renewed is not None:
            # The step's parts belong to the old game: info shows the new one.
            info.update({name: np.where(renewed, 0.0, part) for name, part in parts.items()})
            self._add_endings(info, parts, renewed)
        return rewards

    def _reward_parts(
        self, renewed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Return the step's rewards and their parts; the games in ``renewed`` were reset since."""
        batch = self.batch
        lives_lost = batch.games["step_deaths"]
        ram = batch.ram
        if renewed is not None:
            lives_lost = np.where(renewed, batch.last_games["step_deaths"], lives_lost)
            if self.options.reward.shaping:
                ram = ram.copy()
                ram[renewed] = batch.last_ram[renewed]
        made = self._rewards.step(batch.points, lives_lost, ram, batch.terminated)
        if renewed is not None:
            self._rewards.begin(batch.ram, renewed)
        return made

    def _reset_finished(self, waiting: NDArray[np.bool_], out: StepOutput) -> None:
        """Reset games that were over: this step is their first (next-step autoreset)."""
        self.batch.reset(waiting)
        self.batch.fill(out, waiting)
        self._rewards.begin(self.batch.ram, waiting)

    def _add_endings(
        self,
        info: dict[str, Any],
        parts: dict[str, NDArray[np.float64]],
        ended: NDArray[np.bool_],
    ) -> None:
        """Add the finished games' last observations and infos (same-step autoreset)."""
        batch = self.batch
        codes = batch.last_codes[ended] if self._float_games else batch.last_codes
        last_seen = self._observation.make(codes, batch.last_ram[ended])
        final = np.full(self.num_envs, None, object)
        for game, observation in zip(np.flatnonzero(ended), last_seen, strict=True):
            final[game] = observation
        last = {**describe_games(batch.last_games, batch.last_ram), **parts}
        info["final_obs"], info["_final_obs"] = final, ended.copy()
        info["final_info"], info["_final_info"] = masked(last, ended), ended.copy()

    def _reset_mask(self, mask: Any) -> NDArray[np.bool_]:
        every = np.ones(self.num_envs, np.bool_)
        if mask is None:
            return every
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            kind = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
            raise TypeError(
                f"reset_mask is of type {kind}: a NumPy array of bools is needed, "
                "for example terminated | truncated"
            )
        if mask.shape != (self.num_envs,):
            raise ValueError(
                f"reset_mask has shape {mask.shape}: one bool per game is needed, "
                f"shape ({self.num_envs},)"
            )
        if not mask.any():
            raise ValueError("reset_mask is False everywhere: it has to choose at least one game")
        if not self._started and not mask.all():
            raise ValueError(
                "reset_mask leaves out games that have never been reset: "
                "call reset() without a mask first"
            )
        return mask.copy()


def _quiet_info(num_envs: int) -> dict[str, NDArray[Any]]:
    """Return the parts of ``info`` that most steps share, as read-only arrays."""
    zeros, everywhere = np.zeros(num_envs), np.ones(num_envs, np.bool_)
    zeros.flags.writeable = everywhere.flags.writeable = False
    causes = dict.fromkeys(("death_cause", "terminal_cause"), no_names(num_envs))
    names = (*REPORTED, *causes, *REWARD_PARTS)
    masks = dict.fromkeys([f"_{name}" for name in names], everywhere)
    return {**causes, **dict.fromkeys(REWARD_PARTS, zeros), **masks}


def _require_memory(num_envs: int) -> None:
    """Raise ``ValueError`` for a wrong number of games, or more than memory holds."""
    check_whole("num_envs", num_envs, 1, MOST_GAMES, "it is the number of games")
    problem = too_large(int(num_envs) * SAVED_SIZE)
    if problem is not None:
        raise ValueError(f"num_envs={num_envs} {problem}: make fewer games")


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    if isinstance(mode, AutoresetMode):
        return mode
    check_one_of("autoreset_mode", mode, [each.value for each in AutoresetMode])
    return AutoresetMode(mode)


def _some(mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return ``mask``, or ``None`` if it is False throughout."""
    return mask if mask.any() else None
