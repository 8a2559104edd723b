"""Check the whole content of a checkpoint before anything of it is used.

Types, ranges, names and shapes: networks have the weights that the configuration requires, arrays
of games are as long as there are games, counters are whole numbers.  Unknown entries are ignored
and missing ones reported where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tempest_agent.config import ConfigError, as_meant, forget_local, from_dict
from tempest_agent.envs.messages import shown
from tempest_agent.errors import one_line

from .checkpoint_archive import ForeignFileError, no_checkpoint
from .schema_checks import MisfitError, list_of, record, require_table
from .schema_network import layout_of, learner_entry
from .schema_run import REPLAY, SIMPLE, state_entries

PLAYER = ("config", "layout", "learner", "step")
"""Entries required to play."""
RUN = (*PLAYER, "vector_steps", "owed", "teacher_score", "schedules", "random")
"""Entries required to resume training."""


def check_content(content: dict[str, Any]) -> None:
    """Check every known entry of a checkpoint.

    Afterwards ``content["config"]`` has None for local settings, and those that are newer than it.

    Raises:
        MisfitError: an entry of wrong type, shape or range.
    """
    record(SIMPLE)("", content)
    if "config" not in content or "layout" not in content:
        return  # Unusable, which ``require_entries`` reports.
    require_table("config", content["config"])
    content["config"] = as_meant(forget_local(content["config"]))
    try:
        config = from_dict(content["config"])
    except ConfigError as error:
        raise MisfitError(f"its settings: {one_line(error)[:300]}") from error
    if content.get("owed", 0) > config.learner.gradient_steps:
        raise MisfitError("its entry owed is above learner.gradient_steps, the updates of a step")
    layout = layout_of(content["layout"])
    learner = learner_entry(config, layout, content.get("player_only", False))
    state = state_entries(config.run.num_envs, layout)
    # The shared entries have the arrays of all ranks' games.
    record(state | {"learner": learner, "ranks": list_of(record(state))})("", content)
    replay = content.get("replay")
    if replay is not None and max(replay["position"], replay["filled"]) > config.replay.capacity:
        raise MisfitError("its replay is longer than replay.capacity")


def require_entries(path: Path, content: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise ``ForeignFileError`` if the checkpoint ``path`` lacks one of ``names``."""
    for name in names:
        if name not in content:
            raise ForeignFileError(no_checkpoint(path, f": it has no entry {shown(name)}"))


def check_replay(state: Any) -> None:
    """Check the ``state_dict`` of a replay, as ``check_content``."""
    REPLAY("replay", state)
