"""Speed of the learner's update, compared with a plain PyTorch loop and its bare matrix products.

All three do the arithmetic of one double-DQN update on the same rows, on one thread: a forward and
a backward pass over the states, and two forward passes (online and target network) over the next
states.  The plain loop is a good single-file implementation with torch's own operations only: fused
optimiser, averages and norms over all weights at once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tempest_agent.agent.games.tempest_games import TEMPEST_LAYOUT
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.replay.rows import AGENT, Batch
from tempest_agent.bench.figures import Figure, compared, figure
from tempest_agent.bench.tensor_memory import peak_bytes
from tempest_agent.bench.timing import Preparation, rounds
from tempest_agent.config import Config, load_config
from tempest_agent.envs.machine.inputs import SPINNER_MAX

Seconds = NDArray[np.float64]

CPU = torch.device("cpu")
ROUNDS = 15
WARM_UP_ROUNDS = 2
"""Rounds that are left out, in which memory is allocated and kernels compile."""

BATCH = 4096
DEFAULT_BATCH = 256
PUBLIC_FEATURES = 171
PUBLIC_HIDDEN = "network.hidden=[512, 512, 256, 256, 128, 128]"
"""Size of a public attempt at this game: 0.62 million parameters."""

COMMON = ("learner.imitation=none", "learner.precision=float32")
PLAIN_KNOTS = 9


def measure() -> dict[str, Figure]:
    """Return every figure of the learner, see ``docs/commands.md``."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        public = _compare(Layout(PUBLIC_FEATURES), (PUBLIC_HIDDEN,), BATCH)
        default = _compare(TEMPEST_LAYOUT, (), DEFAULT_BATCH)
        one, four = (_memory(Layout(PUBLIC_FEATURES), parts) for parts in (1, 4))
    finally:
        torch.set_num_threads(threads)
    return {
        "samples_per_second": _speed(public, BATCH),
        "ratio_to_plain_loop": _ratio(public.ours, public.plain, "the best plain PyTorch loop"),
        "ratio_to_matmul": _ratio(public.ours, public.products, "its matrix products"),
        "accumulation_4_ratio": compared(
            4.0 * _median(public.ours / public.four),
            "speed with 4 micro-batches to 1, equally many rows in each",
            BATCH / _median(public.ours),
        ),
        "accumulation_4_memory_ratio": compared(
            four / one,
            "peak bytes of tensors with 4 micro-batches to 1, equally many rows in each",
            float(one),
        ),
        "default_samples_per_second": _speed(default, DEFAULT_BATCH),
        "default_ratio_to_plain_loop": _ratio(
            default.ours, default.plain, "the best plain PyTorch loop"
        ),
        "default_ratio_to_matmul": _ratio(default.ours, default.products, "its matrix products"),
    }


@dataclass(frozen=True)
class _Seconds:
    """Seconds of one update in each of ``ROUNDS`` rounds, ``(ROUNDS,)``."""

    ours: Seconds
    plain: Seconds
    products: Seconds
    four: Seconds


def _median(numbers: Seconds) -> float:
    return float(np.median(numbers))


def _speed(seconds: _Seconds, rows: int) -> Figure:
    return figure(rows / _median(seconds.ours), "rows/s", rows / _median(seconds.plain))


def _ratio(seconds: Seconds, baseline: Seconds, of: str) -> Figure:
    """Return the median of the rounds' ratios: other load slows both of a round alike."""
    ratio = _median(seconds / baseline)
    return compared(ratio, f"time of an update to that of {of}", _median(baseline))


def _compare(layout: Layout, overrides: tuple[str, ...], rows: int) -> _Seconds:
    config = load_config(None, [*COMMON, *overrides])
    four = load_config(None, [*COMMON, *overrides, "learner.gradient_accumulation_steps=4"])
    batch = random_batch(layout, rows)
    return _Seconds(
        *rounds(
            ROUNDS,
            WARM_UP_ROUNDS,
            *map(
                _always,
                (
                    _ours(layout, config, batch),
                    _plain(layout, config, batch),
                    _products(layout, config, rows),
                    _ours(layout, four, random_batch(layout, 4 * rows)),
                ),
            ),
        )
    )


def _always(run: Callable[[], None]) -> Preparation:
    """Return a preparation that does nothing and times ``run``."""
    return lambda: run


def _memory(layout: Layout, parts: int) -> int:
    """Return the peak bytes of an update of ``parts`` micro-batches of ``BATCH`` rows."""
    accumulation = f"learner.gradient_accumulation_steps={parts}"
    config = load_config(None, [*COMMON, PUBLIC_HIDDEN, accumulation])
    return peak_bytes(_ours(layout, config, random_batch(layout, parts * BATCH)))


