"""Comparison of nested states, as checkpoints hold them."""

from __future__ import annotations

from typing import Any

import torch

from tempest_agent.agent.checkpoints.checkpoint_files import pack


def flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(tree, dict):
        return {
            k: v for key, item in tree.items() for k, v in flat(item, f"{prefix}/{key}").items()
        }
    if isinstance(tree, list | tuple):
        return {k: v for i, item in enumerate(tree) for k, v in flat(item, f"{prefix}/{i}").items()}
    return {prefix: tree}


def assert_same(first: Any, second: Any) -> None:
    one, two = flat(pack(first)), flat(pack(second))
    assert one.keys() == two.keys()
    for name, value in one.items():
        other = two[name]
        same = torch.equal(value, other) if isinstance(value, torch.Tensor) else value == other
        assert same, name
