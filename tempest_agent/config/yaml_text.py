"""YAML that users write: each mistake is told in one line, and nothing in it is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tempest_agent.errors import one_line

from .setting import ConfigError

LARGEST_FILE = 1_000_000
"""Bytes: no file of settings comes near it, and what is larger is another kind of file."""


class _Loader(yaml.SafeLoader):
    """Plain values only, and each key once: PyYAML itself would take the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    problem = f"{key.value!r} is given twice; keep one of them"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def parse_yaml(name: str, text: str) -> Any:
    """The plain value that ``text`` says; ``name`` is what it is called in the error.

    Raises:
        ConfigError: no YAML, a key that is there twice, or lists in lists without end.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" (line {mark.line + 1})" if mark is not None else ""
        hint = "; indent with spaces, not tabs" if "'\\t'" in (error.problem or "") else ""
        raise ConfigError(f"{name} is not valid YAML{line}: {error.problem}{hint}") from error
    except (yaml.YAMLError, ValueError) as error:  # Such as the date 2020-13-01.
        raise ConfigError(f"{name} is not valid YAML: {one_line(error)}") from error
    except RecursionError as error:
        raise ConfigError(f"{name} is nested too deeply to be settings") from error


def read_text(path: Path, what: str) -> str:
    """The text of ``path``, the ``what`` of an error.

    Raises:
        ConfigError: it cannot be read, is far too large, or is no text in UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {what} {str(path)!r}: {error.strerror}") from error
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{str(path)!r} is too large for {what}; is it the right file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is no text in UTF-8, so not {what}") from error