def random_batch(layout: Layout, rows: int) -> Batch:
    """Return random rows with about one code in ten nonzero, as in real observations."""
    random = np.random.default_rng(0)

    def codes() -> NDArray[np.int8]:
        dense = random.integers(-127, 128, (rows, layout.num_features))
        return (dense * (random.random(dense.shape) < 0.1)).astype(np.int8)

    return Batch(
        codes=codes(),
        next_codes=codes(),
        spin=random.integers(-SPINNER_MAX, SPINNER_MAX + 1, rows).astype(np.int8),
        buttons=random.integers(0, 4, rows).astype(np.uint8),
        returns=random.normal(size=rows).astype(np.float32),
        discounts=np.full(rows, 0.95, np.float32),
        horizons=np.full(rows, 5, np.int64),
        zap_legal=np.ones(rows, np.bool_),
        next_zap_legal=np.ones(rows, np.bool_),
        driver=np.full(rows, AGENT, np.uint8),
        label_spin=np.zeros(rows, np.int8),
        label_buttons=np.zeros(rows, np.uint8),
        labelled=np.zeros(rows, np.bool_),
        weights=np.ones(rows, np.float32),
        rows=np.arange(rows),
    )


def _ours(layout: Layout, config: Config, batch: Batch) -> Callable[[], None]:
    learner = Learner(layout, config, CPU)

    def run() -> None:
        learner.update(batch, 1e-4, 0.0)

    run()  # The first update allocates the optimiser's moments.
    return run


class PlainNetwork(nn.Module):
    """The same layers as ours, written plainly."""

    def __init__(self, num_inputs: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(num_inputs, width), nn.LayerNorm(width), nn.ReLU(inplace=True)]
            num_inputs = width
        self.encoder = nn.Sequential(*layers)
        self.state = nn.Linear(num_inputs, 1)
        self.advantage = nn.Linear(num_inputs, 4 * PLAIN_KNOTS)
        self.spinner = nn.Linear(num_inputs, 4)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        latent = self.encoder(observation)
        advantage = self.advantage(latent)
        values = self.state(latent) + advantage - advantage.mean(dim=1, keepdim=True)
        proposals = torch.tanh(self.spinner(latent.detach()))
        return values.view(-1, 4, PLAIN_KNOTS), proposals


def _between(values: Tensor, position: Tensor) -> Tensor:
    """Interpolate values ``(..., K)`` linearly at ``position`` ``(...)``."""
    place = (position + 1) * 0.5 * (PLAIN_KNOTS - 1)
    lower = place.detach().floor().clamp(max=PLAIN_KNOTS - 2).long()
    left = values.gather(-1, lower.unsqueeze(-1)).squeeze(-1)
    right = values.gather(-1, lower.unsqueeze(-1) + 1).squeeze(-1)
    return left + (place - lower) * (right - left)


def _plain(layout: Layout, config: Config, batch: Batch) -> Callable[[], None]:
    run = plain_update(PlainNetwork(layout.num_features, config.network.hidden), batch)
    run()
    return run


def plain_update(
    online: PlainNetwork, batch: Batch, spinner_weight: float = 0.1
) -> Callable[[], None]:
    """Return the update of ``online`` as a good plain implementation."""
    target, average = copy.deepcopy(online), copy.deepcopy(online)
    optimizer = torch.optim.AdamW(online.parameters(), lr=1e-4, weight_decay=1e-4, fused=True)
    weights: list[Tensor] = list(online.parameters())
    means: list[Tensor] = list(average.parameters())
    rows = torch.arange(len(batch.rows))

    def run() -> None:
        observation = torch.from_numpy(batch.codes).float().div_(127)
        following = torch.from_numpy(batch.next_codes).float().div_(127)
        pair = torch.from_numpy(batch.buttons).long()
        position = torch.from_numpy(batch.spin).float().div_(SPINNER_MAX)
        with torch.no_grad():
            best = online(following)[0].flatten(1).argmax(dim=1)
            bootstrap = target(following)[0].flatten(1)[rows, best]
            wanted = torch.from_numpy(batch.returns) + torch.from_numpy(batch.discounts) * bootstrap
            wanted = wanted.clamp(-100, 100)
        values, proposals = online(observation)
        predicted = _between(values[rows, pair], position)
        loss = nn.functional.smooth_l1_loss(predicted, wanted)
        loss = loss - spinner_weight * _between(values.detach(), proposals).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(weights, 10.0, foreach=True)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(means, weights, 1e-3)

    return run


def _products(layout: Layout, config: Config, rows: int) -> Callable[[], None]:
    """Return three forward passes and a backward pass of the matrix products alone."""
    outputs = 4 * PLAIN_KNOTS + 1
    widths = (layout.num_features, *config.network.hidden, outputs)
    weights = [torch.randn(b, a) * 0.01 for a, b in pairwise(widths)]
    inputs = [torch.randn(rows, width) for width in widths]
    buffers = [torch.empty(rows, width) for width in widths]
    gradients = [torch.empty_like(weight) for weight in weights]

    def run() -> None:
        for _ in range(3):
            for i, weight in enumerate(weights):
                torch.mm(inputs[i], weight.T, out=buffers[i + 1])
        for i in reversed(range(len(weights))):
            torch.mm(inputs[i + 1].T, inputs[i], out=gradients[i])
            # The gradient with respect to the observation is not needed.
            if i:
                torch.mm(inputs[i + 1], weights[i], out=buffers[i])

    return run
