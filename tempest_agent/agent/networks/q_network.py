"""The value network: an encoder of the player-centred features and its heads.

Two encoders: ``mlp`` on the flat vector, and ``lanes``, whose weights are shared over the 16 lanes
(circular convolution; lanes that do not exist on an open well are kept at zero, so nothing passes
from one end to the other).  Heads: state value and advantages (Wang et al. 2016, "Dueling network
architectures"), and one spinner proposal per button pair.  LayerNorm keeps values from running
away on data of other players (Ball et al. 2023, "Efficient online RL with offline data").

With ``learner.loss`` a distribution, the value head gives its numbers (``distributions``) for every
button pair and knot.  Between knots these numbers are interpolated, and the value of a place is the
mean of the distribution there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tempest_agent.config import LearnerConfig, NetworkConfig

from . import fused_layers
from .actions import BUTTON_PAIRS, SPINNER_COUNTS
from .interpolation import interpolate
from .lane_head import LaneHead
from .plain_kernels import dueling_values
from .value_distributions import make_distribution

LANES = 16


@dataclass(frozen=True)
class Layout:
    """The form of observations and actions.

    The arcade's observation is flat: 16 equal lane blocks, then globals.  ``lane_exists`` is the
    index, inside a lane's block, of the feature above 0 on real lanes.
    """

    num_features: int
    lane_features: int = 0
    lane_exists: int = 0
    lane_position: int = -1
    """Index of the feature that says where within its lane the player stands; -1 without one."""
    num_pairs: int = BUTTON_PAIRS
    """Values of the discrete action."""
    counts: int = SPINNER_COUNTS
    """Whole steps of the continuous action from its middle to either end, as it is stored."""
    stored: str = "int8"
    """Type in which an observation is stored: a whole number stands for itself divided by the
    largest of its type."""
    fire_and_zap: bool = True
    """Whether the discrete action is fire + 2 * zap, with a zap that may be illegal."""

    @property
    def global_features(self) -> int:
        return self.num_features - LANES * self.lane_features

    @property
    def unit(self) -> float:
        """What a stored number is multiplied with to give the feature."""
        return {"int8": 1.0 / 127.0, "uint8": 1.0 / 255.0}.get(self.stored, 1.0)

    @property
    def stored_counts(self) -> str:
        """Type in which the continuous action is stored."""
        return "int8" if self.counts <= 127 else "int16"


class Heads(NamedTuple):
    """What the network says about a batch of states."""

    values: Tensor
    """``(B, 4, K)`` action values: button pair, spinner knot."""
    latent: Tensor
    """``(B, H)`` encoding, from which the spinner proposals are made."""
    detail: Tensor | None = None
    """``(B, 4, K, D)``, the numbers of each value's distribution; None if it is just a value."""

    def detached(self) -> Heads:
        """The same without gradients."""
        detail = None if self.detail is None else self.detail.detach()
        return Heads(self.values.detach(), self.latent.detach(), detail)


