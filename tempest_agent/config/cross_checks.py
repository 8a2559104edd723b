"""Check settings against each other."""

from __future__ import annotations

from collections.abc import Iterator

from .config import Config
from .setting import ConfigError


def check_together(config: Config) -> None:
    teacher, exploration = config.teacher, config.exploration
    replay, run, learner = config.replay, config.run, config.learner
    longest = max(learner.n_steps, learner.n_steps_end)
    problems = (
        (
            teacher.segment_min > teacher.segment_max,
            f"teacher.segment_min={teacher.segment_min} is above "
            f"teacher.segment_max={teacher.segment_max}; lower the first or raise the second",
        ),
        (
            teacher.expert_ratio_floor > teacher.expert_ratio_start,
            f"teacher.expert_ratio_floor={teacher.expert_ratio_floor} is above "
            f"teacher.expert_ratio_start={teacher.expert_ratio_start}; the share can only fall",
        ),
        (
            exploration.epsilon_floor > exploration.epsilon_start,
            f"exploration.epsilon_floor={exploration.epsilon_floor} is above "
            f"exploration.epsilon_start={exploration.epsilon_start}; lower the first",
        ),
        (
            config.actors.count > run.num_envs,
            f"actors.count={config.actors.count} is above run.num_envs={run.num_envs}; some actors "
            "would have no game",
        ),
        (
            exploration.epsilon_min > exploration.epsilon_max,
            f"exploration.epsilon_min={exploration.epsilon_min} is above "
            f"exploration.epsilon_max={exploration.epsilon_max}; swap them, or set both",
        ),
        (
            replay.capacity < run.num_envs * (longest + 2),
            f"replay.capacity={replay.capacity} is too small for {run.num_envs} games and "
            f"n_steps={longest}; set at least {run.num_envs * (longest + 2)}",
        ),
        (
            replay.learning_starts > replay.capacity,
            f"replay.learning_starts={replay.learning_starts} is above "
            f"replay.capacity={replay.capacity}; learning would never start",
        ),
        (
            learner.gradient_accumulation_steps > learner.batch_size,
            f"learner.gradient_accumulation_steps={learner.gradient_accumulation_steps} is above "
            f"learner.batch_size={learner.batch_size}; some micro-batches would be empty",
        ),
        (
            learner.batch_size > replay.capacity,
            f"learner.batch_size={learner.batch_size} is above "
            f"replay.capacity={replay.capacity}; lower the first or raise the second",
        ),
        *_learner_problems(config),
        *_plan_problems(config),
    )
    for wrong, message in problems:
        if wrong:
            raise ConfigError(message)


def _learner_problems(config: Config) -> Iterator[tuple[bool, str]]:
    learner, network = config.learner, config.network
    yield (
        network.spinner_interpolation == "quadratic" and network.spinner_knots < 3,
        f"network.spinner_knots={network.spinner_knots} is too few for "
        "network.spinner_interpolation=quadratic; set at least 3",
    )
    yield (
        network.value_head == "lanes"
        and (
            network.encoder != "lanes"
            or network.spinner_knots != 63
            or network.spinner_head == "regression"
            or not network.dueling
            or learner.loss not in ("huber", "squared")
        ),
        "network.value_head=lanes values the landing place of every knob count: set "
        "network.encoder=lanes and network.spinner_knots=63, and leave network.spinner_head, "
        "dueling and learner.loss at their defaults; or start from --config dqn, which has no such "
        "head",
    )
    yield (
        network.policy_head and network.value_head != "lanes",
        "network.policy_head=true is a head by lanes beside such a value head: set "
        "network.value_head=lanes, with network.encoder=lanes and network.spinner_knots=63",
    )
    yield (
        network.acts == "policy" and not network.policy_head,
        "network.acts=policy plays what the policy head prefers, and there is none; set "
        "network.policy_head=true too",
    )
    yield (
        network.avoids_deadly and config.game.observation == "features_plain",
        "network.avoids_deadly=true reads the forecast of deadly lanes, which "
        "game.observation=features_plain leaves out; set game.observation=features, or the first "
        "to false",
    )
    yield (
        learner.target_clip == 0 and learner.loss == "c51",
        f"learner.loss=c51 spreads its {learner.value_bins} bins between both "
        "learner.target_clip, and that is 0, no clamp; set learner.target_clip to what no return "
        "exceeds, as closely as you can",
    )
    yield (
        0.0 < learner.reward_unit < 1e-30,
        f"learner.reward_unit={learner.reward_unit:g} is too small to divide by; give at least "
        "1e-30, or 0, which measures it",
    )
    yield (
        learner.loss == "c51" and learner.reward_unit not in (0.0, 1.0),
        f"learner.loss=c51 learns in bins as wide as learner.target_clip makes them, and "
        f"learner.reward_unit={learner.reward_unit:g}; leave it at 1",
    )
    yield (
        learner.trace == "retrace" and learner.loss in ("c51", "iqn"),
        f"learner.trace=retrace corrects expected values, which learner.loss={learner.loss} does "
        "not learn from; use huber or squared",
    )


def _plan_problems(config: Config) -> Iterator[tuple[bool, str]]:
    replay, plans = config.replay, config.teacher.labels == "plans"
    yield (
        plans and not config.network.policy_head,
        "teacher.labels=plans teaches a policy head, and there is none; set "
        "network.policy_head=true, or leave teacher.labels at action",
    )
    yield (
        plans and config.game.frame_skip > 1,
        f"teacher.labels=plans values plans tick by tick, and "
        f"game.frame_skip={config.game.frame_skip}; set it to 1",
    )
    yield (
        plans and replay.storage == "device",
        "teacher.labels=plans needs the replay in the host's memory; set replay.storage=host",
    )
