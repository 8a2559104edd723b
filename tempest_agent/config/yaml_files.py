"""Parse YAML written by users: each mistake is reported in one line, and nothing is ignored.

Supported is the part of YAML that settings need: maps, lists, text, numbers, true, false and null.
Values that YAML 1.1 would reinterpret stay text, so that numeric settings reject them and text
settings get what was written: 010 (8), 1:30:00 (5,400), 0x1F, 1_ (1), 2024-01-01 (a date), yes, no,
on, off (accepted by switches).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tempest_agent.envs.messages import printable, shown
from tempest_agent.errors import UserError, one_line
from tempest_agent.files.regular_files import read_regular

from .setting import ConfigError
from .validation import POINTED, WHOLE

LARGEST_FILE = 1_000_000
"""Bytes, far more than any file of settings has."""
MOST_VALUES = 20_000
DEEPEST = 20


class _NotReadError(yaml.MarkedYAMLError):
    """Valid YAML that is not supported."""


class _Loader(yaml.SafeLoader):
    """Loads plain values, each key once; PyYAML itself would silently use the last one."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (as the base class has it)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        for found, what, instead in (
            (isinstance(event, yaml.AliasEvent), "aliases (*)", "write the value again"),
            (getattr(event, "anchor", None), "anchors (&)", "leave it out"),
            (getattr(event, "tag", None), "tags (!)", "leave it out, or put text in quotes"),
        ):
            if found:
                self._refuse(f"settings have no {what}; {instead}", event.start_mark)
        self._values += 1
        self._depth += 1
        if self._values > MOST_VALUES:
            self._refuse(f"there are more than {MOST_VALUES:,} values", event.start_mark)
        if self._depth > DEEPEST:
            self._refuse("it is nested too deeply to be settings", event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    self._refuse(f"{shown(key.value)} is given twice; keep one", key.start_mark)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)

    @staticmethod
    def _refuse(problem: str, mark: Any) -> None:
        raise _NotReadError(problem=problem, problem_mark=mark)


_READ = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": WHOLE,
    "float": rf"{POINTED}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
}
for _kind, _pattern in _READ.items():
    # None: for any first character.
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z"), [None]
    )


def parse_yaml(name: str, text: str) -> Any:
    """Return the plain value of ``text``, which errors call ``name``.

    Raises:
        ConfigError: invalid YAML, a repeated key, an unsupported feature (aliases, tags), or more
            values than settings have.
    """
    if len(text) > LARGEST_FILE:
        raise ConfigError(f"{name} is too long for settings")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        wrong = "" if isinstance(error, _NotReadError) else " is not valid YAML"
        line = f" (line {mark.line + 1})" if mark is not None else ""
        problem = printable(error.problem or "", 200)
        hint = "; indent with spaces, not tabs" if "'\\t'" in problem else ""
        raise ConfigError(f"{name}{wrong}{line}: {problem}{hint}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{name} is not valid YAML: {one_line(error)}") from error


def read_text(path: Path, what: str) -> str:
    """Return the text of ``path``, which errors call ``what``.

    Raises:
        ConfigError: unreadable, not a regular file, far too large, or not UTF-8.
    """
    try:
        content = read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise ConfigError(f"cannot read {what} {shown(path)}: {error.strerror}") from error
    except UserError as error:
        raise ConfigError(f"{error}; {what} is read from a file of text") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown(path)} is no text in UTF-8, so not {what}") from error
