"""The teachers by name."""

from __future__ import annotations

from collections.abc import Callable

from tempest_agent.envs.messages import nearest, shown
from tempest_agent.experts.planner.planner import Planner
from tempest_agent.experts.scripted.expert import ScriptedExpert

from .interface import Teacher
from .novice import Novice
from .random_player import RandomPlayer

_MAKERS: dict[str, Callable[[int], Teacher]] = {
    "expert": lambda seed: ScriptedExpert(seed=seed),
    "planner": lambda seed: Planner(seed=seed),
    "novice": lambda seed: Novice.preset("novice", seed),
    "novice-strong": lambda seed: Novice.preset("novice-strong", seed),
    "random": lambda seed: RandomPlayer(seed=seed),
}
TEACHER_NAMES = tuple(_MAKERS)


def make_teacher(name: str, seed: int = 0) -> Teacher:
    """Return the teacher called ``name``, with ``seed`` for what it leaves to chance.

    Raises:
        ValueError: if there is none of that name.
    """
    given: object = name
    maker = _MAKERS.get(given) if isinstance(given, str) else None
    if maker is None:
        near = nearest(name, TEACHER_NAMES, 0.6)
        hint = f"did you mean {shown(near)}? " if near else ""
        raise ValueError(f"no teacher {shown(name)}: {hint}there are {', '.join(TEACHER_NAMES)}")
    return maker(seed)
