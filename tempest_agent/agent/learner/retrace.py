"""Retrace: n-step returns that weigh other drivers' actions by how likely the student takes them.

Munos et al. 2016, "Safe and efficient off-policy reinforcement learning": later errors of a return
are multiplied by the trace weights ``c = lambda * min(1, pi(a|s) / mu(a|s))`` of the actions
between.  pi is a softmax of the student's values over button pairs and knots, and the state after
an action is worth the mean over pi.  mu is known because the driver of each step is: teacher and
greedy student were certain of their action, and so is exploration of one that it continues to
hold; a new random action has the probability that it is drawn with.

Differences from the paper: its pi becomes greedy in the course of training, this one keeps its
temperature; an action between two knots counts as the nearer one; and a random action counts as
held if exploration turned the spinner as much in the step before, which a new one rarely does by
chance (its weight is then too small, which is safe).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tempest_agent.agent.devices import to_device
from tempest_agent.agent.inference.greedy import allowed, features
from tempest_agent.agent.networks.actions import knots, pair_mask, to_unit
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.replay.rows import EXPLORATION, Batch
from tempest_agent.config import Config, ExplorationConfig


class Retrace:
    """Makes Retrace targets.

    Args:
        network: the online network, for its form of value.
        judge_and_chooser: from states to the outputs that judge actions and that choose among them.
        config: the whole configuration.
        device: where the networks are.
    """

    def __init__(
        self,
        network: QNetwork,
        judge_and_chooser: Callable[[Tensor], tuple[Heads, Heads]],
        config: Config,
        device: torch.device,
    ) -> None:
        self.network, self.judge_and_chooser = network, judge_and_chooser
        self.learner, self.exploration = config.learner, config.exploration
        self.device = device
        self._knot_shares = knot_shares(network.layout.counts, network.num_knots).to(device)

    def __call__(
        self, batch: Batch, after: Tensor, legal_after: Tensor, unit: float
    ) -> tuple[Tensor, Tensor]:
        """Return targets ``(B,)`` and the numbers of steps that they rest on.

        Args:
            batch: with the steps of each return.
            after: observations ``(B, F)`` after the returns.
            legal_after: legal button pairs there, ``(B, 4)``.
            unit: of the targets, in rewards.
        """
        if batch.path is None:
            raise ValueError("retrace needs the steps of each return")
        learner, layout, path = self.learner, self.network.layout, batch.path
        rewards, spin, driver, zap_legal, buttons, valid = (
            to_device(column, self.device)
            for column in (
                path.reward, path.spin, path.driver, path.zap_legal, path.buttons, path.valid
            )
        )  # fmt: skip
        shape = rewards.shape
        states = shape[0] * shape[1]
        zap_legal, pair = zap_legal.reshape(states), buttons.reshape(states).to(torch.int64)
        position = to_unit(spin.reshape(states), layout.counts)
        observation = features(path.codes.reshape(states, -1), layout, self.device)
        chances, judge = self._policy(observation, pair_mask(zap_legal, layout.num_pairs))
        expected = expected_values(chances, judge).view(shape)
        numbers = self.network.numbers_at(judge, pair, position)
        taken = self.network.distribution.mean(numbers).view(shape)
        count = judge.values.shape[2]
        knot = nearest_index(position, count)
        chance = chances.gather(1, (pair * count + knot).unsqueeze(1)).view(shape)
        if layout.fire_and_zap:
            at_random = pair_chance(pair, zap_legal, self.exploration)
        else:
            at_random = torch.full_like(taken, 1.0 / layout.num_pairs).flatten()
        at_random = (at_random * self._knot_shares[knot]).view(shape)
        held = held_actions(driver, spin) & (self.exploration.hold_max > 1)
        weights = trace_weights(chance, driver, held, at_random, learner.trace_decay)
        valid = valid.float()
        last = expected_values(*self._policy(after, legal_after))
        last = torch.where(to_device(batch.discounts, self.device) > 0, last, 0.0)
        # The state after the last valid step is the one to bootstrap on.
        end = (valid.sum(dim=1) - 1).to(torch.int64).unsqueeze(1)
        following = torch.cat((expected[:, 1:], expected[:, :1]), dim=1)
        following = following.scatter(1, end, last.unsqueeze(1))
        return retrace(taken, following, rewards / unit, weights, valid, learner.gamma)

    def _policy(self, observation: Tensor, legal: Tensor) -> tuple[Tensor, Heads]:
        """Return the student's softmax policy ``(B, 4 K)``, and the outputs that judge it."""
        judge, chooser = self.judge_and_chooser(observation)
        temperature = self.learner.trace_temperature
        return policy(chooser.values, legal, temperature, chooser.deadly), judge


