"""Every option of the environment, checked in one place for its single and its vector form."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from tempest_agent.envs.checks import check_one_of, check_side
from tempest_agent.envs.engine.seeds import check_seed
from tempest_agent.envs.engine.settings import GameSettings
from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.envs.messages import LONGEST, nearest, printable, shown

from .action_spaces import ACTION_TYPES, DEFAULT_SPINNER_KNOTS, knot_counts
from .backend import BACKENDS, MACHINE_OPTIONS, machine_options
from .observations import FEATURE_TYPES
from .rewards import RewardSettings

OBS_TYPES = (*FEATURE_TYPES, "ram", "rgb", "grayscale")
RENDER_MODES = ("human", "rgb_array")


@dataclass(frozen=True)
class EnvOptions:
    """Options of the environment besides those of the games and the reward.

    ``obs_type``: ``"features"``, ``"features_plain"`` (without the forecast), ``"ram"``, ``"rgb"``
    or ``"grayscale"``.  ``action_type``: ``"hybrid"``, ``"box"`` or ``"discrete"``;
    ``spinner_knots`` belongs to the last.
    ``screen_size``: width and height of picture observations; ``render_size``: of ``render()``.
    ``seed``: used by the first ``reset()`` that gets none.  ``backend``: ``"sim"``, or ``"mame"``
    for the real game, which also takes the options of ``MameOptions`` (``rom_path`` above all).
    """

    obs_type: str = "features"
    action_type: str = "hybrid"
    spinner_knots: int = DEFAULT_SPINNER_KNOTS
    screen_size: tuple[int, int] = (84, 112)
    render_size: tuple[int, int] = (480, 640)
    render_mode: str | None = None
    seed: int | None = None
    backend: str = "sim"
    machine: MameOptions | None = None
    game: GameSettings = field(default_factory=GameSettings)
    reward: RewardSettings = field(default_factory=RewardSettings)

    def __post_init__(self) -> None:
        check_one_of("obs_type", self.obs_type, OBS_TYPES)
        check_one_of("backend", self.backend, BACKENDS)
        check_one_of("action_type", self.action_type, ACTION_TYPES)
        knot_counts(self.spinner_knots)
        if self.render_mode is not None:
            check_one_of("render_mode", self.render_mode, RENDER_MODES)
        for name in ("screen_size", "render_size"):
            _size(name, getattr(self, name))
        check_seed(self.seed)

    @staticmethod
    def from_keywords(keywords: dict[str, Any]) -> EnvOptions:
        """Return the options from flat keywords; ``TypeError`` names the nearest known one."""
        parts: dict[str, dict[str, Any]] = {"env": {}, "game": {}, "reward": {}, "machine": {}}
        owner = {f.name: "env" for f in dataclasses.fields(EnvOptions)}
        del owner["game"], owner["reward"], owner["machine"]
        owner.update({f.name: "game" for f in dataclasses.fields(GameSettings)})
        owner.update({f.name: "reward" for f in dataclasses.fields(RewardSettings)})
        owner.update(dict.fromkeys(MACHINE_OPTIONS, "machine"))
        for name, value in keywords.items():
            if name not in owner:
                near = nearest(name, owner, 0.6)
                advice = f"did you mean {shown(near)}?" if near else f"it has {', '.join(owner)}"
                raise TypeError(
                    f"{printable(name, LONGEST)}={shown(value)}: the environment has no such "
                    f"option; {advice}"
                )
            parts[owner[name]][name] = value
        return EnvOptions(
            game=GameSettings(**parts["game"]),
            reward=RewardSettings(**parts["reward"]),
            machine=machine_options(keywords.get("backend", "sim"), parts["machine"]),
            **parts["env"],
        )


def _size(name: str, value: Any) -> None:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(
            f"{name}={shown(value)}: width and height in pixels are needed, for example (84, 112)"
        )
    for side in value:
        check_side(f"a side of {name}={shown(value)}", side)
