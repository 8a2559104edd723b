"""Layers in one pass over memory against the single operations in float64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tempest_agent.agent.networks import fused_layers
from tempest_agent.agent.networks.encoders import MlpEncoder


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(*widths: int) -> list[tuple[nn.Module, nn.Module]]:
    """Layers in which nothing is 0 or 1."""
    torch.manual_seed(sum(widths))
    layers: list[tuple[nn.Module, nn.Module]] = []
    for before, width in pairwise(widths):
        linear, norm = nn.Linear(before, width), nn.LayerNorm(width, eps=1e-3)
        nn.init.normal_(linear.bias)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        layers.append((linear, norm))
    return layers


def reference(inputs: Tensor, layers: fused_layers.Pairs, alive: Tensor | None) -> Tensor:
    for linear, norm in layers:
        inputs = torch.relu(norm(linear(inputs)))
        if alive is not None:
            inputs = inputs * alive.unsqueeze(1)
    return inputs


def gradients(out: Tensor, inputs: Tensor, layers: fused_layers.Pairs) -> list[Tensor]:
    """Of a sum with weights that differ, to the inputs and to all parameters."""
    parameters = [p for pair in layers for layer in pair for p in layer.parameters()]
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return list(torch.autograd.grad((out * weights).sum(), [inputs, *parameters]))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("rows", "widths"), [(1, (3, 5)), (64, (7, 32, 16)), (65, (171, 33, 1, 8)), (300, (20, 130))]
)
def test_values_and_gradients_are_those_of_the_single_operations(
    rows: int, widths: tuple[int, ...], masked: bool
) -> None:
    layers = make(*widths)
    inputs = torch.randn(rows, widths[0], requires_grad=True)
    alive = (torch.rand(rows) < 0.7).float() if masked else None
    assert fused_layers.applies_to(inputs, layers)
    out = fused_layers.forward(inputs, layers, alive)
    with torch.no_grad():
        torch.testing.assert_close(fused_layers.forward(inputs, layers, alive), out.detach())
    found = gradients(out, inputs, layers)
    exact = inputs.detach().double().requires_grad_()
    for pair in layers:
        for layer in pair:
            layer.double()
    wanted = reference(exact, layers, None if alive is None else alive.double())
    torch.testing.assert_close(out.double(), wanted, atol=2e-5, rtol=1e-4)
    for one, other in zip(found, gradients(wanted, exact, layers), strict=True):
        size = float(other.abs().max())
        torch.testing.assert_close(one.double(), other, atol=2e-5 * (1 + size), rtol=1e-4)


@pytest.mark.parametrize("offset", [3.0, 30.0, 3000.0])
def test_a_row_far_from_zero_keeps_its_digits(offset: float) -> None:
    ((linear, norm),) = make(4, 64)
    with torch.no_grad():
        linear.bias += offset
        inputs = torch.randn(50, 4)
        fused = fused_layers.forward(inputs, [(linear, norm)])
        kept = fused_layers._Layers.apply(
            inputs, None, [norm.eps], *linear.parameters(), *norm.parameters()
        )
        linear.double(), norm.double()
        wanted = reference(inputs.double(), [(linear, norm)], None).float()
    # Numbers of size `offset` are themselves known to a part in 10 million only.
    tolerance = 1e-5 + 1e-6 * offset
    torch.testing.assert_close(fused, wanted, atol=tolerance, rtol=1e-4)
    torch.testing.assert_close(kept, wanted, atol=tolerance, rtol=1e-4)


def test_the_gradient_that_comes_in_is_left_alone() -> None:
    """It belongs to autograd, which may need it again."""
    layers = make(4, 6)
    incoming = torch.randn(9, 6)
    before = incoming.clone()
    fused_layers.forward(torch.randn(9, 4, requires_grad=True), layers).backward(incoming)
    assert torch.equal(incoming, before)


def test_two_backward_passes_give_the_same() -> None:
    layers = make(4, 6, 6)
    inputs = torch.randn(9, 4, requires_grad=True)
    out = fused_layers.forward(inputs, layers).square().sum()
    first = torch.autograd.grad(out, inputs, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(out, inputs)[0])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_is_not_hidden(bad: float) -> None:
    layers = make(4, 6)
    inputs = torch.randn(3, 4)
    inputs[1, 2] = bad
    out = fused_layers.forward(inputs, layers)
    assert out[1].isnan().all()
    assert out[[0, 2]].isfinite().all()
    out.sum().backward()
    assert not layers[0][0].weight.grad.isfinite().all()


def test_hundreds_of_thousands_of_rows_add_up_without_drift() -> None:
    layers = make(2, 4)
    inputs = torch.randn(200_000, 2)
    fused_layers.forward(inputs, layers).sum().backward()
    norm = layers[0][1]
    found, norm.bias.grad = norm.bias.grad, None
    with torch.no_grad():
        positive = reference(inputs, layers, None) > 0
    np.testing.assert_allclose(found, positive.sum(dim=0), rtol=1e-5)


class Folded(nn.Linear):
    def forward(self, inputs: Tensor) -> Tensor:
        return super().forward(inputs).abs()


def test_layers_that_somebody_changed_or_watches_run_as_they_are() -> None:
    encoder, inputs = MlpEncoder(4, (6, 5)), torch.randn(3, 4)
    before = encoder(inputs)
    seen: list[Tensor] = []
    handle = encoder.layers[3].register_forward_hook(lambda layer, given, out: seen.append(out))
    torch.testing.assert_close(encoder(inputs), before)
    assert len(seen) == 1
    handle.remove()
    encoder.layers[0].__class__ = Folded
    changed = encoder(inputs)
    assert not torch.allclose(changed, before, atol=1e-3)


def test_reduced_precision_and_several_threads_take_the_single_operations() -> None:
    layers, inputs = make(4, 6), torch.randn(3, 4)
    assert fused_layers.applies_to(inputs, layers)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not fused_layers.applies_to(inputs, layers)
    assert not fused_layers.applies_to(inputs.double(), layers)
    torch.set_num_threads(2)
    assert not fused_layers.applies_to(inputs, layers)


def test_a_layer_over_the_last_dimension() -> None:
    ((linear, norm),) = make(6, 5)
    inputs = torch.randn(4, 3, 6)
    alive = (torch.rand(4, 3) < 0.5).float()
    fused = fused_layers.rectified_linear(inputs, linear, norm, alive)
    torch.set_num_threads(2)
    single = fused_layers.rectified_linear(inputs, linear, norm, alive)
    assert fused.shape == single.shape == (4, 3, 5)
    torch.testing.assert_close(fused, single)
    assert not fused[alive == 0].any()
    without = fused_layers.rectified_linear(inputs, linear, nn.Identity())
    assert torch.equal(without, torch.relu(linear(inputs)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_neighbours_on_the_ring(dtype: torch.dtype) -> None:
    lanes = torch.randn(3, 16, 5).to(dtype).requires_grad_()
    weights = torch.randn(3, 16, 15).to(dtype)
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        around = fused_layers.with_neighbours(lanes)
        results.append((around, *torch.autograd.grad((around * weights).sum(), lanes)))
    (fused, gradient), (single, wanted) = results
    assert torch.equal(fused, single)
    assert torch.equal(fused[1, 0], torch.cat((lanes[1, 15], lanes[1, 0], lanes[1, 1])))
    torch.testing.assert_close(gradient, wanted)
