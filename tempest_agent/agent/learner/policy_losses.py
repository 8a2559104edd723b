"""The losses that teach what to choose.

They act on the logits of the policy head.  Without one the values are what is chosen by, and they
are taught in its place, by the teacher's action.

The values of several plans teach a policy head two things: what to do, by the cross entropy between
a softmax of the values, put on the plans' first actions, and the policy; and what a mistake costs,
by the regret that the policy expects of the lanes it lands in.  A plan's share lies on the counts
around its own that land in the same lane, as a bell of ``learner.imitation_width``: they are nearly
as good, and one of 63 counts is a hard thing to hit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from tempest_agent.agent.devices import to_device
from tempest_agent.agent.networks.actions import pair_mask
from tempest_agent.agent.networks.landings import LANE_COUNTS, landings
from tempest_agent.agent.networks.lane_head import OFFSETS
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.replay.plans import NO_PLAN, Plans
from tempest_agent.config import Config
from tempest_agent.envs.machine.inputs import SPINNER_MAX, ZAP

from .imitation import cross_entropy, resemblance
from .metrics import Metrics

REGRET_UNIT = 100.0
"""Points of expected regret that weigh as much as ``learner.regret_weight``."""


class Labels(NamedTuple):
    """The teacher's actions in B states, ``(B,)`` each; ``usable`` is 1 where there is one."""

    pair: Tensor
    position: Tensor
    usable: Tensor


class PolicyLosses:
    """The losses of what the network ``online`` (or a copy of it) chooses by."""

    def __init__(self, config: Config, online: QNetwork) -> None:
        self.learner = config.learner
        self.online = online
        self.num_pairs = online.layout.num_pairs

    def of_labels(
        self, heads: Heads, zap_legal: Tensor, labels: Labels, metrics: Metrics
    ) -> Tensor:
        """Return the cross entropies ``(B,)`` towards the teacher's actions; 0 without a label.

        Args:
            heads: the network's outputs.
            zap_legal: bool ``(B,)``.
            labels: of the same states.
            metrics: gets the loss, and with a policy head how certain and how near it is.
        """
        knots, width = self.online.num_knots, self.learner.imitation_width
        alike = resemblance(labels.pair, labels.position, knots, width, self.num_pairs)
        legal = pair_mask(zap_legal, self.num_pairs)
        usable, policy = labels.usable, heads.policy
        if policy is None:
            temperature = self.learner.imitation_temperature
            each = cross_entropy(heads.values, legal, alike, temperature)
        else:
            each = cross_entropy(policy, legal, alike, temperature=1.0)
            record_policy(policy.detach(), legal, alike, usable, metrics)
        each = torch.where(usable > 0, each, 0.0)
        metrics.mean("imitation_loss", each, usable.sum())
        return each


def record_policy(
    logits: Tensor, legal: Tensor, alike: Tensor, usable: Tensor, metrics: Metrics
) -> None:
    """Record how certain the policy is, and how near its choice is to the teacher's.

    Args:
        logits: ``(B, 4, K)``, without a gradient.
        legal: bool ``(B, 4)``.
        alike: resemblance of each action to the teacher's, ``(B, 4, K)``.
        usable: 1 where there is a label, ``(B,)``.
        metrics: gets both.
    """
    allowed = logits.masked_fill(~legal.unsqueeze(-1), -1e9).flatten(1)
    logs = torch.log_softmax(allowed, dim=1)
    metrics.mean("policy_entropy", -(logs.exp() * logs).sum(dim=1))
    chosen = alike.flatten(1).gather(1, allowed.argmax(dim=1, keepdim=True)).squeeze(1)
    metrics.mean("policy_agreement", chosen * usable, usable.sum())


class Wanted(NamedTuple):
    """What the plans of B states teach; states without a legal plan have zeros."""

    shares: Tensor
    """``(B, 4, K)``, what the policy should be."""
    regret: Tensor
    """``(B, 2, K)`` points, without and with a zap; 0 where there is only one plan."""
    best: Tensor
    """Bool ``(B, 4, K)``: the actions that land where a best plan does, with its buttons."""
    usable: Tensor
    """1 where there are plans, ``(B,)``."""


