"""The plan of a sweep: a base configuration, its variants, seeds, and the games that score them.

The folder of a sweep stores its plan in ``sweep.yaml``.  A later start may add variants and seeds;
changes that would make finished runs incomparable with new ones are refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from tempest_agent.config import (
    Config,
    ConfigError,
    apply_changes,
    as_meant,
    forget_local,
    from_dict,
    local_settings,
    to_dict,
)
from tempest_agent.config.yaml_files import parse_yaml, read_text
from tempest_agent.envs.messages import printable, shown
from tempest_agent.errors import UserError, brief, unknown_name
from tempest_agent.files.atomic_files import replacing

PLAN_FILE = "sweep.yaml"
BASE = "base"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NEXT_SETTING = re.compile(r",(?=\s*\w+(?:\.\w+)*\s*=)")
"""A comma before another ``key=``, not one inside a list of values."""


@dataclass(frozen=True)
class Variant:
    """A named configuration; ``changes`` are the dotted keys that differ from the base."""

    name: str
    changes: Mapping[str, Any]
    config: Config

    def described(self) -> str:
        """Return the changes as written on the command line."""
        return ", ".join(f"{key}={_written(value)}" for key, value in self.changes.items())


@dataclass(frozen=True)
class Plan:
    """Every variant (the base first) is trained once with every seed, and plays the same games."""

    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    episodes: int
    max_ticks: int

    @property
    def base(self) -> Variant:
        return self.variants[0]


def make_plan(
    base: Config,
    variants: Mapping[str, Mapping[str, Any]],
    seeds: int,
    episodes: int,
    max_ticks: int,
) -> Plan:
    """Return the plan of ``variants`` (name -> dotted key -> value), with ``seeds`` seeds.

    Raises:
        UserError: a name that cannot be a folder's, a wrong setting, or no change at all.
    """
    base = _with_absolute_paths(base)
    made = [Variant(BASE, {}, base)]
    for name, changes in variants.items():
        _check_name(name)
        try:
            config = apply_changes(base, changes, local=False)
        except UserError as error:
            raise UserError(f"variant {shown(name)}: {error}") from error
        if config == base:
            raise UserError(
                f"variant {shown(name)} changes nothing ({made_of(changes)} is what the base has): "
                "give another value, or leave it out"
            )
        if config.run.seed != base.run.seed:
            raise UserError(
                f"variant {shown(name)} sets run.seed: every variant is trained with the same "
                "seeds; leave it out"
            )
        made.append(Variant(name, changes, config))
    first = base.run.seed
    return Plan(tuple(made), tuple(range(first, first + seeds)), episodes, max_ticks)


def made_of(changes: Mapping[str, Any]) -> str:
    """Return ``changes`` as text, for messages."""
    text = ", ".join(f"{key}={_written(value)}" for key, value in changes.items())
    return brief(text) or "no setting"


def parse_variant(text: str) -> tuple[str, dict[str, Any]]:
    """Parse ``NAME:key=value,key=value`` into name and settings.

    Raises:
        UserError: no colon, no ``=``, or a value that is not valid YAML.

    >>> parse_variant("small:network.hidden=[64, 64],learner.gamma=0.9")
    ('small', {'network.hidden': [64, 64], 'learner.gamma': 0.9})
    """
    name, colon, settings = text.partition(":")
    if not colon or "=" in name:
        raise UserError(f"--variant {shown(text)} has no name; write NAME:section.key=value")
    changes: dict[str, Any] = {}
    for part in _NEXT_SETTING.split(settings):
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(
                f"--variant {shown(text)}: {shown(part)} has no '='; write section.key=value"
            )
        if key.strip() in changes:
            raise UserError(
                f"--variant {shown(text)} sets {shown(key.strip())} twice; keep one of them"
            )
        changes[key.strip()] = parse_yaml(f"--variant {shown(text)}: {shown(value)}", value)
    return name.strip(), changes


def available_variants() -> list[str]:
    """Return the names of the lists of variants that come with the package."""
    folder = resources.files("tempest_agent.configs") / "variants"
    return sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".yaml"))


def load_variants(source: str) -> dict[str, dict[str, Any]]:
    """Return the variants of a YAML file, or of a list that comes with the package, by its name.

    The file holds ``NAME: {section.key: value}``, one line per variant.

    Raises:
        UserError: no such file, bad YAML, or something other than variants in it.
    """
    path = Path(source)
    known = available_variants()
    if source in known:
        file = resources.files("tempest_agent.configs") / "variants" / f"{source}.yaml"
        text = file.read_text(encoding="utf-8")
    elif os.path.exists(path):
        text = read_text(path, "a list of variants")
    elif path.suffix:
        raise UserError(f"no file of variants {shown(source)}; give a path or {', '.join(known)}")
    else:
        raise UserError(unknown_name("list of variants", source, known))
    source = printable(source, 200)
    return _variants(source, parse_yaml(source, text))


def _variants(source: str, tree: Any) -> dict[str, dict[str, Any]]:
    """Return ``tree``, read from ``source``, checked to be ``{name: {dotted key: value}}``."""
    if not isinstance(tree, dict) or not tree:
        raise UserError(f"{source} must hold variants, NAME: {{section.key: value}}")
    for name, changes in tree.items():
        if not isinstance(changes, dict):
            raise UserError(
                f"{source}: variant {shown(name)} must hold settings, {{section.key: value}}, "
                f"not {shown(changes)}"
            )
    return {str(name): {str(k): v for k, v in changes.items()} for name, changes in tree.items()}


def keep_plan(out: Path, plan: Plan) -> None:
    """Write ``plan`` into the sweep's folder ``out``.

    Raises:
        UserError: it holds runs of another plan, which cannot be compared with these.
    """
    file = out / PLAN_FILE
    others: dict[str, Any] = {}
    if file.is_file():
        stored = _stored(file)
        _require_same(out, stored, plan)
        others = stored["variants"]  # They may be requested again later.
    elif any(path.name != ".lock" for path in out.iterdir()):
        raise UserError(f"--out {out} is not empty, and no sweep: give a folder that is new")
    tree = {
        "base": to_dict(plan.base.config),
        "variants": {**others, **{each.name: dict(each.changes) for each in plan.variants[1:]}},
        "seeds": list(plan.seeds),
        "episodes": plan.episodes,
        "max_ticks": plan.max_ticks,
    }
    with replacing(file) as new:
        new.write(yaml.safe_dump(tree, sort_keys=False).encode())


def _stored(file: Path) -> dict[str, Any]:
    try:
        tree = parse_yaml(str(file), read_text(file, "the plan of a sweep"))
        parts = {"base": dict, "variants": dict, "episodes": int, "max_ticks": int}
        for name, kind in parts.items():
            if not isinstance(tree, dict) or not isinstance(tree.get(name), kind):
                raise UserError(f"{name} is missing or wrong")
        variants = _variants(str(file), tree["variants"]) if tree["variants"] else {}
    except UserError as error:
        raise UserError(
            f"{file} is damaged ({error}): give a new folder with --out, or repair it"
        ) from error
    return {**tree, "variants": variants}


def _require_same(out: Path, stored: Mapping[str, Any], plan: Plan) -> None:
    differences = [
        (name, stored[name], getattr(plan, name))
        for name in ("episodes", "max_ticks")
        if stored[name] != getattr(plan, name)
    ]
    try:
        # Settings that did not exist then take their defaults.
        base = from_dict(as_meant(forget_local(stored["base"])))
    except ConfigError as error:
        raise UserError(f"{out / PLAN_FILE}: {error}; give a new folder with --out") from error
    differences += _differing(base, plan.base.config)
    for variant in plan.variants[1:]:
        before = stored["variants"].get(variant.name)
        if before is not None and before != dict(variant.changes):
            differences.append((f"variant {variant.name}", made_of(before), variant.described()))
    for name, before, now in differences[:1]:
        raise UserError(
            f"{out} holds another sweep, with {name}={brief(_written(before))} where this has "
            f"{brief(_written(now))}: give the same settings to continue it, or a new folder "
            "with --out"
        )


def _differing(one: Config, other: Config) -> list[tuple[str, Any, Any]]:
    ours, theirs = to_dict(one), to_dict(other)
    return [
        (f"{section}.{key}", value, theirs[section][key])
        for section, values in ours.items()
        for key, value in values.items()
        if value != theirs[section][key] and f"{section}.{key}" not in local_settings()
    ]


def _with_absolute_paths(config: Config) -> Config:
    """Return ``config`` for processes that run in another folder."""
    paths = {"rom_path": config.game.rom_path, "mame_path": config.game.mame_path}
    found = {key: str(Path(text).absolute()) for key, text in paths.items() if Path(text).exists()}
    return from_dict(
        {"game": {key: path for key, path in found.items() if paths[key]}}, config, local=True
    )


def _check_name(name: str) -> None:
    if name == BASE:
        raise UserError(
            f"a variant cannot be named {shown(BASE)}: that is the configuration itself"
        )
    if not _NAME.fullmatch(name):
        raise UserError(
            f"variant name {shown(name)} cannot be a folder's: use up to 100 letters, digits, '_', "
            "'-' and '.'"
        )


def _written(value: Any) -> str:
    """Return ``value`` as YAML on one line."""
    return value if isinstance(value, str) else json.dumps(value)
