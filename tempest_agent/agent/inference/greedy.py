"""The student's greedy action, over the same candidates in play and in targets.

The candidates are all spinner knots of the legal button pairs and the network's own proposals.  On
straight lines between knots no proposal can be worth more than the better knot beside it, so the
proposals decide only among equals (they come first); on parabolas they can be better than all
knots.  In either case a dead head costs nothing.  With one knot (``regression``) they are the only
spinner there is.  Where the policy head acts, its best knot is played; values and their targets
have their own best action.

With ``network.avoids_deadly`` a turn that ends in a lane deadly in this tick is no candidate, as an
illegal zap is none, unless all legal candidates are such turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tempest_agent.agent.devices import Column, to_device
from tempest_agent.agent.networks.actions import knots, pair_mask, to_counts
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import Heads, Preferences, QNetwork
from tempest_agent.envs.machine.inputs import SPINNER_MAX

from .inference_copy import InferenceCopy


class Choice(NamedTuple):
    """One action per row: button pair int64 ``(B,)``, spinner ``(B,)``, its value ``(B,)``."""

    pair: Tensor
    position: Tensor
    value: Tensor


def choose(network: QNetwork, heads: Heads, legal: Tensor) -> Choice:
    """Return the candidate of the highest value in each row; the first of equals.

    Args:
        network: whose proposals belong to ``heads``.
        heads: the network's outputs, values ``(B, 4, K)``.
        legal: bool ``(B, 4)``, at least one True per row.
    """
    values = heads.values
    batch, pairs, count = values.shape
    proposals = network.proposals(heads.latent)
    if proposals is None:
        candidates = values
        positions = knots(count, values.device).expand(batch, pairs, count)
    elif count == 1:
        candidates, positions = values, proposals.unsqueeze(-1)
    else:
        proposed = network.values_at(heads, proposals)
        axis = knots(count, values.device).expand(batch, pairs, count)
        candidates = torch.cat((proposed.unsqueeze(-1), values), dim=-1)
        positions = torch.cat((proposals.unsqueeze(-1), axis), dim=-1)
    return _best(candidates, positions, allowed(positions, legal, heads.deadly))


def choose_preferred(preferences: Preferences, legal: Tensor) -> Choice:
    """Return the knot of the highest logit in each row, with that logit; the first of equals.

    Args:
        preferences: logits ``(B, 4, K)``.
        legal: bool ``(B, 4)``, at least one True per row.
    """
    logits = preferences.logits
    positions = knots(logits.shape[2], logits.device).expand(logits.shape)
    return _best(logits, positions, allowed(positions, legal, preferences.deadly))


def choose_to_act(
    network: QNetwork, passes: QNetwork | InferenceCopy, observation: Tensor, legal: Tensor
) -> Choice:
    """Return the choice of the head that acts.

    Args:
        network: owner of the weights.
        passes: evaluates observations: ``network``, or its copy.
        observation: ``(B, F)`` in [-1, 1].
        legal: bool ``(B, 4)``, at least one True per row.
    """
    if network.acts_by_policy:
        return choose_preferred(passes.preferences(observation), legal)
    return choose(network, passes(observation), legal)


def allowed(positions: Tensor, legal: Tensor, deadly: Tensor | None) -> Tensor:
    """Return which candidates may be chosen, bool ``(B, 4, C)``.

    Args:
        positions: of the candidates on the spinner axis, ``(B, 4, C)``.
        legal: bool ``(B, 4)``.
        deadly: bool ``(B, 63)``, knob counts that are none unless all are; None if there are none.
    """
    is_legal = legal.unsqueeze(-1).expand(positions.shape)
    if deadly is None:
        return is_legal
    turns = to_counts(positions).to(torch.int64) + SPINNER_MAX
    is_safe = is_legal & ~deadly.gather(1, turns.flatten(1)).view(positions.shape)
    return torch.where(is_safe.flatten(1).any(dim=1).view(-1, 1, 1), is_safe, is_legal)


def _best(candidates: Tensor, positions: Tensor, may: Tensor) -> Choice:
    """Return the best of the candidates ``(B, 4, C)`` that may be chosen; the first of equals."""
    width = candidates.shape[-1]
    value, best = candidates.masked_fill(~may, -torch.inf).flatten(1).max(dim=1)
    position = positions.reshape(len(best), -1).gather(1, best.unsqueeze(1)).squeeze(1)
    return Choice(best // width, position, value)


def features(codes: Column, layout: Layout, device: torch.device) -> Tensor:
    """Return codes ``(B, F)`` as features on ``device``, float32."""
    numbers = to_device(codes, device).to(torch.float32)
    # Codes that are features already may still be the replay's own memory.
    return numbers if layout.unit == 1.0 else numbers.mul_(layout.unit)


@torch.no_grad()
def act(
    network: QNetwork,
    fast: InferenceCopy,
    codes: NDArray[np.int8],
    zap_legal: NDArray[np.bool_],
    device: torch.device,
) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
    """Return knob counts and buttons ``(B,)`` for codes ``(B, F)`` and legal zaps ``(B,)``.

    ``network`` owns the weights, ``fast`` is its copy for acting; both are on ``device``.
    """
    layout = network.layout
    observation = features(codes, layout, device)
    legal = pair_mask(torch.from_numpy(zap_legal).to(device), layout.num_pairs)
    choice = choose_to_act(network, fast, observation, legal)
    spin: NDArray[np.int8] = to_counts(choice.position, layout.counts).cpu().numpy()
    buttons: NDArray[np.uint8] = choice.pair.to(torch.uint8).cpu().numpy()
    return spin, buttons
