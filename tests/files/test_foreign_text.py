"""Texts that others wrote: YAML, JSON, CSV and trees that would explode, lie, or never end."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import example, given
from hypothesis import strategies as st

from tempest_agent.cli import cli
from tempest_agent.config import Config, ConfigError, apply_overrides, from_dict, load_config
from tempest_agent.config import settings as all_settings
from tempest_agent.config.yaml_files import parse_yaml
from tempest_agent.errors import LONGEST_MESSAGE, UserError
from tempest_agent.files.regular_files import read_json, read_regular, read_table
from tempest_agent.plots.training_curves import read_curves
from tempest_agent.runs.metrics_log import CsvLog
from tempest_agent.stability.guard_log import read_events
from tempest_agent.sweep.plan import keep_plan, load_variants, make_plan

BOMB = "v: [&a [x,x,x,x,x,x,x,x,x,x],&b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a],&c [*b,*b,*b,*b,*b,*b]]\n"


def one_line(error: BaseException) -> str:
    text = str(error)
    assert len(text) <= LONGEST_MESSAGE
    assert text.isprintable()
    return text


# -- YAML -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "line 1.*no anchors"),
        ("a: 1\nb: *a\n", "line 2.*no aliases"),
        ("a: &a\n  b: *a\n", "no anchors"),
        ("a: !!binary aGk=\n", "no tags"),
        ("a: !!set {x, y}\n", "no tags"),
        ("a: !!bool x\n", "no tags"),
        ("a: !!int ''\n", "no tags"),
        ("a: !!timestamp 2024-01-01\n", "no tags"),
        ("? [a, b]\n: c\n", "unhashable key"),
        ("a: 1\n---\nb: 1\n", "another document"),
        ("- x\n" * 20_001, "more than 20,000 values"),
        ("- " * 100, "nested too deeply"),
        ("a:\n" + "".join(" " * i + "b:\n" for i in range(1, 50)), "nested too deeply"),
        ("a: \x07\n", "special characters"),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_yaml_that_settings_do_not_need_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_yaml("it", text)
    assert len(one_line(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("010", "010"), ("0x1F", "0x1F"), ("0b11", "0b11"), ("1:30:00", "1:30:00"),
        ("1:30.5", "1:30.5"), ("2024-01-01", "2024-01-01"), ("2020-13-01", "2020-13-01"),
        ("yes", "yes"), ("NO", "NO"), ("on", "on"), ("=", "="), ("<<", "<<"), ("1e3", "1e3"),
        ("9" * 41, "9" * 41), ("1_000", 1000), ("1_", "1_"), ("_1", "_1"), ("1__0", "1__0"),
        ("-_1", "-_1"), ("1_000.000_5", 1000.0005), ("1_.5", "1_.5"), ("1._5", "1._5"),
        (".5_", ".5_"), ("1.5_", "1.5_"), ("-5", -5), ("+5", 5), ("0", 0), ("1.5", 1.5),
        (".5", 0.5), ("1.", 1.0), ("1.0e-3", 0.001), ("true", True), ("False", False),
        ("null", None), ("~", None), ("", None), ("'5'", "5"),
    ],
)  # fmt: skip
def test_plain_yaml_is_read_as_it_shows(text: str, value: Any) -> None:
    read = parse_yaml("it", f"a: {text}\n")["a"]
    assert (read, type(read)) == (value, type(value))


NO_NUMBERS = (
    "010", "'010'", "0x1F", "0b11", "1:30:00", "1:30.5", "2024-01-01", "1" * 70, "9" * 5000,
    "'1_x'", "'_1'", "yes", "[]", "{}", "1_", "_1", "1__0", "+1_", "1_.", "1._5", "1.5_", "1_e3",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("key", ["run.seed", "run.steps", "learner.gamma"])
def test_what_is_another_number_to_some_is_no_number(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        load_config(None, [f"{key}={text}"])
    one_line(caught.value)


@pytest.mark.parametrize("name", ["010", "1:30:00", "2024-01-01", "no", "on", "0x1F"])
def test_text_settings_get_what_was_written(name: str) -> None:
    assert apply_overrides(Config(), [f"run.name={name}"]).run.name == name


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("Off", False), ("true", True)])
def test_switches_take_yes_and_no(text: str, value: bool) -> None:
    assert apply_overrides(Config(), [f"run.save_replay={text}"]).run.save_replay is value


KEYS = [key for key, _, _ in all_settings()]
SECTIONS = sorted({key.partition(".")[0] for key in KEYS})
YAML_TEXTS = st.text(
    st.sampled_from(list("ab&*!|>-?:,[]{}#'\"%@` \n\t.0123456789exn_~<=\x85\u202e"))
)
ITEMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.builds(lambda: 10**5000), st.builds(lambda: {1, 2}), st.builds(object), st.complex_numbers(),
)  # fmt: skip
TREES = st.recursive(
    ITEMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
NAMES = st.sampled_from([key.partition(".")[2] for key in KEYS]) | st.text() | st.integers()


@given(YAML_TEXTS)
@example(BOMB)
def test_every_yaml_text_is_read_or_refused_in_one_line(text: str) -> None:
    for read in (
        lambda: parse_yaml("it", text),
        lambda: load_config(None, [f"run.name={text}"]),
        lambda: load_config(None, [text]),
    ):
        try:
            read()
        except ConfigError as error:
            one_line(error)


@given(TREES | st.dictionaries(st.sampled_from(SECTIONS), st.dictionaries(NAMES, TREES) | TREES))
def test_every_tree_is_a_configuration_or_refused_in_one_line(tree: Any) -> None:
    try:
        assert isinstance(from_dict(tree), Config)
    except ConfigError as error:
        one_line(error)


@pytest.mark.parametrize("key", KEYS)
def test_no_setting_is_written_out_whole(key: str) -> None:
    section, _, name = key.partition(".")
    bomb: Any = "x"
    for _ in range(60):
        bomb = [bomb, bomb]
    endless: dict[Any, Any] = {}
    endless["it"] = endless
    for value in (bomb, endless, [bomb], 10**5000, [1] * 2000, float("nan"), {1: 2}):
        with pytest.raises(ConfigError, match=key) as caught:
            from_dict({section: {name: value}})
        assert len(one_line(caught.value)) < 500


# -- files ------------------------------------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def a_run(folder: Path) -> Path:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"run": {"steps": 10_000}}))
    table = CsvLog(folder / "metrics.csv")
    for i in range(1, 6):
        table.write(500 * i, {"updates": 100.0 * i, "q_mean": 10.0, "loss": 1.0})
    return folder


def diagnosis(folder: Path) -> dict[str, Any]:
    result = run("diagnose", str(folder), "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    plain = run("diagnose", str(folder))
    assert plain.exit_code == 0, plain.output
    assert plain.stdout.replace("\n", "").isprintable()
    assert all(len(note) <= LONGEST_MESSAGE + 100 for note in found["notes"])
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("name", ["metrics.csv", "config.yaml", "guard.jsonl", "run.json"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_nobody_waits_for_what_is_no_file(tmp_path: Path, name: str, kind: str) -> None:
    folder = a_run(tmp_path / "run")
    path = folder / name
    path.unlink(missing_ok=True)
    {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
    }[kind]()
    notes = diagnosis(folder)["notes"]
    words = f"is not a regular file but a {kind}"
    assert name == "run.json" or any(words in note for note in notes)
    with pytest.raises(UserError, match=words):
        read_regular(path, 100)
    if name == "config.yaml":
        with pytest.raises(ConfigError, match="is a folder" if kind == "folder" else words):
            load_config(path)
        with pytest.raises(UserError, match=words):
            load_variants(str(path))
    if name == "metrics.csv":
        with pytest.raises(UserError, match=words):
            read_curves(folder)
        # A run that is resumed keeps it under another name.
        CsvLog(path, resumed_at=100).write(200, {"loss": 1.0})
        assert path.is_file()


def test_files_have_a_largest_size(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert read_regular(file, 100) == b"x" * 100
    with pytest.raises(UserError, match="too large: more than 99 bytes"):
        read_regular(file, 99)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 99)


def test_a_field_without_end_spoils_its_own_line_only(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    file = folder / "metrics.csv"
    heading, *rows = file.read_text().splitlines()
    rows[1] = "9" * 200_000 + rows[1][rows[1].index(",") :]
    rows[3] = '"' + rows[3]
    file.write_text("\n".join([heading, *rows]) + "\n")
    found = diagnosis(folder)
    assert (found["lines"], found["damaged_lines"]) == (3, 2)
    assert len([*read_table(file)]) == 6
    assert list(read_curves(folder)["steps"]) == [500, 1500, 2500]


@pytest.mark.parametrize("steps", ["nan", "inf", "-1", "1e300", "9" * 400, ""])
def test_lines_at_no_step_are_damaged(tmp_path: Path, steps: str) -> None:
    folder = a_run(tmp_path / "run")
    with (folder / "metrics.csv").open("a") as file:
        file.write(f"{steps},1,1,1\n")
    assert diagnosis(folder)["damaged_lines"] == 1


FIGURES = st.sampled_from(["nan", "inf", "-inf", "1e308", "-1e308", "0", "1", "1e-308"])


@given(st.lists(st.lists(FIGURES, min_size=8, max_size=8), min_size=4, max_size=8))
def test_figures_of_any_size_are_diagnosed(rows: list[list[str]]) -> None:
    from tempest_agent.stability.diagnosis import examine

    names = ("updates", "loss", "q_mean", "q_max", "grad_norm", "reward_agent", "return_bound",
             "target_age")  # fmt: skip
    lines = [
        {"steps": 500.0 * (i + 1), **dict(zip(names, map(float, row), strict=True))}
        for i, row in enumerate(rows)
    ]
    for finding in examine(lines, Config()):
        assert len(finding.evidence) < 500
        json.dumps(finding.to_dict(), allow_nan=False)


SETTINGS = (
    BOMB, "run: {steps: " + "9" * 5000 + "}\n", "a: 2024-01-01\n", "run: !!set {a}\n",
    "1: {2: 3}\n", "- a\n", "x: 1\n" * 2,
)  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_of_somebody_else_are_diagnosed(tmp_path: Path, text: str) -> None:
    folder = a_run(tmp_path / "run")
    (folder / "config.yaml").write_text(text)
    assert len(json.dumps(diagnosis(folder)["notes"])) < 5_000


def test_what_the_guard_is_said_to_have_done_is_printable(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "run")
    event = {
        "step": 5,
        "kind": "remedy",
        "symptom": "\x1b]0;x\x07",
        "remedy": "",
        "detail": "y" * 10**5,
    }
    good = json.dumps(event)
    bad = [
        json.dumps({**event, "step": 10**30}), json.dumps({**event, "step": "5"}),
        json.dumps({**event, "detail": {"a": 1}}), good.replace("5,", "NaN,", 1),
        good.replace("5,", "9" * 5000 + ",", 1), "[" * 100_000, "[]", "{}",
    ]  # fmt: skip
    (folder / "guard.jsonl").write_text("\n".join([good, *bad]) + "\n")
    assert read_events(folder) == ([event], len(bad))
    assert len(diagnosis(folder)["guard"]) == 1
    assert len(run("diagnose", str(folder)).stdout) < 2_000


@pytest.mark.parametrize(
    "text", ["[]", "5", "NaN", '{"a": ' + "9" * 5000 + "}", "[" * 10**5, "\xff"]
)
def test_json_files_of_others_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match="is damaged") as caught:
        read_json(file)
    one_line(caught.value)


VARIANTS = (
    BOMB, "a: " + "9" * 5000, "a: 2024-01-01", "a: {1: 2}", "1: 2", "a: !!set {}",
    "a: {learner.gamma: {x: 1}}", "a: {learner.gamma: [0.9]}", "a: {}",
)  # fmt: skip


@pytest.mark.parametrize("text", VARIANTS)
def test_lists_of_variants_of_others_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "variants.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        make_plan(Config(), load_variants(str(file)), 2, 3, 500)
    assert len(one_line(caught.value)) < 600


GAMES = "\nepisodes: 3\nmax_ticks: 500"
PLANS = (
    BOMB, "base: 5", "base: {}\nvariants: {a: 5}" + GAMES, "base: {run: 5}\nvariants: {}" + GAMES
)  # fmt: skip


@pytest.mark.parametrize("text", PLANS)
def test_a_plan_of_somebody_else_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        keep_plan(tmp_path, make_plan(Config(), {}, 2, 3, 500))
    one_line(caught.value)
    assert (tmp_path / "sweep.yaml").read_text() == text
