"""What a sweep is made of, and which mistakes in it are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tempest_agent.config import available, load_config
from tempest_agent.errors import UserError
from tempest_agent.sweep.plan import (
    Plan,
    available_variants,
    keep_plan,
    load_variants,
    make_plan,
    parse_variant,
)

BASE = load_config("smoke")


def plan(variants: dict[str, dict[str, Any]], seeds: int = 2, episodes: int = 3) -> Plan:
    return make_plan(BASE, variants, seeds, episodes, 500)


def test_variants_differ_from_the_base_in_what_they_say_only() -> None:
    made = plan({"low": {"learner.gamma": 0.9}, "wide": {"network.hidden": [64, 32]}})
    assert [variant.name for variant in made.variants] == ["base", "low", "wide"]
    base, low, wide = (variant.config for variant in made.variants)
    assert base == BASE
    assert (low.learner.gamma, low.network) == (0.9, BASE.network)
    assert (wide.network.hidden, wide.learner) == ((64, 32), BASE.learner)
    assert made.seeds == (BASE.run.seed, BASE.run.seed + 1)
    assert made.variants[2].described() == "network.hidden=[64, 32]"


@pytest.mark.parametrize(
    ("text", "name", "changes"),
    [
        ("a:learner.gamma=0.9", "a", {"learner.gamma": 0.9}),
        (
            "a:learner.loss=c51,learner.n_steps=3",
            "a",
            {"learner.loss": "c51", "learner.n_steps": 3},
        ),
        (
            "a:network.hidden=[64,32], learner.double_q=false",
            "a",
            {"network.hidden": [64, 32], "learner.double_q": False},
        ),
    ],
)
def test_a_variant_as_text(text: str, name: str, changes: dict[str, Any]) -> None:
    assert parse_variant(text) == (name, changes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learner.gamma=0.9", "has no name"),
        ("a", "has no name"),
        ("a:learner.gamma", "has no '='"),
        ("a:learner.loss=[", "not valid YAML"),
    ],
)
def test_mistakes_in_the_text_of_a_variant(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_variant(text)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("a", {"learner.gama": 0.9}, "variant 'a': .*did you mean 'learner.gamma'"),
        ("a", {"gamma": 0.9}, "did you mean 'learner.gamma'"),
        ("a", {"learner.loss": "c52"}, "did you mean 'c51'"),
        ("a", {"learner.gamma": BASE.learner.gamma}, "changes nothing"),
        ("a", {}, "changes nothing"),
        ("a", {"run.seed": 5}, "same seeds"),
        ("base", {"learner.gamma": 0.9}, "cannot be named 'base'"),
        ("../up", {"learner.gamma": 0.9}, "cannot be a folder's"),
        ("a/b", {"learner.gamma": 0.9}, "cannot be a folder's"),
        ("", {"learner.gamma": 0.9}, "cannot be a folder's"),
    ],
)
def test_variants_that_cannot_be(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        plan({name: changes})


@pytest.mark.parametrize("name", available_variants())
def test_shipped_variants_fit_the_configuration_of_their_name(name: str) -> None:
    assert name in available()
    variants = load_variants(name)
    made = make_plan(load_config(name), variants, 3, 16, 10_000)
    assert len(made.variants) == len(variants) + 1


def test_files_of_variants(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("low: {learner.gamma: 0.9}\n")
    assert load_variants(str(file)) == {"low": {"learner.gamma": 0.9}}
    for text, words in (
        ("low: [", "not valid YAML"),
        ("- low\n", "must hold variants"),
        ("", "must hold variants"),
        ("low: 0.9\n", "variant 'low' must hold settings"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=words):
            load_variants(str(file))
    with pytest.raises(UserError, match="did you mean 'ablation'"):
        load_variants("ablaton")
    with pytest.raises(UserError, match=r"no file of variants .*nowhere\.yaml"):
        load_variants("nowhere.yaml")


def test_a_plan_may_change_in_which_variants_and_seeds_it_has(tmp_path: Path) -> None:
    keep_plan(tmp_path, plan({"low": {"learner.gamma": 0.9}}))
    keep_plan(tmp_path, plan({"c51": {"learner.loss": "c51"}}, seeds=3))
    stored = yaml.safe_load((tmp_path / "sweep.yaml").read_text())
    assert stored["variants"] == {
        "low": {"learner.gamma": 0.9},
        "c51": {"learner.loss": "c51"},
    }
    assert stored["seeds"] == [1, 2, 3]
    # What "low" means here is remembered.
    with pytest.raises(UserError, match="another sweep"):
        keep_plan(tmp_path, plan({"low": {"learner.gamma": 0.8}}))


def test_another_plan_in_the_folder_is_refused_and_stays(tmp_path: Path) -> None:
    keep_plan(tmp_path, plan({"low": {"learner.gamma": 0.9}}))
    before = (tmp_path / "sweep.yaml").read_bytes()
    other_base = make_plan(load_config("smoke", ["learner.n_steps=2"]), {}, 2, 3, 500)
    for other, words in (
        (plan({"low": {"learner.gamma": 0.8}}), "variant low=learner.gamma=0.9 where this has"),
        (plan({}, episodes=4), "episodes=3 where this has 4"),
        (other_base, "learner.n_steps=5 where this has 2"),
    ):
        with pytest.raises(UserError, match=words):
            keep_plan(tmp_path, other)
    assert (tmp_path / "sweep.yaml").read_bytes() == before


def test_folders_that_are_no_sweep_or_damaged_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="no sweep"):
        keep_plan(tmp_path, plan({}))
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "sweep.yaml").write_text("base: [")
    with pytest.raises(UserError, match="damaged"):
        keep_plan(tmp_path, plan({}))


def test_paths_stay_right_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("roms").mkdir()
    made = make_plan(load_config("smoke", ["game.rom_path=roms"]), {}, 1, 1, 1)
    assert made.base.config.game.rom_path == str(tmp_path / "roms")
    assert made.base.config.game.mame_path == ""
