"""Stable-Baselines3's argument names, mapped to the one configuration.

Arguments override the configuration, which supplies everything else.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, get_type_hints

import torch
from stable_baselines3.common.callbacks import BaseCallback

from tempest_agent.agent.curriculum.schedules import Table
from tempest_agent.agent.games.interface import Teacher
from tempest_agent.config import Config, ConfigError, NetworkConfig, from_dict, load_config
from tempest_agent.envs.checks import check_number, check_whole, is_whole
from tempest_agent.envs.messages import shown
from tempest_agent.errors import UserError, one_line, unknown_name

KEYS = {
    "buffer_size": ("replay", "capacity"),
    "learning_starts": ("replay", "learning_starts"),
    "batch_size": ("learner", "batch_size"),
    "tau": ("learner", "tau"),
    "gamma": ("learner", "gamma"),
    "train_freq": ("learner", "train_freq"),
    "gradient_steps": ("learner", "gradient_steps"),
    "n_steps": ("learner", "n_steps"),
    "target_update_interval": ("learner", "target_update_interval"),
    "max_grad_norm": ("learner", "max_grad_norm"),
    "exploration_initial_eps": ("exploration", "epsilon_start"),
    "seed": ("run", "seed"),
}
"""Arguments that set one setting each."""

EXPLORATION_FRACTION = 0.1

DEFAULTS: dict[str, dict[str, Any]] = {
    # The other defaults are tuned for many arcade games at once.
    "run": {"log_interval": 10_000},
    "teacher": {"name": "none"},
    "exploration": {"epsilon_max": 0.05, "epsilon_min": 0.05, "hold_max": 1},
    "replay": {"learning_starts": 1_000},
    "learner": {
        "target_clip": 0.0,
        "reward_unit": 0.0,
        "imitation": "none",
        "learning_rate_schedule": "constant",
    },
}
"""Where the library's defaults differ from the configuration's; a whole configuration overrides
them all."""

Source = Config | Mapping[str, Any] | str | Path | None
"""What ``HybridDQN(config=...)`` takes."""

RateSchedule = Callable[[float], float]
"""Progress remaining, from 1 at the start of training to 0, to a learning rate."""


def base_config(config: Source) -> Config:
    """Return the configuration that arguments override.

    Args:
        config: a whole one, itself or as the name or path of a file; or a tree of some settings
            (None is an empty one), the rest of which are the library's defaults.

    Raises:
        UserError: an unknown setting, a bad value, or no such file.
    """
    if isinstance(config, Config):
        # Built by hand, it may hold anything.
        return from_dict(
            {
                name: vars(part) if dataclasses.is_dataclass(part) else part
                for name, part in vars(config).items()
            },
            local=True,
        )
    if isinstance(config, str | Path):
        return load_config(config)
    if config is not None and not _is_map(config):
        raise ConfigError(
            f"config={shown(config)} must be a map of settings ({{'learner': {{...}}}}), a Config, "
            "or the name or path of a file"
        )
    return from_dict(config or {}, from_dict(DEFAULTS), local=True)


def _tree_names(config: Source, section: str, key: str) -> bool:
    """Return whether ``config`` is a tree in which the setting is named."""
    return isinstance(config, Mapping) and key in config.get(section, {})


def with_arguments(
    config: Config,
    source: Source,
    arguments: Mapping[str, Any],
    policy_kwargs: Mapping[str, Any] | None,
    num_envs: int,
    encoder: str,
) -> Config:
    """Return ``config`` with the arguments that are not None.

    Args:
        config: all settings.
        source: what ``config`` was made from.
        arguments: names of ``KEYS``, ``learning_rate`` (a table for a function),
            ``exploration_final_eps``, ``device``.
        policy_kwargs: settings of the network; ``net_arch`` is SB3's name for ``hidden``.
        num_envs: number of environments.
        encoder: of the policy.

    Raises:
        UserError: a value out of range or of the wrong kind, an unknown setting, or one of
            ``source`` that the environment or the policy decides otherwise.
    """
    _refuse_overridden(config, source, num_envs, encoder)
    given = {name: value for name, value in arguments.items() if value is not None}
    tree: dict[str, dict[str, Any]] = {
        "run": {"num_envs": num_envs},
        "learner": {},
        "replay": {},
        "exploration": {},
        "network": {"encoder": encoder, **network_settings(policy_kwargs)},
    }
    if "train_freq" in given:
        given["train_freq"] = _train_freq(given["train_freq"])
    for name, value in given.items():
        if isinstance(value, str) and name != "device":
            raise UserError(f"{name}={shown(value)} is text: give a number")
    if is_whole(given.get("gradient_steps")) and given["gradient_steps"] == -1:
        # One update per decision played since the last ones.
        freq = {"train_freq": given.get("train_freq", config.learner.train_freq)}
        given["gradient_steps"] = from_dict({"learner": freq}).learner.train_freq * num_envs
    for name, (section, key) in KEYS.items():
        if name in given:
            tree[section][key] = given[name]
    if "learning_rate" in given:
        rate = given["learning_rate"]
        tree["learner"]["learning_rate"] = max(rate.values) if isinstance(rate, Table) else rate
        if not _tree_names(source, "learner", "learning_rate_schedule"):
            tree["learner"]["learning_rate_schedule"] = "constant"
    if "exploration_final_eps" in given:
        final = given["exploration_final_eps"]
        tree["exploration"] |= {"epsilon_max": final, "epsilon_min": final}
    if "device" in given:
        tree["run"]["device"] = str(given["device"]).partition(":")[0]
    try:
        return from_dict(tree, config)
    except ConfigError as error:
        raise UserError(in_names(str(error), names_of(given, policy_kwargs))) from error


def _refuse_overridden(config: Config, source: Source, num_envs: int, encoder: str) -> None:
    """``UserError`` for what a tree says, and the environment or the policy otherwise."""
    own = config.network.encoder
    if _tree_names(source, "network", "encoder") and own != encoder:
        raise UserError(
            f"config has network.encoder={own}, and the policy is the one of {encoder}: leave it "
            "out, and give 'LaneQPolicy' for lanes, 'MlpQPolicy' for mlp"
        )
    if _tree_names(source, "run", "num_envs") and config.run.num_envs != num_envs:
        raise UserError(
            f"config has run.num_envs={config.run.num_envs}, and env is {num_envs} of them: leave "
            "it out, and give as many environments as are wanted"
        )


def table_of(schedule: RateSchedule) -> Table:
    """The step sizes that ``learning_rate``, a function, gives.

    Raises:
        UserError: it cannot be called with the progress remaining, or gives no step size.
    """
    try:
        table = Table.of(schedule, 1)
    except Exception as error:
        raise UserError(
            f"learning_rate is a function that fails ({type(error).__name__}: {one_line(error)}): "
            "it gets the progress remaining, from 1.0 to 0.0, and returns the step size"
        ) from error
    for value in table.values:
        if not (math.isfinite(value) and value >= 0.0):
            raise UserError(
                f"learning_rate is a function that gives {value}: return a step size, at least 0"
            )
    return table


def for_steps(config: Config, steps: Any, exploration_fraction: float | None) -> Config:
    """Return ``config`` for a run of ``steps`` decisions.

    Exploration falls over the share ``exploration_fraction`` of them, or as configured.

    Raises:
        UserError: ``steps`` is not a possible number of decisions.
    """
    given = f"total_timesteps={shown(steps)}"
    try:
        check_number("total_timesteps", steps)
    except ValueError as error:
        raise UserError(f"learn({given}): give a number of decisions, such as 100_000") from error
    steps = math.ceil(steps)
    if steps <= 0:
        # As in SB3 nothing is played; the schedules stay.
        return config
    tree: dict[str, dict[str, Any]] = {"run": {"steps": steps}}
    if exploration_fraction is not None:
        tree["exploration"] = {"epsilon_steps": max(1, round(exploration_fraction * steps))}
    try:
        return from_dict(tree, config)
    except ConfigError as error:
        raise UserError(in_names(str(error), {"run.steps": "total_timesteps"})) from error


def network_settings(policy_kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return ``policy_kwargs`` as settings of the network.

    Raises:
        UserError: an unknown one.
    """
    known = {field.name for field in dataclasses.fields(NetworkConfig)} - {"encoder"}
    if policy_kwargs is None:
        return {}
    if not _is_map(policy_kwargs):
        raise UserError(
            f"policy_kwargs={shown(policy_kwargs)} must be a map of the network's settings"
        )
    # None is SB3's word for its default.
    settings = {name: value for name, value in policy_kwargs.items() if value is not None}
    if "net_arch" in settings and "hidden" in settings:
        raise UserError(
            f"policy_kwargs has net_arch={shown(settings['net_arch'])} and "
            f"hidden={shown(settings['hidden'])}, two names of one setting: give one of them"
        )
    kinds = get_type_hints(NetworkConfig) | {"net_arch": list}
    for name, value in settings.items():
        if name not in {*known, "net_arch"}:
            raise UserError(unknown_name("policy_kwargs", name, {*known, "net_arch"}))
        many = list(value) if isinstance(value, list | tuple) else [value]
        if name in ("net_arch", "hidden") and not all(map(is_whole, many)):
            raise UserError(
                f"{name}={shown(value)}: give the widths of the layers, such as [64, 64]"
            )
        if isinstance(value, str) and kinds[name] is not str:
            raise UserError(f"{name}={shown(value)} is text: give it without quotes")
    if "net_arch" in settings:
        settings["hidden"] = settings.pop("net_arch")
    return settings


