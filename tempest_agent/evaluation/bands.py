"""Ticks and deaths by bands of levels: where on the way a player dies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.engine.batch import GameBatch

BANDS: Final = ((1, 16), (17, 32), (33, 48), (49, 64), (65, 80), (81, 99))
"""First and last level of each band: the 16 wells in each of their colours."""

_BAND_OF_WAVE: Final = np.searchsorted([last for _, last in BANDS[:-1]], np.arange(1, 257))
"""Band by the machine's number of a level, which is one less."""


def band_name(first: int, last: int) -> str:
    """Return the name of the levels ``first`` to ``last`` in tables."""
    return f"levels {first}-{last}"


class BandCounts:
    """Counts the ticks and deaths of every game of a batch, by the band they fall in.

    A tick belongs to the level at its end: the one that ends a wave, and the entry that follows,
    to the new level.
    """

    def __init__(self, batch: GameBatch) -> None:
        self._batch = batch
        self._wave = batch.ram["cur_wave"].copy()
        self._counts = np.zeros((batch.num_games, len(BANDS), 2), np.int64)

    def note_step(self) -> None:
        """Look at the batch after a step; the games must skip idle ticks.

        A level begins with the first idle tick of a step, so that the idle ticks of such a step,
        and no others of it, are those of the new level.
        """
        moved = np.flatnonzero(self._batch.ram["cur_wave"] != self._wave)
        if moved.size:
            self._count(moved, self._batch.games["step_idle_ticks"][moved])
            self._wave[moved] = self._batch.ram["cur_wave"][moved]

    def counts(self) -> NDArray[np.int64]:
        """Return ticks and deaths of each game in each band so far, ``(num_games, bands, 2)``."""
        self._count(np.arange(self._batch.num_games), np.int64(0))
        return self._counts.copy()

    def _count(self, games: NDArray[np.int64], later: NDArray[np.int64] | np.int64) -> None:
        """Add what is not yet counted to the level that the ``games`` were in.

        ``later``: their last ticks that belong to the next one.
        """
        played = np.stack(
            [
                self._batch.games["ticks"][games] - later,
                self._batch.games["deaths"][games].sum(axis=1),
            ],
            axis=1,
        )
        new = played - self._counts[games].sum(axis=1)
        self._counts[games, _BAND_OF_WAVE[self._wave[games]]] += new


def band_rows(counts: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return one JSON object a band of ticks and deaths, ``(bands, 2)``."""
    return [
        {
            "levels": list(levels),
            "ticks": int(ticks),
            "deaths": int(deaths),
            "deaths_per_1000_ticks": 1000.0 * int(deaths) / int(ticks) if ticks else None,
        }
        for levels, (ticks, deaths) in zip(BANDS, counts, strict=True)
    ]


def pooled_bands(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the bands of several evaluations together."""
    counts = np.zeros((len(BANDS), 2), np.int64)
    for result in results:
        counts += [[band["ticks"], band["deaths"]] for band in result["bands"]]
    return band_rows(counts)
