"""Record demonstrations: games of a player, each stored as soon as it is complete."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from tempest_agent.demonstrations.dataset import (
    LAYOUT_KEY,
    data_set_exists,
    layout_digest,
    minari_module,
)
from tempest_agent.envs.api.tempest_env import TempestEnv
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError
from tempest_agent.evaluation.games import EvaluationGames
from tempest_agent.evaluation.players import PlayerChoice

ENV_ID = "tempest_agent:Tempest-v0"
INFO_NAMES = ("score", "level", "lives", "ticks", "deaths", "executed_spin", "executed_buttons")
"""Stored of every step's info; the first entry comes from the reset."""
SPARE = 4_000_000
"""Bytes of the disk that are kept free, for everything besides the games."""


class Recorder:
    """Plays games and adds each complete one to a data set.

    Args:
        player: who plays.
        games: which games, numbered as in the evaluation.
        dataset_id: the data set's name, such as ``tempest/expert-v0``.
        force: replace a data set of that name, once the first game is stored.

    Raises:
        UserError: minari is missing, the name is invalid, or the data set exists; from ``record``,
            the disk is nearly full.
    """

    def __init__(
        self, player: PlayerChoice, games: EvaluationGames, dataset_id: str, force: bool = False
    ) -> None:
        self._minari = minari_module()
        if data_set_exists(dataset_id) and not force:
            raise UserError(
                f"there is a data set {shown(dataset_id)} already: choose another name, "
                "or replace it with --force"
            )
        self.player, self.games, self.dataset_id = player, games, dataset_id
        self.env = gymnasium.make(
            ENV_ID,
            obs_type="features",
            start_level=games.level,
            bonus_life=games.bonus_life,
            frame_skip=player.frame_skip,
            max_ticks=games.max_ticks,
            input_delay=games.input_delay,
        )
        self._data_set: Any = None
        self._path: Path = self._minari.storage.get_dataset_path(dataset_id)

    def record(self, number: int, on_tick: Callable[[int], bool]) -> bool:
        """Play game ``number`` and store it.

        ``on_tick`` is called with the game's ticks and returns whether to continue.  Returns
        whether the game was played to its end; otherwise nothing of it is stored.
        """
        env = self.env.unwrapped
        assert isinstance(env, TempestEnv)
        seed = self.games.game_seed(number) % 2**63
        observation, info = self.env.reset(seed=seed)
        player = self.player.make(np.array([number]), self.games.seed)
        observations, infos = [observation], [info]
        spinner, pairs, rewards = [], [], []
        terminated = truncated = False
        while not (terminated or truncated):
            if not on_tick(int(info["ticks"])):
                return False
            spins, buttons = player.act(env.batch)
            spinner.append(np.array([spins[0] / SPINNER_MAX], np.float32))
            pairs.append(int(buttons[0]))
            action = {"buttons": pairs[-1], "spinner": spinner[-1]}
            observation, reward, terminated, truncated, info = self.env.step(action)
            observations.append(observation)
            rewards.append(float(reward))
            infos.append(info)
        ends = np.zeros((2, len(rewards)), np.bool_)
        ends[:, -1] = terminated, truncated
        shown = np.stack(observations)
        self._require_space(2 * shown.nbytes)  # The other columns are small.
        self._store(
            self._minari.data_collector.EpisodeBuffer(
                seed=seed,
                observations=shown,
                actions={"buttons": np.array(pairs, np.int64), "spinner": np.stack(spinner)},
                rewards=rewards,
                terminations=ends[0],
                truncations=ends[1],
                infos={name: np.array([i[name] for i in infos], np.int64) for name in INFO_NAMES},
            )
        )
        return True

    def close(self) -> None:
        """Close the environment, and compress what was recorded if there is room for a copy."""
        self.env.close()
        if self._data_set is not None:
            storage = self._data_set.storage
            for path in storage.data_path.glob("*.hdf5"):
                if self._free() > SPARE + path.stat().st_size:
                    _compress(path)
                    storage.update_metadata({"dataset_size": storage.get_size()})

    def _free(self) -> int:
        """Return the free bytes of the data set's disk."""
        return shutil.disk_usage(next(path for path in self._path.parents if path.exists())).free

    def _require_space(self, needed: int) -> None:
        # On a full disk HDF5 damages its file and ends the process.
        free = self._free()
        if free < SPARE + needed:
            raise UserError(
                f"the disk of {self._path} has {free / 1e6:.0f} MB left, too few for the next "
                f"game ({needed / 1e6:.0f} MB and {SPARE / 1e6:.0f} to spare): free some space; "
                "games that were complete before are kept"
            )

    def _store(self, episode: Any) -> None:
        if self._data_set is not None:
            self._data_set.update_dataset_from_buffer([episode])
            return
        older = self._path.with_name(f".{self._path.name}.older")
        if self._path.exists():
            shutil.rmtree(older, ignore_errors=True)
            self._path.rename(older)
        try:
            self._data_set = self._created(episode)
        except BaseException:
            shutil.rmtree(self._path, ignore_errors=True)
            if older.exists():
                older.rename(self._path)
            raise
        shutil.rmtree(older, ignore_errors=True)

    def _created(self, episode: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari's, about optional metadata.
            data_set = self._minari.create_dataset_from_buffers(
                self.dataset_id,
                [episode],
                env=self.env,
                algorithm_name=self.player.name,
                description=f"Tempest (1981), {self.player.description}",
                requirements=[f"tempest-agent=={metadata.version('tempest-agent')}"],
                jpeg_encoding=False,
            )
        data_set.storage.update_metadata({LAYOUT_KEY: layout_digest()})
        return data_set


def _compress(path: Path) -> None:
    """Rewrite an HDF5 file with all its arrays compressed."""
    import h5py

    def copy(source: Any, target: Any) -> None:
        target.attrs.update(source.attrs)
        for name, item in source.items():
            if isinstance(item, h5py.Group):
                copy(item, target.create_group(name, track_order=True))
            else:
                made = target.create_dataset(
                    name, data=item[()], chunks=True, compression="gzip", shuffle=True
                )
                made.attrs.update(item.attrs)

    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    with h5py.File(path) as old, h5py.File(temporary, "x", track_order=True) as new:
        copy(old, new)
    temporary.replace(path)
