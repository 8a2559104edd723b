"""The optimizer: steps as torch makes them, with less around them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tempest_agent.agent.learner.adamw import AdamW

pytestmark = pytest.mark.xdist_group("compiler")


def test_steps_are_those_of_torch() -> None:
    torch.manual_seed(0)
    ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    direct = AdamW(ours.parameters(), lr=0.01, weight_decay=0.1, fused=True)
    plain = torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.1, fused=True)
    for _ in range(4):
        rows = torch.randn(7, 5)
        for layer, optimizer in ((ours, direct), (theirs, plain)):
            optimizer.zero_grad()
            layer(rows).square().mean().backward()
        direct.step_directly()
        plain.step()
        assert torch.equal(ours.weight, theirs.weight)
    left, right = direct.state_dict(), plain.state_dict()
    assert left["param_groups"] == right["param_groups"]
    for i, state in right["state"].items():
        assert {name: value.tolist() for name, value in left["state"][i].items()} == {
            name: value.tolist() for name, value in state.items()
        }
