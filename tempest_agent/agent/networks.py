"""The value network: an encoder of the player-centred features and its heads.

Two encoders: ``mlp`` on the flat vector, and ``lanes``, whose weights are shared over the 16 lanes
(circular convolution; lanes that do not exist on an open well are kept at zero, so nothing passes
from one end to the other).  Heads: state value and advantages (Wang et al. 2016, "Dueling network
architectures"), and one spinner proposal per button pair.  LayerNorm keeps values from running
away on data of other players (Ball et al. 2023, "Efficient online RL with offline data").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tempest_agent.config import NetworkConfig

from .actions import BUTTON_PAIRS

LANES = 16


@dataclass(frozen=True)
class Layout:
    """Where things are in the flat observation: 16 equal lane blocks, then globals.

    ``lane_exists`` is the index, inside a lane's block, of the feature above 0 on real lanes.
    """

    num_features: int
    lane_features: int = 0
    lane_exists: int = 0

    @property
    def global_features(self) -> int:
        return self.num_features - LANES * self.lane_features


class Heads(NamedTuple):
    """What the network says about a batch of states."""

    values: Tensor
    """``(B, 4, K)`` action values: button pair, spinner knot."""
    latent: Tensor
    """``(B, H)`` encoding, from which the spinner proposals are made."""


class MlpEncoder(nn.Module):
    """Linear, LayerNorm, ReLU per width."""

    def __init__(self, num_inputs: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in widths:
            layers += [nn.Linear(num_inputs, width), nn.LayerNorm(width), nn.ReLU(inplace=True)]
            num_inputs = width
        self.layers = nn.Sequential(*layers)
        self.num_outputs = num_inputs

    def forward(self, observation: Tensor) -> Tensor:
        encoded: Tensor = self.layers(observation)
        return encoded


class LaneConvolution(nn.Module):
    """Mixes each lane with its two neighbours on the ring, ``(B, 16, C)`` to ``(B, 16, W)``."""

    def __init__(self, num_inputs: int, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * num_inputs, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, lanes: Tensor, exists: Tensor) -> Tensor:
        around = torch.cat((lanes.roll(1, 1), lanes, lanes.roll(-1, 1)), dim=-1)
        mixed: Tensor = self.norm(self.mix(around))
        return torch.relu(mixed) * exists


class LanesEncoder(nn.Module):
    """Two lane convolutions, then one dense layer over all lanes and the globals."""

    def __init__(self, layout: Layout, lane_width: int, width: int) -> None:
        super().__init__()
        if layout.lane_features < 1:
            raise ValueError("the lanes encoder needs a layout with lane features")
        self.layout = layout
        self.first = LaneConvolution(layout.lane_features, lane_width)
        self.second = LaneConvolution(lane_width, lane_width)
        self.dense = MlpEncoder(LANES * lane_width + layout.global_features, (width,))
        self.num_outputs = width

    def forward(self, observation: Tensor) -> Tensor:
        block = self.layout.lane_features
        lanes = observation[:, : LANES * block].reshape(-1, LANES, block)
        others = observation[:, LANES * block :]
        exists = (lanes[..., self.layout.lane_exists] > 0).unsqueeze(-1).to(lanes.dtype)
        hidden = self.second(self.first(lanes * exists, exists), exists)
        flat = torch.cat((hidden.flatten(1), others.to(hidden.dtype)), dim=1)
        encoded: Tensor = self.dense(flat)
        return encoded


class QNetwork(nn.Module):
    """Values of button pairs and spinner knots, and one spinner proposal per button pair."""

    def __init__(self, layout: Layout, settings: NetworkConfig) -> None:
        super().__init__()
        self.num_knots = 1 if settings.spinner_head == "regression" else settings.spinner_knots
        self.dueling = settings.dueling
        self.proposes = settings.spinner_head != "knots"
        self.encoder: MlpEncoder | LanesEncoder
        if settings.encoder == "lanes":
            self.encoder = LanesEncoder(layout, settings.lane_width, settings.hidden[-1])
        else:
            self.encoder = MlpEncoder(layout.num_features, settings.hidden)
        width = self.encoder.num_outputs
        self.value_head = nn.Linear(width, BUTTON_PAIRS * self.num_knots + int(self.dueling))
        self.spinner_head = nn.Linear(width, BUTTON_PAIRS)
        with torch.no_grad():
            # Small first values: nothing to unlearn, and no action favoured by accident.
            self.value_head.weight.mul_(0.1)
            self.value_head.bias.zero_()
            self.spinner_head.weight.mul_(0.1)
            self.spinner_head.bias.zero_()

    def forward(self, observation: Tensor) -> Heads:
        """Values ``(B, 4, K)`` in float32 of observations ``(B, F)`` in [-1, 1]."""
        latent = self.encoder(observation)
        out = self.value_head(latent).float()
        if self.dueling:
            state, advantage = out[:, :1], out[:, 1:]
            out = state + advantage - advantage.mean(dim=1, keepdim=True)
        return Heads(out.view(-1, BUTTON_PAIRS, self.num_knots), latent)

    def proposals(self, latent: Tensor) -> Tensor | None:
        """Spinner proposals ``(B, 4)`` in [-1, 1], float32; None without a continuous head.

        The encoding is detached: only values shape it, the proposals follow.
        """
        if not self.proposes:
            return None
        return torch.tanh(self.spinner_head(latent.detach().float()))
