"""Replay of steps: rows are drawn uniformly or by priority, and their returns assembled.

``ring`` stores the rows, ``n_step`` assembles returns.  With ``trace="cut"`` returns end at other
drivers' actions; with ``trace="retrace"`` they do not, and come with their steps (``Path``).

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

from .n_step import FINAL, assemble
from .plans import PLANS, LateLabels, Plans
from .ring import ReplayRing
from .rows import DRIVER_SHIFT, HAS_PLANS, LABELLED, ZAP_LEGAL, Batch, Path, PlanBatch, Rows
from .sum_tree import SumTree

PRIORITY_FLOOR = 1e-3

TRIES = 8
"""Draws of four times the wanted rows, in which those with plans are looked for."""


def _itself(value: Any) -> Any:
    return value


class ReplayBuffer(ReplayRing):
    """The last ``capacity`` steps of ``num_envs`` games.

    Args:
        capacity: steps kept over all games (rounded down to whole vector steps).
        num_envs: games, N.
        num_features: observation length, F.
        n_steps: longest return.
        gamma: discount per step.
        trace: ``uncorrected``, ``cut`` at other drivers' actions, or ``retrace``.
        seed: of the sampling.
        prioritised: sample by the last error instead of uniformly.
        priority_exponent: alpha of Schaul et al. 2016, "Prioritized experience replay".
        stored: type of the observations' numbers (``Layout.stored``).
        stored_counts: type of the continuous actions (``Layout.stored_counts``).
        plans: whether rows have room for the plans of a state, and deaths are marked.

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
        plans: bool = False,
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
            plans=plans,
        )
        self._near: NDArray[np.int64] | None = None
        self.n_steps, self.gamma = n_steps, gamma
        self.cut, self.paths = trace == "cut", trace == "retrace"
        self.priority_exponent = priority_exponent
        self.random = np.random.default_rng(seed)
        self.priorities: Any = self._make_priorities(length * num_envs) if prioritised else None
        self.largest_error: Any = 1.0
        self.highest: Callable[[Any], Any] = _itself
        """Largest of a number here and in the replays that the same updates draw from."""
        self._columns = np.arange(num_envs)

    def _make_priorities(self, rows: int) -> Any:
        return SumTree(rows)

    def __len__(self) -> int:
        """Steps that can be sampled as starts."""
        return max(0, self.filled - 1) * self.num_envs

    def set_n_steps(self, n_steps: int) -> None:
        """Set the longest return of samples from now on, at most the one at the start."""
        self.n_steps = n_steps

    def _prioritise(self, t: int) -> None:
        """Give the rows just stored at ``t`` no priority, and those before them the largest."""
        if self.priorities is None:
            return
        here = t * self.num_envs + self._columns
        self.priorities.set(here, np.zeros(self.num_envs))
        if self.filled:
            before = ((t - 1) % self.length) * self.num_envs + self._columns
            self.priorities.set(before, self._largest_errors() ** self.priority_exponent)

    def _largest_errors(self) -> Any:
        """Return the largest error seen, once for each game."""
        return np.full(self.num_envs, self.largest_error)

    def ages(self, rows: Column) -> Column:
        """Return the steps of all games that were played since each of ``rows``."""
        newest = (self.position - 1) % self.length
        return (newest - rows // self.num_envs) % self.length * self.num_envs

    def sample(self, count: int, importance: float = 1.0) -> Batch:
        """Return ``count`` starts with their n-step returns.

        Args:
            count: rows, B.
            importance: exponent of the correction for priorities (beta).

        Raises:
            ValueError: nothing can be sampled yet.
        """
        if len(self) == 0:
            raise ValueError("the replay holds no complete decision yet; add two steps first")
        weights = np.ones(count, np.float32)
        if self.priorities is None:
            rows = self._draw_uniformly(count)
        else:
            rows = self.priorities.sample(count, self.random)
            chance = self.priorities.values[rows] / self.priorities.total
            raw = (chance * len(self)) ** -importance
            weights = (raw / self.highest(raw.max())).astype(np.float32)
        return self._batch(rows, weights)

    def _draw_uniformly(self, count: int) -> NDArray[np.int64]:
        drawn = self.random.integers(0, len(self), count)
        oldest = (self.position - self.filled) % self.length
        return (drawn + oldest * self.num_envs) % (self.length * self.num_envs)

    def sample_plans(self, count: int, death_share: float) -> PlanBatch | None:
        """Return up to ``count`` states with the values of their plans; None while there are none.

        Args:
            count: states, B.
            death_share: share of them from the last ticks before a death, if there are any;
                all others are drawn uniformly among the states with plans.
        """
        near = self._near_death()
        wanted = int(count * death_share) if near.size else 0
        parts = [near[self.random.integers(0, near.size, wanted)]] if wanted else []
        parts += self._draw_labelled(count - wanted)
        rows = np.concatenate(parts)
        if not rows.size:
            return None
        flags = self.flags.reshape(-1)[rows]
        spin, buttons, regret = (
            self.plan_columns[name].reshape(-1, PLANS)[rows]
            for name in ("plan_spin", "plan_buttons", "plan_regret")
        )
        return PlanBatch(
            self.codes.reshape(-1, self.num_features)[rows],
            (flags & ZAP_LEGAL) > 0,
            # PyTorch knows little of uint16.
            Plans(spin, buttons, regret.astype(np.int32)),
        )

    def _draw_labelled(self, count: int) -> list[NDArray[np.int64]]:
        """Return up to ``count`` rows with plans, each drawn uniformly among them."""
        flags = self.flags.reshape(-1)
        found: list[NDArray[np.int64]] = []
        for _ in range(TRIES):
            rows = self._draw_uniformly(4 * count)
            found.append(rows[flags[rows] & HAS_PLANS > 0][:count])
            count -= found[-1].size
            if not count:
                break
        return found

    def _near_death(self) -> NDArray[np.int64]:
        """Return the rows near a death that have plans."""
        if self._near is None:
            near = np.flatnonzero(self.plan_columns["near_death"][: self.filled])
            self._near = near[self.flags.reshape(-1)[near] & HAS_PLANS > 0]
        return self._near

    def add(self, rows: Rows) -> None:
        """Store one step of every game, over the oldest ones when full."""
        super().add(rows)
        self._near = None

    def add_labels(self, late: LateLabels) -> None:
        super().add_labels(late)
        self._near = None

    def mark_deaths(self, died: NDArray[np.bool_], ticks: int) -> None:
        super().mark_deaths(died, ticks)
        self._near = None

    def _batch(self, rows: NDArray[np.int64], weights: NDArray[np.float32]) -> Batch:
        count = rows.size
        codes = np.empty((count, self.num_features), self.stored)
        following = np.empty_like(codes)
        returns = np.empty(count, np.float32)
        discounts = np.empty(count, np.float32)
        horizons = np.empty(count, np.int64)
        boot = np.empty(count, np.int64)
        newest = (self.position - 1) % self.length
        # Compiled code has no float16; a copy needs only the size of a number.
        form = np.dtype(np.uint16) if self.stored == np.float16 else self.stored
        assemble(
            rows, self.codes.view(form), self.reward, self.flags, newest, self.n_steps,
            self.gamma, self.cut, codes.view(form), following.view(form), returns, discounts,
            horizons, boot,
        )  # fmt: skip
        flat = self.flags.reshape(-1)
        flags = flat[rows]
        next_zap = (flat[np.maximum(boot, 0)] & ZAP_LEGAL) > 0
        for i in np.flatnonzero(boot <= FINAL):
            following[i], next_zap[i] = self.final_observations[int(FINAL - boot[i])]
        return Batch(
            codes, following, self.spin.reshape(-1)[rows], self.buttons.reshape(-1)[rows],
            returns, discounts, horizons, (flags & ZAP_LEGAL) > 0, next_zap,
            ((flags >> DRIVER_SHIFT) & 3).astype(np.uint8), self.label_spin.reshape(-1)[rows],
            self.label_buttons.reshape(-1)[rows], (flags & LABELLED) > 0, weights, rows,
            self._path(rows, horizons) if self.paths else None,
        )  # fmt: skip

    def _path(self, rows: NDArray[np.int64], horizons: NDArray[np.int64]) -> Path:
        step = np.arange(self.n_steps)
        way = (rows[:, None] + step * self.num_envs) % (self.length * self.num_envs)
        flags = self.flags.reshape(-1)[way]
        return Path(
            codes=self.codes.reshape(-1, self.num_features)[way],
            spin=self.spin.reshape(-1)[way],
            buttons=self.buttons.reshape(-1)[way],
            zap_legal=(flags & ZAP_LEGAL) > 0,
            driver=((flags >> DRIVER_SHIFT) & 3).astype(np.uint8),
            reward=self.reward.reshape(-1)[way],
            valid=(step < horizons[:, None]).astype(np.float32),
        )

    def update_priorities(self, rows: Any, errors: Any) -> None:
        """Set the priorities of sampled ``rows`` by their absolute errors, if there are any."""
        if self.priorities is None:
            return
        magnitude = np.abs(errors).astype(np.float64) + PRIORITY_FLOOR
        self.largest_error = max(self.largest_error, float(magnitude.max()))
        self.priorities.set(rows, magnitude**self.priority_exponent)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all stored rows and their priorities as plain arrays, for a snapshot."""
        out = super().arrays()
        if self.priorities is not None:
            out["priorities"] = self.priorities.numpy()
        return out

    def largest_arrays(self, rows: int) -> dict[str, int]:
        """Return the bounds of ``ReplayRing`` with that of the priorities."""
        return super().largest_arrays(rows) | {"priorities": 8 * rows}

    def state_dict(self) -> dict[str, Any]:
        """Return counters and random state, plain types; the rows are in ``arrays``."""
        return super().state_dict() | {
            "random": self.random.bit_generator.state,
            "largest_priority": float(self.largest_error),
        }

    def load(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore what ``arrays`` and ``state_dict`` returned.

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
        self._near = None
        self.load_random(state)
        if self.priorities is not None and priorities is not None:
            self.priorities.set(everything, priorities.astype(np.float64))

    def load_random(self, state: dict[str, Any]) -> None:
        """Restore only the random state, when the rows are lost."""
        self.random.bit_generator.state = state["random"]
        self.largest_error = float(state["largest_priority"])
