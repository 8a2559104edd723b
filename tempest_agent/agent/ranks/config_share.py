"""The settings of one rank of several."""

from __future__ import annotations

from tempest_agent.agent.replicas import Replicas
from tempest_agent.agent.seeds import seed_of
from tempest_agent.config import Config, from_dict
from tempest_agent.errors import UserError


def share_of(config: Config, replicas: Replicas) -> Config:
    """Return the settings of one rank: its share of games, replay and batch, and its own seed.

    Steps, schedules and intervals stay those of the whole run.

    Raises:
        UserError: games or rows cannot be divided evenly.
    """
    size = replicas.size
    if size == 1:
        return config
    if config.actors.count:
        raise UserError(
            f"actors.count={config.actors.count} and {size} ranks: each rank plays its own games; "
            "leave one of the two out"
        )
    whole = {
        "run.num_envs": config.run.num_envs,
        "learner.batch_size": config.learner.batch_size,
    }
    for name, value in whole.items():
        if value % size:
            fitting = (value // size + 1) * size
            raise UserError(
                f"{name}={value} cannot be divided evenly over {size} ranks; set {fitting}, or "
                "start a number of ranks that divides it"
            )
    share = {
        "run": {
            "num_envs": config.run.num_envs // size,
            "seed": seed_of(config.run.seed, replicas.rank),
        },
        "learner": {"batch_size": config.learner.batch_size // size},
        "replay": {
            "capacity": config.replay.capacity // size,
            # Rounded up: every rank then starts to learn when one process would.
            "learning_starts": -(-config.replay.learning_starts // size),
        },
    }
    try:
        return from_dict(share, config)
    except UserError as error:
        raise UserError(f"the share of one of {size} ranks does not work: {error}") from error
