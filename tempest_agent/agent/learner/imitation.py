"""Learning from the teacher's label of a state, whoever the driver was.

The labels are those of the states that the student itself reaches (Ross et al. 2011, "A reduction
of imitation learning to no-regret online learning"), and weigh less the better the student plays
(QDagger of Agarwal et al. 2022, "Reincarnating reinforcement learning"; weight
``max(0, 1 - student / teacher)`` where scores are positive).  The loss is graded: a spinner
position near the teacher's is nearly right.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempest_agent.agent.networks.actions import knots
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS


def reached(score: float, goal: float) -> float:
    """Return how much of ``goal`` a score has reached: 1 there, 0 as far below it as it is from 0.

    That is ``score / goal`` above 0.  With a goal of -10, scores of -20 and -15 are 0 and 0.5.
    """
    if goal < 0.0:
        return 2.0 - score / goal
    return score / goal if goal > 0.0 else score


def gate(student_score: float | None, teacher_score: float, floor: float = 0.0) -> float:
    """Return the weight of imitation in [floor, 1]; 1 before the student's first finished game."""
    if student_score is None:
        return 1.0
    return min(1.0, max(floor, 1.0 - reached(student_score, teacher_score)))


def resemblance(
    pair: Tensor, position: Tensor, count: int, width: float, pairs: int = BUTTON_PAIRS
) -> Tensor:
    """Return each candidate's resemblance to the teacher's action, ``(B, pairs, K)``, at most 1.

    Zero for other button pairs, a bell of the given width in the spinner distance for the
    teacher's own pair.
    """
    distance = (knots(count, position.device) - position.unsqueeze(1)) / width
    # Measured from the nearest knot, so that the best candidate always counts as 1.
    squares = distance.square()
    bell = torch.exp(-0.5 * (squares - squares.min(dim=1, keepdim=True).values))
    same = torch.nn.functional.one_hot(pair, pairs).to(bell.dtype)
    return same.unsqueeze(2) * bell.unsqueeze(1)


def cross_entropy(values: Tensor, legal: Tensor, alike: Tensor, temperature: float) -> Tensor:
    """Return the cross entropy ``(B,)`` of the teacher's graded choice and a softmax of the values.

    The softmax does not see the state value, so only the order of actions is taught.
    """
    logits = (values / temperature).masked_fill(~legal.unsqueeze(-1), -1e9).flatten(1)
    wanted = alike.flatten(1)
    wanted = wanted / wanted.sum(dim=1, keepdim=True)
    return -(wanted * torch.log_softmax(logits, dim=1)).sum(dim=1)
