"""The value network: an encoder and its heads.

Heads: state value and advantages (Wang et al. 2016, "Dueling network architectures"), one spinner
proposal per button pair, and if wanted a policy beside the values.  LayerNorm keeps values from
running away on data of other players (Ball et al. 2023, "Efficient online RL with offline data").

With ``learner.loss`` a distribution, the value head gives its numbers (``value_distributions``) for
every button pair and knot.  Between knots these numbers are interpolated, and the value of a
position is the mean of the distribution there.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tempest_agent.config import LearnerConfig, NetworkConfig

from .deadly_lanes import deadly_turns, require_forecast
from .encoders import LanesEncoder, MlpEncoder
from .interpolation import interpolate
from .landings import claw_place
from .lane_head import LaneHead
from .layout import Layout
from .value_distributions import make_distribution


class Heads(NamedTuple):
    """The network's outputs for a batch of states."""

    values: Tensor
    """``(B, 4, K)`` action values: button pair, spinner knot."""
    latent: Tensor
    """``(B, H)`` encoding, from which the spinner proposals are made."""
    detail: Tensor | None = None
    """``(B, 4, K, D)``, the numbers of each value's distribution; None if it is just a value."""
    policy: Tensor | None = None
    """``(B, 4, K)``, the policy's logits; None without a policy head, or where it was not asked."""
    deadly: Tensor | None = None
    """bool ``(B, 63)``, knob counts from -31 to 31 that are no choice; None without the mask."""

    def detached(self) -> Heads:
        """Return the same without gradients."""
        detail, policy = (
            None if numbers is None else numbers.detach() for numbers in (self.detail, self.policy)
        )
        return Heads(self.values.detach(), self.latent.detach(), detail, policy, self.deadly)


class Preferences(NamedTuple):
    """What the policy head says of a batch of states; see ``Heads``."""

    logits: Tensor
    deadly: Tensor | None


def dueling(numbers: Tensor) -> Tensor:
    """Return values ``(B, A, ...)`` of a state value and A advantages ``(B, 1 + A, ...)``."""
    advantage = numbers[:, 1:]
    return numbers[:, :1] + advantage - advantage.mean(dim=1, keepdim=True)


