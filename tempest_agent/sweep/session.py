"""One start of a sweep: all its runs by an engine, with progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tempest_agent.errors import UserError
from tempest_agent.progress import Progress
from tempest_agent.sweep.engine import Engine, Task
from tempest_agent.sweep.plan import Plan
from tempest_agent.sweep.runs import all_steps, last_words, runs_of


def run_all(plan: Plan, out: Path, engine: Engine) -> tuple[dict[str, list[dict[str, Any]]], bool]:
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
    start = sum(run.steps() for run in runs)
    with Progress(all_steps(runs), "decisions", f"sweep of {len(runs)} runs", start) as progress:

        def watch() -> None:
            progress.update(sum(run.steps() for run in runs))

        def failed(task: Task, code: int) -> None:
            words = last_words(by_name[task.name])
            failures.append(f"{task.name} ended with exit code {code}: {words}")
            progress.message(failures[-1])

        done = sum(run.result() is not None for run in runs)
        progress.message(f"sweep {out}: {len(runs)} runs, {done} of them complete")
        engine.run(runs, watch, failed)
    results: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        result = run.result()
        if result is not None:
            results.setdefault(run.variant.name, []).append(result)
    if not results:
        raise UserError(f"no run could be made; the first: {failures[0]}")
    return results, not failures
