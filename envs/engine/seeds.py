"""One random stream per game, from any form of seed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.checks import is_whole
from tempest_agent.envs.machine.randomness import new_streams
from tempest_agent.envs.messages import shown

Seed: TypeAlias = int | np.random.SeedSequence | None
Seeds: TypeAlias = int | Sequence[Seed] | np.random.SeedSequence

LARGEST_SEED = 2**64 - 1


def check_seed(seed: object) -> None:
    """Raise ``ValueError`` unless ``seed`` is a whole number from 0 to ``2**64 - 1``, or None."""
    if seed is not None and not (is_whole(seed) and 0 <= seed <= LARGEST_SEED):
        raise ValueError(f"seed={shown(seed)}: a whole number from 0 to 2**64 - 1, or None")


def listed_seeds(seeds: object, num_games: int) -> list[Seed] | None:
    """Return the entries of a list of seeds, one a game; None where ``seeds`` is no list.

    Raises ``ValueError`` for lists of another length.
    """
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, (Sequence, np.ndarray)):
        return None
    if isinstance(seeds, np.ndarray) and seeds.ndim == 0:
        return None
    each = list(islice(seeds, num_games + 1))
    if len(each) != num_games:
        raise ValueError(
            f"seed={shown(seeds)} is a list of another length than the {num_games} games: "
            "give one seed per game, or a single whole number"
        )
    return each


def streams_for(seeds: Seeds, num_games: int) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Return the streams of ``num_games`` games, and which of them ``seeds`` names.

    An int ``s`` gives game ``i`` the seed ``s + i``, as Gymnasium's vector environments do; game
    ``i`` is then the same as game 0 of a batch with seed ``s + i``.  A list gives every game its
    own seed (``None`` entries name no stream, a ``SeedSequence`` is taken as it is).  One
    ``SeedSequence`` for all is spawned, so that batches with neighbouring seeds share no game.

    Raises ``ValueError`` for negative seeds and lists of the wrong length.
    """
    each: Sequence[Seed] | None
    if isinstance(seeds, np.random.SeedSequence):
        each = seeds.spawn(num_games)
    else:
        each = listed_seeds(seeds, num_games)
    if each is None:
        first: Any = seeds
        _check(first)
        each = [int(first) + game for game in range(num_games)]
    return new_streams([_sequence(seed) for seed in each]), np.array(
        [seed is not None for seed in each]
    )


def _sequence(seed: Seed) -> np.random.SeedSequence:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    number = 0 if seed is None else seed
    _check(number)
    return np.random.SeedSequence(int(number)).spawn(1)[0]


def _check(seed: object) -> None:
    if not is_whole(seed) or seed < 0:
        raise ValueError(f"seed={shown(seed)}: a seed is a whole number of at least 0")
