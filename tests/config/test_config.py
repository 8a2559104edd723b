"""The configuration: sources, validation, messages, and that every setting is used."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import tempest_agent.config as module
from tempest_agent.config import (
    Config,
    ConfigError,
    apply_overrides,
    available,
    from_dict,
    load_config,
    settings,
    to_dict,
    without_auto,
)


def test_every_setting_has_a_sentence() -> None:
    for key, _, sentence in settings():
        assert sentence.endswith("."), key
        assert len(sentence) > 10, key
        assert sentence[0].isupper(), key


def test_round_trip_through_plain_types_and_yaml() -> None:
    config = load_config(None, ["network.hidden=[7, 8]", "learner.gamma=0.5"])
    tree = yaml.safe_load(yaml.safe_dump(to_dict(config)))
    assert from_dict(tree) == config


@pytest.mark.parametrize("name", available())
def test_shipped_configurations_are_valid(name: str) -> None:
    assert isinstance(load_config(name), Config)


def test_the_default_of_every_setting_is_a_configuration_too() -> None:
    plain = load_config()
    assert plain == Config()
    named = load_config("dqn")
    assert named == replace(plain, run=replace(plain.run, name="dqn"))


def test_the_recipes_differ_in_length_and_late_inputs_alone() -> None:
    """One recipe in three files, so that none of them is forgotten when it changes."""
    length = {
        "name", "steps", "log_interval", "checkpoint_interval", "capacity", "expert_ratio_steps",
        "epsilon_steps", "input_delay",
    }  # fmt: skip
    trees = [to_dict(without_auto(load_config(name))) for name in ("default", "quick", "champion")]
    for tree in trees[1:]:
        for section, values in tree.items():
            for key, value in values.items():
                assert key in length or value == trees[0][section][key], key


@pytest.mark.parametrize(
    ("overrides", "labels", "acts"),
    [
        ((), "plans", "policy"),
        (("teacher.name=planner",), "plans", "policy"),
        (("teacher.name=novice",), "action", "policy"),
        (("teacher.name=none",), "action", "values"),
        (("learner.imitation=none",), "action", "values"),
        (("game.frame_skip=2",), "action", "policy"),
        (("replay.storage=device",), "action", "policy"),
        (("network.policy_head=false",), "action", "values"),
        (("network.acts=values",), "plans", "values"),
        (("teacher.labels=action",), "action", "policy"),
    ],
)
def test_auto_follows_from_who_teaches(overrides: tuple[str, ...], labels: str, acts: str) -> None:
    config = without_auto(load_config("default", overrides))
    assert (config.teacher.labels, config.network.acts) == (labels, acts)
    assert without_auto(config) == config


@pytest.mark.parametrize("override", ["teacher.name=none", "learner.imitation=none"])
def test_a_policy_that_nothing_teaches_does_not_play(override: str) -> None:
    with pytest.raises(ConfigError, match=r"nothing teaches.*set network\.acts=values"):
        without_auto(load_config("default", [override, "network.acts=policy"]))


def test_a_file_and_overrides(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("learner:\n  gamma: 0.9\n  learning_rate: 1e-3\n")
    config = load_config(file, ["learner.gamma=0.8", "run.steps=3_000", "run.seed=1e3"])
    assert (config.learner.gamma, config.learner.learning_rate) == (0.8, 1e-3)
    assert (config.run.steps, config.run.seed) == (3000, 1000)
    assert load_config(str(file)).learner.gamma == 0.9


def test_a_single_number_is_a_list_of_one() -> None:
    assert apply_overrides(Config(), ["game.start_levels=9"]).game.start_levels == (9,)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("learner.gama=0.9", "did you mean 'learner.gamma'"),
        ("gamma=0.9", "did you mean 'learner.gamma'"),
        ("lerner.gamma=0.9", "did you mean 'learner'"),
        ("replay.gamma=0.9", "did you mean 'learner.gamma'"),
        ("learner.gamma", "no '='"),
        ("=3", "names no setting"),
        ("run.device=", "run.device is given no value"),
        ("run.threads=100000", "from 1 to 1024"),
        ("learner.gamma=fast", "must be a number"),
        ("learner.gamma=true", "must be a number"),
        ("learner.gamma=.nan", "must be a number"),
        ("learner.gamma=1.5", "from 0.0 to 0.99999"),
        ("learner.n_steps=2.5", "whole number"),
        ("learner.n_steps=0", "from 1 to 100"),
        ("run.steps=0", "at least 1"),
        ("run.steps=-5", "at least 1"),
        ("network.dueling=1", "true or false"),
        ("network.encoder=mlps", "did you mean 'mlp'"),
        ("network.hidden=[]", "at least one"),
        ("network.hidden=[64, x]", "whole number"),
        ("game.start_levels=[1, 100]", "from 1 to 99"),
        ("run.name=5", "text"),
        ("learner.loss=[", "not valid YAML"),
        ("teacher.segment_min=1000", "segment_max"),
        ("teacher.expert_ratio_floor=0.99", "can only fall"),
        ("exploration.epsilon_min=0.9", "swap"),
        ("replay.capacity=100", "set at least"),
        ("replay.learning_starts=1e9", "never start"),
        ("learner.gradient_accumulation_steps=1000", "empty"),
        ("learner.los=c51", "did you mean 'learner.loss'"),
        ("learner.loss=c52", "did you mean 'c51'"),
        ("learner.gradient_steps=10000000000", "from 1 to 100000"),
        ("learner.train_freq=10000000000", "from 1 to 100000"),
        ("run.seed=1_", "run.seed='1_' must be a whole number"),
    ],
)
def test_mistakes_are_named_in_one_line(override: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(None, [override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("network.spinner_interpolation=quadratic", "network.spinner_knots=2"), "at least 3"),
        (("learner.trace=retrace", "learner.loss=iqn"), "huber or squared"),
    ],
)
def test_settings_that_exclude_each_other(overrides: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_config(None, overrides)


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'quick'"):
        load_config("quik")
    with pytest.raises(ConfigError, match=r"no configuration file .*nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml")
    for text, words in (
        ("learner: [1", "not valid YAML"),
        ("- a\n- b\n", "sections"),
        ("learner: 5\n", "must hold settings"),
        ("learner:\n  gama: 1\n", "did you mean 'learner.gamma'"),
        ("run:\n  steps: 5\n  steps: 6\n", r"bad\.yaml .*line 3.*'steps' is given twice"),
        ("run:\n  steps: 5\nrun:\n  seed: 6\n", "'run' is given twice"),
        ("run:\n\tsteps: 5\n", "line 2.*indent with spaces"),
        ("run:\n  steps:\n", "run.steps is given no value"),
        ("run: !!python/object/apply:os.getcwd []\n", r"bad\.yaml .line 1.: settings have no tags"),
        ("run: " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("#" * 1_000_001, "too large"),
    ):
        file = tmp_path / "bad.yaml"
        file.write_text(text)
        with pytest.raises(ConfigError, match=words) as caught:
            load_config(file)
        assert len(str(caught.value)) < 300
    file.write_bytes(bytes(range(256)))
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        load_config(file)
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(str(tmp_path))


def test_a_file_may_begin_with_the_mark_of_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(b"\xef\xbb\xbfrun:\n  steps: 100\n")
    assert load_config(file).run.steps == 100


def test_every_setting_is_read_by_code() -> None:
    """A setting counts as read where code says ``section.name`` or ``anything.section.name``."""
    package = Path(module.__file__).parent.parent
    read: set[str] = set()
    for file in package.rglob("*.py"):
        if file.parent == Path(module.__file__).parent:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else (
                    owner.id if isinstance(owner, ast.Name) else ""
                )  # fmt: skip
                read.add(f"{name}.{node.attr}")
    # These modules keep a section under a name of their own.
    aliases = {"network": ("network", "settings"), "learner": ("learner",)}
    for key, _, _ in settings():
        section, _, name = key.partition(".")
        owners = aliases.get(section, (section,))
        assert any(f"{owner}.{name}" in read for owner in owners), f"nothing reads {key}"
