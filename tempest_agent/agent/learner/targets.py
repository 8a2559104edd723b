"""Targets of a batch: what the networks say of the states after it, put together with the rewards.

The parts are settings of ``learner``: ``double_q``, ``trace`` and ``target_clip``; the form of a
target follows from ``loss`` (see ``value_distributions``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.inference.acting import features
from tempest_agent.agent.inference.greedy import choose, clamp_target, n_step_target
from tempest_agent.agent.inference.inference_copy import InferenceCopy
from tempest_agent.agent.networks import plain
from tempest_agent.agent.networks.actions import pair_mask, to_unit
from tempest_agent.agent.networks.q_network import Heads, QNetwork
from tempest_agent.agent.replay.rows import Batch, Path
from tempest_agent.config import Config

from .retrace import (
    held_actions,
    knot_shares,
    nearest_index,
    pair_chance,
    policy,
    retrace,
    trace_weights,
)


class Target(NamedTuple):
    """What B rows are to learn."""

    points: Tensor
    """``(B, P)``, within the clamp."""
    weights: Tensor
    """``(B, P)``, adding up to 1."""
    raw: Tensor
    """``(B,)``, means before the clamp."""
    below: Tensor
    """``(B,)``, share of each target that the clamp raised."""
    above: Tensor
    """``(B,)``, share that it lowered."""
    effective_n: Tensor
    """``(B,)``, decisions that a target rests on."""


class _States(NamedTuple):
    """The states that B paths of n decisions lead through, and what was done in each."""

    observation: Tensor
    """``(B n, F)``; the other columns are ``(B n)``."""
    pair: Tensor
    position: Tensor
    zap_legal: Tensor
    legal: Tensor
    """``(B n, 4)``."""


class Bootstrap:
    """Makes targets.

    Args:
        network: the online network, for its proposals and its form of value.
        online: its fast copy, which chooses.
        target: fast copy of the target network, which judges.
        config: the whole configuration.
        device: where the networks are.
    """

    def __init__(
        self,
        network: QNetwork,
        online: InferenceCopy,
        target: InferenceCopy,
        config: Config,
        device: torch.device,
    ) -> None:
        self.network, self.online, self.target = network, online, target
        self.learner = config.learner
        self.exploration = config.exploration
        self.device = device
        self.layout = network.layout
        self._knot_shares = knot_shares(self.layout.counts, network.num_knots).to(device)

    @torch.no_grad()
    def __call__(self, batch: Batch, target_clip: float | None = None) -> Target:
        """The targets of ``batch``, clamped to ``target_clip`` or else as the settings say."""
        learner = self.learner
        limit = learner.target_clip if target_clip is None else target_clip
        if learner.trace == "retrace":
            value, effective = self._retrace(batch)
            raw = value.unsqueeze(1)
            weights = torch.ones_like(raw)
        else:
            effective = self._here(batch.horizons).float()
            returns, discounts = self._here(batch.returns), self._here(batch.discounts)
            if plain.applies_to(self.network, returns):
                return self._at_once(batch, returns, discounts, limit)
            numbers = self._following(batch)
            points, weights = self.network.distribution.points(numbers)
            raw = n_step_target(returns.unsqueeze(1), discounts.unsqueeze(1), points)
        clamped, below, above = clamp_target(raw, limit)
        return Target(
            points=clamped,
            weights=weights,
            raw=(raw * weights).sum(dim=1),
            below=(below * weights).sum(dim=1),
            above=(above * weights).sum(dim=1),
            effective_n=effective,
        )

    def _at_once(self, batch: Batch, returns: Tensor, discounts: Tensor, limit: float) -> Target:
        """The same where nothing is added to the targets of double Q-learning."""
        observation = self.observation(batch.next_codes)
        legal = self._legal(self._here(batch.next_zap_legal))
        judge = self.target(observation)
        chooser = self.online(observation) if self.learner.double_q else judge
        clamped, raw, below, above = plain.targets(
            self.network, chooser, judge, legal, returns, discounts, limit or math.inf
        )
        points = clamped.unsqueeze(1)
        effective = self._here(batch.horizons).float()
        return Target(points, torch.ones_like(points), raw, below, above, effective)

    def _following(self, batch: Batch) -> Tensor:
        """Numbers ``(B, D)`` of the states to bootstrap on."""
        observation = self.observation(batch.next_codes)
        legal = self._legal(self._here(batch.next_zap_legal))
        judge = self.target(observation)
        chooser = self.online(observation) if self.learner.double_q else judge
        choice = choose(self.network, chooser, legal)
        return self.network.numbers_at(judge, choice.pair, choice.position)

    def _states(self, path: Path) -> _States:
        states = path.reward.shape[0] * path.reward.shape[1]
        zap_legal = self._here(path.zap_legal.reshape(states))
        return _States(
            observation=self.observation(path.codes.reshape(states, -1)),
            pair=self._here(path.buttons.reshape(states)).to(torch.int64),
            position=self._position(path.spin.reshape(states)),
            zap_legal=zap_legal,
            legal=self._legal(zap_legal),
        )

    def _retrace(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Retrace targets ``(B,)`` and the numbers of decisions that they rest on."""
        learner, path = self.learner, batch.path
        if path is None:
            raise ValueError("retrace needs the decisions of each return")
        shape = path.reward.shape
        states = self._states(path)
        chances, judge = self._policy(states.observation, states.legal)
        expected = self._expected(chances, judge).view(shape)
        taken = self._value(judge, states.pair, states.position).view(shape)
        knots = judge.values.shape[2]
        knot = nearest_index(states.position, knots)
        chance = chances.gather(1, (states.pair * knots + knot).unsqueeze(1)).view(shape)
        if self.layout.fire_and_zap:
            at_random = pair_chance(states.pair, states.zap_legal, self.exploration)
        else:
            at_random = torch.full_like(taken, 1.0 / self.layout.num_pairs).flatten()
        at_random = (at_random * self._knot_shares[knot]).view(shape)
        driver = self._here(path.driver)
        held = held_actions(driver, self._here(path.spin)) & (self.exploration.hold_max > 1)
        weights = trace_weights(chance, driver, held, at_random, learner.trace_decay)
        valid = self._here(path.valid).float()
        after = self.observation(batch.next_codes)
        last = self._expected(*self._policy(after, self._legal(self._here(batch.next_zap_legal))))
        last = torch.where(self._here(batch.discounts) > 0, last, 0.0)
        # The state after the last valid decision is the one to bootstrap on.
        end = (valid.sum(dim=1) - 1).to(torch.int64).unsqueeze(1)
        following = torch.cat((expected[:, 1:], expected[:, :1]), dim=1)
        following = following.scatter(1, end, last.unsqueeze(1))
        rewards = self._here(path.reward)
        return retrace(taken, following, rewards, weights, valid, learner.gamma)

    def _policy(self, observation: Tensor, legal: Tensor) -> tuple[Tensor, Heads]:
        """The student's softmax policy ``(B, 4 K)``, and what the target network judges it by."""
        judge = self.target(observation)
        chooser = self.online(observation) if self.learner.double_q else judge
        return policy(chooser.values, legal, self.learner.trace_temperature), judge

    def _expected(self, chances: Tensor, judge: Heads) -> Tensor:
        """Mean value ``(B,)`` of a policy."""
        return (chances * judge.values.flatten(1)).sum(dim=1)

    def _value(self, heads: Heads, pair: Tensor, position: Tensor) -> Tensor:
        """Value ``(B,)`` of one action."""
        numbers = self.network.numbers_at(heads, pair, position)
        return self.network.distribution.mean(numbers)

    def observation(self, codes: Column) -> Tensor:
        """Codes ``(B, F)`` as features on the device, float32."""
        return features(codes, self.layout, self.device)

    def _legal(self, zap_legal: Tensor) -> Tensor:
        return pair_mask(zap_legal, self.layout.num_pairs)

    def _position(self, spin: Column) -> Tensor:
        return to_unit(self._here(spin), self.layout.counts)

    def _here(self, column: Column) -> Tensor:
        return to_device(column, self.device)
