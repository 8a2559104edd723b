"""What a ``with`` block does for things that have to be closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

Closed = TypeVar("Closed", bound="ClosedByWith")


class ClosedByWith(ABC):
    """A thing that ``with thing:`` closes at the block's end, by an error too."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held; may be called twice."""

    def __enter__(self: Closed) -> Closed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
