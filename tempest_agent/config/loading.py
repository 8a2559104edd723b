"""Load configurations from files, dictionaries and overrides, and convert them to plain types."""

from __future__ import annotations

import dataclasses
import functools
import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from tempest_agent.envs.messages import nearest, printable, shown
from tempest_agent.errors import unknown_name

from .config import Config
from .cross_checks import check_together
from .setting import ConfigError
from .validation import checked
from .yaml_files import parse_yaml, read_text


def settings() -> Iterator[tuple[str, Any, str]]:
    """Yield every setting as ``(dotted key, default, help sentence)``, in order."""
    for section in dataclasses.fields(Config):
        for entry in dataclasses.fields(_section_type(section.name)):
            yield f"{section.name}.{entry.name}", entry.default, entry.metadata["help"]


def local_settings() -> dict[str, str]:
    """Return the settings that no file may choose: dotted key -> option of ``train``."""
    return {
        f"{section.name}.{entry.name}": entry.metadata["local"]
        for section in dataclasses.fields(Config)
        for entry in dataclasses.fields(_section_type(section.name))
        if entry.metadata["local"] is not None
    }


def to_dict(config: Config, *, local: bool = False) -> dict[str, dict[str, Any]]:
    """Return ``config`` as plain types (tuples as lists), fit for YAML and checkpoints.

    Local settings that were given become None, except with ``local``, which is for other processes
    of the same run and never for a file.
    """
    tree = dataclasses.asdict(config)
    plain = {
        section: {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
        for section, values in tree.items()
    }
    for key in () if local else local_settings():
        section, _, name = key.partition(".")
        if plain[section][name] != _default(section, name):
            plain[section][name] = None
    return plain


def from_dict(
    tree: Mapping[str, Any], base: Config | None = None, *, local: bool = False
) -> Config:
    """Return ``base`` (or the defaults) updated with the values of ``tree``, validated.

    Args:
        tree: section -> name -> value.
        base: provides all other values.
        local: whether ``tree`` may contain local settings, because it is not from a file.

    Raises:
        ConfigError: an unknown key, a wrong type, a value out of range, or one that no file may
            choose.
    """
    config = base or Config()
    names = [section.name for section in dataclasses.fields(Config)]
    given: Any = tree  # From a file, so of any type.
    if not isinstance(given, Mapping):
        raise ConfigError(f"settings are a map of sections (learner: ...), not {shown(given)}")
    for name, values in given.items():
        if not isinstance(name, str) or name not in names:
            raise ConfigError(unknown_name("section", name, names))
        if not isinstance(values, Mapping):
            raise ConfigError(f"{name} must hold settings (name: value), not {shown(values)}")
        for key, value in values.items():
            config = _with_value(config, name, key, value, local)
    check_together(config)
    return config


def load_config(source: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration ``source`` with ``key=value`` overrides applied.

    Args:
        source: name of a file in ``configs/`` (``quick``), path of a YAML file, or None for the
            settings' own defaults.
        overrides: strings such as ``learner.gamma=0.97``; values are YAML.

    Raises:
        ConfigError: no such configuration, bad YAML, an unknown key or a bad value.
    """
    base = Config() if source is None else from_dict(read_tree(source))
    return apply_overrides(base, overrides)


def read_tree(source: str | Path) -> Mapping[str, Any]:
    """Return the sections in ``source``, as ``load_config`` finds it, unvalidated.

    Raises:
        ConfigError: no such configuration, or no YAML with sections.
    """
    given: Any = source
    if not isinstance(given, str | Path):
        raise ConfigError(f"a configuration is the name or path of a file, not {shown(given)}")
    name, text = printable(str(given), 200), _read(given)
    tree = parse_yaml(name, text)
    if tree is None:
        raise ConfigError(f"{name} is empty; leave --config out for the defaults")
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{name} must hold sections of settings, not {shown(tree)}")
    return tree


def apply_overrides(config: Config, overrides: Iterable[str]) -> Config:
    """Return ``config`` with the command line's ``section.key=value`` ``overrides`` applied.

    Raises:
        ConfigError: no ``=``, an unknown key or a bad value.
    """
    changes: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"{shown(override)} has no '='; write section.key=value")
        if not key.strip():
            raise ConfigError(f"{shown(override)} names no setting; write section.key=value")
        changes[key.strip()] = parse_yaml(f"the value of {shown(override)}", text)
    return apply_changes(config, changes, local=True)


def apply_changes(config: Config, changes: Mapping[str, Any], *, local: bool) -> Config:
    """Return ``config`` with each ``section.key`` of ``changes`` set to its value.

    ``local``: whether they may contain local settings, because they are not from a file.

    Raises:
        ConfigError: an unknown key or a bad value.
    """
    tree: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        section, dot, name = key.partition(".")
        if not dot:
            raise ConfigError(_unknown_setting(key))
        tree.setdefault(section, {})[name] = value
    return from_dict(tree, config, local=local)


def available() -> list[str]:
    """Return the names of the configurations that come with the package."""
    folder = resources.files("tempest_agent.configs")
    return sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".yaml"))


def _read(source: str | Path) -> str:
    path, known = Path(source), available()
    if isinstance(source, str) and path.suffix == "" and len(path.parts) == 1:
        if source in known:
            file = resources.files("tempest_agent.configs") / f"{source}.yaml"
            return file.read_text(encoding="utf-8")
        if not os.path.exists(path):
            raise ConfigError(unknown_name("configuration", source, known))
    if str(source) and os.path.isdir(path):
        raise ConfigError(f"{shown(path)} is a folder; give a YAML file, such as one in it")
    if not os.path.exists(path):
        raise ConfigError(
            f"no configuration file {shown(path) if str(source) else shown('')}; give a path or "
            f"one of {', '.join(known)}"
        )
    return read_text(path, "a configuration")


def _unknown_setting(key: str) -> str:
    """Return one line for an unknown ``section.name``, with the nearest known setting."""
    known = [known for known, _, _ in settings()]
    # "replay.gamma" and plain "gamma" both find "learner.gamma".
    by_name = {each.rpartition(".")[2]: each for each in reversed(known)}
    name = key.rpartition(".")[2]
    guess = by_name.get(name) or nearest(key, known)
    guess = guess or by_name.get(nearest(name, by_name, 0.6) or "")
    if guess is not None:
        return f"unknown setting {shown(key)}: did you mean {shown(guess)}?"
    sections = dict.fromkeys(each.partition(".")[0] for each in known)
    return f"unknown setting {shown(key)}: the sections of settings are {', '.join(sections)}"


@functools.cache
def _types(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _section_type(name: str) -> Any:
    return _types(Config)[name]


def _default(section: str, name: str) -> Any:
    return _section_type(section).__dataclass_fields__[name].default


def _with_value(config: Config, section: str, key: Any, value: Any, local: bool) -> Config:
    kind = _section_type(section)
    entries = {entry.name: entry for entry in dataclasses.fields(kind)}
    if not isinstance(key, str) or key not in entries:
        wrong = f"{section}.{key if isinstance(key, str) else shown(key)}"
        raise ConfigError(_unknown_setting(wrong))
    option = entries[key].metadata["local"]
    if option is not None and not local:
        if value is None or (isinstance(value, str) and value == entries[key].default):
            return config
        raise ConfigError(
            f"{section}.{key} is this machine's own, and no file may choose it: take it out, and "
            f"give {option} (or --set {section}.{key}=...)"
        )
    wanted = _types(kind)[key]
    fitting = checked(f"{section}.{key}", value, wanted, entries[key].metadata)
    part = dataclasses.replace(getattr(config, section), **{key: fitting})
    return dataclasses.replace(config, **{section: part})
