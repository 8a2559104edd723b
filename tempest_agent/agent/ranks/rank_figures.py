"""Lines of metrics of several ranks: counted together, told alike by all.

The stability guard acts on these lines, so that equal lines keep the ranks in step.
"""

from __future__ import annotations

import logging
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .exchange import share_networks
from .merge_states import merged_metrics

if TYPE_CHECKING:
    from tempest_agent.agent.dqn.hybrid_dqn import HybridDQN
    from tempest_agent.agent.learner.learner import Learner

log = logging.getLogger("tempest_agent")


def share_figures(algorithm: HybridDQN) -> None:
    """Put what has been counted since the last line in any rank into all of them."""
    replicas, collector = algorithm.replicas, algorithm.collector
    if replicas.size == 1:
        return
    metrics = algorithm.learner.metrics
    own: dict[str, Any] = {
        "counts": collector.counts.state_dict(),
        "largest_reward": collector.largest_reward,
        "metrics": _plain(metrics.state_dict()),
        "weights": fingerprint(algorithm.learner),
    }
    news = replicas.gather(own)
    collector.counts.load_state_dict(
        {
            name: np.sum([each["counts"][name] for each in news], axis=0)
            for name in news[0]["counts"]
        }
    )
    collector.largest_reward = max(each["largest_reward"] for each in news)
    merged = merged_metrics([each["metrics"] for each in news])
    metrics.load_state_dict(_tensors(merged), algorithm.device)
    if len({each["weights"] for each in news}) > 1:
        log.warning(
            "the ranks have come to different weights, as different processors may: going on "
            "with those of the first"
        )
        share_networks(algorithm)


def fingerprint(learner: Learner) -> int:
    """A checksum of the trained weights."""
    number = 0
    for parameter in learner.online.parameters():
        number = zlib.crc32(parameter.detach().cpu().contiguous().numpy().tobytes(), number)
    return number


def _tensors(plain: dict[str, Any]) -> dict[str, Any]:
    """Running figures as ``Metrics`` loads them."""

    def tensor(value: float) -> torch.Tensor:
        return torch.tensor(value, dtype=torch.float64)

    rest = {
        kind: {name: tensor(value) for name, value in plain[kind].items()}
        for kind in ("totals", "highest", "lowest")
    }
    sums = {name: (tensor(total), count) for name, (total, count) in plain["sums"].items()}
    return {"sums": sums, **rest}


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """Running figures without tensors."""
    sums = {name: [float(total), float(count)] for name, (total, count) in state["sums"].items()}
    rest = {
        kind: {name: float(value) for name, value in state[kind].items()}
        for kind in ("totals", "highest", "lowest")
    }
    return {"sums": sums, **rest}
