"""Reading and replacing the weights of a learner.

Optimiser state belongs to the weights it was made with: weights that come without it start with
moments of zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, one_line

from .learner import Learner

NETWORKS = ("online", "target", "average")
OPTIMIZER = "optimizer"
PARAMETERS = (*NETWORKS, OPTIMIZER)
"""Entries of a learner's state with its weights and their moments."""


def parameters_of(learner: Learner) -> dict[str, dict[str, Any]]:
    """Return copies of the state of each of ``PARAMETERS``."""
    state = learner.state_dict()
    return {name: _copied(state[name]) for name in PARAMETERS}


def put_parameters(learner: Learner, given: Mapping[str, Any], exact_match: bool) -> None:
    """Replace weights; nothing is changed unless all of them fit.

    Networks that are not given become copies of ``online``, or of the only one given.

    Args:
        learner: whose weights are replaced.
        given: by name, of ``PARAMETERS``.
        exact_match: whether all of ``PARAMETERS`` must be given.

    Raises:
        UserError: missing or unknown entries, or weights of another shape.
    """
    known = set(PARAMETERS)
    missing = known - given.keys() if exact_match else set[str]()
    if given.keys() - known or missing or not given.keys() & set(NETWORKS):
        raise UserError(
            f"parameters {shown(list(given))}: {', '.join(sorted(known))} are needed "
            "(with exact_match=False at least one network)"
        )
    own = learner.state_dict()
    leader = next(given[name] for name in NETWORKS if name in given)
    for name in NETWORKS:
        weights = given.get(name, leader)
        _check_shapes(name, weights, own[name])
        own[name] = _copied(weights)
    fresh = {"state": {}, "param_groups": own[OPTIMIZER]["param_groups"]}
    own[OPTIMIZER] = _copied(given.get(OPTIMIZER, fresh))
    before = _copied(learner.state_dict())
    try:
        learner.load_state_dict(own)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        learner.load_state_dict(before)
        raise UserError(f"the optimizer's state does not fit: {one_line(error)}") from error


def _copied(value: Any) -> Any:
    """Return a tree with copies of all tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _check_shapes(name: str, given: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    for key in sorted(given.keys() | own.keys()):
        theirs = tuple(given[key].shape) if key in given else "nothing"
        ours = tuple(own[key].shape) if key in own else "nothing"
        if theirs != ours:
            raise UserError(
                f"the weights of {name} do not fit: {key} is {theirs}, this network has {ours}; "
                "make the model with the same policy_kwargs and spaces"
            )
