"""Messages between the pool and an actor: orders one way, chunks of play the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]
"""Arrays by name."""


@dataclass(frozen=True)
class ActorShare:
    """An actor's share of the games.

    Attributes:
        actor: its number, from 0.
        actors: how many there are; game i is played by actor ``i % actors``.
        incarnation: how often it was restarted; each incarnation has its own random stream.
    """

    actor: int
    actors: int
    incarnation: int = 0


@dataclass(frozen=True)
class Order:
    """What an actor is to play next, with everything that depends on the progress of the run.

    Attributes:
        steps: of every game of the actor, at least 1.
        expert_ratio: share of new segments for the teacher.
        epsilon_floor: lower bound of the exploration rates.
        number: of this order among the orders of its actor, from 0 and across restarts; filled in
            by the pool.
        oldest: the lowest number that may still be sent again; older answers can be dropped.
    """

    steps: int
    expert_ratio: float = 0.0
    epsilon_floor: float = 0.0
    number: int = 0
    oldest: int = 0


@dataclass(frozen=True)
class Chunk:
    """Everything that an actor played for one order.

    Attributes:
        actor: who played.
        incarnation: of that actor.
        number: of the order.
        version: of the weights it was played with.
        columns: all steps, each ``(T, n, ...)`` for T steps of n games.
        last: what is sent once, after the last step.
        seconds: how long the actor played.

    Raises:
        ValueError: no columns, or columns that differ in steps or games.
    """

    actor: int
    incarnation: int
    number: int
    version: int
    columns: Columns
    last: Columns = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        shapes = {name: column.shape[:2] for name, column in self.columns.items()}
        if len(set(shapes.values())) != 1 or any(len(shape) != 2 for shape in shapes.values()):
            raise ValueError(f"a chunk's columns must all be (steps, games, ...), not {shapes}")

    @property
    def steps(self) -> int:
        """Steps of every game, T."""
        return int(next(iter(self.columns.values())).shape[0])

    @property
    def games(self) -> int:
        """Games side by side, n."""
        return int(next(iter(self.columns.values())).shape[1])

    @property
    def samples(self) -> int:
        """Replay rows that it makes: steps times games."""
        return self.steps * self.games

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        arrays = (*self.columns.values(), *self.last.values())
        return sum(array.nbytes for array in arrays)
