"""How an environment's actions are made from the student's: a number and a place in [-1, 1].

The student chooses one of n discrete values and, with it, one position on a continuous axis.
Environments write that as a ``Dict`` or a ``Tuple`` of one ``Discrete`` and one ``Box`` with a
single number; the arcade's games also as three numbers (``vec_env.action_space``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tempest_agent.errors import UserError

from . import vec_env

MOST_VALUES = 256
"""Discrete values that the replay has room for."""


class ActionForm(ABC):
    """A space of actions.

    Attributes:
        num_pairs: values of the discrete part.
    """

    num_pairs: int

    @abstractmethod
    def batch(self, pair: NDArray[Any], position: NDArray[Any]) -> Any:
        """N actions as Gymnasium batches them, from ints ``(N,)`` and places in [-1, 1]."""

    @abstractmethod
    def each(self, pair: NDArray[Any], position: NDArray[Any]) -> Any:
        """The same as a sequence of N single actions, for SB3's vector environments."""


class ControlsForm(ActionForm):
    """Fire if above 0, zap if above 0, spinner: float32 ``(N, 3)``."""

    num_pairs = 4

    def batch(self, pair: NDArray[Any], position: NDArray[Any]) -> NDArray[np.float32]:
        fire, zap = (np.where(pair & bit, 1.0, -1.0) for bit in (1, 2))
        return np.stack((fire, zap, position), axis=1).astype(np.float32)

    each = batch


class HybridForm(ActionForm):
    """A ``Dict`` or ``Tuple`` of a ``Discrete`` and a ``Box`` with one number, in either order.

    Args:
        space: the action space of one environment.

    Raises:
        UserError: another kind of space, with what to do about it.
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        parts: dict[Any, spaces.Space[Any]]
        if isinstance(space, spaces.Dict):
            parts = dict(space.spaces)
        elif isinstance(space, spaces.Tuple):
            parts = dict(enumerate(space.spaces))
        else:
            raise UserError(
                f"HybridDQN needs a discrete and a continuous action together, not {space}; give "
                "Dict(Discrete, Box) or Tuple(Discrete, Box) (for Tempest action_type='hybrid'), "
                "or use SB3's DQN for discrete and SAC for continuous actions"
            )
        discrete = [key for key, part in parts.items() if isinstance(part, spaces.Discrete)]
        continuous = [key for key, part in parts.items() if isinstance(part, spaces.Box)]
        if len(parts) != 2 or len(discrete) != 1 or len(continuous) != 1:
            raise UserError(
                f"the action space {space} must have exactly one Discrete and one Box part; wrap "
                "the environment with an action that has"
            )
        self._named = isinstance(space, spaces.Dict)
        self._discrete, self._continuous = discrete[0], continuous[0]
        values, axis = parts[self._discrete], parts[self._continuous]
        assert isinstance(values, spaces.Discrete)
        assert isinstance(axis, spaces.Box)
        if axis.shape not in ((), (1,)) or not np.isfinite([axis.low, axis.high]).all():
            raise UserError(
                f"the continuous action {axis} must be one number with finite bounds, such as "
                "Box(-1, 1, (1,)); wrap the environment with one"
            )
        if int(values.n) > MOST_VALUES:
            raise UserError(
                f"the discrete action has {values.n} values, HybridDQN takes at most "
                f"{MOST_VALUES}; put some of them together"
            )
        self.num_pairs, self._start = int(values.n), int(values.start)
        self._low, self._high = float(axis.low.min()), float(axis.high.max())
        self._axis_shape, self._axis_type = axis.shape, axis.dtype

    def batch(self, pair: NDArray[Any], position: NDArray[Any]) -> Any:
        place = self._low + 0.5 * (position.astype(np.float64) + 1.0) * (self._high - self._low)
        parts = {
            self._discrete: pair.astype(np.int64) + self._start,
            self._continuous: place.astype(self._axis_type).reshape(-1, *self._axis_shape),
        }
        return parts if self._named else (parts[0], parts[1])

    def each(self, pair: NDArray[Any], position: NDArray[Any]) -> list[Any]:
        batch = self.batch(pair, position)
        if isinstance(batch, Mapping):
            return [{key: part[i] for key, part in batch.items()} for i in range(len(pair))]
        return list(zip(*batch, strict=True))


def form_of(space: spaces.Space[Any]) -> ActionForm:
    """The form of an action space.

    Raises:
        UserError: HybridDQN cannot act in it.
    """
    return ControlsForm() if space == vec_env.action_space() else HybridForm(space)
