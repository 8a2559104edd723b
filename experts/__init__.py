"""Teachers: scripted players that read the RAM image and nothing else.

``make_teacher(name)`` builds one of them; ``interface.Teacher`` is what they have in common.
"""

from tempest_agent.experts.planner.planner import Planner
from tempest_agent.experts.planner.rollout import Budget
from tempest_agent.experts.scripted.expert import ScriptedExpert
from tempest_agent.experts.scripted.weights import Weights

from .interface import PendingInputs, Teacher
from .novice import Novice
from .random_player import RandomPlayer
from .registry import TEACHER_NAMES, make_teacher

__all__ = [
    "TEACHER_NAMES",
    "Budget",
    "Novice",
    "PendingInputs",
    "Planner",
    "RandomPlayer",
    "ScriptedExpert",
    "Teacher",
    "Weights",
    "make_teacher",
]
