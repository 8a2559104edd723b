"""Spaces as plain data, so that a checkpoint says what its model observes and does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.envs.messages import shown


def spaces_to(observation: spaces.Space[Any], action: spaces.Space[Any]) -> dict[str, Any]:
    """What a checkpoint says of both spaces of a model."""
    return {"observation": space_to(observation), "action": space_to(action)}


def spaces_from(
    content: Mapping[str, Any], layout: Layout
) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """What a checkpoint's model observes and does: Tempest's spaces where it does not say."""
    saved = content.get("spaces")
    if not saved:
        return observation_space(layout), action_space()
    return space_from(saved["observation"]), space_from(saved["action"])


def space_to(space: spaces.Space[Any]) -> dict[str, Any]:
    """A ``Box``, ``Discrete``, ``Dict`` or ``Tuple`` as plain values and arrays.

    Raises:
        TypeError: another space.
    """
    if isinstance(space, spaces.Box):
        return {"kind": "box", "low": space.low, "high": space.high, "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        whole = {"n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
        return {"kind": "discrete", **whole}
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "parts": {key: space_to(part) for key, part in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"kind": "tuple", "parts": [space_to(part) for part in space.spaces]}
    raise TypeError(f"{space} cannot be stored in a checkpoint")


def space_from(data: dict[str, Any]) -> spaces.Space[Any]:
    """The space that ``space_to`` described.

    Raises:
        KeyError: the description is of another kind.
    """
    kind = data["kind"]
    if kind == "box":
        dtype: Any = np.dtype(data["dtype"])
        return spaces.Box(np.asarray(data["low"]), np.asarray(data["high"]), dtype=dtype)
    if kind == "discrete":
        # Earlier versions did not say the type, and not every version of Gymnasium knows others.
        other = data.get("dtype", "int64")
        form = {} if other == "int64" else {"dtype": np.dtype(other)}
        return spaces.Discrete(int(data["n"]), start=int(data["start"]), **form)
    if kind == "dict":
        return spaces.Dict({key: space_from(part) for key, part in data["parts"].items()})
    if kind == "tuple":
        return spaces.Tuple([space_from(part) for part in data["parts"]])
    raise KeyError(f"unknown kind of space {shown(kind)}")


def observation_space(layout: Layout) -> spaces.Box:
    """Features in [-1, 1]."""
    return spaces.Box(-1.0, 1.0, (layout.num_features,), np.float32)


def action_space() -> spaces.Box:
    """Fire if above 0, zap if above 0, spinner in units of 31 counts."""
    return spaces.Box(-1.0, 1.0, (3,), np.float32)
