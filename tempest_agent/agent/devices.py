"""The device that a run asks for, and the one that is there."""

from __future__ import annotations

import logging

import torch

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


def device_here(device: str) -> str:
    """The device of a checkpoint, or another where this machine does not have it."""
    if device == "cuda" and not torch.cuda.is_available():
        log.warning("the run was on a GPU and there is none here: going on on the CPU")
        return "cpu"
    return device
