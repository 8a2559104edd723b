"""The policy head beside the values: what teaches it, who acts, and what stays as it was."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from replay_rows import make_batch

from tempest_agent.agent.checkpoints.checkpoint_files import read_checkpoint
from tempest_agent.agent.checkpoints.checkpoint_schema import check_content
from tempest_agent.agent.checkpoints.policy import load_policy, write_player
from tempest_agent.agent.checkpoints.schema_checks import MisfitError
from tempest_agent.agent.inference.deterministic_network import DeterministicNetwork
from tempest_agent.agent.inference.greedy import choose_to_act
from tempest_agent.agent.inference.inference_copy import InferenceCopy
from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.networks.actions import pair_mask, to_counts
from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.network_size import size_of
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import Config, ConfigError, load_config, to_dict
from tempest_agent.stability.metric_history import label_pull

CPU = torch.device("cpu")
SIZE = 7
LAYOUT = Layout(16 * SIZE + 5, lane_features=SIZE, lane_position=16 * SIZE + 2)
BASE = ("network.encoder=lanes", "network.value_head=lanes", "network.spinner_knots=63",
        "network.hidden=[24]", "network.lane_width=8", "learner.precision=float32")  # fmt: skip
HEAD = "network.policy_head=true"


def config_with(*more: str) -> Config:
    return load_config(None, [*BASE, *more])


def network_of(*more: str, layout: Layout = LAYOUT) -> QNetwork:
    """A network whose heads say more than the first weights do."""
    config = config_with(*more)
    torch.manual_seed(3)
    network = QNetwork(layout, config.network, config.learner).eval()
    with torch.no_grad():
        for head in (network.lane_head, network.policy_head):
            if head is not None:
                head.nodes.weight.mul_(30)
    return network


def codes_of(rows: int, layout: Layout = LAYOUT) -> np.ndarray:
    random = np.random.default_rng(0)
    codes = random.integers(-127, 128, (rows, layout.num_features))
    codes[:, : 16 * layout.lane_features : layout.lane_features] = 127
    codes[:, layout.lane_position] = (2 * random.integers(0, 16, rows) - 15) * 8
    return codes.astype(np.int8)


def labelled_batch(rows: int = 16, labelled: bool = True):  # type: ignore[no-untyped-def]
    batch = make_batch(rows, LAYOUT)
    return batch._replace(
        codes=codes_of(rows), next_codes=codes_of(rows), labelled=np.full(rows, labelled)
    )


def gradients(learner: Learner) -> dict[str, float]:
    """Norm of the gradient of each part of the network."""
    return {
        name: sum(float(p.grad.norm()) for p in part if p.grad is not None)
        for name, part in learner.online.parts().items()
    }


def gradients_after(batch, imitation: float, *more: str) -> dict[str, float]:  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    learner = Learner(LAYOUT, config_with("network.spinner_head=knots", *more), CPU)
    learner._accumulate(batch, imitation, 1)
    return gradients(learner)


def test_labels_teach_the_policy_and_returns_the_values() -> None:
    unweighted = labelled_batch()._replace(weights=np.zeros(16, np.float32))
    by_labels = gradients_after(unweighted, 1.0, HEAD)
    assert by_labels["policy"] > 0
    assert by_labels["encoder"] > 0
    assert by_labels["value"] == 0
    by_returns = gradients_after(labelled_batch(), 0.0, HEAD)
    assert by_returns["value"] > 0
    assert by_returns["encoder"] > 0
    assert by_returns["policy"] == 0
    without = gradients_after(unweighted, 1.0)
    assert "policy" not in without
    assert without["value"] > 0


def test_the_values_learn_from_returns_as_they_do_without_a_policy() -> None:
    """Same first weights, same gradient of the values' head where no label is there."""
    torch.manual_seed(0)
    plain = Learner(LAYOUT, config_with(), CPU)
    torch.manual_seed(0)
    both = Learner(LAYOUT, config_with(HEAD), CPU)
    batch = labelled_batch(labelled=False)
    for learner in (plain, both):
        learner._accumulate(batch, 0.5, 1)
    theirs = dict(both.online.named_parameters())
    for name, ours in plain.online.named_parameters():
        assert torch.equal(ours, theirs[name])
        assert torch.equal(ours.grad, theirs[name].grad)  # type: ignore[arg-type]


