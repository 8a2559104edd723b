"""The replay in the memory of the training device.

Observations live only there.  The ten other bytes of a row are kept on both sides: the host's are
the record that snapshots are made of, the device's are what returns
are put together from.  A batch is assembled by index arithmetic over all its rows at once, and
nothing is read back to the host, so an update can be queued while the one before it still runs.

The rows drawn are those of ``ReplayBuffer`` with the same seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device

from .buffer import PRIORITY_FLOOR, ReplayBuffer
from .device_priorities import DevicePriorities
from .ring import SMALL_COLUMNS, check_memory
from .rows import (
    AGENT,
    DRIVER_SHIFT,
    LABELLED,
    TERMINATED,
    TRUNCATED,
    ZAP_LEGAL,
    Batch,
    Path,
    Rows,
)

_FIRST_PLACES = 64


class DeviceReplay(ReplayBuffer):
    """As ``ReplayBuffer``, whose arguments it takes, on ``device``; batches hold tensors."""

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        num_features: int,
        *,
        device: torch.device,
        **settings: Any,
    ) -> None:
        self.device = device
        super().__init__(capacity, num_envs, num_features, **settings)
        self._small = {
            name: torch.from_numpy(getattr(self, name).copy()).to(device) for name in SMALL_COLUMNS
        }
        rows = self.length * num_envs
        self._place = torch.full((rows,), -1, dtype=torch.int32, device=device)
        """Index of a truncated row's final observation; -1 elsewhere."""
        self._places: dict[int, int] = {}
        self._free: list[int] = []
        self._final_codes = torch.zeros(0, num_features, dtype=self.codes.dtype, device=device)
        self._final_zap = torch.zeros(0, dtype=torch.bool, device=device)
        self._newest = torch.full((), -1, dtype=torch.int64, device=device)
        """Newest step of the games, on the device so that a recorded update can read it."""
        self._steps = torch.zeros(0, dtype=torch.int64, device=device)
        self.set_n_steps(self.n_steps)

    def set_n_steps(self, n_steps: int) -> None:
        super().set_n_steps(n_steps)
        if n_steps + 1 == self._steps.numel():
            return
        powers = np.cumprod([1.0] + [self.gamma] * n_steps)
        self._powers = torch.from_numpy(powers).to(self.device)
        self._steps = torch.arange(n_steps + 1, device=self.device)

    def _allocate(self, shape: tuple[int, ...]) -> Any:
        return torch.from_numpy(np.zeros((), self.stored)).to(self.device).expand(shape).clone()

    def _check_memory(self, rows: int) -> None:
        free = torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else None
        check_memory(rows, self.row_bytes, free)

    @property
    def where(self) -> str:
        """Return whose memory it takes."""
        return f"the device {self.device}"

    def _make_priorities(self, rows: int) -> Any:
        return DevicePriorities(rows, self.device)

    def _store(self, t: int | slice, codes: NDArray[Any]) -> None:
        self.codes[t] = self._here(codes)

    def _stored_codes(self) -> NDArray[Any]:
        codes: NDArray[Any] = self.codes[: self.filled].cpu().numpy()
        return codes

    def _here(self, array: NDArray[Any]) -> Tensor:
        return to_device(np.ascontiguousarray(array), self.device)

    def _mirror(self, t: int) -> None:
        for name, column in self._small.items():
            column[t] = self._here(getattr(self, name)[t])

    def add(self, rows: Rows) -> None:
        """Store one step of every game, over the oldest ones when full."""
        t = self.position
        super().add(rows)
        self._mirror(t)
        self._newest.fill_(t)

    def end_games(
        self,
        codes: NDArray[Any],
        zap_legal: NDArray[np.bool_],
        which: NDArray[np.bool_] | None = None,
    ) -> None:
        """End the running games after their newest step; the caller is about to reset them."""
        super().end_games(codes, zap_legal, which)
        self._mirror((self.position - 1) % self.length)

    def _keep_final(self, row: int, codes: NDArray[Any], zap_legal: bool) -> None:
        super()._keep_final(row, codes, zap_legal)
        if not self._free:
            self._grow()
        place = self._free.pop()
        self._places[row] = place
        self._place[row] = place
        self._final_codes[place] = self._here(codes)
        self._final_zap[place] = zap_legal

    def _grow(self) -> None:
        """Double the room for final observations."""
        before = len(self._final_zap)
        more = max(before, _FIRST_PLACES)
        self._final_codes = torch.cat(
            (self._final_codes, self.codes.new_zeros(more, self.num_features))
        )
        self._final_zap = torch.cat((self._final_zap, self._final_zap.new_zeros(more)))
        self._free = list(range(before + more - 1, before - 1, -1))

    def _drop_final(self, row: int) -> None:
        super()._drop_final(row)
        place = self._places.pop(row, None)
        if place is not None:
            self._free.append(place)
            self._place[row] = -1

    def _largest_errors(self) -> Any:
        errors = torch.ones(self.num_envs, dtype=torch.float64, device=self.device)
        return errors * self.largest_error

    def sample(self, count: int, importance: float = 1.0) -> Batch:
        """Return ``count`` starts with their n-step returns, as tensors."""
        return self.assembled(*self.draw(count, importance))

    def draw(self, count: int, importance: float = 1.0) -> tuple[Tensor, Tensor]:
        """Return the rows ``(B,)`` and importance weights ``(B,)`` that ``sample`` draws."""
        if len(self) == 0:
            raise ValueError("the replay holds no complete decision yet; add two steps first")
        weights = torch.ones(count, device=self.device)
        if self.priorities is None:
            rows = self._here(self._draw_uniformly(count))
        else:
            rows = self.priorities.sample(count, self.random)
            chance = self.priorities.values[rows] / self.priorities.total
            raw = (chance * len(self)) ** -importance
            weights = (raw / self.highest(raw.max())).float()
        return rows, weights

    def ages(self, rows: Column) -> Column:
        """Return the ages of ``ReplayBuffer.ages``, for tensors."""
        return (self._newest - rows // self.num_envs) % self.length * self.num_envs

    @property
    def final_room(self) -> int:
        """Return the room for final observations; a graph recorded before it grew is outdated."""
        return self._final_zap.numel()

    def assembled(self, rows: Tensor, weights: Tensor) -> Batch:
        """Return the batch of the starts ``rows``, int64 ``(B,)``, with importance ``weights``."""
        small = {name: column.view(-1) for name, column in self._small.items()}
        total = self.length * self.num_envs
        way = (rows.unsqueeze(1) + self._steps * self.num_envs) % total
        flags = small["flags"][way]
        last = self._last(way, flags)
        valid = self._steps[:-1] <= last.unsqueeze(1)
        rewards = small["reward"][way[:, :-1]].double() * self._powers[:-1]
        end = flags.gather(1, last.unsqueeze(1)).squeeze(1)
        terminated = end & TERMINATED > 0
        boot = way.gather(1, last.unsqueeze(1) + 1).squeeze(1)
        codes = self.codes.view(-1, self.num_features)
        following, next_flags = codes[boot], small["flags"][boot]
        next_zap = next_flags & ZAP_LEGAL > 0
        if self._final_zap.numel():
            place = self._place[way.gather(1, last.unsqueeze(1)).squeeze(1)]
            has_final = (place >= 0) & ~terminated
            place = place.clamp(min=0)
            following = torch.where(has_final.unsqueeze(1), self._final_codes[place], following)
            next_zap = torch.where(has_final, self._final_zap[place], next_zap)
        first = flags[:, 0]
        return Batch(
            codes=codes[rows],
            next_codes=following,
            spin=small["spin"][rows],
            buttons=small["buttons"][rows],
            returns=torch.where(valid, rewards, 0.0).sum(dim=1).float(),
            discounts=torch.where(terminated, 0.0, self._powers[last + 1]).float(),
            horizons=last + 1,
            zap_legal=first & ZAP_LEGAL > 0,
            next_zap_legal=next_zap,
            driver=(first >> DRIVER_SHIFT) & 3,
            label_spin=small["label_spin"][rows],
            label_buttons=small["label_buttons"][rows],
            labelled=first & LABELLED > 0,
            weights=weights,
            rows=rows,
            path=self._way(small, codes, way[:, :-1], flags[:, :-1], valid) if self.paths else None,
        )

    def _last(self, way: Tensor, flags: Tensor) -> Tensor:
        """Return the index ``(B,)`` of each return's last step in rows ``way`` ``(B, n + 1)``."""
        ends = flags[:, :-1] & (TERMINATED | TRUNCATED) > 0
        ends = ends | (way[:, 1:] // self.num_envs == self._newest)
        if self.cut:
            ends = ends | ((flags[:, 1:] >> DRIVER_SHIFT) & 3 != AGENT)
        ends[:, -1] = True
        return ends.to(torch.uint8).argmax(dim=1)

    def _way(
        self, small: dict[str, Tensor], codes: Tensor, way: Tensor, flags: Tensor, valid: Tensor
    ) -> Path:
        return Path(
            codes=codes[way],
            spin=small["spin"][way],
            buttons=small["buttons"][way],
            zap_legal=flags & ZAP_LEGAL > 0,
            driver=(flags >> DRIVER_SHIFT) & 3,
            reward=small["reward"][way],
            valid=valid.float(),
        )

    def update_priorities(self, rows: Any, errors: Any) -> None:
        """Set the priorities of sampled ``rows`` by their absolute errors, tensors both."""
        if self.priorities is None:
            return
        magnitude = errors.abs().double() + PRIORITY_FLOOR
        # A plain number would become float32, and a resumed run go on with another one.
        before = torch.as_tensor(self.largest_error, dtype=torch.float64, device=self.device)
        self.largest_error = torch.maximum(magnitude.max(), before)
        self.priorities.set(rows, magnitude**self.priority_exponent)

    def load(self, arrays: dict[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore what ``arrays`` and ``state_dict`` of either kind of replay returned."""
        super().load(arrays, state)
        for name, column in self._small.items():
            column.copy_(torch.from_numpy(getattr(self, name)))
        self._newest.fill_((self.position - 1) % self.length)
