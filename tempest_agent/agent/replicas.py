"""What processes that train one network together ask of each other.

``Replicas`` is the answer of a process that is alone: nothing happens and nothing is copied.
``data_parallel.Ranks`` is that of one of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor, nn

Value = TypeVar("Value")
Number = TypeVar("Number", float, Tensor)


class Replicas:
    """The processes that train together; here one, alone.

    Every method must be called by all of them, in the same order.

    Attributes:
        rank: number of this process, from 0.  The first owns the run's files.
        size: how many there are.
    """

    rank = 0
    size = 1

    @property
    def is_first(self) -> bool:
        """Whether this process owns the run's files."""
        return self.rank == 0

    def gather(self, value: Value) -> list[Value]:
        """``value`` of every process, in their order; plain types that JSON knows."""
        return [value]

    def stops(self, asked: bool) -> bool:
        """Whether any process was ``asked`` to stop: the same answer in all of them.

        Takes no message of its own: the answer is as of the last ``gather``.
        """
        return asked

    def broadcast(self, tree: Any) -> Any:
        """``tree`` of the first process in all of them: tensors, arrays and plain types."""
        return tree

    def collect(self, tree: Any) -> list[Any] | None:
        """``tree`` of every process in the first one, None in the others."""
        return [tree]

    def deal(self, trees: Sequence[Any] | None) -> Any:
        """Entry ``rank`` of the ``trees`` of the first process; the others give None."""
        assert trees is not None
        return trees[0]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Put the sum over all processes into the gradient of each of ``parameters``."""

    def total(self, value: Number) -> Number:
        """Sum of ``value`` over all processes."""
        return value

    def highest(self, value: Number) -> Number:
        """The largest ``value`` of all processes."""
        return value

    def require_device(self, device: str) -> None:
        """``UserError`` where this process has no ``device`` of its own."""


ALONE = Replicas()
"""One process, as in most runs."""
