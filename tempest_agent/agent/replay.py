"""Replay of decisions, with n-step returns put together when they are sampled.

Every game has its own column of a ring, and all columns advance together: row ``(t, e)`` is one
decision of game ``e``: the observation it was made on (stored once), the action that the machine
executed, its reward, who acted, and the teacher's label.  The observation after it is the one of
row ``(t + 1, e)``.

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

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.free_memory import USABLE, available_memory
from tempest_agent.errors import UserError

from .replay_rows import (
    AGENT,
    ASIDE,
    BEFORE_DEATH,
    DRIVER_NAMES,
    DRIVER_SHIFT,
    EPISODE_START,
    EXPERT,
    EXPLORATION,
    LABELLED,
    TERMINATED,
    TRUNCATED,
    ZAP_LEGAL,
    Batch,
    Column,
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
SMALL_COLUMNS = ("spin", "buttons", "reward", "flags", "label_spin", "label_buttons")
"""All columns but the observations."""

_EXPERT_TRIES = 50
"""Rounds of draws after which a batch goes without some of its teacher's rows: they are rare."""


def _itself(value: Any) -> Any:
    return value


class ReplayBuffer:
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
        death_boost: factor on the error that the last decisions before a termination are
            prioritised by.
        death_window: how many decisions those are.
        expert_share: least share of a batch that is the teacher's rows, drawn uniformly.
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
        death_boost: float = 1.0,
        death_window: int = 30,
        expert_share: float = 0.0,
        stored: str = "int8",
        stored_counts: str = "int8",
    ) -> None:
        length = capacity // num_envs
        if length < n_steps + 2:
            raise UserError(
                f"replay.capacity={capacity} holds {length} decisions of each of {num_envs} games, "
                f"too few for n_steps={n_steps}; set at least {num_envs * (n_steps + 2)}"
            )
        self.length, self.num_envs, self.num_features = length, num_envs, num_features
        self.n_steps, self.gamma, self.cut = n_steps, gamma, trace == "cut"
        self.retrace = trace == "retrace"
        self.priority_exponent = priority_exponent
        self.death_boost, self.death_window = death_boost, death_window
        self.expert_share = expert_share
        numbers = num_features * np.dtype(stored).itemsize
        numbers += 2 * (np.dtype(stored_counts).itemsize - 1)
        self.row_bytes = self.bytes_per_row(numbers, prioritised)
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
        self.aside: dict[int, tuple[NDArray[np.int8], bool]] = {}
        """Row of a truncation -> the observation the game was cut at, and whether zap was legal."""
        self.position = 0
        self.filled = 0
        self.random = np.random.default_rng(seed)
        self.tree: Any = self._make_tree(length * num_envs) if prioritised else None
        self.largest_error: Any = 1.0
        self.highest: Callable[[Any], Any] = _itself
        """The largest of a number here and in the replays that the same updates draw from."""
        self._columns = np.arange(num_envs)

    def _check_memory(self, rows: int) -> None:
        check_memory(rows, self.row_bytes)

    def _make_tree(self, rows: int) -> Any:
        """What remembers priorities."""
        return SumTree(rows)

    def _allocate(self, shape: tuple[int, ...]) -> Any:
        """Room for the observations."""
        return np.zeros(shape, self.stored)

    def _store(self, t: int | slice, codes: NDArray[Any]) -> None:
        self.codes[t] = codes

    def _stored_codes(self) -> NDArray[Any]:
        codes: NDArray[Any] = self.codes[: self.filled]
        return codes

    def _keep_aside(self, row: int, codes: NDArray[Any], zap_legal: bool) -> None:
        """Remember what the game truncated at ``row`` was left at."""
        self.aside[row] = codes.copy(), zap_legal

    def _drop_aside(self, row: int) -> None:
        self.aside.pop(row, None)

    @property
    def memory(self) -> str:
        """What a full buffer takes, for people."""
        rows = self.length * self.num_envs
        total = rows * self.row_bytes / 1e6
        return f"{rows:,} rows of {self.row_bytes:,} bytes, {total:,.0f} MB of {self.where}"

    @property
    def where(self) -> str:
        """Whose memory that is."""
        return "the host"

    @staticmethod
    def bytes_per_row(num_features: int, prioritised: bool = False) -> int:
        """Memory of one decision; priorities take up to 32 bytes more."""
        return num_features + 9 + (32 if prioritised else 0)

    def __len__(self) -> int:
        """Decisions that can be sampled as starts."""
        return max(0, self.filled - 1) * self.num_envs

    def set_n_steps(self, n_steps: int) -> None:
        """Let samples from now on reach over ``n_steps`` decisions, no more than at the start."""
        self.n_steps = n_steps

    def add(self, rows: Rows) -> None:
        """Store one decision of every game, over the oldest ones when full."""
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
        if self.aside:
            for row in range(first, first + self.num_envs):
                self._drop_aside(row)
        for game in np.flatnonzero(rows.truncated & ~rows.terminated):
            self._keep_aside(
                first + int(game), rows.final_codes[game], bool(rows.final_zap_legal[game])
            )
        self.flags[t] = flags
        self._prioritise(t, rows.terminated)
        self.position = (t + 1) % self.length
        self.filled = min(self.filled + 1, self.length)

    def end_games(
        self,
        codes: NDArray[np.int8],
        zap_legal: NDArray[np.bool_],
        which: NDArray[np.bool_] | None = None,
    ) -> None:
        """End the running games after their newest decision, because new ones begin.

        Args:
            codes: the observations ``(N, F)`` that the games are left at, for the bootstrap.
            zap_legal: whether a zap was legal there, ``(N,)``.
            which: the games that end, ``(N,)``; all if left out.
        """
        if self.filled == 0:
            return
        newest = (self.position - 1) % self.length
        running = self.flags[newest] & (TERMINATED | TRUNCATED) == 0
        for game in np.flatnonzero(running if which is None else running & which):
            self.flags[newest, game] |= TRUNCATED
            row = newest * self.num_envs + int(game)
            self._keep_aside(row, codes[game], bool(zap_legal[game]))

    def _prioritise(self, t: int, terminated: NDArray[np.bool_]) -> None:
        """Priorities of the rows that were just stored at ``t``, and of those before them."""
        if self.tree is None:
            return
        if self.death_boost > 1.0 and terminated.any():
            for rows in self._before_death(t, np.flatnonzero(terminated)):
                # The newest rows have no priority yet and get theirs with the factor.
                self.tree.scale(rows, self.death_boost**self.priority_exponent)
        self._prioritise_new(self.tree, t)

    def _prioritise_new(self, tree: Any, t: int) -> None:
        here = t * self.num_envs + self._columns
        tree.set(here, np.zeros(self.num_envs))
        if self.filled:
            before = ((t - 1) % self.length) * self.num_envs + self._columns
            tree.set(before, self._priorities(before, np.full(self.num_envs, self.largest_error)))

    def _before_death(self, t: int, games: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Mark the decisions of ``games`` that led to their termination at ``t``; their rows."""
        alive = games
        for back in range(min(self.death_window, self.filled + 1, self.length)):
            at = (t - back) % self.length
            if back:
                # The game before ended here: its decisions did not lead to this death.
                alive = alive[self.flags[at, alive] & (TERMINATED | TRUNCATED) == 0]
            fresh = alive[self.flags[at, alive] & BEFORE_DEATH == 0]
            self.flags[at, fresh] |= BEFORE_DEATH
            yield at * self.num_envs + fresh

    def _priorities(
        self, rows: NDArray[np.int64], errors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self.death_boost > 1.0:
            boosted = self.flags.reshape(-1)[rows] & BEFORE_DEATH > 0
            errors = np.where(boosted, errors * self.death_boost, errors)
        priorities: NDArray[np.float64] = errors**self.priority_exponent
        return priorities

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
        if self.expert_share > 0.0:
            self._add_experts(rows, weights)
        return self._batch(rows, weights)

    def _add_experts(self, rows: NDArray[np.int64], weights: NDArray[np.float32]) -> None:
        """Put teacher's rows in place of others' until they are the wanted share."""
        flags = self.flags.reshape(-1)
        others = np.flatnonzero((flags[rows] >> DRIVER_SHIFT) & 3 != EXPERT)
        missing = math.ceil(self.expert_share * rows.size - 1e-9) - (rows.size - others.size)
        if missing <= 0:
            return
        oldest = (self.position - self.filled) % self.length * self.num_envs
        found: list[NDArray[np.int64]] = []
        count = 0
        for _ in range(_EXPERT_TRIES):
            drawn = self.random.integers(0, len(self), 4 * missing)
            drawn = (drawn + oldest) % flags.size
            experts = drawn[(flags[drawn] >> DRIVER_SHIFT) & 3 == EXPERT][: missing - count]
            found.append(experts)
            count += experts.size
            if count == missing:
                break
        places = self.random.permutation(others)[:count]
        rows[places] = np.concatenate(found)
        # Drawn uniformly, so no priority has to be undone.
        weights[places] = 1.0

    def _batch(self, rows: NDArray[np.int64], weights: NDArray[np.float32]) -> Batch:
        count = rows.size
        codes = np.empty((count, self.num_features), self.stored)
        following = np.empty_like(codes)
        returns = np.empty(count, np.float32)
        discounts = np.empty(count, np.float32)
        horizons = np.empty(count, np.int64)
        boot = np.empty(count, np.int64)
        newest = (self.position - 1) % self.length
        assemble(
            rows, self.codes, self.reward, self.flags, newest, self.n_steps, self.gamma, self.cut,
            codes, following, returns, discounts, horizons, boot,
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
            self._path(rows, horizons) if self.retrace else None,
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
        self.tree.set(rows, self._priorities(rows, magnitude))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All stored rows as plain arrays, for a snapshot."""
        kept = sorted(self.aside)
        codes = np.zeros((len(kept), self.num_features), self.stored)
        legal = np.zeros(len(kept), np.bool_)
        for i, row in enumerate(kept):
            codes[i], legal[i] = self.aside[row]
        out: dict[str, NDArray[Any]] = {"codes": self._stored_codes()}
        out |= {name: getattr(self, name)[: self.filled] for name in SMALL_COLUMNS}
        out |= {"aside_rows": np.array(kept, np.int64), "aside_codes": codes, "aside_zap": legal}
        if self.tree is not None:
            out["priorities"] = self.tree.numpy()
        return out

    def state_dict(self) -> dict[str, Any]:
        """Counters and random state, plain types; the rows are in ``arrays``."""
        return {
            "position": self.position,
            "filled": self.filled,
            "random": self.random.bit_generator.state,
            "largest_priority": float(self.largest_error),
        }

    def load(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore what ``arrays`` and ``state_dict`` gave.

        Raises:
            UserError: the snapshot is of a buffer of another shape.
        """
        self.position, self.filled = int(state["position"]), int(state["filled"])
        if arrays["codes"].shape != (self.filled, self.num_envs, self.num_features):
            raise UserError(
                f"the replay snapshot has shape {arrays['codes'].shape}, this run needs "
                f"{(self.filled, self.num_envs, self.num_features)}; resume with the same settings"
            )
        self._store(slice(0, self.filled), arrays["codes"])
        for name in SMALL_COLUMNS:
            getattr(self, name)[: self.filled] = arrays[name]
        for row in list(self.aside):
            self._drop_aside(row)
        aside = (arrays[name] for name in ("aside_rows", "aside_codes", "aside_zap"))
        for row, codes, legal in zip(*aside, strict=True):
            self._keep_aside(int(row), codes, bool(legal))
        self.load_random(state)
        if self.tree is not None and "priorities" in arrays:
            everything = np.arange(self.length * self.num_envs)
            self.tree.set(everything, arrays["priorities"].astype(np.float64))

    def load_random(self, state: dict[str, Any]) -> None:
        """Restore only the random state, when the rows are lost."""
        self.random.bit_generator.state = state["random"]
        self.largest_error = float(state["largest_priority"])


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
