"""The files of the page: what comes with the package, and the players that were asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tempest_agent.errors import UserError
from tempest_agent.evaluation.players import CHAMPION, find_player
from tempest_agent.files.atomic_files import replacing

from .network_file import network_bytes

MODULE = "tempest.wasm"
EXPERT = "expert"
PLAYERS_FILE = "players.json"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".net": "application/octet-stream",
}
"""Media types by the ending of a file; the page has no files of other kinds."""


@dataclass(frozen=True)
class Site:
    """All files of the page, by their names in its one folder."""

    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        """Write the files into ``folder``, which is made if need be.

        Raises:
            UserError: it is a file, or holds another page.
        """
        if folder.exists() and not folder.is_dir():
            raise UserError(f"--export {folder}: that is a file; name a folder, new or empty")
        if (folder / "index.html").exists() and not (folder / MODULE).exists():
            raise UserError(
                f"--export {folder}: there is another page in it; name a folder, new or empty"
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            with replacing(folder / name) as file:
                file.write(content)


def make_site(names: Iterable[str]) -> Site:
    """Return the page with the players ``names``, the first one shown first.

    Raises:
        UserError: a player is unknown, or none that a page can play.
    """
    files = {
        entry.name: entry.read_bytes()
        for entry in (resources.files("tempest_agent.web") / "static").iterdir()
        if Path(entry.name).suffix in TYPES
    }
    if MODULE not in files:
        raise UserError(
            f"{MODULE} is missing from this installation: install tempest-agent again, or in a "
            "checkout build it with: python -m tempest_agent.web.build"
        )
    listed: list[dict[str, str | int]] = []
    for name in dict.fromkeys(names):
        if name == EXPERT:
            listed.append({"name": name, "label": name})
            continue
        policy = find_player(name).policy
        if policy is None:
            raise UserError(
                f"{name}: a page plays the expert and trained networks; watch this player with "
                f"tempest-agent play {name} --render, or film it with --record FILE.mp4"
            )
        file = f"player{len(listed)}.net"
        files[file] = network_bytes(policy.network, name)
        label = name if name == CHAMPION else Path(name).name
        listed.append({"name": name, "label": label, "file": file, "frameSkip": policy.frame_skip})
    files[PLAYERS_FILE] = json.dumps({"players": listed}).encode()
    return Site(files)
