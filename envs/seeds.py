"""One random stream per game from whatever the user gave as a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from .arcade.randomness import new_streams
from .checks import is_whole
from .messages import shown

Seed: TypeAlias = int | np.random.SeedSequence | None
Seeds: TypeAlias = int | Sequence[Seed] | np.random.SeedSequence

LARGEST_SEED = 2**64 - 1


def check_seed(seed: object) -> None:
    """``ValueError`` unless ``seed`` is one that a user may give: 0 to ``2**64 - 1``, or None."""
    if seed is not None and not (is_whole(seed) and 0 <= seed <= LARGEST_SEED):
        raise ValueError(f"seed={shown(seed)}: a whole number from 0 to 2**64 - 1, or None")


def is_list(seeds: object) -> TypeGuard[Sequence[Seed]]:
    """Return whether ``seeds`` has one entry a game."""
    if isinstance(seeds, np.ndarray):
        return seeds.ndim > 0
    return isinstance(seeds, Sequence) and not isinstance(seeds, (str, bytes))


def streams_for(seeds: Seeds, num_games: int) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Streams of ``num_games`` games, and which of them ``seeds`` names.

    An int ``s`` gives game ``i`` the seed ``s + i``, as Gymnasium's vector environments do; game
    ``i`` is then the same as game 0 of a batch with seed ``s + i``.  A list gives every game its
    own seed (``None`` entries name no stream, a ``SeedSequence`` is taken as it is).  One
    ``SeedSequence`` for all is spawned, so that batches with neighbouring seeds share no game.

    Raises ``ValueError`` for negative seeds and lists of the wrong length.
    """
    each: Sequence[Seed]
    if isinstance(seeds, np.random.SeedSequence):
        each = seeds.spawn(num_games)
    elif is_list(seeds):
        each = seeds
    else:
        _sequence(seeds)  # Says what is wrong with it.
        each = [int(seeds) + game for game in range(num_games)]
    if len(each) != num_games:
        raise ValueError(
            f"seed is a list of {len(each)} numbers for {num_games} games: "
            "give one seed per game, or a single whole number"
        )
    return new_streams([_sequence(seed) for seed in each]), np.array(
        [seed is not None for seed in each]
    )


def _sequence(seed: Seed) -> np.random.SeedSequence:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    number = 0 if seed is None else seed
    if not is_whole(number) or number < 0:
        raise ValueError(f"seed={shown(seed)}: a seed is a whole number of at least 0")
    return np.random.SeedSequence(int(number)).spawn(1)[0]