def expected_values(chances: Tensor, judge: Heads) -> Tensor:
    """Return the mean value ``(B,)`` of a policy ``(B, 4 K)``."""
    return (chances * judge.values.flatten(1)).sum(dim=1)


def trace_weights(
    chance: Tensor, driver: Tensor, held: Tensor, random_chance: Tensor, decay: float
) -> Tensor:
    """Return ``c`` of each action, in [0, decay].

    Args:
        chance: pi of the action, any shape.
        driver: who chose it (see ``replay.rows``), same shape.
        held: whether it is a random action held from the step before.
        random_chance: probability that exploration would have drawn it.
        decay: lambda.
    """
    behaviour = torch.where((driver == EXPLORATION) & ~held, random_chance, 1.0)
    return decay * (chance / behaviour.clamp(min=1e-6)).clamp(max=1.0)


def held_actions(driver: Tensor, spin: Tensor) -> Tensor:
    """Return which steps ``(B, n)`` of a path hold the random action before them."""
    random = driver == EXPLORATION
    held = torch.zeros_like(random)
    held[:, 1:] = random[:, 1:] & random[:, :-1] & (spin[:, 1:] == spin[:, :-1])
    return held


def policy(
    values: Tensor, legal: Tensor, temperature: float, deadly: Tensor | None = None
) -> Tensor:
    """Return pi of every button pair and knot, ``(B, 4 K)``.

    Args:
        values: ``(B, 4, K)``.
        legal: bool ``(B, 4)``.
        temperature: value difference that makes an action e times less likely.
        deadly: bool ``(B, 63)``, knob counts that are no choice, as in ``greedy.allowed``.
    """
    axis = knots(values.shape[2], values.device).expand(values.shape)
    may = allowed(axis, legal, deadly)
    logits = (values / temperature).masked_fill(~may, -torch.inf).flatten(1)
    return torch.softmax(logits, dim=1)


def nearest_index(position: Tensor, knots: int) -> Tensor:
    """Return the index of the knot nearest to each position in [-1, 1], int64."""
    return ((position + 1.0) * 0.5 * (knots - 1)).round().to(torch.int64)


def knot_shares(counts: int, knots: int) -> Tensor:
    """Return the probability of each knot ``(K,)`` to be nearest to a uniformly drawn turn."""
    turns = to_unit(torch.arange(-counts, counts + 1), counts)
    return torch.bincount(nearest_index(turns, knots), minlength=knots) / len(turns)


def pair_chance(pair: Tensor, zap_legal: Tensor, settings: ExplorationConfig) -> Tensor:
    """Return the probability that a random arcade action presses this button pair."""
    zap = settings.zap_share * zap_legal.to(torch.float32)
    fires = torch.where(pair % 2 == 1, settings.fire_share, 1.0 - settings.fire_share)
    return fires * torch.where(pair >= 2, zap, 1.0 - zap)


def retrace(
    taken: Tensor,
    following: Tensor,
    rewards: Tensor,
    weights: Tensor,
    valid: Tensor,
    gamma: float,
) -> tuple[Tensor, Tensor]:
    """Return targets ``(B,)`` and the effective number of steps they rest on ``(B,)``.

    Args:
        taken: ``(B, n)`` values of the actions taken.
        following: ``(B, n)`` mean values under pi of the states after them; 0 after a
            termination.
        rewards: ``(B, n)``.
        weights: ``(B, n)`` trace weights; the first column is not read.
        valid: ``(B, n)``, 1 for steps of the return, 0 behind its end.
        gamma: discount per step.
    """
    ones = torch.ones_like(weights[:, :1])
    traces = torch.cat((ones, weights[:, 1:]), dim=1).cumprod(dim=1) * valid
    steps = torch.arange(taken.shape[1], device=taken.device, dtype=taken.dtype)
    errors = rewards + gamma * following - taken
    # torch.where, because behind the end of a return anything may stand, infinities included.
    corrections = torch.where(valid > 0, gamma**steps * traces * errors, 0.0)
    return taken[:, 0] + corrections.sum(dim=1), traces.sum(dim=1)
