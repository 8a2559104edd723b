"""Data-parallel learning: several processes ("ranks"), each with its share of games and replay.

Every rank plays ``run.num_envs / K`` games into a replay of its own and draws ``batch_size / K``
rows of it for each update.  Gradients are summed over the ranks, weighted by rows, before the one
clipping and the one step (Goyal et al. 2017, "Accurate, large minibatch SGD"): the update equals
that of one large batch, and all ranks hold the same weights, bit for bit.  CPU tensors travel by
gloo, GPU tensors by NCCL.  Everything else is sent as JSON or as a ``torch.save`` archive read
with ``weights_only``: the object collectives of ``torch.distributed`` would unpickle it.

``torchrun`` starts the ranks, or anything else that sets the same variables: ``RANK``,
``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR`` and ``MASTER_PORT``.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tempest_agent.agent.checkpoints.checkpoint_files import pack
from tempest_agent.agent.replicas import ALONE, Number, Replicas, Value
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, one_line

TIMEOUT = 600.0
"""Seconds that a rank waits for the others: rank 0 may be writing checkpoints or playing games."""
TIMEOUT_VARIABLE = "TEMPEST_RANK_TIMEOUT"

_HEAD, _LENGTH = 512, 8
"""Bytes of the first message of ``gather``, and of its head: the length of the value and, in the
last byte, whether this rank was asked to stop."""
_PIECE = 1 << 26
_VARIABLES = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
_TORCHRUN = "TORCHELASTIC_RUN_ID"
"""Set by ``torchrun`` only."""
_WATCH_SECONDS = 1.0


class RankLostError(UserError):
    """Another rank has exited or does not answer."""


def is_one_of_several(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process was started as one rank of several."""
    return environment.get("WORLD_SIZE", "1") not in ("", "1")


def join(environment: Mapping[str, str] = os.environ) -> Replicas:
    """Join the other ranks that ``torchrun`` has started; return ``ALONE`` if there are none.

    Raises:
        UserError: variables are missing or wrong, or the others did not join.
    """
    if not is_one_of_several(environment):
        return ALONE
    missing = [name for name in _VARIABLES if name not in environment]
    if missing:
        raise UserError(
            f"WORLD_SIZE={environment['WORLD_SIZE']} is set and {', '.join(missing)} not: start "
            "all ranks with torchrun --nproc-per-node K -m tempest_agent train ..., or unset "
            "WORLD_SIZE"
        )
    rank, size, local = (_whole(environment, n) for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    seconds = _seconds(environment)
    has_gpus = torch.cuda.is_available()
    if has_gpus and local < torch.cuda.device_count():
        torch.cuda.set_device(local)
    try:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if has_gpus else "gloo",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=seconds),
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"rank {rank} of {size} did not meet the others at {environment['MASTER_ADDR']}:"
            f"{environment['MASTER_PORT']} ({one_line(error)[:200]}); see the messages of the "
            "other ranks"
        ) from error
    atexit.register(_leave)
    return Ranks(rank, size, local)


