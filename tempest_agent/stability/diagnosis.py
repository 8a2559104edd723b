"""Diagnose a run: apply the stability guard's detectors to its logged metrics.

Reads any run directory, also of a run that is still running, was interrupted, had no guard, or has
damaged files; what could not be read is reported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tempest_agent.config import Config, ConfigError, forget_local, from_dict
from tempest_agent.config.yaml_files import parse_yaml, read_text
from tempest_agent.envs.messages import printable
from tempest_agent.errors import UserError, one_line
from tempest_agent.runs.file_names import (
    CHECKPOINT_FOLDER,
    CONFIG_FILE,
    GUARD_FILE,
    METRICS_FILE,
    RUN_FILE,
    STEPS,
    checkpoint_step,
)
from tempest_agent.runs.lock import is_locked
from tempest_agent.runs.metrics_reader import read_metrics
from tempest_agent.stability.guard_log import read_events
from tempest_agent.stability.metric_history import MetricHistory, RunFacts
from tempest_agent.stability.symptoms import SYMPTOMS, detect

HEALTHY, RECOVERED, UNHEALTHY, UNKNOWN = "healthy", "recovered", "unhealthy", "unknown"
MOST_NOTES = 20
LONGEST_EVIDENCE = 300
FEWEST_LINES = 3
"""Least log rows with updates for a verdict."""

log = logging.getLogger("tempest_agent")


@dataclass
class Finding:
    """One symptom over the whole run."""

    name: str
    evidence: str
    """Values and step of the last log row that shows it."""
    first_step: int
    last_step: int
    lines: int
    present: bool
    """Whether the last log rows show it."""

    def to_dict(self) -> dict[str, Any]:
        spec = SYMPTOMS[self.name]
        return {**vars(self), "cause": spec.cause, "remedy": spec.advice}


@dataclass
class Diagnosis:
    """The result of ``tempest-agent diagnose``."""

    run: str
    state: str
    """``finished``, ``running`` or ``broken off``."""
    steps: int
    lines: int
    damaged_lines: int
    verdict: str
    summary: str
    findings: list[Finding]
    guard: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        shown = {name: value for name, value in vars(self).items() if name != "findings"}
        return shown | {"symptoms": [finding.to_dict() for finding in self.findings]}


def diagnose(run: Path) -> Diagnosis:
    """Diagnose the run in the folder ``run``.

    Raises:
        UserError: no such folder, or no run in it.
    """
    _check(run)
    notes: list[str] = []
    config = _config(run, notes)
    lines, damaged = read_metrics(run / METRICS_FILE, notes)
    if damaged:
        notes.append(f"{damaged} damaged or unfinished lines of {METRICS_FILE} were left out")
    events = _events(run, notes)
    findings = examine(lines, config)
    verdict, summary = _verdict(lines, findings, config)
    steps = int(lines[-1][STEPS]) if lines else 0
    state, reached = _state(run, steps, config)
    return Diagnosis(
        run=str(run),
        state=state,
        steps=max(steps, reached),
        lines=len(lines),
        damaged_lines=damaged,
        verdict=verdict,
        summary=summary,
        findings=findings,
        guard=events,
        notes=notes,
    )


def examine(lines: list[dict[str, float]], config: Config) -> list[Finding]:
    """Return all symptoms that ``lines`` show at any time, most severe first."""
    facts, guard = RunFacts.of(config), config.guard
    history = MetricHistory(guard.window, facts.free_share)
    found: dict[str, Finding] = {}
    recent = {line[STEPS] for line in lines[-guard.patience :]}
    for line in lines:
        history.add(line)
        step = int(line[STEPS])
        for name, evidence in detect(history, facts, guard):
            before = found.get(name)
            found[name] = Finding(
                name,
                printable(f"at {step:,} decisions {evidence}", LONGEST_EVIDENCE),
                step if before is None else before.first_step,
                step,
                1 if before is None else before.lines + 1,
                step in recent,
            )
    for finding in found.values():
        finding.evidence += f" (first at {finding.first_step:,}; in {finding.lines} lines)"
    return [found[name] for name in SYMPTOMS if name in found]


def _events(run: Path, notes: list[str]) -> list[dict[str, Any]]:
    """Return what the guard logged, if it can be read."""
    try:
        events, damaged = read_events(run)
    except (OSError, UserError) as error:
        notes.append(f"{GUARD_FILE} cannot be read: {one_line(error)}")
        return []
    if damaged:
        notes.append(f"{damaged} damaged lines of {GUARD_FILE} were left out")
    return events


def _check(run: Path) -> None:
    if not run.exists():
        raise UserError(f"no run {run}: there is no such folder; give a run's folder (runs/...)")
    if not run.is_dir():
        raise UserError(f"{run} is a file: give the run's folder that holds {METRICS_FILE}")
    if not any((run / name).exists() for name in (METRICS_FILE, RUN_FILE, CONFIG_FILE)):
        raise UserError(
            f"{run} holds no run (no {METRICS_FILE}, {RUN_FILE} or {CONFIG_FILE}): give the folder "
            "that train named, such as runs/NAME-TIME-sSEED"
        )


def _config(run: Path, notes: list[str]) -> Config:
    """Return the run's settings; unknown ones are left out and reported in ``notes``."""
    try:
        tree = parse_yaml(CONFIG_FILE, read_text(run / CONFIG_FILE, "settings"))
        if not isinstance(tree, dict):
            raise ConfigError("it holds no sections of settings")
    except ConfigError as error:
        notes.append(f"{CONFIG_FILE} cannot be read ({error}): the default settings are assumed")
        return Config()
    tree = forget_local(tree)
    try:
        return from_dict(tree)
    except ConfigError:
        pass
    config = Config()
    wrong: list[str] = []
    for section, key, value in _entries(tree):
        try:
            config = from_dict({section: {key: value}}, config)
        except ConfigError as error:
            wrong.append(f"{CONFIG_FILE}: {error}")
    notes += wrong[:MOST_NOTES]
    if len(wrong) > MOST_NOTES:
        notes.append(f"{CONFIG_FILE}: {len(wrong) - MOST_NOTES} more such settings")
    return config


def _entries(tree: dict[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for section, values in tree.items():
        if isinstance(values, dict):
            for key, value in values.items():
                yield section, key, value


def _state(run: Path, steps: int, config: Config) -> tuple[str, int]:
    """Return how far the run has come, in words and decisions."""
    checkpoints = (run / CHECKPOINT_FOLDER).glob("step_*.pt")
    reached = max([steps, *map(checkpoint_step, checkpoints)])
    if is_locked(run):
        return "running", reached
    return "finished" if reached >= config.run.steps else "broken off", reached


def _verdict(
    lines: list[dict[str, float]], findings: list[Finding], config: Config
) -> tuple[str, str]:
    learned = sum(line.get("updates", 0.0) > 0 for line in lines)
    present = [finding.name for finding in findings if finding.present]
    past = [finding.name for finding in findings if not finding.present]
    if present:
        return UNHEALTHY, f"{', '.join(present)} in the last {config.guard.patience} lines"
    if learned < FEWEST_LINES:
        return UNKNOWN, f"only {learned} lines with updates: too few for a verdict"
    if past:
        return RECOVERED, f"{', '.join(past)} earlier, nothing in the last lines"
    return HEALTHY, f"no symptom in {len(lines)} lines"
