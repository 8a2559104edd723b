"""One rule for all defaults of ``HybridDQN``: they hold for every setting that is not named."""

from __future__ import annotations

import ast
import dataclasses
import re
import typing
from collections.abc import Mapping
from typing import Any

import pytest
from places import ROOT
from target_game import TargetGame

from tempest_agent import HybridDQN
from tempest_agent.agent.dqn.sb3_arguments import DEFAULTS, KEYS, for_steps
from tempest_agent.config import Config, from_dict, load_config, settings, to_dict
from tempest_agent.errors import UserError

STEPS = 24_000
SAID_ELSEWHERE = {"run.steps": "learn", "run.num_envs": "env", "network.encoder": "policy"}
NEEDS_ANOTHER = {
    "learner.loss": "learner.target_clip",
    "network.value_head": "network.encoder",
    "network.policy_head": "network.value_head",
    "network.acts": "network.policy_head",
    "teacher.labels": "network.policy_head",
    "exploration.epsilon_max": "exploration.epsilon_min",
    "exploration.epsilon_min": "exploration.epsilon_max",
    "exploration.epsilon_start": "exploration.epsilon_floor",
    "teacher.expert_ratio_start": "teacher.expert_ratio_floor",
}
"""Settings of which a value may be refused, in one line that names another one."""


def resolved(config: Any = None, **arguments: Any) -> dict[str, Any]:
    """Every setting as a run of ``STEPS`` decisions has it."""
    model = HybridDQN(
        "MlpQPolicy", TargetGame(), config=config, _init_setup_model=False, **arguments
    )
    tree = to_dict(for_steps(model.config, STEPS, model.exploration_fraction), local=True)
    return {
        f"{section}.{key}": value for section, kept in tree.items() for key, value in kept.items()
    }


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Every setting where none is named."""
    return resolved()


def others(key: str, default: Any) -> list[Any]:
    """Values other than ``default`` that the setting may have."""
    section, name = key.split(".")
    kind = typing.get_type_hints(Config)[section]
    limits = {entry.name: entry.metadata for entry in dataclasses.fields(kind)}[name]
    if limits["choices"]:
        return [choice for choice in limits["choices"] if choice != default]
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, str):
        return [default + "x"]
    if isinstance(default, list):
        return [[*default, *default]]
    low, high = limits["low"], limits["high"]
    near = [default + 1, default - 1] if isinstance(default, int) else [default / 2, default + 0.01]
    fits = [v for v in near if v != default and (low is None or v >= low)]
    return [v for v in fits if high is None or v <= high]


@pytest.mark.parametrize("key", [key for key, _, _ in settings() if key not in SAID_ELSEWHERE])
def test_a_setting_that_is_named_leaves_all_others_alone(key: str, plain: dict[str, Any]) -> None:
    section, name = key.split(".")
    taken, refused = [], []
    for value in others(key, plain[key]):
        try:
            got = resolved({section: {name: value}})
        except UserError as error:
            refused.append(str(error))
            continue
        assert {k for k in plain if got[k] != plain[k]} == {key}
        assert got[key] == value
        taken.append(value)
    assert taken or key in NEEDS_ANOTHER
    assert all(NEEDS_ANOTHER[key] in words and "\n" not in words for words in refused)


ARGUMENTS: dict[str, Any] = {
    "learning_rate": 1e-3, "buffer_size": 5_000, "learning_starts": 50, "batch_size": 32,
    "tau": 0.5, "gamma": 0.9, "train_freq": 4, "gradient_steps": 2, "n_steps": 3,
    "target_update_interval": 7, "exploration_fraction": 0.3, "exploration_initial_eps": 0.8,
    "exploration_final_eps": 0.1, "max_grad_norm": 2.5, "seed": 11, "device": "cpu",
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_that_is_given_leaves_all_others_alone(
    name: str, plain: dict[str, Any]
) -> None:
    wanted = {
        "learning_rate": {"learner.learning_rate"},
        "exploration_fraction": {"exploration.epsilon_steps"},
        "exploration_final_eps": {"exploration.epsilon_max", "exploration.epsilon_min"},
        "device": {"run.device"},
    } | {name: {".".join(place)} for name, place in KEYS.items()}
    got = resolved(**{name: ARGUMENTS[name]})
    assert {key for key in plain if got[key] != plain[key]} == wanted[name]


def test_an_empty_tree_is_nothing_given(plain: dict[str, Any]) -> None:
    assert resolved({}) == resolved({"learner": {}}) == plain
    assert plain["exploration.epsilon_steps"] == STEPS // 10


def test_what_is_named_wins_whichever_way() -> None:
    assert resolved({"exploration": {"epsilon_steps": 77}})["exploration.epsilon_steps"] == 77
    both = resolved({"exploration": {"epsilon_steps": 77}}, exploration_fraction=0.5)
    assert both["exploration.epsilon_steps"] == STEPS // 2
    cosine = {"learner": {"learning_rate_schedule": "cosine"}}
    assert resolved(cosine, learning_rate=1e-3)["learner.learning_rate_schedule"] == "cosine"
    assert resolved(cosine, learning_rate=1e-3)["learner.learning_rate"] == 1e-3


@pytest.mark.parametrize("whole", [Config(), load_config("smoke"), "smoke", "dqn"])
def test_a_whole_configuration_names_everything(whole: Config | str) -> None:
    config = load_config(whole) if isinstance(whole, str) else whole
    expected = {f"{s}.{k}": v for s, tree in to_dict(config).items() for k, v in tree.items()}
    assert resolved(whole) == expected | {"run.steps": STEPS, "run.num_envs": 1}


def test_a_trained_model_explores_as_little_in_the_end_with_a_tree_as_without() -> None:
    for tree in ({}, {"run": {"log_interval": 500}}):
        model = HybridDQN("MlpQPolicy", TargetGame(), config=tree, learning_starts=300)
        model.learn(40)
        assert model.exploration_rate == pytest.approx(0.05)


# --- the support of a distribution --------------------------------------------------------------


def test_bins_without_ends_are_refused() -> None:
    for refused in (
        lambda: HybridDQN("MlpQPolicy", TargetGame(), config={"learner": {"loss": "c51"}}),
        lambda: load_config("unstable", ["learner.loss=c51"]),
    ):
        with pytest.raises(UserError, match=r"set learner\.target_clip") as caught:
            refused()
        assert "\n" not in str(caught.value)
    assert from_dict({"learner": {"loss": "c51"}}).learner.target_clip == 100.0


def test_quantiles_need_no_ends_and_rewards_of_any_size_are_not_clamped() -> None:
    model = HybridDQN("MlpQPolicy", TargetGame(), config={"learner": {"loss": "iqn"}})
    assert model.config.learner.target_clip == 0.0
    assert DEFAULTS["learner"]["target_clip"] == 0.0


def test_the_tree_of_the_documentation_is_one_that_works() -> None:
    text = (ROOT / "docs" / "learner.md").read_text(encoding="utf-8")
    trees = [ast.literal_eval(found) for found in re.findall(r"`(\{\"learner\".*?\}\})`", text)]
    assert any(tree["learner"].get("loss") == "c51" for tree in trees)
    for tree in trees:
        assert isinstance(tree, Mapping)
        HybridDQN("MlpQPolicy", TargetGame(), config=tree).learn(4)
