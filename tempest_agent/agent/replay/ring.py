"""The rows of a replay: stored, ended, and put into snapshots; ``buffer`` draws from them.

Every game has its own column of a ring, and all columns advance together: row ``(t, e)`` is one
step of game ``e``: its observation (stored once), the action that the machine executed, its reward,
the driver, and the teacher's label.  The observation after it is that of row ``(t + 1, e)``, except
for a truncated game, whose final observation is kept separately.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.free_memory import USABLE, available_memory
from tempest_agent.errors import UserError

from .plans import PLANS, LateLabels
from .rows import (
    DRIVER_SHIFT,
    EPISODE_START,
    HAS_PLANS,
    LABELLED,
    TERMINATED,
    TRUNCATED,
    ZAP_LEGAL,
    Rows,
)

SMALL_COLUMNS = ("spin", "buttons", "reward", "flags", "label_spin", "label_buttons")
"""All columns but the observations and the plans."""

PLAN_COLUMNS: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
    "plan_spin": (np.dtype(np.int8), (PLANS,)),
    "plan_buttons": (np.dtype(np.uint8), (PLANS,)),
    "plan_regret": (np.dtype(np.uint16), (PLANS,)),
    "near_death": (np.dtype(np.bool_), ()),
}
"""Columns that only a replay with plans has: type, and shape of a row."""

PLAN_BYTES = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in PLAN_COLUMNS.values())


class ReplayRing:
    """The last ``length`` steps of each of ``num_envs`` games.

    Args:
        length: steps kept of a game, T.
        num_envs: games, N.
        num_features: observation length, F.
        stored: type of the observations' numbers (``Layout.stored``).
        stored_counts: type of the continuous actions (``Layout.stored_counts``).
        prioritised: whether a row takes the memory of its priority as well.
        plans: whether rows have room for the plans of a state, and deaths are marked.

    Raises:
        UserError: the rows would not fit into the free memory.
    """

    def __init__(
        self,
        length: int,
        num_envs: int,
        num_features: int,
        *,
        stored: str,
        stored_counts: str,
        prioritised: bool,
        plans: bool = False,
    ) -> None:
        self.length, self.num_envs, self.num_features = length, num_envs, num_features
        numbers = num_features * np.dtype(stored).itemsize
        numbers += 2 * (np.dtype(stored_counts).itemsize - 1)
        self.row_bytes = self.bytes_per_row(numbers, prioritised, plans)
        self._check_memory(length * num_envs)
        shape = (length, num_envs)
        self.stored = np.dtype(stored)
        self.codes = self._allocate((*shape, num_features))
        self.spin: NDArray[Any] = np.zeros(shape, stored_counts)
        self.buttons = np.zeros(shape, np.uint8)
        self.reward = np.zeros(shape, np.float32)
        self.flags = np.zeros(shape, np.uint8)
        self.label_spin: NDArray[Any] = np.zeros(shape, stored_counts)
        self.label_buttons = np.zeros(shape, np.uint8)
        self.plan_columns: dict[str, NDArray[Any]] = {
            name: np.zeros((*shape, *row), dtype)
            for name, (dtype, row) in (PLAN_COLUMNS.items() if plans else ())
        }
        """The columns ``PLAN_COLUMNS``; empty without plans."""
        self.final_observations: dict[int, tuple[NDArray[np.int8], bool]] = {}
        """Row of a truncation -> the game's final observation, and whether a zap was legal."""
        self.position = 0
        self.filled = 0

    def _check_memory(self, rows: int) -> None:
        check_memory(rows, self.row_bytes)

    def _allocate(self, shape: tuple[int, ...]) -> Any:
        """Allocate the observations."""
        return np.zeros(shape, self.stored)

    def _store(self, t: int | slice, codes: NDArray[Any]) -> None:
        self.codes[t] = codes

    def _stored_codes(self) -> NDArray[Any]:
        codes: NDArray[Any] = self.codes[: self.filled]
        return codes

    def _keep_final(self, row: int, codes: NDArray[Any], zap_legal: bool) -> None:
        """Keep the final observation of the game truncated at ``row``."""
        self.final_observations[row] = codes.copy(), zap_legal

    def _drop_final(self, row: int) -> None:
        self.final_observations.pop(row, None)

    @property
    def memory(self) -> str:
        """Return what a full buffer takes, as text."""
        rows = self.length * self.num_envs
        total = rows * self.row_bytes / 1e6
        return f"{rows:,} rows of {self.row_bytes:,} bytes, {total:,.0f} MB of {self.where}"

    @property
    def where(self) -> str:
        """Return whose memory that is."""
        return "the host"

    @staticmethod
    def bytes_per_row(num_features: int, prioritised: bool = False, plans: bool = False) -> int:
        """Return the memory of one step; priorities take up to 32 bytes more."""
        return num_features + 9 + (32 if prioritised else 0) + (PLAN_BYTES if plans else 0)

    def add(self, rows: Rows) -> None:
        """Store one step of every game, over the oldest ones when full."""
        t = self.position
        self._store(t, rows.codes)
        self.spin[t] = rows.spin
        self.buttons[t] = rows.buttons
        self.reward[t] = rows.reward
        self.label_spin[t] = rows.label_spin
        self.label_buttons[t] = rows.label_buttons
        flags = rows.driver.astype(np.uint8) << DRIVER_SHIFT
        flags |= rows.terminated * np.uint8(TERMINATED)
        flags |= rows.truncated * np.uint8(TRUNCATED)
        flags |= rows.episode_start * np.uint8(EPISODE_START)
        flags |= rows.zap_legal * np.uint8(ZAP_LEGAL)
        flags |= rows.labelled * np.uint8(LABELLED)
        first = t * self.num_envs
        if self.final_observations:
            for row in range(first, first + self.num_envs):
                self._drop_final(row)
        for game in np.flatnonzero(rows.truncated & ~rows.terminated):
            self._keep_final(
                first + int(game), rows.final_codes[game], bool(rows.final_zap_legal[game])
            )
        self.flags[t] = flags
        if self.plan_columns:
            self.plan_columns["near_death"][t] = False
        self._prioritise(t)
        self.position = (t + 1) % self.length
        self.filled = min(self.filled + 1, self.length)

    def end_games(
        self,
        codes: NDArray[np.int8],
        zap_legal: NDArray[np.bool_],
        which: NDArray[np.bool_] | None = None,
    ) -> None:
        """End the running games after their newest step; the caller is about to reset them.

        Args:
            codes: their final observations ``(N, F)``, for the bootstrap.
            zap_legal: whether a zap was legal there, ``(N,)``.
            which: the games that end, ``(N,)``; all by default.
        """
        if self.filled == 0:
            return
        newest = (self.position - 1) % self.length
        running = self.flags[newest] & (TERMINATED | TRUNCATED) == 0
        for game in np.flatnonzero(running if which is None else running & which):
            self.flags[newest, game] |= TRUNCATED
            row = newest * self.num_envs + int(game)
            self._keep_final(row, codes[game], bool(zap_legal[game]))

    def add_labels(self, late: LateLabels) -> None:
        """Store the plans of rows that were added before, those that are still here."""
        here = late.ago < self.filled
        t = (self.position - 1 - late.ago[here]) % self.length
        game = late.game[here]
        self.plan_columns["plan_spin"][t, game] = late.spin[here]
        self.plan_columns["plan_buttons"][t, game] = late.buttons[here]
        self.plan_columns["plan_regret"][t, game] = late.regret[here]
        self.flags[t, game] |= np.uint8(HAS_PLANS)

    def mark_deaths(self, died: NDArray[np.bool_], ticks: int) -> None:
        """Mark the last ``ticks`` rows, up to the newest, of the lives lost in games ``died``."""
        near = self.plan_columns["near_death"]
        for game in np.flatnonzero(died):
            for ago in range(min(ticks, self.filled)):
                t = (self.position - 1 - ago) % self.length
                if near[t, game]:
                    break
                near[t, game] = True
                if self.flags[t, game] & EPISODE_START:
                    break

    def _prioritise(self, t: int) -> None:
        """Hook for the priorities of the rows just stored at ``t``."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all stored rows as plain arrays, for a snapshot."""
        kept = sorted(self.final_observations)
        codes = np.zeros((len(kept), self.num_features), self.stored)
        legal = np.zeros(len(kept), np.bool_)
        for i, row in enumerate(kept):
            codes[i], legal[i] = self.final_observations[row]
        out: dict[str, NDArray[Any]] = {"codes": self._stored_codes()}
        out |= {name: getattr(self, name)[: self.filled] for name in SMALL_COLUMNS}
        out |= {name: column[: self.filled] for name, column in self.plan_columns.items()}
        out |= {"aside_rows": np.array(kept, np.int64), "aside_codes": codes, "aside_zap": legal}
        return out

    def largest_arrays(self, rows: int) -> dict[str, int]:
        """Return the largest size in bytes of each of ``arrays`` with ``rows`` rows."""
        codes = rows * self.num_features * self.stored.itemsize
        small = {name: rows * getattr(self, name).itemsize for name in SMALL_COLUMNS}
        for name, column in self.plan_columns.items():
            small[name] = rows * column[0, 0].nbytes
        aside = {"aside_rows": 8 * rows, "aside_codes": codes, "aside_zap": rows}
        return {"codes": codes, **small, **aside}

    def state_dict(self) -> dict[str, Any]:
        """Return counters, plain types; the rows are in ``arrays``."""
        return {"position": self.position, "filled": self.filled}

    def load(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore what ``arrays`` and ``state_dict`` returned.

        Raises:
            UserError: the snapshot is of a buffer of another shape.
        """
        position, filled = int(state["position"]), int(state["filled"])
        self._check_arrays(arrays, filled)
        if not (0 <= filled <= self.length and 0 <= position <= min(filled, self.length - 1)):
            raise UserError(
                f"the replay stands at decision {position} of {filled}, and has room for "
                f"{self.length}; resume with the same settings"
            )
        self.position, self.filled = position, filled
        self._store(slice(0, self.filled), arrays["codes"])
        for name in SMALL_COLUMNS:
            getattr(self, name)[: self.filled] = arrays[name]
        for name, column in self.plan_columns.items():
            column[: self.filled] = arrays[name]
        for row in list(self.final_observations):
            self._drop_final(row)
        aside = (arrays[name] for name in ("aside_rows", "aside_codes", "aside_zap"))
        for row, codes, legal in zip(*aside, strict=True):
            self._keep_final(int(row), codes, bool(legal))

    def _check_arrays(self, arrays: dict[str, NDArray[Any]], filled: int) -> None:
        """Raise ``UserError`` for arrays of a buffer of another shape."""
        small = (filled, self.num_envs)
        aside = arrays["aside_rows"].shape[:1]
        wanted: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
            "codes": (self.stored, (*small, self.num_features)),
            **{name: (getattr(self, name).dtype, small) for name in SMALL_COLUMNS},
            **{
                name: (column.dtype, (*small, *column.shape[2:]))
                for name, column in self.plan_columns.items()
            },
            "aside_rows": (np.dtype(np.int64), aside),
            "aside_codes": (self.stored, (*aside, self.num_features)),
            "aside_zap": (np.dtype(np.bool_), aside),
        }
        for name, (dtype, shape) in wanted.items():
            array = arrays[name]
            if array.dtype != dtype or array.shape != shape:
                raise UserError(
                    f"the replay snapshot has {name} of {array.dtype} {array.shape}, this run "
                    f"needs {dtype} {shape}; resume with the same settings"
                )
        rows = arrays["aside_rows"]
        if ((rows < 0) | (rows >= self.length * self.num_envs)).any():
            raise UserError("the replay snapshot has last observations of rows that it has not")


def check_memory(rows: int, bytes_per_row: int, free: int | None = None) -> None:
    """Refuse a replay that cannot fit, before anything is allocated.

    Args:
        rows: of the replay.
        bytes_per_row: of one of them.
        free: bytes that are free; those of this machine if left out.

    Raises:
        UserError: more than nine tenths of the free memory would be taken.
    """
    free = available_memory() if free is None else free
    needed = rows * bytes_per_row
    if free is not None and needed > USABLE * free:
        fits = int(USABLE * free) // bytes_per_row
        raise UserError(
            f"replay.capacity={rows} needs {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB of memory "
            f"are free; set replay.capacity to at most {fits}"
        )