def check_others(
    device: Any,
    stats_window_size: Any,
    tensorboard_log: Any,
    verbose: Any,
    teacher: Any,
    teacher_score: Any,
    on_metrics: Any,
) -> None:
    """Check the arguments of ``HybridDQN`` that are not settings.

    Raises:
        UserError: one of the wrong kind.
    """
    if tensorboard_log is not None and (
        not isinstance(tensorboard_log, str | Path) or not str(tensorboard_log)
    ):
        raise UserError(
            f"tensorboard_log={shown(tensorboard_log)} must be the path of a folder, or None"
        )
    if teacher is not None and not isinstance(teacher, Teacher):
        raise UserError(
            f"teacher={shown(teacher)} must be an object with act(), state_dict() and "
            "load_state_dict(), or None; by name it is config={'teacher': {'name': ...}} for "
            "tempest-agent train"
        )
    if on_metrics is not None and not callable(on_metrics):
        raise UserError(f"on_metrics={shown(on_metrics)} must be a function of a log row")
    try:
        check_number("teacher_score", teacher_score)
        check_whole("stats_window_size", stats_window_size, 1, 10**9, "it counts episodes")
        if not isinstance(verbose, bool):
            check_whole("verbose", verbose, 0, 2, "1 prints lines of figures")
        torch.device("cpu" if device is None or str(device) == "auto" else device)
    except (ValueError, TypeError, RuntimeError) as error:
        raise UserError(one_line(error)) from error


