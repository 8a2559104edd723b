"""``TempestVectorEnv``: many games as one Gymnasium vector environment, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .actions import action_form
from .arcade.memory import as_bytes
from .backend import make_batch
from .batch import NO_OUTPUT, StepOutput
from .buffers import BufferPool
from .features import NUM_FEATURES
from .free_memory import too_large
from .information import describe_games, describe_report
from .observations import observation_of
from .options import EnvOptions
from .report import REPORT_ROWS
from .rewards import REWARD_PARTS, Rewards
from .saved_states import SAVED_SIZE, restore_saved, saved_states
from .screen import Screen
from .seeds import check_seed
from .tempest_env import TICKS_PER_SECOND, check_reset_options


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
            limits = [max_episode_steps, options.get("max_steps") or max_episode_steps]
            options = {**options, "max_steps": min(limits)}
        _require_memory(num_envs)
        self.options = EnvOptions.from_keywords({**options, "render_mode": render_mode})
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        # On the instance: a change of the class would reach every other vector environment.
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": ["rgb_array"],
            "render_fps": TICKS_PER_SECOND,
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
            observe=self.options.obs_type == "features",
            num_threads=num_threads,
        )
        self.single_action_space = self._form.space
        self.action_space = self._form.batched(num_envs)
        self.single_observation_space = self._observation.space
        self.observation_space = batch_space(self._observation.space, num_envs)
        features = self.options.obs_type == "features"
        self._floats = BufferPool((num_envs, NUM_FEATURES), np.float32) if features else None
        self._rewards = Rewards(self.options.reward, num_envs)
        self._screen = Screen(*self.options.render_size)
        self._next_seed = self.options.seed
        self._ended = np.zeros(num_envs, np.bool_)
        self._started = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin new games.

        ``seed``: ``s`` gives game ``i`` the seed ``s + i``; a list gives each its own.
        ``options={"reset_mask": mask}``: only where the bool array ``mask`` is True.
        """
        check_reset_options(options, ("reset_mask",))
        for each in seed if isinstance(seed, (Sequence, np.ndarray)) else [seed]:
            check_seed(each)
        mask = self._reset_mask((options or {}).get("reset_mask"))
        if seed is None and not self._started:
            seed = self._next_seed
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
        self.batch.reset(mask, seed)
        self._rewards.begin(self.batch.ram, mask)
        self._ended[mask] = False
        self._started = True
        info = describe_games(self.batch.games, self.batch.ram)
        return self._observe(), _masked({**info, **self._no_rewards()}, mask)

    def step(
        self, actions: Any
    ) -> tuple[
        NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Play one step of every game; ``ValueError`` where ``actions`` do not fit the space."""
        waiting = self._ended
        if self.autoreset_mode == AutoresetMode.DISABLED and waiting.any():
            raise RuntimeError(
                f"games {np.flatnonzero(waiting).tolist()} are over: with autoreset disabled, "
                "call reset(options={'reset_mask': terminated | truncated}) before the next step"
            )
        batch = self.batch
        spin, buttons = self._form.decode(actions, self.num_envs)
        out = self._new_output()
        # Games that are over take no part in this, whatever their action.
        points, terminated, truncated = batch.step(spin, buttons, out)
        self._ended = terminated | truncated
        any_ended = self.autoreset_mode == AutoresetMode.SAME_STEP and bool(self._ended.any())
        parts = self._reward_parts(points, terminated, any_ended)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP and waiting.any():
            batch.reset(waiting)
            batch.fill(out, waiting)
            self._rewards.begin(batch.ram, waiting)
            self._ended &= ~waiting
            for part in parts.values():
                part[waiting] = 0.0
        shown = parts
        if any_ended:
            # The step's parts belong to the old game: info shows the new one.
            shown = {name: np.where(self._ended, 0.0, part) for name, part in parts.items()}
        info = _masked({**describe_report(out.report, batch.games), **shown}, None)
        if any_ended:
            self._add_endings(info, parts)
        rewards = parts["reward_points"] + parts["reward_death"] + parts["reward_shaping"]
        observations = self._observe() if self._floats is None else out.observations
        return observations, rewards, terminated.copy(), truncated.copy(), info

    def ram(self) -> NDArray[np.uint8]:
        """A copy of every machine's RAM, uint8 ``(num_envs, 2048)``."""
        return as_bytes(self.batch.ram).copy()

    def clone_states(self) -> NDArray[np.uint8]:
        """The whole state of every game, uint8, a row each: the vector form of ``clone_state()``.

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
        self._ended = self.batch.games["status"] != 0
        self._started = True
        return self._observe()

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """With ``render_mode="rgb_array"`` a picture of every game."""
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

    def _new_output(self) -> StepOutput:
        return StepOutput(
            NO_OUTPUT.observations if self._floats is None else self._floats.take(),
            np.empty((REPORT_ROWS, self.num_envs), np.int64),
        )

    def _no_rewards(self) -> dict[str, NDArray[np.float64]]:
        return {name: np.zeros(self.num_envs) for name in REWARD_PARTS}

    def _reward_parts(
        self, points: NDArray[np.int32], terminated: NDArray[np.bool_], any_ended: bool
    ) -> dict[str, NDArray[np.float64]]:
        batch = self.batch
        lives_lost = batch.games["step_deaths"]
        ram = batch.ram
        if any_ended:
            lives_lost = np.where(self._ended, batch.last_games["step_deaths"], lives_lost)
            if self.options.reward.shaping:
                ram = ram.copy()
                ram[self._ended] = batch.last_ram[self._ended]
        parts = self._rewards.step(points, lives_lost, ram, terminated)
        if any_ended:
            self._rewards.begin(batch.ram, self._ended)
        return parts

    def _add_endings(self, info: dict[str, Any], parts: dict[str, NDArray[np.float64]]) -> None:
        """Same-step autoreset: what the finished games showed last."""
        ended = self._ended
        batch = self.batch
        codes = batch.last_codes[ended] if self.options.obs_type == "features" else batch.last_codes
        shown = self._observation.make(codes, batch.last_ram[ended])
        final = np.full(self.num_envs, None, object)
        for game, observation in zip(np.flatnonzero(ended), shown, strict=True):
            final[game] = observation
        last = {**describe_games(batch.last_games, batch.last_ram), **parts}
        info["final_obs"], info["_final_obs"] = final, ended.copy()
        info["final_info"], info["_final_info"] = _masked(last, ended), ended.copy()

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


def _require_memory(num_envs: object) -> None:
    """``ValueError`` for a number of games that is none, or more than memory holds."""
    whole = isinstance(num_envs, (int, np.integer)) and not isinstance(num_envs, bool)
    if not whole or num_envs < 1:  # type: ignore[operator]
        raise ValueError(f"num_envs={num_envs!r}: a whole number of at least 1 is needed")
    problem = too_large(int(num_envs) * SAVED_SIZE)  # type: ignore[call-overload]
    if problem is not None:
        raise ValueError(f"num_envs={num_envs} {problem}: make fewer games")


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        values = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ValueError(f"autoreset_mode={mode!r}: one of {values}") from None


def _masked(arrays: dict[str, NDArray[Any]], mask: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Info arrays with a mask beside each; entries outside of ``mask`` are blank."""
    shown = np.ones(len(next(iter(arrays.values()))), np.bool_) if mask is None else mask.copy()
    if mask is not None and not mask.all():
        arrays = {name: _blank_elsewhere(values, mask) for name, values in arrays.items()}
    return {**arrays, **dict.fromkeys([f"_{name}" for name in arrays], shown)}


def _blank_elsewhere(values: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    blank: Any = None if values.dtype == object else values.dtype.type(0)
    return np.where(mask, values, blank)
