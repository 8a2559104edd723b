"""What ``test_data_parallel`` lets two processes do together; each writes what it came to.

Started as ``python two_ranks.py FOLDER`` with the variables that ``torchrun`` sets.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fake_games import SMALL, FakeGames, FakeTeacher
from hybrid_bandit import LAYOUT, random_batch

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.agent.loop.training_loop import TrainingLoop
from tempest_agent.agent.ranks.process_group import RankLostError, Ranks, join
from tempest_agent.agent.replay.rows import Batch
from tempest_agent.agent.replicas import ALONE, Replicas
from tempest_agent.config import Config, load_config
from tempest_agent.training.trainer import Trainer

CPU = torch.device("cpu")
KINDS = {
    "huber": (),
    "prioritised_parts": ("learner.gradient_accumulation_steps=3",),
    "c51": ("learner.loss=c51",),
    "float16": ("learner.precision=float16",),
}
"""Settings of the updates that are compared."""
ROWS = 64
UPDATES = 6
SKIPPED = (2, 4)
STEPS = 800
RUN = (
    *SMALL, f"run.steps={STEPS}", "run.log_interval=200", "replay.prioritised=true",
    "run.keep_checkpoints=9", "run.checkpoint_interval=400", "exploration.epsilon_max=0.5",
)  # fmt: skip
STOP = 400


def learner_of(kind: str, replicas: Replicas = ALONE) -> Learner:
    torch.manual_seed(0)
    overrides = ["network.hidden=[32]", "learner.precision=float32", "learner.target_clip=2"]
    config = load_config(None, [*overrides, "learner.value_bins=21", *KINDS[kind]])
    return Learner(LAYOUT, config, CPU, replicas)


def whole_batch(seed: int) -> Batch:
    """With weights, and with labels nearly all of which are in the first half."""
    random = np.random.default_rng(seed)
    labelled = np.arange(ROWS) < ROWS // 2
    labelled[-3:] = True
    weights = random.random(ROWS).astype(np.float32)
    return random_batch(random, ROWS)._replace(labelled=labelled, weights=weights)


def spoiled(batch: Batch) -> Batch:
    """One row, the last, has a loss that is not finite."""
    weights = batch.weights.copy()
    weights[-1] = np.inf
    return batch._replace(weights=weights)


def gradients(learner: Learner, batch: Batch) -> dict[str, Any]:
    """After an update that changes nothing; the norm is that before clipping."""
    learner.update(batch, 0.0, 0.7)
    named = learner.online.named_parameters()
    found = {name: p.grad.clone() for name, p in named if p.grad is not None}
    return {"gradients": found, "norm": learner.grad_norm.clone()}


def updated(learner: Learner, part: slice) -> dict[str, Any]:
    """State after several updates, some of which are skipped because of one row."""
    for number in range(UPDATES):
        batch = whole_batch(number)
        batch = (spoiled(batch) if number in SKIPPED else batch).part(part.start, part.stop)
        learner.update(batch, 1e-3, 0.5)
    state = learner.state_dict()
    return {name: state[name] for name in ("online", "target", "average", "updates")} | {
        "skipped": learner.precision.skipped
    }


def games(config: Config, replicas: Replicas) -> FakeGames:
    """Games of this rank, other ones than those of the others."""
    return FakeGames(config.run.num_envs // replicas.size, 10 + replicas.rank)


def trainer_of(folder: Path, replicas: Replicas) -> Trainer:
    config = load_config(None, RUN)
    return Trainer(
        config, folder, games=games(config, replicas), teacher=FakeTeacher(), replicas=replicas
    )


def run_of(folder: Path, replicas: Replicas, stop: bool) -> dict[str, Any]:
    """A run to its end, or until the last rank is asked to stop; every rank's view of it."""
    trainer = trainer_of(folder, replicas)
    return finish(trainer, stop and replicas.rank == replicas.size - 1)


def rolled_back(folder: Path, replicas: Replicas) -> dict[str, Any]:
    """What new networks are after the guard has gone back to the end of a run."""
    trainer = trainer_of(folder, replicas)
    trainer.loop.guard.good_step = STEPS
    step = trainer.loop.guard.remedies.restore()
    return {"step": step, "weights": view(trainer.loop)["weights"]}


