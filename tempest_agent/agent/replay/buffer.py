"""Replay of decisions, with n-step returns put together when they are sampled.

``replay_ring`` says what a row ``(t, e)``, one decision of game ``e``, holds.

What a sample that starts at row ``t`` is, case by case (n = ``n_steps``):

* nothing ends within n decisions: rewards of t .. t+n-1, bootstrap on the observation of t+n;
* a **termination** at t+k: rewards of t .. t+k, no bootstrap.  The last n-1 decisions before a
  death are sampled like all others, with returns of 1 to n-1 rewards;
* a **truncation** at t+k: rewards of t .. t+k, bootstrap on the observation that the truncated
  game ended with (kept aside; row t+k+1 already belongs to the next game).  A decision that both
  terminates and is cut counts as a termination;
* the **write head**: the newest row gives an observation but its successor is not there yet.  It
  is not sampled as a start (one vector step later it is), and returns that would pass it bootstrap
  on it with fewer rewards;
* the **oldest rows** are ordinary starts until they are overwritten, and no return reaches over
  the write head into them;
* **another driver** (only with ``trace="cut"``): a return ends, with a bootstrap, before the first
  later decision that was not the agent's own greedy one.  The first decision always counts,
  whoever made it: its value is what is learned.

With ``trace="retrace"`` returns are as long as without a cut, and the decisions on the way are
delivered with them (``Path``).

Prioritised rows are drawn in proportion to their priority, one from each of B equal slices of the
total, so no region of the buffer is missed by chance.  A new row has the largest priority seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.devices import Column
from tempest_agent.errors import UserError

from .ring import ReplayRing, check_memory
from .rows import (
    AGENT,
    ASIDE,
    DRIVER_NAMES,
    DRIVER_SHIFT,
    EXPERT,
    EXPLORATION,
    LABELLED,
    ZAP_LEGAL,
    Batch,
    Path,
    Rows,
    assemble,
)
from .sum_tree import SumTree

__all__ = [
    "AGENT",
    "DRIVER_NAMES",
    "EXPERT",
    "EXPLORATION",
    "Batch",
    "Path",
    "ReplayBuffer",
    "Rows",
    "check_memory",
]

PRIORITY_FLOOR = 1e-3


def _itself(value: Any) -> Any:
    return value


class ReplayBuffer(ReplayRing):
    """The last ``capacity`` decisions of ``num_envs`` games.

    Args:
        capacity: decisions kept over all games (rounded down to whole vector steps).
        num_envs: games, N.
        num_features: observation length, F.
        n_steps: longest return.
        gamma: discount per decision.
        trace: ``uncorrected``, ``cut`` at other drivers' actions, or ``retrace``.
        seed: of the sampling.
        prioritised: sample by the last error instead of uniformly.
        priority_exponent: alpha of Schaul et al. 2016, "Prioritized experience replay".
        stored: type of the observations' numbers (``Layout.stored``).
        stored_counts: type of the continuous actions (``Layout.stored_counts``).

    Raises:
        UserError: the buffer would not fit into the free memory.
    """

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        num_features: int,
        *,
        n_steps: int,
        gamma: float,
        trace: str = "uncorrected",
        seed: int = 0,
        prioritised: bool = False,
        priority_exponent: float = 0.5,
        stored: str = "int8",
        stored_counts: str = "int8",
    ) -> None:
        length = capacity // num_envs
        if length < n_steps + 2:
            raise UserError(
                f"replay.capacity={capacity} holds {length} decisions of each of {num_envs} games, "
                f"too few for n_steps={n_steps}; set at least {num_envs * (n_steps + 2)}"
            )
        super().__init__(
            length,
            num_envs,
            num_features,
            stored=stored,
            stored_counts=stored_counts,
            prioritised=prioritised,
        )
        self.n_steps, self.gamma = n_steps, gamma
        self.cut, self.paths = trace == "cut", trace == "retrace"
        self.priority_exponent = priority_exponent
        self.random = np.random.default_rng(seed)
        self.tree: Any = self._make_tree(length * num_envs) if prioritised else None
        self.largest_error: Any = 1.0
        self.highest: Callable[[Any], Any] = _itself
        """The largest of a number here and in the replays that the same updates draw from."""
        self._columns = np.arange(num_envs)

    def _make_tree(self, rows: int) -> Any:
        """What remembers priorities."""
        return SumTree(rows)

    def __len__(self) -> int:
        """Decisions that can be sampled as starts."""
        return max(0, self.filled - 1) * self.num_envs

    def set_n_steps(self, n_steps: int) -> None:
        """Let samples from now on reach over ``n_steps`` decisions, no more than at the start."""
        self.n_steps = n_steps

    def _prioritise(self, t: int) -> None:
        """Priorities of the rows that were just stored at ``t``, and of those before them."""
        if self.tree is None:
            return
        here = t * self.num_envs + self._columns
        self.tree.set(here, np.zeros(self.num_envs))
        if self.filled:
            before = ((t - 1) % self.length) * self.num_envs + self._columns
            self.tree.set(before, self._priorities(self._largest_of_each()))

    def _largest_of_each(self) -> Any:
        """The largest error seen, for each game."""
        return np.full(self.num_envs, self.largest_error)

    def _priorities(self, errors: Any) -> Any:
        return errors**self.priority_exponent

    def ages(self, rows: Column) -> Column:
        """Decisions of all games that were played since each of ``rows``."""
        newest = (self.position - 1) % self.length
        return (newest - rows // self.num_envs) % self.length * self.num_envs

    def sample(self, count: int, importance: float = 1.0) -> Batch:
        """``count`` starts with their n-step returns.

        Args:
            count: rows, B.
            importance: exponent of the correction for priorities (beta).

        Raises:
            ValueError: nothing can be sampled yet.
        """
        if len(self) == 0:
            raise ValueError("the replay holds no complete decision yet; add two steps first")
        weights = np.ones(count, np.float32)
        if self.tree is None:
            drawn = self.random.integers(0, len(self), count)
            oldest = (self.position - self.filled) % self.length
            rows = (drawn + oldest * self.num_envs) % (self.length * self.num_envs)
        else:
            rows = self.tree.sample(count, self.random)
            chance = self.tree.priorities[rows] / self.tree.total
            raw = (chance * len(self)) ** -importance
            weights = (raw / self.highest(raw.max())).astype(np.float32)
        return self._batch(rows, weights)

    def _batch(self, rows: NDArray[np.int64], weights: NDArray[np.float32]) -> Batch:
        count = rows.size
        codes = np.empty((count, self.num_features), self.stored)
        following = np.empty_like(codes)
        returns = np.empty(count, np.float32)
        discounts = np.empty(count, np.float32)
        horizons = np.empty(count, np.int64)
        boot = np.empty(count, np.int64)
        newest = (self.position - 1) % self.length
        # Compiled code knows no float16; a copy asks nothing of a number but its size.
        form = np.dtype(np.uint16) if self.stored == np.float16 else self.stored
        assemble(
            rows, self.codes.view(form), self.reward, self.flags, newest, self.n_steps,
            self.gamma, self.cut, codes.view(form), following.view(form), returns, discounts,
            horizons, boot,
        )  # fmt: skip
        flat = self.flags.reshape(-1)
        flags = flat[rows]
        next_zap = (flat[np.maximum(boot, 0)] & ZAP_LEGAL) > 0
        for i in np.flatnonzero(boot <= ASIDE):
            following[i], next_zap[i] = self.aside[int(ASIDE - boot[i])]
        return Batch(
            codes, following, self.spin.reshape(-1)[rows], self.buttons.reshape(-1)[rows],
            returns, discounts, horizons, (flags & ZAP_LEGAL) > 0, next_zap,
            ((flags >> DRIVER_SHIFT) & 3).astype(np.uint8), self.label_spin.reshape(-1)[rows],
            self.label_buttons.reshape(-1)[rows], (flags & LABELLED) > 0, weights, rows,
            self._path(rows, horizons) if self.paths else None,
        )  # fmt: skip

    def _path(self, rows: NDArray[np.int64], horizons: NDArray[np.int64]) -> Path:
        step = np.arange(self.n_steps)
        on_the_way = (rows[:, None] + step * self.num_envs) % (self.length * self.num_envs)
        flags = self.flags.reshape(-1)[on_the_way]
        return Path(
            codes=self.codes.reshape(-1, self.num_features)[on_the_way],
            spin=self.spin.reshape(-1)[on_the_way],
            buttons=self.buttons.reshape(-1)[on_the_way],
            zap_legal=(flags & ZAP_LEGAL) > 0,
            driver=((flags >> DRIVER_SHIFT) & 3).astype(np.uint8),
            reward=self.reward.reshape(-1)[on_the_way],
            valid=(step < horizons[:, None]).astype(np.float32),
        )

    def update_priorities(self, rows: Any, errors: Any) -> None:
        """Remember the absolute errors of sampled ``rows``; nothing to do when uniform."""
        if self.tree is None:
            return
        magnitude = np.abs(errors).astype(np.float64) + PRIORITY_FLOOR
        self.largest_error = max(self.largest_error, float(magnitude.max()))
        self.tree.set(rows, self._priorities(magnitude))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All stored rows and their priorities as plain arrays, for a snapshot."""
        out = super().arrays()
        if self.tree is not None:
            out["priorities"] = self.tree.numpy()
        return out

    def largest_arrays(self, rows: int) -> dict[str, int]:
        """As in ``ReplayRing``, with the priorities."""
        return super().largest_arrays(rows) | {"priorities": 8 * rows}

    def state_dict(self) -> dict[str, Any]:
        """Counters and random state, plain types; the rows are in ``arrays``."""
        return super().state_dict() | {
            "random": self.random.bit_generator.state,
            "largest_priority": float(self.largest_error),
        }

    def load(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore what ``arrays`` and ``state_dict`` gave.

        Raises:
            UserError: the snapshot is of a buffer of another shape.
        """
        everything = np.arange(self.length * self.num_envs)
        priorities = arrays.get("priorities")
        if priorities is not None and (
            priorities.shape != everything.shape or not (priorities >= 0).all()
        ):
            raise UserError("the replay snapshot has other priorities than one for each decision")
        super().load(arrays, state)
        self.load_random(state)
        if self.tree is not None and priorities is not None:
            self.tree.set(everything, priorities.astype(np.float64))

    def load_random(self, state: dict[str, Any]) -> None:
        """Restore only the random state, when the rows are lost."""
        self.random.bit_generator.state = state["random"]
        self.largest_error = float(state["largest_priority"])
