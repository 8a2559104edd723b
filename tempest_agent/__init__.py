"""Atari's Tempest (1981) as a Gymnasium environment, its teacher and a learning agent.

Importing the package registers ``Tempest-v0``; it imports neither torch nor the compiled rules.
``HybridDQN`` and its policies are imported when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tempest_agent.envs.registration import register

if TYPE_CHECKING:
    from tempest_agent.agent.hybrid_dqn import HybridDQN
    from tempest_agent.agent.policies import LaneQPolicy, MlpQPolicy

__all__ = ["HybridDQN", "LaneQPolicy", "MlpQPolicy", "__version__"]

__version__ = version("tempest-agent")

_LAZY = {
    "HybridDQN": "tempest_agent.agent.hybrid_dqn",
    "LaneQPolicy": "tempest_agent.agent.policies",
    "MlpQPolicy": "tempest_agent.agent.policies",
}

register()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
