"""The device that a run asks for, and the one that is there."""

from __future__ import annotations

import logging
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.errors import UserError

DEVICES = ("auto", "cpu", "cuda")

log = logging.getLogger("tempest_agent")


def require_device(device: str) -> None:
    """Refuse a device that this machine does not have.

    Raises:
        UserError: ``cuda``, and there is no GPU that torch can use.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "device 'cuda' is not available (no GPU, or a CPU build of torch); "
            "use --device cpu or --device auto"
        )


def torch_device(device: str) -> torch.device:
    """Return the device of a setting: for ``auto`` the GPU, or the CPU without one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(device)


def device_here(device: str) -> str:
    """The device of a checkpoint, or another where this machine does not have it."""
    if device == "cuda" and not torch.cuda.is_available():
        log.warning("the run was on a GPU and there is none here: going on on the CPU")
        return "cpu"
    return device


Column = NDArray[Any] | Tensor


def to_device(column: Column, device: torch.device) -> Tensor:
    """``column`` as a tensor on ``device``.

    Towards a GPU an array is copied through pinned memory, and nothing waits for it.
    """
    if isinstance(column, Tensor):
        return column
    tensor = torch.from_numpy(column)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor if device.type == "cpu" else tensor.to(device, non_blocking=True)
