"""A network as the file that a page's ``ask_network`` plays: see ``network_memory``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from tempest_agent.agent.games.tempest_games import PLAIN_LAYOUT, TEMPEST_LAYOUT
from tempest_agent.agent.networks.encoders import LanesEncoder
from tempest_agent.agent.networks.lane_head import LaneHead
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.errors import UserError

from . import network_memory as at
from .network_entry import EPSILON


def network_bytes(network: QNetwork, source: str) -> bytes:
    """Return the file of ``network``, which was read from ``source``: what acts, and no more.

    Raises:
        UserError: a page does not play networks of this form.
    """
    encoder = network.encoder
    head = network.policy_head if network.acts_by_policy else network.lane_head
    if not isinstance(encoder, LanesEncoder) or head is None or not _is_known(network.layout):
        raise UserError(
            f"{source}: a page plays networks with network.encoder=lanes and "
            f"network.value_head=lanes that see Tempest's features, as the default configuration "
            f"has; watch this one with tempest-agent play {source} --record FILE.mp4"
        )
    width, latent = encoder.first.mix.out_features, encoder.num_outputs
    if width > at.MOST_WIDTH or latent > at.MOST_LATENT:
        raise UserError(
            f"{source}: its network has lanes of {width} numbers and {latent} for the whole "
            f"state; a page plays up to {at.MOST_WIDTH} and {at.MOST_LATENT}"
        )
    layers = _layers(encoder, head)
    proposes = network.proposes and not network.acts_by_policy
    if proposes:
        layers.append((network.spinner_head, None))
    words = np.zeros(at.WORDS, np.int32)
    words[at.WIDTH], words[at.LATENT] = width, latent
    words[at.SEEN] = network.layout.num_features
    words[at.LATE] = len(network.layout.pending_spins) > 0
    words[at.AVOIDS], words[at.BY_POLICY] = network.avoids_deadly, network.acts_by_policy
    words[at.PROPOSES] = proposes
    words[at.QUADRATIC] = network.interpolation == "quadratic"
    rows: list[int] = []
    numbers: list[NDArray[np.float32]] = []
    end = words.nbytes
    for linear, after in layers:
        assert isinstance(linear, nn.Linear)
        rows += [linear.in_features, linear.out_features]
        parts = [linear.weight.T, linear.bias]
        if isinstance(after, nn.LayerNorm):
            assert after.eps == EPSILON
            parts += [after.weight, after.bias]
        for part in parts:
            rows.append(end)
            numbers.append(np.ascontiguousarray(part.detach().cpu().numpy(), np.float32))
            end += numbers[-1].nbytes
        rows += [0] * (4 - len(parts))
    words[at.TABLE : at.TABLE + len(rows)] = rows
    return words.tobytes() + b"".join(part.tobytes() for part in numbers)


def _is_known(layout: Layout) -> bool:
    """Return whether a page's observation, or its beginning, has this layout."""
    # Some networks see the same numbers and do not know where inputs under way take the claw.
    return layout in (TEMPEST_LAYOUT, PLAIN_LAYOUT, replace(TEMPEST_LAYOUT, pending_spin=-1))


def _layers(encoder: LanesEncoder, head: LaneHead) -> list[tuple[nn.Module, nn.Module | None]]:
    """Return the layers up to the values, each with its norm, in the order of ``LAYERS``."""
    dense, norm = encoder.dense.layers[0], encoder.dense.layers[1]
    return [
        (encoder.first.mix, encoder.first.norm),
        (encoder.second.mix, encoder.second.norm),
        (dense, norm),
        (head.state, head.state_norm),
        (head.mix, head.mix_norm),
        (head.nodes, None),
    ]
