"""Settings of ``auto`` that follow from others: what teaches the policy, and which head acts."""

from __future__ import annotations

import dataclasses

from tempest_agent.envs.messages import shown

from .config import Config
from .setting import ConfigError

PLANNED = ("expert", "planner")
"""Teachers whose student is taught by the planner's plans where it can be; a weaker teacher's
student learns from that teacher alone."""


def teaches_policy(config: Config, has_teacher: bool) -> bool:
    """Return whether anything teaches a policy head: plans, or the actions of a teacher."""
    imitates = has_teacher and config.learner.imitation != "none"
    return imitates or config.teacher.labels == "plans"


def without_auto(config: Config) -> Config:
    """Return ``config`` with the choices that a run of the arcade's game makes for ``auto``.

    Raises:
        ConfigError: a policy is to play that nothing teaches.
    """
    teacher, network = config.teacher, config.network
    if teacher.labels == "auto":
        fits = config.game.frame_skip == 1 and config.replay.storage != "device"
        planned = teacher.name in PLANNED and config.learner.imitation != "none"
        labels = "plans" if planned and network.policy_head and fits else "action"
        config = dataclasses.replace(config, teacher=dataclasses.replace(teacher, labels=labels))
    taught = teaches_policy(config, teacher.name != "none")
    if network.acts == "auto":
        acts = "policy" if network.policy_head and taught else "values"
        config = dataclasses.replace(config, network=dataclasses.replace(network, acts=acts))
    if network.acts == "policy" and not taught:
        raise ConfigError(
            "network.acts=policy plays by a policy head that nothing teaches: teacher.name="
            f"{shown(teacher.name)}, learner.imitation={config.learner.imitation}; set "
            "network.acts=values"
        )
    return config
