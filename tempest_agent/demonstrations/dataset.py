"""Read demonstrations: games of a player stored as a Minari data set.

Minari (https://minari.farama.org) is the format of Gymnasium's community for recorded games.
Observations are the environment's default ones, float32 features, so that a reader can make the
environment from the data set and continue in the same spaces.  A feature is a code / 127, so the
replay's int8 codes are restored exactly.  Most features are 0: the finished file is compressed,
which every HDF5 reader undoes by itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tempest_agent.config import GameConfig
from tempest_agent.envs.api.observations import PLAIN
from tempest_agent.envs.features.layout import FEATURES, NUM_FEATURES, PLAIN_FEATURES
from tempest_agent.envs.machine.inputs import SPINNER_MAX
from tempest_agent.envs.messages import printable, shown
from tempest_agent.errors import UserError, suggestion

LARGEST_METADATA = 1_000_000
"""Characters; our own metadata take a twentieth."""
MOST_DECISIONS = 400_000
"""Of one game."""
ROW_BYTES = 4 * NUM_FEATURES
PACKED = 1100
"""Highest compression ratio of deflate."""

LAYOUT_KEY = "tempest_features"

UNREADABLE = (
    AssertionError, AttributeError, LookupError, OSError, RuntimeError, StopIteration,
    TypeError, ValueError,
)  # fmt: skip
"""What Minari and h5py raise on damaged files."""


@dataclass(frozen=True)
class Episode:
    """One game of T steps.

    ``codes``: int8 ``(T + 1, F)``; ``spin``: int8 ``(T,)``, knob counts; ``buttons``: uint8
    ``(T,)``, fire + 2 * zap; ``points``: int64 ``(T,)``; ``died``: bool ``(T,)``, a life lost.
    ``terminated``: whether the game ended by itself, not truncated.
    """

    codes: NDArray[np.int8]
    spin: NDArray[np.int8]
    buttons: NDArray[np.uint8]
    points: NDArray[np.int64]
    died: NDArray[np.bool_]
    terminated: bool

    def __len__(self) -> int:
        return len(self.spin)


def layout_digest(count: int = NUM_FEATURES) -> str:
    """Return a digest of the names and the order of the first ``count`` features."""
    names = "\n".join(feature.name for feature in FEATURES[:count])
    return hashlib.sha256(names.encode()).hexdigest()[:16]


def minari_module() -> Any:
    """Return the package ``minari``.

    Raises:
        UserError: it, or h5py, is not installed.
    """
    try:
        import h5py  # noqa: F401
        import minari
    except ImportError as error:
        raise UserError(
            f"demonstrations need the package {shown(error.name)}, which is not installed: "
            "pip install 'tempest-agent[demonstrations]'"
        ) from error
    return minari


def data_set_exists(dataset_id: str) -> bool:
    """Return whether there is a data set of that name here.

    Raises:
        UserError: ``dataset_id`` is not a valid name for Minari.
    """
    minari = minari_module()
    try:
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except (TypeError, ValueError) as error:  # TypeError if the version is missing.
        raise UserError(
            f"{shown(dataset_id)} is no name of a data set: give one like tempest/expert-v0"
        ) from error
    return bool(minari.storage.get_dataset_path(dataset_id).exists())


def load_demonstrations(dataset_id: str, game: GameConfig) -> Iterator[Episode]:
    """Return an iterator over the games of a data set.

    Args:
        dataset_id: its name.
        game: the settings with which they must have been played.

    Raises:
        UserError: minari is missing, there is no such data set, or it does not fit; during
            iteration, a game is damaged.
    """
    minari = minari_module()
    if not data_set_exists(dataset_id):
        known = sorted(minari.list_local_datasets())
        near = suggestion(dataset_id, known)
        raise UserError(
            f"there is no data set {shown(dataset_id)} here: {near}{' ' if near else ''}"
            "record one with tempest-agent demonstrate, or see minari list local"
        )
    folder = minari.storage.get_dataset_path(dataset_id) / "data"
    try:
        _check_metadata(folder / "metadata.json")
        _check_file(folder / "main_data.hdf5")
        data_set = minari.load_dataset(dataset_id)
    except UNREADABLE as error:
        raise _damage(f"the data set {shown(dataset_id)}", error) from error
    _check(data_set, dataset_id, game)
    return _episodes(data_set, dataset_id, _count(game))


def _check_metadata(path: Path) -> None:
    """Raise ``ValueError`` for metadata with which Minari would do more than read.

    If spaces are missing it makes the environment named by the metadata, which is any program.
    """
    with path.open(encoding="utf-8") as file:
        text = file.read(LARGEST_METADATA + 1)
    metadata = json.loads(text) if len(text) <= LARGEST_METADATA else {}
    named = [metadata.get(name) for name in ("observation_space", "action_space")]
    given = [each for each in named if isinstance(each, str)]
    if metadata.get("data_format") != "hdf5" or len(given) < len(named):
        raise ValueError("its metadata do not say in HDF5 which spaces it has")
    for space in map(json.loads, given):
        for part in (space, *space.get("subspaces", {}).values()):
            if prod(part.get("shape", ())) > LARGEST_METADATA or (part is not space) & (
                "subspaces" in part
            ):
                raise ValueError("its spaces are too large")


def _check_file(path: Path) -> None:
    """Raise ``ValueError`` for data in other files, and for more data than the file can hold."""
    import h5py

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Group):
            links = (item.get(key, getlink=True) for key in item)
            if not all(isinstance(link, h5py.HardLink) for link in links):
                raise ValueError(f"{name} links to other data")
        elif isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise ValueError(f"{name} is in another file")
            stored = item.id.get_storage_size()
            if item.nbytes > min(MOST_DECISIONS * ROW_BYTES, PACKED * stored):
                raise ValueError(f"{name} unpacks to {item.nbytes:,} bytes")

    with h5py.File(path, "r") as file:
        look("the file", file)
        file.visititems(look)


def _damage(what: str, error: Exception) -> UserError:
    # Minari asserts what its metadata should hold, without words.
    why = printable(str(error), 300) or "its metadata are incomplete"
    return UserError(
        f"{what} cannot be read ({why}): record it again with tempest-agent demonstrate --force"
    )


def _episodes(data_set: Any, dataset_id: str, count: int) -> Iterator[Episode]:
    stored = data_set.iterate_episodes()
    for number in range(int(data_set.total_episodes)):
        try:
            episode = _episode(next(stored), count)
        except UNREADABLE as error:
            raise _damage(f"game {number} of the data set {shown(dataset_id)}", error) from error
        yield episode


def _count(game: GameConfig) -> int:
    """Return the numbers of an observation of these games."""
    return PLAIN_FEATURES if game.observation == PLAIN else NUM_FEATURES


def _check(data_set: Any, dataset_id: str, game: GameConfig) -> None:
    count = _count(game)
    if not _shows(data_set, count):
        shape = getattr(data_set.observation_space, "shape", None)
        other = next((one for one in (NUM_FEATURES, PLAIN_FEATURES) if _shows(data_set, one)), None)
        kind = PLAIN if other == PLAIN_FEATURES else "features"
        advice = f"set game.observation={kind}, or record" if other else "record"
        raise UserError(
            f"the observations of {shown(dataset_id)} (shape {shape}) are not the {count} features "
            f"of game.observation={game.observation}: {advice} it again with tempest-agent "
            "demonstrate"
        )
    options = data_set.env_spec.kwargs if data_set.env_spec is not None else {}
    for name in ("frame_skip", "input_delay"):
        here = getattr(game, name)
        there = options.get(name)
        if there != here:
            raise UserError(
                f"{shown(dataset_id)} was recorded with {name}={shown(there)} and this run has "
                f"{here}: set game.{name}={shown(there)}, or record it again"
            )


def _shows(data_set: Any, count: int) -> bool:
    """Return whether its observations are the first ``count`` of this version's features."""
    wanted = spaces.Box(-1.0, 1.0, (count,), np.float32)
    digest = data_set.storage.metadata.get(LAYOUT_KEY)
    return bool(data_set.observation_space == wanted and digest == layout_digest(count))