@contextmanager
def watching_torchrun(lost: Callable[[], None]) -> Iterator[None]:
    """Call ``lost`` once, from a thread, if the ``torchrun`` that started this rank dies.

    It ends its ranks itself unless it is killed; they would continue without it.
    """
    if _TORCHRUN not in os.environ:
        yield
        return
    parent, finished = os.getppid(), threading.Event()

    def watch() -> None:
        while not finished.wait(_WATCH_SECONDS):
            if os.getppid() != parent:
                lost()
                return

    thread = threading.Thread(target=watch, name="torchrun-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


class Ranks(Replicas):
    """This process as one rank of the process group.

    Args:
        rank: number of this process.
        size: how many there are.
        local: number of this process among those of its machine, which is its GPU's.
    """

    def __init__(self, rank: int, size: int, local: int = 0) -> None:
        self.rank, self.size, self.local = rank, size, local
        self._asked = self._stops = False

    def require_device(self, device: str) -> None:
        """Require, as in ``Replicas``, a GPU for every rank of this machine."""
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if device != "cpu" and count and self.local >= count:
            raise UserError(
                f"rank {self.rank} has no GPU of its own, this machine has {count}: start "
                f"--nproc-per-node {count}, or give --device cpu"
            )

    def gather(self, value: Value) -> list[Value]:
        """Gather as in ``Replicas``; a short value takes one message, tensors arrive as floats."""
        data = json.dumps(value, default=float).encode()
        number = len(data).to_bytes(_LENGTH - 1, "little") + bytes([self._asked])
        head = number + data[: _HEAD - _LENGTH]
        heads = self._gather_bytes(head, _HEAD)
        self._stops = self._stops or any(each[_LENGTH - 1] for each in heads)
        lengths = [int.from_bytes(each[: _LENGTH - 1], "little") for each in heads]
        rest = max(lengths) - (_HEAD - _LENGTH)
        tails = self._gather_bytes(data[_HEAD - _LENGTH :], rest) if rest > 0 else [b""] * self.size
        whole = (head[_LENGTH:] + tail for head, tail in zip(heads, tails, strict=True))
        return [json.loads(each[:length]) for each, length in zip(whole, lengths, strict=True)]

    def stops(self, asked: bool) -> bool:
        self._asked = self._asked or asked
        return self._stops

    def broadcast(self, tree: Any) -> Any:
        if self.is_first:
            data = _to_bytes(tree)
            self._each(dist.broadcast, torch.tensor([len(data)]), src=0)
            for piece in _pieces(data):
                self._each(dist.broadcast, piece, src=0)
            return tree
        return _from_bytes(self._receive(dist.broadcast))

    def collect(self, tree: Any) -> list[Any] | None:
        if not self.is_first:
            self._send(tree, 0)
            return None
        others = range(1, self.size)
        return [tree, *(_from_bytes(self._receive(dist.recv, rank)) for rank in others)]

    def deal(self, trees: Sequence[Any] | None) -> Any:
        if trees is None:
            return _from_bytes(self._receive(dist.recv))
        for rank in range(1, self.size):
            self._send(trees[rank], rank)
        return trees[0]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self._each(dist.all_reduce, flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        summed = [part.view_as(own) for part, own in zip(parts, gradients, strict=True)]
        torch._foreach_copy_(gradients, summed)

    def total(self, value: Number) -> Number:
        return self._reduced(value, dist.ReduceOp.SUM)

    def highest(self, value: Number) -> Number:
        return self._reduced(value, dist.ReduceOp.MAX)

    def _reduced(self, value: Number, how: Any) -> Number:
        if isinstance(value, Tensor):
            kept = value.clone()
            self._each(dist.all_reduce, kept, op=how)
            return kept
        one = torch.tensor([value], dtype=torch.float64)
        self._each(dist.all_reduce, one, op=how)
        return float(one)

    def _gather_bytes(self, data: bytes, length: int) -> list[bytes]:
        own = torch.frombuffer(bytearray(data.ljust(length, b"\0")), dtype=torch.uint8)
        everybody = [torch.empty_like(own) for _ in range(self.size)]
        self._each(dist.all_gather, everybody, own)
        return [each.numpy().tobytes() for each in everybody]

    def _send(self, tree: Any, to: int) -> None:
        data = _to_bytes(tree)
        self._each(dist.send, torch.tensor([len(data)]), to)
        for piece in _pieces(data):
            self._each(dist.send, piece, to)

    def _receive(self, how: Any, source: int = 0) -> bytearray:
        length = torch.zeros(1, dtype=torch.int64)
        self._each(how, length, src=source)
        data = bytearray(int(length))
        for piece in _pieces(data):
            self._each(how, piece, src=source)
        return data

    def _each(self, operation: Any, *arguments: Any, **named: Any) -> None:
        with self._together():
            operation(*arguments, **named)

    @contextmanager
    def _together(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            # Leaving the group would wait for ranks that are gone.
            atexit.unregister(_leave)
            raise RankLostError(
                f"rank {self.rank} of {self.size} has lost the others: one of them exited or "
                f"did not answer in time ({TIMEOUT_VARIABLE} seconds); see its own message, then "
                "continue from the last checkpoint with train --resume"
            ) from error


def _to_bytes(tree: Any) -> bytearray:
    buffer = io.BytesIO()
    torch.save(pack(tree), buffer)
    return bytearray(buffer.getbuffer())


def _from_bytes(data: bytearray) -> Any:
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def _pieces(data: bytearray) -> Iterator[Tensor]:
    """Yield tensors over the memory of ``data``, each short enough for one message."""
    for first in range(0, len(data), _PIECE):
        count = min(_PIECE, len(data) - first)
        yield torch.frombuffer(data, dtype=torch.uint8, count=count, offset=first)


def _whole(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not re.fullmatch("[0-9]{1,9}", text):
        raise UserError(f"{name}={shown(text)} is no rank or number of ranks; start with torchrun")
    return int(text)


def _seconds(environment: Mapping[str, str]) -> float:
    text = environment.get(TIMEOUT_VARIABLE, str(TIMEOUT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds < 1e7:
        raise UserError(f"{TIMEOUT_VARIABLE}={shown(text)} must be seconds, at least 1")
    return seconds


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
