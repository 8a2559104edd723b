"""Speed of training: the default configuration, short enough to wait for."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tempest_agent.agent.trainer import Trainer
from tempest_agent.commands.bench import Figure, figure
from tempest_agent.config import load_config

SHORT = (
    "run.steps=60_000",
    "run.log_interval=10_000",
    "run.checkpoint_interval=1_000_000",
    "run.save_replay=false",
    "replay.capacity=60_000",
    "teacher.score=100_000",
)
WARM_UP_LINES = 2
"""Lines of metrics that are left out: the replay fills up, and kernels compile."""


def measure() -> dict[str, Figure]:
    """Decisions and learned rows a second once the replay is full enough to learn from."""
    lines: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        Trainer(load_config("default", SHORT), Path(folder), on_metrics=lines.append).run()
    steady = lines[WARM_UP_LINES:]

    def mean(name: str) -> float:
        # Lines are equally many decisions apart, so their times add up, not their rates.
        return len(steady) / sum(1.0 / line[name] for line in steady)

    return {
        "env_steps_per_second": figure(mean("env_steps_per_second"), "decisions/s"),
        "samples_per_second": figure(mean("samples_per_second"), "rows/s"),
        "updates_per_second": figure(mean("updates_per_second"), "updates/s"),
    }
