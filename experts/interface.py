"""The interface of all teachers."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import RAM_DTYPE
from tempest_agent.envs.messages import shown

PendingInputs: TypeAlias = NDArray[np.int16]
"""Inputs under way, shape ``(N, delay, 2)``: knob counts and buttons (fire + 2 * zap), oldest
first.  A game with a shorter delay has NO_INPUT as buttons behind its last one."""

NO_INPUT = -1


def pending_of(games: NDArray[np.void], delays: NDArray[np.uint8]) -> PendingInputs:
    """Return the inputs under way in ``games``, the records of a batch, ``delays`` its delays."""
    longest = int(delays.max(initial=0))
    pending = np.empty((len(games), longest, 2), np.int16)
    pending[..., 0] = games["pending_spin"][:, :longest]
    pending[..., 1] = games["pending_buttons"][:, :longest]
    pending[np.arange(longest) >= delays[:, None], 1] = NO_INPUT
    return pending


@rule
def under_way(inputs: NDArray[np.int16]) -> int:
    """Return how many ``inputs`` of one game, shape ``(delay, 2)``, are under way."""
    count = 0
    while count < len(inputs) and inputs[count, 1] != NO_INPUT:
        count += 1
    return count


@runtime_checkable
class Teacher(Protocol):
    """A player that reads RAM images."""

    @property
    def name(self) -> str:
        """The name by which ``make_teacher`` finds it."""
        ...

    def act(
        self,
        ram: NDArray[np.void],
        pending: PendingInputs | None = None,
        games: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
        """Return one decision for each of N games.

        Args:
            ram: RAM images before the tick, RAM_DTYPE records of shape ``(N,)``.  Only read.
            pending: inputs that will act before this decision does, if there is a delay.
            games: which of the player's games the rows are, shape ``(N,)``; 0 to N - 1 if left
                out.  Matters to players with a memory only.

        Returns:
            Knob counts, int8 of shape ``(N,)`` from -31 to 31 (positive lowers the lane), and
            buttons, uint8 of shape ``(N,)``: fire + 2 * zap.
        """
        ...

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Forget what is remembered of the games chosen by ``mask``, or of all."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered, as plain arrays and plain types; empty without a memory."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state_dict()``."""
        ...


def check_rows(ram: NDArray[np.void], games: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the game number of every row of ``ram``.

    Raises:
        ValueError: if ``ram`` is no row of records, or ``games`` does not fit it.
    """
    if ram.ndim != 1 or ram.dtype != RAM_DTYPE:
        raise ValueError(
            f"ram has shape {ram.shape} and {ram.dtype.itemsize} bytes an item; a teacher needs "
            "RAM_DTYPE records of shape (N,): use memory.from_bytes(images) for uint8 images"
        )
    if games is None:
        return np.arange(len(ram), dtype=np.int64)
    if games.shape != ram.shape:
        raise ValueError(f"games has shape {games.shape}, but there are {len(ram)} RAM images")
    if games.dtype.kind not in "iu" or games.min(initial=0) < 0:
        raise ValueError(f"games={shown(games.tolist())}: numbers of games, from 0 on, are needed")
    return games.astype(np.int64)


def check_pending(ram: NDArray[np.void], pending: PendingInputs | None) -> PendingInputs:
    """Return ``pending`` as an array, of delay 0 if there is none.

    Raises:
        ValueError: if its shape does not fit ``ram``.
    """
    if pending is None:
        return np.zeros((len(ram), 0, 2), np.int16)
    if pending.ndim != 3 or pending.shape[0] != len(ram) or pending.shape[2] != 2:
        raise ValueError(
            f"pending has shape {pending.shape}; it must be ({len(ram)}, delay, 2): knob counts "
            "and buttons for each of the games, oldest first"
        )
    return np.ascontiguousarray(pending, np.int16)
