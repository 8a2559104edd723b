"""Encoders: from an observation to the encoding ``(B, H)`` that all heads share.

``mlp`` takes the flat vector.  ``lanes`` shares its weights over the 16 lanes by circular
convolution; lanes that do not exist on an open well are kept at zero, so nothing passes from one
end to the other.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tempest_agent.envs.machine.memory import LANES

from .layout import Layout


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
        encoded: Tensor = self.layers(observation)
        return encoded


class LaneConvolution(nn.Module):
    """Mixes each lane with its two neighbours on the ring, ``(B, 16, C)`` to ``(B, 16, W)``."""

    def __init__(self, num_inputs: int, width: int, layer_norm: bool = True) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * num_inputs, width)
        self.norm: nn.Module = nn.LayerNorm(width) if layer_norm else nn.Identity()

    def forward(self, lanes: Tensor, exists: Tensor) -> Tensor:
        around = torch.cat((lanes.roll(1, 1), lanes, lanes.roll(-1, 1)), dim=-1)
        return torch.relu(self.norm(self.mix(around))) * exists


class LanesEncoder(nn.Module):
    """Two lane convolutions, then one dense layer over all lanes and the globals."""

    def __init__(
        self, layout: Layout, lane_width: int, width: int, layer_norm: bool = True
    ) -> None:
        super().__init__()
        if layout.lane_features < 1:
            raise ValueError("the lanes encoder needs a layout with lane features")
        self.layout = layout
        inputs = layout.lane_features + layout.forecast_features
        self.first = LaneConvolution(inputs, lane_width, layer_norm)
        self.second = LaneConvolution(lane_width, lane_width, layer_norm)
        flat = LANES * lane_width + layout.global_features
        self.dense = MlpEncoder(flat, (width,), layer_norm)
        self.num_outputs = width

    def lanes(self, observation: Tensor) -> Tensor:
        """Return the encoding of each lane, ``(B, 16, W)``; turns with the observation's lanes."""
        block = self.layout.lane_features
        lanes = observation[:, : LANES * block].reshape(-1, LANES, block)
        exists = (lanes[..., self.layout.lane_exists] > 0).unsqueeze(-1).to(lanes.dtype)
        if self.layout.forecast_features:
            tail = observation[:, self.layout.forecast_start :]
            tail = tail.reshape(-1, LANES, self.layout.forecast_features)
            lanes = torch.cat((lanes, tail), dim=2)
        mixed: Tensor = self.second(self.first(lanes * exists, exists), exists)
        return mixed

    def forward(self, observation: Tensor) -> Tensor:
        return self.summary(self.lanes(observation), observation)

    def summary(self, hidden: Tensor, observation: Tensor) -> Tensor:
        """Return the encoding ``(B, H)`` of lanes ``hidden`` and the observation's globals."""
        layout = self.layout
        others = observation[:, LANES * layout.lane_features : layout.forecast_start]
        flat = torch.cat((hidden.flatten(1), others.to(hidden.dtype)), dim=1)
        encoded: Tensor = self.dense(flat)
        return encoded
