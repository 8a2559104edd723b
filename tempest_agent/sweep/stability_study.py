"""The stability study: the same small run with settings that diverge, and with their remedies.

Every run has its own folder below the study's, so that a stopped study continues where it was, and
``tempest-agent diagnose`` can read each run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tempest_agent.agent.loop.memory_check import require_memory
from tempest_agent.config import Config, load_config
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import replacing
from tempest_agent.files.own_files import require_writable
from tempest_agent.files.regular_files import read_json
from tempest_agent.runs.directory import can_resume
from tempest_agent.runs.file_names import CHECKPOINT_FOLDER, checkpoint_step
from tempest_agent.runs.metrics_reader import read_metrics
from tempest_agent.stability.diagnosis import diagnose
from tempest_agent.training.session import Session

STUDY_FILE = "study.json"
EVAL_GAMES = 6
LINES = 40
"""Log rows of each run."""

RESCUE = {
    "learning_rate": ("learner.learning_rate=0.001",),
    "tau": ("learner.tau=0.005",),
    "n_steps": ("learner.n_steps=5",),
    "accumulation": (
        "learner.gradient_accumulation_steps=4",
        "learner.batch_size=1024",
        "learner.gradient_steps=1",
    ),
}
"""The four changes of ``recovery.yaml``, one at a time."""

BARE = (
    "network.layer_norm=false",
    "network.spinner_head=regression",
    "learner.imitation=none",
    "learner.loss=squared",
    "learner.double_q=false",
    "learner.tau=1",
    "learner.gamma=0.999",
    "game.life_loss_terminal=false",
)
"""Without everything else that bounds values: normalised layers, labels, Huber loss, double
Q-learning, a target network that lags behind, and a horizon that ends with a life."""


@dataclass(frozen=True)
class Variant:
    """One run of the study: a configuration, its changes, and the run that it starts from."""

    name: str
    config: str
    overrides: tuple[str, ...] = ()
    start: str | None = None
    about: str = ""


VARIANTS: tuple[Variant, ...] = (
    Variant("default", "dqn", about="configs/dqn.yaml, the default of every setting"),
    Variant("unstable", "unstable", about="configs/unstable.yaml"),
    Variant("recovery", "recovery", start="unstable", about="recovery.yaml from its checkpoint"),
    Variant("guarded", "unstable", ("guard.enabled=true",), about="unstable with the guard"),
    Variant("bare", "unstable", BARE, about="unstable, and nothing else that holds values"),
    Variant("bare_guarded", "unstable", (*BARE, "guard.enabled=true"), about="bare with the guard"),
    *(
        Variant(f"unstable_{name}", "unstable", changes, about=f"unstable, {changes[0]}")
        for name, changes in RESCUE.items()
    ),
)


def settings_of(variant: Variant, steps: int, seed: int) -> Config:
    """Return the configuration of ``variant`` for ``steps`` steps of a small network.

    The schedules have the same shape in all runs; a run that starts from another one starts where
    its schedules ended.
    """
    share = {True: "teacher.expert_ratio_start=0.05", False: "teacher.expert_ratio_start=0.95"}
    return load_config(
        variant.config,
        [
            f"run.steps={steps}",
            f"run.seed={seed}",
            f"run.name={variant.name}",
            "run.device=cpu",
            f"run.log_interval={max(steps // LINES, 1)}",
            f"run.checkpoint_interval={max(steps // 4, 1)}",
            "network.hidden=[128, 128]",
            f"replay.capacity={max(steps, 4_000)}",
            f"replay.learning_starts={max(steps // 20, 1)}",
            f"teacher.expert_ratio_steps={max(steps * 2 // 5, 1)}",
            share[variant.start is not None],
            "teacher.score=550000",
            f"exploration.epsilon_steps={max(steps // 5, 1)}",
            f"exploration.epsilon_start={0.3 if variant.start else 1.0}",
            *variant.overrides,
        ],
    )


def run_study(
    folder: Path,
    steps: int,
    seed: int,
    say: Callable[[str], None],
    variants: Iterable[Variant] = VARIANTS,
) -> dict[str, Any]:
    """Train the runs that are not complete yet, one after the other.

    Args:
        folder: of the study; new, or of the same study started earlier.
        steps: of each run.
        seed: of all runs.
        say: gets lines about the progress.
        variants: the runs, in order of their dependencies.

    Returns:
        ``steps``, ``seed``, ``stopped`` (by Ctrl-C), ``runs`` (summary of each by name).

    Raises:
        UserError: the folder holds something else or another study.
    """
    require_memory(settings_of(VARIANTS[0], steps, seed))
    _claim(folder, {"study": "stability", "steps": steps, "seed": seed})
    variants = tuple(variants)
    stopped = False
    for number, variant in enumerate(variants, 1):
        say(f"run {number} of {len(variants)}: {variant.name} ({variant.about})")
        stopped = _run(folder, variant, steps, seed)
        if stopped:
            break
    done = [variant for variant in variants if _reached(folder / variant.name) > 0]
    figures = {variant.name: summary(folder / variant.name, variant.about) for variant in done}
    return {"steps": steps, "seed": seed, "stopped": stopped, "folder": str(folder)} | {
        "runs": figures
    }


def _claim(folder: Path, study: dict[str, Any]) -> None:
    file = folder / STUDY_FILE
    if file.exists():
        try:
            before = read_json(file)
        except UserError as error:
            raise UserError(f"{error}; give another folder with --out") from error
        if before != study:
            raise UserError(
                f"{folder} holds another study ({shown(before)}): give its --steps and --seed "
                "again, or another folder with --out"
            )
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"--out {folder} is not empty: give a folder that is new or empty")
    require_writable(folder)
    with replacing(file) as new:
        new.write((json.dumps(study) + "\n").encode())


def _reached(run: Path) -> int:
    checkpoints = (run / CHECKPOINT_FOLDER).glob("step_*.pt")
    return max(map(checkpoint_step, checkpoints), default=0)


def _run(folder: Path, variant: Variant, steps: int, seed: int) -> bool:
    """Start or resume one run; return whether it was stopped before its end."""
    run = folder / variant.name
    reached = _reached(run)
    if reached >= steps:
        return False
    if can_resume(run):
        session = Session.resumed(run, None, EVAL_GAMES, publishes=False)
    else:
        start = None
        if variant.start is not None:
            first = folder / variant.start
            start = first / CHECKPOINT_FOLDER / f"step_{_reached(first)}.pt"
        config = settings_of(variant, steps, seed)
        session = Session.new(config, run, EVAL_GAMES, start=start, publishes=False)
    return bool(session.run()["stopped"])


def summary(run: Path, about: str) -> dict[str, Any]:
    """Return the row of a run in the study's table."""
    lines, _ = read_metrics(run / "metrics.csv", [])
    greedy, _ = read_metrics(run / "evaluations.csv", [])
    found = diagnose(run)
    learned = [line for line in lines if "loss" in line]
    third = max(len(learned) // 3, 1)

    def mean(part: list[dict[str, float]], name: str) -> float | None:
        values = [line[name] for line in part if name in line]
        return fmean(values) if values else None

    first, last = learned[:third], learned[-third:]
    return {
        "about": about,
        "steps": found.steps,
        "q_highest": max((line["q_max"] for line in learned), default=None),
        "q_mean_highest": max((line["q_mean"] for line in learned), default=None),
        "q_mean_end": mean(last, "q_mean"),
        "loss": [mean(first, "loss"), mean(last, "loss")],
        "reward_agent": [mean(first, "reward_agent"), mean(last, "reward_agent")],
        "teacher_free_score": mean(last, "teacher_free_score"),
        "greedy_iqm": [line["score_iqm"] for line in greedy],
        "verdict": found.verdict,
        "symptoms": [finding.name for finding in found.findings],
        "remedies": [event["remedy"] for event in found.guard if event["kind"] == "remedy"],
    }