def test_the_policy_learns_the_labels_and_says_how_well() -> None:
    learner = Learner(LAYOUT, config_with(HEAD, "network.acts=policy"), CPU)
    batch = labelled_batch(32)._replace(zap_legal=np.ones(32, np.bool_))
    learner.update(batch, 1e-2, 1.0)
    before = learner.metrics.read()
    for _ in range(60):
        learner.metrics.read()
        learner.update(batch, 1e-2, 1.0)
    after = learner.metrics.read()
    assert before["policy_entropy"] == pytest.approx(np.log(4 * 63), abs=0.1)
    assert after["policy_entropy"] < 4
    assert after["policy_agreement"] > before["policy_agreement"] + 0.3
    assert after["imitation_loss"] < before["imitation_loss"] - 1
    assert after["grad_norm_policy"] > 0
    spin, buttons = learner.act(batch.codes, np.ones(32, np.bool_))
    assert (buttons == batch.label_buttons).mean() > 0.7
    assert (np.abs(spin.astype(int) - batch.label_spin) < 8).mean() > 0.7


@pytest.mark.parametrize("acts", ["values", "policy"])
def test_exact_play_is_that_of_the_head_that_acts(acts: str) -> None:
    network = network_of(HEAD, f"network.acts={acts}")
    codes, legal = codes_of(300), np.arange(300) % 2 == 0
    spin, buttons = DeterministicNetwork(network).act(codes, legal)
    with torch.no_grad():
        heads = network(torch.from_numpy(codes).float() / 127)
        wanted = (heads.values if acts == "values" else heads.policy).numpy()
        other = (heads.policy if acts == "values" else heads.values).numpy()
    for numbers in (wanted, other):
        numbers[~legal, 2:] = -np.inf
    chosen = wanted[np.arange(300), buttons, spin.astype(int) + 31]
    np.testing.assert_allclose(chosen, wanted.max(axis=(1, 2)), atol=1e-5)
    assert (other.reshape(300, -1).argmax(1) != buttons * 63 + spin + 31).mean() > 0.5
    assert (buttons[~legal] < 2).all()
    with torch.no_grad():
        choice = choose_to_act(
            network,
            InferenceCopy(network, None),
            torch.from_numpy(codes).float() / 127,
            pair_mask(torch.from_numpy(legal)),
        )
    same = (choice.pair.numpy() == buttons) & (to_counts(choice.position).numpy() == spin)
    assert same.mean() > 0.99


def test_passes_that_need_one_head_evaluate_one() -> None:
    network = network_of(HEAD, "network.acts=policy")
    observation = torch.from_numpy(codes_of(8)).float() / 127
    fast = InferenceCopy(network, None)
    assert fast(observation).policy is None
    with torch.no_grad():
        both = network(observation)
    assert torch.equal(fast.preferences(observation).logits, both.policy)
    assert torch.equal(fast(observation).values, both.values)
    alone = network_of()
    assert alone.state_dict().keys() < network.state_dict().keys()
    for name, value in alone.state_dict().items():
        assert torch.equal(network.state_dict()[name], value), "the policy begins last"
    both_size, value_size = (size_of(each, LAYOUT.num_features) for each in (network, alone))
    more = sum(p.numel() for p in network.parts()["policy"])
    assert both_size.parameters == value_size.parameters + more
    assert both_size.flops > value_size.flops


def test_a_player_of_a_policy_is_written_and_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    settings = (HEAD, "network.acts=policy", "network.avoids_deadly=true")
    layout = dataclasses.replace(
        LAYOUT, num_features=LAYOUT.num_features + 16 * 16, forecast_features=16
    )
    network = network_of(*settings, layout=layout)
    about = {
        "config": to_dict(config_with(*settings)),
        "layout": dataclasses.asdict(layout),
        "step": 7,
    }
    path = tmp_path / "policy.pt"
    write_player(path, about, network.state_dict())
    codes, legal = codes_of(50, layout), np.ones(50, np.bool_)
    for theirs, ours in zip(
        load_policy(path).act(codes, legal),
        DeterministicNetwork(network).act(codes, legal),
        strict=True,
    ):
        np.testing.assert_array_equal(theirs, ours)
    content = read_checkpoint(path)
    for change, value in (("forecast_features", 0), ("pending_spin", 10**6)):
        with pytest.raises(MisfitError, match="layout"):
            check_content(content | {"layout": content["layout"] | {change: value}})
    weights = dict(content["learner"]["average"])
    del weights["policy_head.nodes.bias"]
    with pytest.raises(MisfitError, match="weights"):
        check_content(content | {"learner": {"average": weights}})


def test_a_policy_takes_the_pull_of_the_labels_off_the_values() -> None:
    assert label_pull(config_with(), has_teacher=True) > 1
    assert label_pull(config_with(HEAD), has_teacher=True) == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((HEAD, "network.value_head=knots"), r"network\.value_head=lanes"),
        (("network.acts=policy",), r"network\.policy_head=true"),
    ],
)
def test_what_a_policy_needs_is_said(changes: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config_with(*changes)
