"""Settings of this machine: programs, folders and addresses, which no file may choose.

With them, the author of a file could start a program or connect this machine to a server.  So they
come from the command line or have their defaults; files store None instead of a given one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .config import Config
from .loading import apply_overrides, local_settings, to_dict
from .setting import ConfigError


def forget_local(tree: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return ``tree``, read from a file, with None for every local setting not at its default."""
    kept = {name: dict(part) if isinstance(part, dict) else part for name, part in tree.items()}
    defaults = Config()
    for key in local_settings():
        section, _, name = key.partition(".")
        values = kept.get(section)
        if not isinstance(values, dict) or name not in values:
            continue
        value = values[name]
        if not isinstance(value, str) or value != getattr(getattr(defaults, section), name):
            values[name] = None
    return kept


def with_local(config: Config, stored: Mapping[str, Any], overrides: Iterable[str]) -> Config:
    """Return the ``config`` of a resumed run with ``overrides`` (``section.key=value``) applied.

    Args:
        config: of ``stored``.
        stored: the run's settings as ``to_dict`` or ``forget_local`` left them.
        overrides: from the command line.

    Raises:
        ConfigError: a bad value, or a local setting is missing that the run needs again.
    """
    overrides = list(overrides)
    config = apply_overrides(config, overrides)
    given = {override.partition("=")[0].strip() for override in overrides}
    used = {"game": config.game.backend == "mame", "actors": config.actors.count > 0}
    for key, option in local_settings().items():
        section, _, name = key.partition(".")
        values = stored.get(section, {})
        was_given = name in values and values[name] is None
        if key in given and section == "game" and not used[section]:
            raise ConfigError(f"{key} is given, and the run plays on the simulator: leave it out")
        if was_given and used[section] and key not in given:
            raise ConfigError(
                f"the run was given {key}, which no file may choose: give it again with {option} "
                f"(or --set {key}=...)"
            )
    return config


def local_options(config: Config) -> list[str]:
    """Return what ``to_dict(config)`` leaves out, as options of ``train``."""
    whole, portable = to_dict(config, local=True), to_dict(config)
    options: list[str] = []
    for key, option in local_settings().items():
        section, _, name = key.partition(".")
        if portable[section][name] is None:
            options += [option.partition(" ")[0], whole[section][name]]
    return options
