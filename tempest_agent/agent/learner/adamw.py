"""AdamW with less of torch's machinery around its fused kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer


def _uncompiled(name: str) -> Any:
    """Return torch's method without the guard that keeps ``torch.compile`` out of it.

    The guard imports the compiler at its first call, which takes 2 s, compiled or not.
    """
    return getattr(Optimizer, name).__wrapped__


class AdamW(torch.optim.AdamW):
    """Fused AdamW: same arguments, arithmetic and state as torch's."""

    add_param_group = _uncompiled("add_param_group")
    zero_grad = _uncompiled("zero_grad")
    state_dict = _uncompiled("state_dict")
    load_state_dict = _uncompiled("load_state_dict")

    def step_directly(self) -> None:
        """Call the fused kernel without torch's bookkeeping around it.

        For a small network the bookkeeping takes several times as long as the kernel.
        """
        for group in self.param_groups:
            members = [p for p in group["params"] if p.grad is not None]
            for p in members:
                if p not in self.state:
                    moments = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
                    self.state[p] = {"step": torch.zeros((), device=p.device), **moments}
            steps, first, second = (
                [self.state[p][name] for p in members] for name in ("step", "exp_avg", "exp_avg_sq")
            )
            beta1, beta2 = group["betas"]
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                members, [p.grad for p in members], first, second, [], steps, lr=group["lr"],
                beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"], eps=group["eps"],
                amsgrad=False, maximize=False,
            )  # fmt: skip