class QNetwork(nn.Module):
    """Values of button pairs and spinner knots, and one spinner proposal per button pair.

    Args:
        layout: of the observation.
        settings: of the network.
        learner: its ``loss`` decides what a value is made of; a plain number by default.

    Raises:
        UserError: deadly lanes are to be avoided, and the observation does not show them.
    """

    def __init__(
        self, layout: Layout, settings: NetworkConfig, learner: LearnerConfig | None = None
    ) -> None:
        super().__init__()
        self.layout = layout
        self.num_knots = 1 if settings.spinner_head == "regression" else settings.spinner_knots
        self.interpolation = settings.spinner_interpolation
        self.dueling = settings.dueling
        self.proposes = settings.spinner_head != "knots"
        self.distribution = make_distribution(learner or LearnerConfig())
        self.encoder: MlpEncoder | LanesEncoder
        if settings.encoder == "lanes":
            self.encoder = LanesEncoder(
                layout, settings.lane_width, settings.hidden[-1], settings.layer_norm
            )
        else:
            self.encoder = MlpEncoder(layout.num_features, settings.hidden, settings.layer_norm)
        width = self.encoder.num_outputs
        outputs = layout.num_pairs * self.num_knots + int(self.dueling)
        self.lane_head: LaneHead | None = None
        if settings.value_head == "lanes":
            if layout.lane_position < 0:
                raise ValueError("the lanes value head needs a layout with lane_position")
            outputs = 1
            self.lane_head = LaneHead(
                settings.lane_width, width, layout.num_pairs, layout.counts, settings.layer_norm
            )
        self.outputs = outputs * self.distribution.head_numbers
        self.value_head = nn.Linear(width, self.outputs)
        self.spinner_head = nn.Linear(width, layout.num_pairs)
        self.fraction_layer = self.distribution.fraction_layer(width)
        self.acts_by_policy = settings.acts == "policy"
        # Last, so that all others begin as they would without it.
        self.policy_head: LaneHead | None = None
        if settings.policy_head:
            self.policy_head = LaneHead(
                settings.lane_width, width, layout.num_pairs, layout.counts, settings.layer_norm
            )
        self.avoids_deadly = settings.avoids_deadly
        if self.avoids_deadly:
            require_forecast(layout)
        with torch.no_grad():
            # Small first values: nothing to unlearn, and no action favoured by accident.
            self.value_head.weight.mul_(0.1)
            self.value_head.bias.zero_()
            self.spinner_head.weight.mul_(0.1)
            self.spinner_head.bias.zero_()

    def forward(
        self, observation: Tensor, fractions: Tensor | None = None, with_policy: bool = True
    ) -> Heads:
        """Return the outputs, in float32, for observations ``(B, F)`` in [-1, 1].

        Args:
            observation: ``(B, F)``.
            fractions: ``(B, D)`` in [0, 1], the quantiles to give (iqn only); evenly spaced ones
                by default.
            with_policy: whether the policy's logits are wanted, if there is a policy head.
        """
        deadly = self.deadly(observation)
        if self.lane_head is not None and isinstance(self.encoder, LanesEncoder):
            lanes = self.encoder.lanes(observation)
            latent = self.encoder.summary(lanes, observation)
            claw = claw_place(observation, self.layout)
            state = self._numbers(latent).unsqueeze(2)
            values = state + self.lane_head(lanes, latent, claw)
            policy = None
            if self.policy_head is not None and with_policy:
                policy = self.policy_head(lanes, latent, claw)
            return Heads(values, latent, None, policy, deadly)
        latent = self.encoder(observation)
        if self.distribution.is_plain:
            return self.plain_heads(latent)._replace(deadly=deadly)
        if self.fraction_layer is None:
            out = self._numbers(latent).view(len(latent), -1, self.distribution.numbers)
        else:
            out = self._numbers(self.fraction_layer(latent, fractions)).transpose(1, 2)
        if self.dueling:
            out = dueling(out)
        detail = out.reshape(len(out), self.layout.num_pairs, self.num_knots, -1)
        return Heads(self.distribution.mean(detail), latent, detail, deadly=deadly)

    def preferences(self, observation: Tensor) -> Preferences:
        """Return what the policy head alone says for observations ``(B, F)`` in [-1, 1]."""
        if self.policy_head is None or not isinstance(self.encoder, LanesEncoder):
            raise RuntimeError("no policy head")
        lanes = self.encoder.lanes(observation)
        latent = self.encoder.summary(lanes, observation)
        claw = claw_place(observation, self.layout)
        return Preferences(self.policy_head(lanes, latent, claw), self.deadly(observation))

    def deadly(self, observation: Tensor) -> Tensor | None:
        """Return which knob counts are no choice, bool ``(B, 63)``; None without the mask."""
        return deadly_turns(observation, self.layout) if self.avoids_deadly else None

    def plain_heads(self, latent: Tensor) -> Heads:
        """Return the outputs for an encoding ``(B, H)`` where a value is just a number."""
        out = self._numbers(latent)
        if self.dueling:
            out = dueling(out)
        return Heads(out.view(-1, self.layout.num_pairs, self.num_knots), latent)

    def _numbers(self, latent: Tensor) -> Tensor:
        """Return the value head's numbers, float32, without the padding its matrix may have."""
        numbers: Tensor = self.value_head(latent)
        if numbers.shape[-1] != self.outputs:
            numbers = numbers[..., : self.outputs]
        return numbers.float()

    def proposals(self, latent: Tensor) -> Tensor | None:
        """Return spinner proposals ``(B, 4)`` in [-1, 1], float32; None without a continuous head.

        The encoding is detached: only values shape it, the proposals follow.
        """
        if not self.proposes:
            return None
        weight, bias = self.spinner_head.weight.float(), self.spinner_head.bias.float()
        return torch.tanh(functional.linear(latent.detach().float(), weight, bias))

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """Return all parameters by what they are for.

        They are ``encoder``, ``value``, ``spinner``, and with a policy head ``policy``.
        """
        value = list(self.value_head.parameters())
        if self.fraction_layer is not None:
            value += self.fraction_layer.parameters()
        if self.lane_head is not None:
            value += self.lane_head.parameters()
        parts = {
            "encoder": list(self.encoder.parameters()),
            "value": value,
            "spinner": list(self.spinner_head.parameters()),
        }
        if self.policy_head is not None:
            parts["policy"] = list(self.policy_head.parameters())
        return parts

    def values_at(self, heads: Heads, position: Tensor) -> Tensor:
        """Return the value ``(B, 4)`` of each button pair at its own position ``(B, 4)``."""
        if heads.detail is None:
            return interpolate(heads.values, position, self.interpolation)
        return self.distribution.mean(self._between(heads.detail, position))

    def numbers_at(self, heads: Heads, pair: Tensor, position: Tensor) -> Tensor:
        """Return the numbers ``(B, D)`` of one action's value: pair int64 ``(B,)`` at ``(B,)``."""
        if heads.detail is None:
            rows = pair.view(-1, 1, 1).expand(-1, 1, self.num_knots)
            values = heads.values.gather(1, rows).squeeze(1)
            return interpolate(values, position, self.interpolation).unsqueeze(1)
        own = heads.detail[torch.arange(pair.shape[0], device=pair.device), pair]
        return self._between(own, position)

    def _between(self, detail: Tensor, position: Tensor) -> Tensor:
        """Return ``(..., K, D)`` at positions ``(...)`` as ``(..., D)``."""
        if detail.shape[-2] == 1:
            return detail.squeeze(-2)
        numbers = detail.shape[-1]
        return interpolate(
            detail.transpose(-1, -2),
            position.unsqueeze(-1).expand(*position.shape, numbers),
            self.interpolation,
        )