def _episode(stored: Any, count: int) -> Episode:
    """Convert a game of Minari's, with observations of ``count`` numbers.

    Raises:
        ValueError: it was not recorded by ``Recorder``.
    """
    infos, seen = stored.infos, np.asarray(stored.observations)
    buttons = np.asarray(stored.actions["buttons"])
    spinner = np.asarray(stored.actions["spinner"])
    score, deaths = np.asarray(infos["score"]), np.asarray(infos["deaths"])
    length = len(buttons)
    shapes = (seen.shape, buttons.shape, spinner.shape, score.shape, deaths.shape)
    after = (length + 1,)
    if length == 0 or shapes != ((*after, count), (length,), (length, 1), after, after):
        raise ValueError(f"its columns have shapes {shapes}")
    for name, values, low, high in (
        ("observations", seen, -1, 1),
        ("buttons", buttons, 0, 3),
        ("spinner", spinner, -1, 1),
    ):
        if not ((values >= low) & (values <= high)).all():
            raise ValueError(f"its {name} are not all from {low} to {high}")
    return Episode(
        codes=np.rint(seen * 127.0).astype(np.int8),
        spin=np.rint(spinner[:, 0] * SPINNER_MAX).astype(np.int8),
        buttons=buttons.astype(np.uint8),
        points=np.diff(score),
        died=np.diff(deaths) > 0,
        terminated=bool(stored.terminations[-1]),
    )
