"""TODO"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tempest_agent.errors import UserError
from tempest_agent.files.atomic_files import replacing
from tempest_agent.files.own_files import require_writable
from tempest_agent.files.system_errors import system_reason

FORMATS = (".png", ".svg", ".pdf")


def require_matplotlib() -> None:
    """``UserError`` where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise UserError("plots need matplotlib: pip install 'tempest-agent[plots]'")


def require_picture(path: Path, option: str) -> None:
    """``UserError`` where no figure can be saved at ``path``, the value of ``option``.

    For commands that work for long before they draw; makes the folder of ``path`` if need be.
    """
    check_format(path, option)
    require_matplotlib()
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")
    require_writable(path.parent)


def save_figure(figure: Any, path: Path, option: str = "--out") -> None:
    """Write ``figure`` to ``path`` (.png, .svg or .pdf); the file there before stays until then.

    ``option`` is the one that ``path`` came from, for the error's words.

    Raises:
        UserError: another kind of file, or a folder that cannot be written.
    """
    check_format(path, option)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower(), dpi=100)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {system_reason(error)}; choose another {option}"
        ) from error


def check_format(path: Path, option: str = "--out") -> None:
    """``UserError`` for a file name whose ending is no picture's."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{option} {path}: the name must end in one of {', '.join(FORMATS)}")
