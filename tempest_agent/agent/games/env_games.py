"""Any Stable-Baselines3 vector environment as games that the student can be trained on.

Observations are stored as exactly as their type asks for: features of Tempest as the int8 codes
they come from, uint8 as it is, float16 as it is, everything else as float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.envs.api.action_spaces import HybridActions
from tempest_agent.envs.api.episode_statistics import EpisodeStatistics
from tempest_agent.envs.api.sb3_vec_env import GymVecEnv, require_rewards
from tempest_agent.envs.features.layout import ZAP_LEGAL_FEATURE
from tempest_agent.errors import UserError, brief, one_line

from .action_forms import FINE, form_of
from .interface import Step
from .spaces import action_space, observation_space
from .tempest_games import PLAIN_LAYOUT, TEMPEST_LAYOUT

_COLLECTORS = ("stable_baselines3.", "gymnasium.vector.")
"""Modules that put together what single environments give."""


def layout_of(observation: spaces.Space[Any], action: spaces.Space[Any]) -> Layout:
    """The layout of an environment with these spaces.

    Raises:
        UserError: the observation is no ``Box``, or the action not one HybridDQN can take.
    """
    if not isinstance(observation, spaces.Box):
        raise UserError(
            f"HybridDQN needs a Box of numbers to observe, not {brief(observation)}; wrap the "
            "environment in gymnasium.wrappers.FlattenObservation"
        )
    for layout in (TEMPEST_LAYOUT, PLAIN_LAYOUT):
        if observation == observation_space(layout) and (
            action in (action_space(), HybridActions().space)
        ):
            return layout
    if action == action_space():
        raise UserError(
            f"three numbers as an action, {brief(action)}, are understood only for Tempest's "
            "features; make the environment with action_type='hybrid'"
        )
    if not math.prod(observation.shape):
        raise UserError(
            f"the observation {brief(observation)} has no numbers: there is nothing to see"
        )
    exact = observation.dtype in (np.uint8, np.float16)
    return Layout(
        num_features=math.prod(observation.shape),
        num_pairs=form_of(action).num_pairs,
        counts=FINE,
        stored=str(observation.dtype) if exact else "float32",
        fire_and_zap=False,
    )


class EnvGames:
    """The environments of ``env``, one game each.

    An episode that ``env`` reports as cut (``TimeLimit.truncated``) is bootstrapped on its
    ``terminal_observation``; other ends are terminations.

    Args:
        env: steps the environments and begins finished ones anew, as SB3's vector environments do.

    Attributes:
        infos: of the last step, one dictionary per environment, ``episode`` in those that ended.

    Raises:
        UserError: spaces that HybridDQN cannot play in; from ``step`` and ``reset``, numbers that
            are not finite or an episode without its last observation.
    """

    def __init__(self, env: VecEnv) -> None:
        self.env = env
        self.num_games = env.num_envs
        self.layout = layout_of(env.observation_space, env.action_space)
        self._form = form_of(env.action_space)
        shape = (self.num_games, self.layout.num_features)
        self._codes: NDArray[Any] = np.zeros(shape, self.layout.stored)
        self._episodes = EpisodeStatistics(self.num_games)
        self.infos: list[dict[str, Any]] = [{} for _ in range(self.num_games)]

    def begin(self, observation: Any) -> None:
        """Go on from the observations ``(N, ...)`` of environments that were just reset."""
        self._codes = self._stored(observation)
        self._episodes.reset()

    def reset(self) -> None:
        """Begin all games anew."""
        self.begin(self.env.reset())

    def observe(self) -> NDArray[Any]:
        """The present observations as they are stored, ``(N, F)``."""
        return self._codes

    def zap_legal(self) -> NDArray[np.bool_]:
        """Whether Tempest's zap would do something; True in other environments, ``(N,)``."""
        return self._legal(self._codes)

    def images(self) -> Any:
        """Nothing: teachers play the arcade's own games.

        Raises:
            UserError: always.
        """
        raise UserError(
            "a teacher reads the arcade's RAM images, which this environment does not give; train "
            "with teacher=None or on GamesVecEnv(TempestGames(...))"
        )

    def step(self, spin: NDArray[Any], buttons: NDArray[np.uint8]) -> Step:
        """Play one decision of every environment: counts ``(N,)`` and discrete values ``(N,)``."""
        if self.layout.fire_and_zap:
            buttons = np.where(self.zap_legal(), buttons, buttons & 1).astype(np.uint8)
        position = spin / self.layout.counts
        batched = isinstance(self.env, GymVecEnv)
        actions = (self._form.batch if batched else self._form.each)(buttons, position)
        observation, reward, done, infos = self._stepped(actions)
        done = np.asarray(done, np.bool_)
        # All is looked at before anything is kept: what the replay holds stays sound.
        stored_reward = _numbers(np.asarray(reward), "float32", "reward")
        final = self._stored(observation)
        codes = final.copy()
        for game in np.flatnonzero(done).tolist():
            final[game] = self._stored(_terminal(infos[game], game), game)[0]
        self._codes = codes
        truncated = np.zeros(self.num_games, np.bool_)
        self._episodes.add(reward)
        score = self._episodes.returns.copy()
        for game, episode in self._episodes.pop(done).items():
            truncated[game] = bool(infos[game].get("TimeLimit.truncated", False))
            infos[game].setdefault("episode", episode)
        self.infos = list(infos)
        return Step(
            reward=stored_reward,
            terminated=done & ~truncated,
            truncated=truncated,
            game_over=done,
            score=score,  # type: ignore[arg-type]
            spin=spin,
            buttons=buttons,
            final_codes=final,
            final_zap_legal=self._legal(final),
        )

    def _stepped(self, actions: Any) -> Any:
        """What the environments say to ``actions``.

        Raises:
            UserError: not one reward each, or what SB3 and Gymnasium cannot put together.
        """
        try:
            observation, reward, done, infos = self.env.step(actions)
        except (TypeError, ValueError) as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
            if not module.startswith(_COLLECTORS):
                raise  # A fault inside of the environment is its own.
            raise UserError(
                f"an environment's step() gave what does not fit ({one_line(error)}): give one "
                "number as the reward, and an observation of its space"
            ) from error
        require_rewards(reward, self.num_games)
        return observation, reward, done, infos

    def state_dict(self) -> dict[str, Any]:
        """The present observations: where a return must end if the games are not gone on with."""
        return {"observation": self._codes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the observations; the environments themselves have to be begun anew."""
        self._codes = np.asarray(state["observation"]).astype(self.layout.stored)

    def _stored(self, observation: Any, first: int = 0) -> NDArray[Any]:
        """Observations ``(M, ...)`` of the environments from ``first`` on as they are kept."""
        flat = np.asarray(observation).reshape(len(observation), -1)
        if self.layout.stored == "int8":
            _check(np.abs(flat) <= 1.0, flat, "observation", "is no feature from -1 to 1", first)
            return np.rint(flat * 127.0).astype(np.int8)
        return _numbers(flat, self.layout.stored, "observation", first)

    def _legal(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        if self.layout.fire_and_zap:
            return codes[:, ZAP_LEGAL_FEATURE] > 0
        return np.ones(len(codes), np.bool_)


def _numbers(given: NDArray[Any], dtype: str, what: str, first: int = 0) -> NDArray[Any]:
    """``given`` as ``dtype``; rows are environments from ``first`` on.

    Raises:
        UserError: there is NaN or infinity, or a number that is too large for ``dtype``.
    """
    with np.errstate(over="ignore"):
        kept = given.astype(dtype)
    if kept.dtype.kind == "f":
        _check(np.isfinite(kept), given, what, f"is no finite {dtype}", first)
    return kept


def _check(sound: NDArray[Any], given: NDArray[Any], what: str, fault: str, first: int) -> None:
    if not sound.all():
        place = tuple(np.argwhere(~sound)[0])
        entry = f" (entry {place[1]})" if given.ndim > 1 else ""
        raise UserError(
            f"environment {first + place[0]} gave the {what} {given[place]}{entry}, which {fault} "
            "and would spoil the replay: mend the environment, or the wrapper that scales it"
        )


def _terminal(info: dict[str, Any], game: int) -> Any:
    """The last observation ``(1, ...)`` of an episode of environment ``game``.

    Raises:
        UserError: there is none.
    """
    if info.get("terminal_observation") is None:
        raise UserError(
            f"environment {game} ended an episode without info['terminal_observation'], which "
            "cut episodes are valued by: a VecEnv puts the last observation there before it "
            "resets, as DummyVecEnv does"
        )
    return np.asarray(info["terminal_observation"])[None]
