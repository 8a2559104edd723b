"""How rows of the replay become updates: step by step, or as one recorded graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.replay.buffer import ReplayBuffer

from .graph_update import GraphUpdate

Update = Callable[[int, float, float, float, int], tuple[Any, Any]]
"""One update: from the number of rows, exponent of the importance weights, step size, imitation
gate and factor on the number of micro-batches to the rows drawn and their absolute errors."""


def make_update(learner: Learner, replay: ReplayBuffer) -> Update:
    """Return the fastest form of an update that the learner's device and settings allow."""
    return GraphUpdate.of(learner, replay) or functools.partial(learner.draw_and_update, replay)
