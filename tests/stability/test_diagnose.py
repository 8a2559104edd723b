"""``tempest-agent diagnose`` on runs that are whole, short, damaged, old, or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tempest_agent.cli import cli
from tempest_agent.runs.lock import RunLock
from tempest_agent.runs.metrics_log import CsvLog
from tempest_agent.stability.guard import REMEDY, Event
from tempest_agent.stability.guard_log import GuardLog, read_events

FIGURES = {
    "games": 1000.0, "loss": 1.0, "q_mean": 10.0, "q_max": 30.0, "q_min": -1.0,
    "reward_agent": 0.15, "share_agent": 1.0, "moves": 0.5, "grad_norm": 1.0, "return_bound": 1e3,
}  # fmt: skip


def make_run(folder: Path, values: list[float], steps: int = 10_000, bound: float = 1e3) -> Path:
    """A run of 10,000 decisions whose mean Q in each line is one of ``values``."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"run": {"steps": 10_000}}))
    (folder / "checkpoints" / f"step_{steps}.pt").touch()
    table = CsvLog(folder / "metrics.csv")
    for i, value in enumerate(values, 1):
        changes = {"updates": 100.0 * i, "q_mean": value, "q_max": max(value, 30.0)}
        changes["return_bound"] = bound
        table.write(500 * i, FIGURES | changes)
    return folder


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["diagnose", *arguments])


def diagnosis(folder: Path) -> dict[str, Any]:
    result = run(str(folder), "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("values", "verdict", "names"),
    [
        ([10.0] * 20, "healthy", []),
        ([10.0] * 15 + [60.0] * 5, "unhealthy", ["overestimation"]),
        ([60.0] * 5 + [10.0] * 15, "recovered", ["overestimation"]),
        ([10.0] * 2, "unknown", []),
        ([], "unknown", []),
    ],
)
def test_the_verdict(tmp_path: Path, values: list[float], verdict: str, names: list[str]) -> None:
    found = diagnosis(make_run(tmp_path / "run", values))
    assert found["verdict"] == verdict
    assert [symptom["name"] for symptom in found["symptoms"]] == names
    assert (found["state"], found["lines"]) == ("finished", len(values))


def test_evidence_has_figures_and_times(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [10.0] * 15 + [60.0] * 5)
    (symptom,) = diagnosis(folder)["symptoms"]
    assert "at 10,000 decisions q_mean=60 is 4.0 times 15" in symptom["evidence"]
    assert (symptom["first_step"], symptom["last_step"], symptom["lines"]) == (8_000, 10_000, 5)
    assert "learner.learning_rate" in symptom["remedy"]
    text = run(str(folder)).stdout
    for words in (symptom["name"], "evidence", "cause", "remedy", "verdict: unhealthy"):
        assert words in text


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [10.0] * 10, steps=5_000)
    file = folder / "metrics.csv"
    rows = file.read_text().splitlines()
    rows[3] = "what,is\0this"
    rows[5] = rows[5].replace("10", "ten", 1)
    file.write_text("\n".join(rows)[:-20])
    (folder / "guard.jsonl").write_text('{"step": 1}\nnonsense\n[]\n')
    found = diagnosis(folder)
    assert (found["lines"], found["damaged_lines"], found["verdict"]) == (7, 3, "healthy")
    assert any("3 damaged" in note and "metrics.csv" in note for note in found["notes"])
    assert any("3 damaged" in note and "guard.jsonl" in note for note in found["notes"])
    assert found["state"] == "broken off"
    file.write_bytes(b"\xff\xfe\0\0" * 50)
    found = diagnosis(folder)
    assert found["verdict"] == "unknown"
    assert any("no heading" in note for note in found["notes"])


def test_settings_of_other_versions_are_named_and_left_out(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [10.0] * 10, bound=1.0)
    settings = {
        "run": {"steps": 10_000},
        "learner": {"gamma": 0.5, "imitation": "none", "magic": 1},
        "aura": {"x": 1},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    found = diagnosis(folder)
    assert any("magic" in note for note in found["notes"])
    # With a gamma of 0.5 the rewards are worth 0.3.
    assert "overestimation" in [symptom["name"] for symptom in found["symptoms"]]
    (folder / "config.yaml").write_text("][")
    assert any("default settings" in note for note in diagnosis(folder)["notes"])


def test_a_running_run_is_read_and_left_alone(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [10.0] * 10, steps=5_000)
    lock = RunLock(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert diagnosis(folder)["state"] == "running"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    lock.release()
    assert diagnosis(folder)["state"] == "broken off"


def test_what_the_guard_did_is_told(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [10.0] * 10)
    log = GuardLog(folder)
    log.write(Event(500, REMEDY, "overestimation", "clamp", "targets are clamped to 75"))
    log.write(Event(900, REMEDY, "overestimation", "learning_rate", "learning rate times 0.5"))
    assert [event["remedy"] for event in diagnosis(folder)["guard"]] == ["clamp", "learning_rate"]
    assert "targets are clamped to 75" in run(str(folder)).stdout
    # A run that goes on from an earlier step makes the later events again.
    GuardLog(folder, resumed_at=600)
    assert [event["step"] for event in read_events(folder)[0]] == [500]


def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name, words in (("none", "no such folder"), ("file", "is a file"), ("folder", "no run")):
        result = run(str(tmp_path / name))
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
