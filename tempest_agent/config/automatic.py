"""Settings of ``auto`` that follow from others: what teaches the policy, and which head acts."""

from __future__ import annotations

import dataclasses

from tempest_agent.envs.messages import shown

from .config import Config
from .setting import ConfigError

PLANNED = ("expert", "planner")
"""Teachers whose student is taught by the planner's plans where it can be; a weaker teacher's
student learns from that teacher alone."""


def without_auto(config: Config) -> Config:
    """Return ``config`` with the choices that a run of the arcade's game makes for ``auto``.

    Raises:
        ConfigError: a policy is to play that nothing teaches.
    """
    teacher, network = config.teacher, config.network
    taught = teacher.name != "none" and config.learner.imitation != "none"
    labels, acts = teacher.labels, network.acts
    if labels == "auto":
        fits = config.game.frame_skip == 1 and config.replay.storage != "device"
        plans = taught and teacher.name in PLANNED and network.policy_head and fits
        labels = "plans" if plans else "action"
    if acts == "auto":
        acts = "policy" if network.policy_head and taught else "values"
    if acts == "policy" and labels == "action" and not taught:
        raise ConfigError(
            "network.acts=policy plays by a policy head that nothing teaches: teacher.name="
            f"{shown(teacher.name)}, learner.imitation={config.learner.imitation}; set "
            "network.acts=values"
        )
    return dataclasses.replace(
        config,
        teacher=dataclasses.replace(teacher, labels=labels),
        network=dataclasses.replace(network, acts=acts),
    )
