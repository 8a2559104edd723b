"""The optimizer: steps as torch makes them, with less around them."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from tempest_agent.agent.learner.adamw import AdamW


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


def test_training_starts_without_the_compiler() -> None:
    """It takes 2 s to import, and only ``learner.compile`` needs it."""
    code = (
        "import sys, torch; from tempest_agent.agent.learner.adamw import AdamW;"
        "layer = torch.nn.Linear(2, 2); optimizer = AdamW(layer.parameters(), fused=True);"
        "layer(torch.ones(1, 2)).sum().backward(); optimizer.step_directly();"
        "optimizer.zero_grad(); optimizer.load_state_dict(optimizer.state_dict());"
        "print('torch._dynamo' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
