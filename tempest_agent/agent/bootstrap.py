"""Targets of a batch: what the networks say of the states after it, put together with the rewards.

The parts are settings of ``learner``: ``double_q``, ``munchausen``, ``trace``, ``value_rescaling``
and ``target_clip``; the form of a target follows from ``loss`` (see ``distributions``).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tempest_agent.config import Config

from . import plain
from .acting import features
from .actions import pair_mask, to_unit
from .inference import InferenceCopy
from .munchausen import log_policy, soft_bootstrap
from .networks import Heads, QNetwork
from .replay_rows import Batch, Column, Path, to_device
from .rescaling import rescale, restore
from .retrace import exploration_chance, policy_chance, retrace, trace_weights
from .targets import choose, clamp_target, n_step_target


class Target(NamedTuple):
    """What B rows are to learn."""

    points: Tensor
    """``(B, P)``, in the units of the network, within the clamp."""
    weights: Tensor
    """``(B, P)``, adding up to 1."""
    raw: Tensor
    """``(B,)``, means before the clamp, in units of reward."""
    below: Tensor
    """``(B,)``, share of each target that the clamp raised."""
    above: Tensor
    """``(B,)``, share that it lowered."""
    effective_n: Tensor
    """``(B,)``, decisions that a target rests on."""


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
        self._is_plain = self.learner.munchausen == 0 and self.learner.value_rescaling == "none"

    @torch.no_grad()
    def __call__(self, batch: Batch, target_clip: float | None = None) -> Target:
        """The targets of ``batch``, clamped to ``target_clip`` or else as the settings say."""
        learner = self.learner
        limit = learner.target_clip if target_clip is None else target_clip
        returns, discounts = self._here(batch.returns), self._here(batch.discounts)
        if self._is_plain and batch.path is None and plain.applies_to(self.network, returns):
            return self._at_once(batch, returns, discounts, limit)
        numbers, bonus = self._following(batch)
        points, weights = self.network.distribution.points(numbers)
        points = restore(points, learner.value_rescaling)
        effective = self._here(batch.horizons).float()
        if learner.munchausen > 0:
            points = points + bonus.unsqueeze(1)
            returns = returns + self._own_bonus(batch)
        raw = n_step_target(returns.unsqueeze(1), discounts.unsqueeze(1), points)
        if batch.path is not None:
            judged = torch.where(discounts > 0, points[:, 0], 0.0)
            value, effective = self._retrace(batch, batch.path, judged)
            raw = value.unsqueeze(1)
        clamped, below, above = clamp_target(raw, limit)
        return Target(
            points=rescale(clamped, learner.value_rescaling),
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
            self.network, chooser, judge, legal, returns, discounts, limit
        )
        points = clamped.unsqueeze(1)
        effective = self._here(batch.horizons).float()
        return Target(points, torch.ones_like(points), raw, below, above, effective)

    def _following(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Numbers ``(B, D)`` of the states to bootstrap on, and the entropy bonus ``(B,)``."""
        observation = self.observation(batch.next_codes)
        legal = self._legal(self._here(batch.next_zap_legal))
        judge = self.target(observation)
        if self.learner.munchausen > 0:
            return soft_bootstrap(judge, legal, self.network.distribution, self.learner)
        numbers = self._judged(observation, judge, legal)
        return numbers, torch.zeros_like(numbers[:, 0])

    def _judged(self, observation: Tensor, judge: Heads, legal: Tensor) -> Tensor:
        chooser = self.online(observation) if self.learner.double_q else judge
        choice = choose(self.network, chooser, legal)
        return self.network.numbers_at(judge, choice.pair, choice.position)

    def _own_bonus(self, batch: Batch) -> Tensor:
        """The scaled log policy of the actions that were taken, ``(B,)``."""
        learner = self.learner
        heads = self.target(self.observation(batch.codes))
        pair = self._here(batch.buttons).to(torch.int64)
        own = self._value(heads, pair, self._position(batch.spin))
        values = restore(heads.values, learner.value_rescaling)
        legal = self._legal(self._here(batch.zap_legal))
        scaled = log_policy(own, values, legal, learner.munchausen_temperature)
        return learner.munchausen * scaled.clamp(learner.munchausen_floor, 0.0)

    def _retrace(self, batch: Batch, path: Path, last: Tensor) -> tuple[Tensor, Tensor]:
        """Retrace targets of rows whose final bootstrap is worth ``last`` ``(B,)``."""
        learner, (rows, steps) = self.learner, path.reward.shape
        states = rows * steps
        observation = self.observation(path.codes.reshape(states, -1))
        pair = self._here(path.buttons.reshape(states)).to(torch.int64)
        position = self._position(path.spin.reshape(states))
        zap_legal = self._here(path.zap_legal.reshape(states))
        legal = self._legal(zap_legal)
        judge = self.target(observation)
        chosen = self.network.distribution.points(self._judged(observation, judge, legal))[0]
        chosen = restore(chosen[:, 0], learner.value_rescaling).view(rows, steps)
        taken = self._value(judge, pair, position).view(rows, steps)
        own = restore(self.online(observation).values, learner.value_rescaling)
        chance = policy_chance(own, legal, pair, position, learner.trace_temperature)
        if self.layout.fire_and_zap:
            at_random = exploration_chance(pair, zap_legal, own.shape[2], self.exploration)
        else:
            at_random = torch.full_like(chance, 1.0 / own[0].numel())
        driver = self._here(path.driver.reshape(states))
        weights = trace_weights(chance, driver, at_random, learner.trace_decay)
        valid = self._here(path.valid)
        # The state after the last valid decision is the one that was bootstrapped on.
        end = (valid.sum(dim=1) - 1).to(torch.int64).unsqueeze(1)
        following = torch.cat((chosen[:, 1:], chosen[:, :1]), dim=1)
        following = following.scatter(1, end, last.unsqueeze(1))
        return retrace(
            taken, following, self._here(path.reward), weights.view(rows, steps), valid,
            learner.gamma,
        )  # fmt: skip

    def _value(self, heads: Heads, pair: Tensor, position: Tensor) -> Tensor:
        """Value ``(B,)`` of one action in units of reward."""
        numbers = self.network.numbers_at(heads, pair, position)
        return restore(self.network.distribution.mean(numbers), self.learner.value_rescaling)

    def observation(self, codes: Column) -> Tensor:
        """Codes ``(B, F)`` as features on the device, float32."""
        return features(codes, self.layout, self.device)

    def _legal(self, zap_legal: Tensor) -> Tensor:
        return pair_mask(zap_legal, self.layout.num_pairs)

    def _position(self, spin: Column) -> Tensor:
        return to_unit(self._here(spin), self.layout.counts)

    def _here(self, column: Column) -> Tensor:
        return to_device(column, self.device)