def resumed(folder: Path, replicas: Replicas) -> dict[str, Any]:
    """The rest of a run that was stopped."""

    def make(config: Config) -> FakeGames:
        return games(config, replicas)

    if replicas.is_first:
        trainer = Trainer.resume(folder, games=make, teacher=FakeTeacher(), replicas=replicas)
    else:
        trainer = Trainer.follow(replicas, games=make, teacher=FakeTeacher())
    return finish(trainer, False)


def finish(trainer: Trainer, stop: bool) -> dict[str, Any]:
    lines: list[dict[str, float]] = []

    def listen(figures: dict[str, float]) -> None:
        lines.append({k: v for k, v in figures.items() if not k.endswith("_per_second")})
        if stop and figures["steps"] >= STOP:
            trainer.request_stop()

    begin = trainer.steps
    trainer.loop.on_metrics = listen
    result = trainer.run()
    return {"begin": begin, "lines": lines, "result": result, **view(trainer.loop)}


def view(loop: TrainingLoop) -> dict[str, Any]:
    """What is compared."""
    state = loop.learner.state_dict()
    collector = loop.collector
    return {
        "weights": {name: state[name] for name in ("online", "target", "average")},
        "steps": loop.num_timesteps,
        "updates": loop.learner.updates,
        "rows": dict(loop.replay.arrays()),
        "codes": np.array(loop.games.observe()),
        "rates": collector.source.drivers.rates,
        "free": collector.source.drivers.teacher_free,
        "seed": loop.config.run.seed,
        "one maximum": loop.replay.highest == loop.replicas.highest,
        "free_scores": collector.history.teacher_free_scores,
        "schedules": {
            "learning_rate": loop.learning_rate(loop.num_timesteps),
            "expert_ratio": loop.expert_ratio(loop.num_timesteps),
            "importance": loop.curriculum.schedules.importance(loop.num_timesteps),
        },
    }


def messages(replicas: Replicas) -> dict[str, Any]:
    rank = replicas.rank
    tree = {"array": np.arange(4) + rank, "long": "x" * (1000 * rank), "tensor": torch.ones(2)}
    answer: dict[str, Any] = {"stops before": replicas.stops(rank == 1)}
    answer |= {
        "gather": replicas.gather([rank, "y" * 700 * rank]),
        "stops": replicas.stops(False),
        "broadcast": replicas.broadcast(tree if rank == 0 else None),
        "collect": replicas.collect(tree),
        "deal": replicas.deal([{"to": r} for r in range(2)] if rank == 0 else None),
        "total": replicas.total(1.5 + rank),
        "tensor": replicas.total(torch.tensor(3 + rank)),
        "highest": replicas.highest(2.0 - rank),
    }
    return answer


def everything(folder: Path) -> dict[str, Any]:
    whole = join()
    rank = whole.rank

    def ranks() -> Ranks:
        return Ranks(rank, 2)

    part = slice(0, ROWS // 2) if rank == 0 else slice(ROWS // 2, ROWS)
    found: dict[str, Any] = {"messages": messages(ranks())}
    for kind in KINDS:
        mine = whole_batch(9).part(part.start, part.stop)
        found[f"gradients {kind}"] = gradients(learner_of(kind, ranks()), mine)
        found[f"updates {kind}"] = updated(learner_of(kind, ranks()), part)
    found["run"] = run_of(folder / "run", ranks(), stop=False)
    found["rolled back"] = rolled_back(folder / "run", ranks())
    found["stopped"] = run_of(folder / "stopped", ranks(), stop=True)
    found["resumed"] = resumed(folder / "stopped", ranks())
    found["from one"] = resumed(folder / "one", ranks())
    return found


def silent() -> str:
    """The second rank does not answer any more; what the first one says."""
    # They have a few seconds to meet: from here on, and not from when each of them was started.
    print("ready", flush=True)
    sys.stdin.readline()
    return lost(join(), killed=False)


def lost(replicas: Replicas, killed: bool) -> str:
    replicas.gather(0)
    if replicas.rank == 1:
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read()
        os._exit(0)
    try:
        replicas.gather(1)
    except RankLostError as error:
        return str(error)
    raise AssertionError("nothing was noticed")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if sys.argv[2:]:
        said = silent()
    else:
        torch.save(everything(target), target / f"rank{os.environ['RANK']}.pt")
        said = lost(Ranks(int(os.environ["RANK"]), 2), killed=True)
    (target / "said").write_text(said)
