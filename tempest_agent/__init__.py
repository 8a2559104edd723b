"""Atari's Tempest (1981) as a Gymnasium environment, its teacher and a learning agent.

Importing the package registers ``Tempest-v0``; it imports neither torch nor the compiled rules.
``HybridDQN`` and its policies are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

_CHECKOUT = Path(__file__).resolve().parent.parent
if not Path(__file__).with_name("envs").is_dir() and (_CHECKOUT / "envs").is_dir():
    # In a checkout some folders of the package are next to this one (see pyproject.toml), and a
    # Python started there finds this one before the installed package.
    __path__.append(str(_CHECKOUT))

from tempest_agent.envs.messages import shown  # noqa: E402
from tempest_agent.envs.registration import register  # noqa: E402

if TYPE_CHECKING:
    from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN
    from tempest_agent.agent.dqn.policies import LaneQPolicy, MlpQPolicy

__all__ = ["HybridDQN", "LaneQPolicy", "MlpQPolicy", "__version__"]

try:
    __version__ = version("tempest-agent")
except PackageNotFoundError as error:
    raise ImportError(f"tempest-agent is not installed: pip install -e {_CHECKOUT}") from error

_LAZY = {
    "HybridDQN": "tempest_agent.agent.dqn.hybrid_dqn",
    "LaneQPolicy": "tempest_agent.agent.dqn.policies",
    "MlpQPolicy": "tempest_agent.agent.dqn.policies",
}

register()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {shown(__name__)} has no attribute {shown(name)}")
