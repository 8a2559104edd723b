"""What travels between the pool and an actor: an order one way, a chunk of play the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]
"""Arrays by name."""


@dataclass(frozen=True)
class Part:
    """Which share of the play is an actor's.

    Attributes:
        actor: its number, from 0.
        actors: how many there are; with N games in all, game i is actor ``i % actors``'s.
        incarnation: how often it was begun anew.  Every one has a stream of random numbers of
            its own.
    """

    actor: int
    actors: int
    incarnation: int = 0


@dataclass(frozen=True)
class Order:
    """What an actor is to do next.

    What depends on the progress of the run travels here, with every order, so that it is never
    older than the order.

    Attributes:
        steps: decisions of every game of the actor, at least 1.
        expert_ratio: share of new segments for the teacher.
        epsilon_floor: lower bound of the exploration rates.
        number: of this order among those of its actor, from 0; an actor that is begun anew goes on
            counting.  The pool numbers the orders that it sends.
        oldest: the lowest number that may still be sent again.  What was answered before it can be
            forgotten.
    """

    steps: int
    expert_ratio: float = 0.0
    epsilon_floor: float = 0.0
    number: int = 0
    oldest: int = 0


@dataclass(frozen=True)
class Chunk:
    """What an actor played for one order: the whole of it, or it does not exist.

    Attributes:
        actor: who played.
        incarnation: of that actor.
        number: of the order.
        version: of the weights it was played with.
        columns: every decision, each ``(T, n, ...)`` for T steps of n games.
        last: what there is once, after the last step.
        seconds: how long the actor played.

    Raises:
        ValueError: columns of different lengths or numbers of games, or none.
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
        """Decisions of every game, T."""
        return int(next(iter(self.columns.values())).shape[0])

    @property
    def games(self) -> int:
        """Games side by side, n."""
        return int(next(iter(self.columns.values())).shape[1])

    @property
    def samples(self) -> int:
        """Rows of the replay that it makes: steps times games."""
        return self.steps * self.games

    @property
    def nbytes(self) -> int:
        """Size of its arrays."""
        arrays = (*self.columns.values(), *self.last.values())
        return sum(array.nbytes for array in arrays)
