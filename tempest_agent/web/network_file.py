"""A network as the file that a page's ``ask_network`` plays: see ``network_entry.py``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from tempest_agent.agent.games.tempest_games import PLAIN_LAYOUT
from tempest_agent.agent.networks.encoders import LanesEncoder
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.errors import UserError

from .network_entry import EPSILON, MOST_LATENT, MOST_WIDTH, WORDS


def network_bytes(network: QNetwork, source: str) -> bytes:
    """Return the file of ``network``, which was read from ``source``.

    Raises:
        UserError: a page does not play networks of this form.
    """
    encoder, head = network.encoder, network.lane_head
    if not isinstance(encoder, LanesEncoder) or head is None:
        raise UserError(
            f"{source}: a page plays networks with network.encoder=lanes and "
            f"network.value_head=lanes, as the default configuration has; watch this one with "
            f"tempest-agent play {source} --record FILE.mp4"
        )
    if network.layout != PLAIN_LAYOUT:
        raise UserError(
            f"{source}: its network sees {network.layout.num_features} numbers, and a page plays "
            f"networks of the plain observation's {PLAIN_LAYOUT.num_features} "
            f"(game.observation=features_plain); watch this one with "
            f"tempest-agent play {source} --record FILE.mp4"
        )
    if network.acts_by_policy:
        raise UserError(
            f"{source}: its policy head plays (network.acts=policy), and a page plays values; "
            f"watch this one with tempest-agent play {source} --record FILE.mp4"
        )
    width, latent = encoder.first.mix.out_features, encoder.num_outputs
    if width > MOST_WIDTH or latent > MOST_LATENT:
        raise UserError(
            f"{source}: its network has lanes of {width} numbers and {latent} for the whole "
            f"state; a page plays up to {MOST_WIDTH} and {MOST_LATENT}"
        )
    dense, norm = encoder.dense.layers[0], encoder.dense.layers[1]
    layers: list[tuple[nn.Module, nn.Module | None]] = [
        (encoder.first.mix, encoder.first.norm),
        (encoder.second.mix, encoder.second.norm),
        (dense, norm),
        (head.state, head.state_norm),
        (head.mix, head.mix_norm),
        (head.nodes, None),
    ]
    if network.proposes:
        layers.append((network.spinner_head, None))
    words = np.zeros(WORDS, np.int32)
    quadratic = network.interpolation == "quadratic"
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
    words[:4] = width, latent, network.proposes, quadratic
    words[4 : 4 + len(rows)] = rows
    return words.tobytes() + b"".join(part.tobytes() for part in numbers)