class MlpEncoder(nn.Module):
    """Linear, LayerNorm (unless left out), ReLU per width."""

    def __init__(self, num_inputs: int, widths: tuple[int, ...], layer_norm: bool = True) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in widths:
            layers.append(nn.Linear(num_inputs, width))
            if layer_norm:
                layers.append(nn.LayerNorm(width))
            layers.append(nn.ReLU(inplace=True))
            num_inputs = width
        self.layers = nn.Sequential(*layers)
        self.layer_norm = layer_norm
        self.num_outputs = num_inputs

    def forward(self, observation: Tensor) -> Tensor:
        if self.layer_norm and fused_layers.applies_to(observation, self.pairs()):
            return fused_layers.forward(observation, self.pairs())
        encoded: Tensor = self.layers(observation)
        return encoded

    def pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Each Linear with its LayerNorm."""
        layers = tuple(self.layers)
        return list(zip(layers[::3], layers[1::3], strict=True))


class LaneConvolution(nn.Module):
    """Mixes each lane with its two neighbours on the ring, ``(B, 16, C)`` to ``(B, 16, W)``."""

    def __init__(self, num_inputs: int, width: int, layer_norm: bool = True) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * num_inputs, width)
        self.norm: nn.Module = nn.LayerNorm(width) if layer_norm else nn.Identity()

    def forward(self, lanes: Tensor, exists: Tensor) -> Tensor:
        around = fused_layers.with_neighbours(lanes)
        return fused_layers.rectified_linear(around, self.mix, self.norm, exists.squeeze(-1))


class LanesEncoder(nn.Module):
    """Two lane convolutions, then one dense layer over all lanes and the globals."""

    def __init__(
        self, layout: Layout, lane_width: int, width: int, layer_norm: bool = True
    ) -> None:
        super().__init__()
        if layout.lane_features < 1:
            raise ValueError("the lanes encoder needs a layout with lane features")
        self.layout = layout
        self.first = LaneConvolution(layout.lane_features, lane_width, layer_norm)
        self.second = LaneConvolution(lane_width, lane_width, layer_norm)
        flat = LANES * lane_width + layout.global_features
        self.dense = MlpEncoder(flat, (width,), layer_norm)
        self.num_outputs = width

    def lanes(self, observation: Tensor) -> Tensor:
        """What is known of each lane, ``(B, 16, W)``; turns with the lanes of the observation."""
        block = self.layout.lane_features
        lanes = observation[:, : LANES * block].reshape(-1, LANES, block)
        exists = (lanes[..., self.layout.lane_exists] > 0).unsqueeze(-1).to(lanes.dtype)
        mixed: Tensor = self.second(self.first(lanes * exists, exists), exists)
        return mixed

    def forward(self, observation: Tensor) -> Tensor:
        return self.summary(self.lanes(observation), observation)

    def summary(self, hidden: Tensor, observation: Tensor) -> Tensor:
        """The encoding ``(B, H)`` of lanes ``hidden`` and the globals of the observation."""
        others = observation[:, LANES * self.layout.lane_features :]
        flat = torch.cat((hidden.flatten(1), others.to(hidden.dtype)), dim=1)
        encoded: Tensor = self.dense(flat)
        return encoded


def dueling(numbers: Tensor) -> Tensor:
    """Values ``(B, A, ...)`` of a state value and A advantages ``(B, 1 + A, ...)``."""
    advantage = numbers[:, 1:]
    mean = advantage.mean(dim=1, keepdim=True)
    if torch.is_grad_enabled() or not fused_layers.on_one_core(numbers) or numbers.dim() > 2:
        return numbers[:, :1] + advantage - mean
    out = torch.empty(len(numbers), numbers.shape[1] - 1)
    dueling_values(numbers.contiguous().numpy(), mean.numpy(), out.numpy())
    return out


class QNetwork(nn.Module):
    """Values of button pairs and spinner knots, and one spinner proposal per button pair.

    Args:
        layout: of the observation.
        settings: of the network.
        learner: says which numbers a value has (``loss`` and what belongs to it); Huber's if left
            out.
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
        with torch.no_grad():
            # Small first values: nothing to unlearn, and no action favoured by accident.
            self.value_head.weight.mul_(0.1)
            self.value_head.bias.zero_()
            self.spinner_head.weight.mul_(0.1)
            self.spinner_head.bias.zero_()

    def forward(self, observation: Tensor, fractions: Tensor | None = None) -> Heads:
        """Values ``(B, 4, K)`` in float32 of observations ``(B, F)`` in [-1, 1].

        ``fractions``: ``(B, D)`` in [0, 1], the quantiles to give (iqn only); evenly spaced ones
        if left out.
        """
        if self.lane_head is not None and isinstance(self.encoder, LanesEncoder):
            lanes = self.encoder.lanes(observation)
            latent = self.encoder.summary(lanes, observation)
            place = observation[:, self.layout.lane_position]
            state = self._numbers(latent).unsqueeze(2)
            return Heads(state + self.lane_head(lanes, latent, place), latent)
        latent = self.encoder(observation)
        if self.distribution.is_plain:
            return self.plain_heads(latent)
        if self.fraction_layer is None:
            out = self._numbers(latent).view(len(latent), -1, self.distribution.numbers)
        else:
            out = self._numbers(self.fraction_layer(latent, fractions)).transpose(1, 2)
        if self.dueling:
            out = dueling(out)
        detail = out.reshape(len(out), self.layout.num_pairs, self.num_knots, -1)
        return Heads(self.distribution.mean(detail), latent, detail)

    def plain_heads(self, latent: Tensor) -> Heads:
        """The answer where a value is just a number, from the encoding ``(B, H)``."""
        out = self._numbers(latent)
        if self.dueling:
            out = dueling(out)
        return Heads(out.view(-1, self.layout.num_pairs, self.num_knots), latent)

    def _numbers(self, latent: Tensor) -> Tensor:
        """What the value head gives, float32, without what its matrix may be filled up with."""
        numbers: Tensor = self.value_head(latent)
        if numbers.shape[-1] != self.outputs:
            numbers = numbers[..., : self.outputs]
        return numbers.float()

    def proposals(self, latent: Tensor) -> Tensor | None:
        """Spinner proposals ``(B, 4)`` in [-1, 1], float32; None without a continuous head.

        The encoding is detached: only values shape it, the proposals follow.
        """
        if not self.proposes:
            return None
        weight, bias = self.spinner_head.weight.float(), self.spinner_head.bias.float()
        return torch.tanh(functional.linear(latent.detach().float(), weight, bias))

    def parts(self) -> dict[str, list[nn.Parameter]]:
        """All parameters by what they are for: ``encoder``, ``value`` and ``spinner``."""
        value = list(self.value_head.parameters())
        if self.fraction_layer is not None:
            value += self.fraction_layer.parameters()
        if self.lane_head is not None:
            value += self.lane_head.parameters()
        return {
            "encoder": list(self.encoder.parameters()),
            "value": value,
            "spinner": list(self.spinner_head.parameters()),
        }

    def values_at(self, heads: Heads, position: Tensor) -> Tensor:
        """Value ``(B, 4)`` of each button pair at its own spinner position ``(B, 4)``."""
        if heads.detail is None:
            return interpolate(heads.values, position, self.interpolation)
        return self.distribution.mean(self._between(heads.detail, position))

    def numbers_at(self, heads: Heads, pair: Tensor, position: Tensor) -> Tensor:
        """The numbers ``(B, D)`` of one action's value: a pair int64 ``(B,)`` at ``(B,)``."""
        if heads.detail is None:
            rows = pair.view(-1, 1, 1).expand(-1, 1, self.num_knots)
            values = heads.values.gather(1, rows).squeeze(1)
            return interpolate(values, position, self.interpolation).unsqueeze(1)
        own = heads.detail[torch.arange(pair.shape[0], device=pair.device), pair]
        return self._between(own, position)

    def _between(self, detail: Tensor, position: Tensor) -> Tensor:
        """``(..., K, D)`` at positions ``(...)`` as ``(..., D)``."""
        if detail.shape[-2] == 1:
            return detail.squeeze(-2)
        numbers = detail.shape[-1]
        return interpolate(
            detail.transpose(-1, -2),
            position.unsqueeze(-1).expand(*position.shape, numbers),
            self.interpolation,
        )