def fraction_of(value: Any, config: Source) -> float | None:
    """Return the share of ``learn`` over which exploration falls; None if ``config`` gives it.

    Args:
        value: the argument, which overrides ``config``.
        config: as the user gave it.

    Raises:
        UserError: not from 0 to 1.
    """
    if value is None:
        said = not isinstance(config, Mapping | None)
        said = said or _tree_names(config, "exploration", "epsilon_steps")
        return None if said else EXPLORATION_FRACTION
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0.0 <= float(value) <= 1.0):
        raise UserError(
            f"exploration_fraction={shown(value)} is a share of learn(total_timesteps); give a "
            "number from 0 to 1"
        )
    return float(value)


def _is_map(value: object) -> bool:
    return isinstance(value, Mapping)


def _train_freq(value: Any) -> Any:
    if isinstance(value, tuple | list) and len(value) == 2:
        number, unit = value
        if unit != "step":
            raise UserError(
                f"train_freq={shown(value)}: HybridDQN counts steps of the environments, not "
                "episodes; give a number or (number, 'step')"
            )
        return number
    return value


def names_of(
    arguments: Mapping[str, Any], policy_kwargs: Mapping[str, Any] | None
) -> dict[str, str]:
    """The settings that a user has given by other names, as ``section.key``, and these names.

    Args:
        arguments: those of the constructor; one that is None was not given.
        policy_kwargs: settings of the network.
    """
    by_other_names = {
        "learning_rate": ("learner", "learning_rate"),
        "exploration_final_eps": ("exploration", "epsilon_max"),
    }
    names = {
        f"{section}.{key}": name
        for name, (section, key) in (KEYS | by_other_names).items()
        if arguments.get(name) is not None
    }
    for name in policy_kwargs or {}:
        names["network.hidden" if name == "net_arch" else f"network.{name}"] = name
    return names


def in_names(message: str, names: Mapping[str, str]) -> str:
    """``message`` with the settings called as in ``names``."""
    return re.sub(
        r"\b[a-z]+\.[a-z_]+\b", lambda found: names.get(found.group(), found.group()), message
    )


def check_callback(callback: Any) -> None:
    """Check ``learn(callback=...)``.

    Raises:
        UserError: something else than SB3 takes.
    """
    is_list = isinstance(callback, list)
    all_fit = all(isinstance(each, BaseCallback) for each in (callback if is_list else [callback]))
    if not all_fit and (is_list or not (callback is None or callable(callback))):
        raise UserError(
            f"learn(callback={shown(callback)}): give a BaseCallback, a list of them, or a "
            "function of (locals, globals)"
        )
