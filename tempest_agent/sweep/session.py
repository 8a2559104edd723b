"""Run a sweep: all its open runs by an executor, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tempest_agent.console.progress import Progress
from tempest_agent.errors import UserError, brief
from tempest_agent.evaluation.statistics import interquartile_mean
from tempest_agent.runs.lock import is_locked
from tempest_agent.sweep.executor import POLL_SECONDS, Executor, Task
from tempest_agent.sweep.plan import Plan
from tempest_agent.sweep.runs import SweepRun, all_steps, last_words, runs_of

RATE_WINDOW = 900.0
"""Seconds, long enough for several runs and the pauses between them."""

SAVING_SECONDS = 60.0
"""Within which a run left by a killed sweep saves and ends."""


def run_all(
    plan: Plan, out: Path, executor: Executor
) -> tuple[dict[str, list[dict[str, Any]]], bool]:
    """Make every run of ``plan`` in ``out`` that is not complete yet.

    Returns:
        The results of the complete runs by variant, and whether those are all.

    Raises:
        KeyboardInterrupt: the sweep was stopped.
        UserError: no run at all could be made.
    """
    runs = runs_of(plan, out)
    by_name = {run.name: run for run in runs}
    failures: list[str] = []
    open_runs = [run for run in runs if run.result() is None]
    start = sum(run.steps() for run in runs)
    label = f"sweep of {len(runs)} runs"
    with Progress(all_steps(runs), "decisions", label, start, window=RATE_WINDOW) as progress:

        def watch() -> None:
            progress.update(sum(run.steps() for run in runs))
            for run in [each for each in open_runs if each.scored.is_file()]:
                open_runs.remove(run)
                progress.message(_score_line(run))

        def failed(task: Task, code: int) -> None:
            words = last_words(by_name[task.name])
            failures.append(f"{task.name} ended with exit code {code}: {words}")
            progress.message(failures[-1])

        done = len(runs) - len(open_runs)
        progress.message(f"sweep {out}: {len(runs)} runs, {done} of them complete")
        _wait_for_ends(open_runs, progress.message)
        executor.run(runs, watch, failed)
    results: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        result = run.result()
        if result is not None:
            results.setdefault(run.variant.name, []).append(result)
    if not results:
        raise UserError(f"no run could be made; {failures[0]}")
    return results, not failures


def _wait_for_ends(runs: Sequence[SweepRun], tell: Callable[[str], None]) -> None:
    """Wait for runs that are still being trained: runs of a killed sweep save and end."""
    end = time.monotonic() + SAVING_SECONDS
    waits = False
    while time.monotonic() < end:
        left = [run.name for run in runs if is_locked(run.folder)]
        if not left:
            return
        if not waits:
            waits = True
            tell(f"waiting for the end of {brief(', '.join(left))}, still run by other processes")
        time.sleep(POLL_SECONDS)


def _score_line(run: SweepRun) -> str:
    result = run.result()
    score = "" if result is None else f": IQM {interquartile_mean(result['scores']):,.0f}"
    return f"{run.name}{score}"
