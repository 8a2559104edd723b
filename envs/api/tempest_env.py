"""``TempestEnv``: the game as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.saved_states import SAVED_SIZE, restore_saved, saved_states
from tempest_agent.envs.engine.seeds import check_seed
from tempest_agent.envs.machine.memory import as_bytes
from tempest_agent.envs.messages import shown

from .action_spaces import action_form
from .backend import make_batch
from .info import describe_games
from .observations import FEATURE_TYPES, PLAIN, observation_of
from .options import RENDER_MODES, EnvOptions
from .rewards import REWARD_PARTS, Rewards
from .screen import Screen, window_possible

RENDER_FPS = 27
"""Pictures in a second as Gymnasium's tools take it, a whole number; ``human`` keeps to 27.34."""
_STATE_HEAD = b"TEMPEST2"


class TempestEnv(gym.Env[NDArray[Any], Any]):
    """Atari's Tempest (1981), one game.

    One step is one game tick (27.34 a second), and more where ``frame_skip`` holds the action or
    ``skip_idle`` plays ticks that need no decision; see ``GameBatch`` for both.

    Args:
        render_mode: ``None``, ``"human"`` (a window) or ``"rgb_array"``.
        **options: those of ``EnvOptions``, ``GameSettings`` and ``RewardSettings``.

    ``info`` holds what ``describe_games`` lists, and the parts of the reward: ``reward_points``,
    ``reward_death``, ``reward_shaping``.  ``reward`` is their sum.

    Raises ``ValueError`` or ``TypeError`` for options that the game does not have, and
    ``DisplayUnavailable`` for ``"human"`` without a display.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as the base class declares it)
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
    }

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        self.options = EnvOptions.from_keywords({**options, "render_mode": render_mode})
        self.render_mode = render_mode
        self._form = action_form(self.options.action_type, self.options.spinner_knots)
        self._observation = observation_of(self.options.obs_type, self.options.screen_size)
        self.action_space = self._form.space
        self.observation_space = self._observation.space
        self.batch = make_batch(
            1,
            self.options.game,
            self.options.machine,
            observe=self.options.obs_type in FEATURE_TYPES,
            plain=self.options.obs_type == PLAIN,
        )
        self._rewards = Rewards(self.options.reward, 1)
        self._screen = Screen(*self.options.render_size)
        if not window_possible():
            # Offer what this machine has; the class keeps naming both modes.
            self.metadata = {**self.metadata, "render_modes": ["rgb_array"]}
        if render_mode == "human":
            self._screen.open_window()
        self._next_seed = self.options.seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start a new game.

        With ``seed`` the random stream restarts; without, it continues.
        """
        check_reset_options(options, ())
        check_seed(seed)
        seed = self._next_seed if seed is None else seed
        self._next_seed = None
        super().reset(seed=None if seed is None else int(seed))
        self.batch.reset(seeds=seed)
        self._begin()
        return self.observe(), self._info()

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Play one step; ``ValueError`` if ``action`` does not fit the action space."""
        spin, buttons = self._form.decode(self._form.single(action), 1)
        points, terminated, truncated = self.batch.step(spin, buttons)
        rewards, parts = self._rewards.step(
            points, self.batch.games["step_deaths"], self.batch.ram, terminated
        )
        info = self._info({name: float(part[0]) for name, part in parts.items()})
        if self.render_mode == "human":
            self._screen.show(self.batch.ram[0], info["score"])
        return self.observe(), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def observe(self) -> NDArray[Any]:
        """Return the observation of the present state."""
        made: NDArray[Any] = self._observation.make(self.batch.codes, self.batch.ram)[0]
        return made

    def ram(self) -> NDArray[np.uint8]:
        """Return a copy of the machine's RAM, uint8 ``(2048,)``."""
        return as_bytes(self.batch.ram)[0].copy()

    def clone_state(self) -> bytes:
        """Return the whole state: RAM, random stream, score, counters, pending inputs."""
        return _STATE_HEAD + saved_states(self.batch).tobytes()

    def restore_state(self, state: bytes) -> NDArray[Any]:
        """Go back to a state of ``clone_state()``, and return its observation.

        The state may come from another instance with the same ``input_delay``; the options stay
        those of this one.  Raises ``ValueError`` for anything else.
        """
        if not isinstance(state, bytes) or len(state) != len(_STATE_HEAD) + SAVED_SIZE:
            size = f"{len(state)} bytes" if isinstance(state, bytes) else type(state).__name__
            raise ValueError(
                f"state is {size}, not what clone_state() returns: pass that unchanged"
            )
        if not state.startswith(_STATE_HEAD):
            raise ValueError(
                "state does not start like a clone_state() of this version: "
                "clone it again with the installed version"
            )
        body = np.frombuffer(state, np.uint8, offset=len(_STATE_HEAD))
        restore_saved(self.batch, body.reshape(1, SAVED_SIZE))
        self._begin()
        return self.observe()

    def render(self) -> NDArray[np.uint8] | None:
        """Return the picture for ``render_mode="rgb_array"``, uint8 ``(height, width, 3)``."""
        if self.render_mode == "rgb_array":
            return self._screen.draw(self.batch.ram[0], int(self.batch.games["score"][0]))
        if self.render_mode == "human":
            self._screen.show(self.batch.ram[0], int(self.batch.games["score"][0]))
            return None
        gym.logger.warn(
            "render() without a render_mode draws nothing: "
            "make the environment with render_mode='rgb_array' or 'human'"
        )
        return None

    def close(self) -> None:
        """Close the window and end the threads; may be called twice."""
        self._screen.close()
        self.batch.close()

    def _begin(self) -> None:
        self._rewards.begin(self.batch.ram, np.ones(1, np.bool_))
        if self.render_mode == "human":
            self._screen.show(self.batch.ram[0], int(self.batch.games["score"][0]))

    def _info(self, rewards: dict[str, float] | None = None) -> dict[str, Any]:
        arrays = describe_games(self.batch.games, self.batch.ram)
        info: dict[str, Any] = {name: values.item(0) for name, values in arrays.items()}
        if rewards is None:
            rewards = dict.fromkeys(REWARD_PARTS, 0.0)
        return {**info, **rewards}


def check_reset_options(options: dict[str, Any] | None, known: tuple[str, ...]) -> None:
    """Raise ``ValueError`` for an entry of ``reset(options=...)`` that is not in ``known``.

    ``TypeError`` where ``options`` is neither ``None`` nor a dictionary.
    """
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"reset(options={shown(options)}): a dictionary or None is needed")
    for name in options or {}:
        if name not in known:
            offer = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ValueError(
                f"reset(options=...) has the unknown entry {shown(name)}: {offer}; "
                "settings of the game are given to make()"
            )