class PlanLosses:
    """The losses of a policy ``(B, 4, K)`` by the values of plans, for one knot per knob count."""

    def __init__(self, config: Config, layout: Layout, device: torch.device) -> None:
        learner = config.learner
        self.layout, self.device = layout, device
        self.temperature = learner.plan_temperature
        self.plan_weight, self.regret_weight = learner.plan_weight, learner.regret_weight
        self.bells = bells(learner.imitation_width * SPINNER_MAX).to(device)

    @torch.no_grad()
    def wanted(self, plans: Plans, observation: Tensor, zap_legal: Tensor) -> Wanted:
        """Return what ``plans`` teach in states ``(B, F)``; illegal zaps do not count."""
        spin, buttons, regret = (to_device(column, self.device) for column in plans)
        buttons = buttons.to(torch.int64)
        counts = spin.to(torch.int64) + SPINNER_MAX
        claw, landed = landings(observation, self.layout)
        place = claw % LANE_COUNTS
        landing = (landed - (claw - place).unsqueeze(1)).div(LANE_COUNTS, rounding_mode="floor")
        landing = landing - OFFSETS[0]
        zaps = buttons >= ZAP
        valid = (regret < NO_PLAN) & (~zaps | zap_legal.unsqueeze(1))
        points = regret.float().masked_fill(~valid, torch.inf)
        points = points - points.amin(dim=1, keepdim=True).nan_to_num(posinf=0.0)
        usable = valid.any(dim=1)
        weights = torch.exp(-points / self.temperature)
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1.0)
        pairs = one_hot(buttons, self.layout.num_pairs).float()
        bell = self.bells[place.unsqueeze(1), counts]
        shares = torch.bmm((pairs * weights.unsqueeze(2)).transpose(1, 2), bell)
        lanes = landing.gather(1, counts)
        by_lane = regret_by_lane(points, lanes, zaps)
        chooses = (valid.sum(dim=1) > 1).view(-1, 1, 1)
        costs = by_lane.gather(2, landing.unsqueeze(1).expand(-1, 2, -1))
        good = ((points == 0.0).unsqueeze(2) * pairs).transpose(1, 2)
        good = torch.bmm(good, one_hot(lanes, len(OFFSETS)).float())
        best = good.gather(2, landing.unsqueeze(1).expand(-1, self.layout.num_pairs, -1)) > 0
        return Wanted(shares, torch.where(chooses, costs, 0.0), best, usable.float())

    def loss(
        self,
        policy: Tensor,
        wanted: Wanted,
        zap_legal: Tensor,
        metrics: Metrics,
    ) -> Tensor:
        """Return the mean of the weighted losses.

        Args:
            policy: logits ``(B, 4, K)``.
            wanted: what the same states teach.
            zap_legal: bool ``(B,)``.
            metrics: gets both losses, and how often the policy's choice is a best plan.
        """
        legal = pair_mask(zap_legal, self.layout.num_pairs).unsqueeze(2)
        logs = torch.log_softmax(policy.float().masked_fill(~legal, -1e9).flatten(1), dim=1)
        crossed = -(wanted.shares.flatten(1) * logs).sum(dim=1)
        chances = logs.exp().view(-1, 2, self.layout.num_pairs // 2, policy.shape[2]).sum(dim=2)
        expected = (chances * wanted.regret).sum(dim=(1, 2)) * wanted.usable
        count = wanted.usable.sum()
        chosen = wanted.best.flatten(1).gather(1, logs.argmax(dim=1, keepdim=True))
        metrics.mean("policy_entropy", -(logs.exp() * logs).sum(dim=1))
        metrics.mean("plan_loss", crossed, count)
        metrics.mean("plan_regret", expected, count)
        metrics.mean("plan_agreement", chosen.squeeze(1) * wanted.usable, count)
        each = self.plan_weight * crossed + self.regret_weight / REGRET_UNIT * expected
        return each.mean()


def regret_by_lane(points: Tensor, lanes: Tensor, zaps: Tensor) -> Tensor:
    """Return the regret of landing in each lane in reach, ``(B, 2, 5)``: without and with a zap.

    It is that of the best plan that lands there.  Where no plan lands, and for zaps that no plan
    tries, it is the largest that any plan has.

    Args:
        points: regrets ``(B, P)``, infinite where there is no plan.
        lanes: index in ``OFFSETS`` of the lane that each plan lands in, ``(B, P)``.
        zaps: whether it zaps, ``(B, P)``.
    """
    reach = len(OFFSETS)
    found = points.new_full((len(points), 2 * reach), torch.inf)
    found.scatter_reduce_(1, lanes + reach * zaps.to(torch.int64), points, "amin")
    by_lane = found.view(-1, 2, reach)
    largest = torch.where(points.isinf(), 0.0, points).amax(dim=1).view(-1, 1, 1)
    return torch.where(by_lane.isinf(), largest, by_lane)


def bells(width: float) -> Tensor:
    """Return how much each count is like a wanted one: a bell within the lane that it lands in.

    Args:
        width: standard deviation of the bell, in counts.

    Returns:
        ``(16, 63, 63)``: place in the lane before the turn, wanted count, likeness of every count;
        the likenesses to a count add up to 1.
    """
    turn = torch.arange(-SPINNER_MAX, SPINNER_MAX + 1)
    place = torch.arange(LANE_COUNTS).unsqueeze(1)
    lanes = (place - turn).div(LANE_COUNTS, rounding_mode="floor")
    bell = torch.exp(-0.5 * ((turn - turn.unsqueeze(1)) / width).square())
    alike = bell * (lanes.unsqueeze(1) == lanes.unsqueeze(2))
    return alike / alike.sum(dim=2, keepdim=True)
