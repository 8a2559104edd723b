"""What ranks exchange besides gradients: networks, and the counts behind a log row.

The stability guard acts on log rows, so rows that are identical on all ranks keep them in step.
"""

from __future__ import annotations

import logging
import zlib
from typing import Any

import numpy as np

from tempest_agent.agent.collect.collector import Collector
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.learner.weights import PARAMETERS
from tempest_agent.agent.replicas import Replicas

from .merge_states import merged_metrics

log = logging.getLogger("tempest_agent")


def share_networks(replicas: Replicas, learner: Learner) -> None:
    """Give every rank the networks and the optimiser of rank 0."""
    if replicas.size == 1:
        return
    state = learner.state_dict()
    learner.load_networks(replicas.broadcast({name: state[name] for name in PARAMETERS}))


def share_figures(replicas: Replicas, collector: Collector, learner: Learner) -> None:
    """Merge what all ranks have counted since the last log row, identically on all of them."""
    if replicas.size == 1:
        return
    own: dict[str, Any] = {
        "counts": collector.counts.state_dict(),
        "largest_reward": collector.largest_reward,
        "metrics": learner.metrics.state_dict(),
        "weights": fingerprint(learner),
    }
    counted = replicas.gather(own)
    collector.counts.load_state_dict(
        {
            name: np.sum([each["counts"][name] for each in counted], axis=0)
            for name in counted[0]["counts"]
        }
    )
    collector.largest_reward = max(each["largest_reward"] for each in counted)
    merged = merged_metrics([each["metrics"] for each in counted])
    learner.metrics.load_state_dict(merged, learner.device)
    if len({each["weights"] for each in counted}) > 1:
        log.warning(
            "the ranks' weights have diverged (different hardware?); continuing with rank 0's"
        )
        share_networks(replicas, learner)


def fingerprint(learner: Learner) -> int:
    """Return a checksum of the trained weights."""
    number = 0
    for parameter in learner.online.parameters():
        number = zlib.crc32(parameter.detach().cpu().contiguous().numpy().tobytes(), number)
    return number
