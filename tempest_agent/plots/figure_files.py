"""Save figures as files, and check beforehand that this will be possible."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import replacing
from tempest_agent.files.own_files import require_writable
from tempest_agent.files.system_errors import system_reason

FORMATS = (".png", ".svg", ".pdf")
INSTALL = "pip install 'tempest-agent[plots]'"
"""How to get matplotlib, which is optional."""


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Raise ``UserError`` if matplotlib is missing."""
    if not has_matplotlib():
        raise UserError(f"plots need matplotlib: {INSTALL}")


def require_picture(path: Path, option: str) -> None:
    """Raise ``UserError`` if no figure can be saved at ``path``, the value of ``option``.

    For commands that work for a long time before they draw; creates the folder of ``path``.
    """
    check_format(path, option)
    require_matplotlib()
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")
    require_writable(path.parent)


def save_figure(figure: Any, path: Path, option: str = "--out") -> None:
    """Write ``figure`` to ``path`` (.png, .svg or .pdf), replacing an older file when complete.

    Args:
        figure: a ``matplotlib.figure.Figure``.
        path: where to.
        option: the option that ``path`` came from, for error messages.

    Raises:
        UserError: unknown suffix, or a folder that cannot be written.
    """
    check_format(path, option)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower(), dpi=110)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {system_reason(error)}; choose another {option}"
        ) from error


def check_format(path: Path, option: str = "--out") -> None:
    """Raise ``UserError`` unless the suffix is .png, .svg or .pdf."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{option} {path}: the name must end in one of {', '.join(FORMATS)}")
