"""The page's files: complete, from nowhere else, and written where they harm nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tempest_agent.cli import cli
from tempest_agent.errors import UserError
from tempest_agent.web.site import Site, make_site


def test_an_exported_page_has_every_file_that_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    done = CliRunner().invoke(cli, ["watch", "--export", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert f"python -m http.server --directory {folder}" in done.stdout
    names = {file.name for file in folder.iterdir()}
    page = (folder / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:src|href)="([^"#]+)"', page))
    for script in folder.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        named.update(re.findall(r'from "\./([^"]+)"', text))
        named.update(re.findall(r'fetched\("([^"]+)"\)', text))
        assert "://" not in text
    assert named <= names
    players = json.loads((folder / "players.json").read_text(encoding="utf-8"))["players"]
    assert [player["name"] for player in players] == ["champion", "expert"]
    assert {player["file"] for player in players if "file" in player} <= names
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'" in page


def test_another_page_is_not_overwritten_and_an_older_export_is(tmp_path: Path) -> None:
    site = Site({"index.html": b"new", "tempest.wasm": b"module"})
    (tmp_path / "index.html").write_text("somebody's")
    with pytest.raises(UserError, match="there is another page in it"):
        site.write(tmp_path)
    assert (tmp_path / "index.html").read_text() == "somebody's"
    (tmp_path / "tempest.wasm").write_bytes(b"old")
    site.write(tmp_path)
    assert (tmp_path / "index.html").read_bytes() == b"new"
    with pytest.raises(UserError, match="that is a file"):
        site.write(tmp_path / "index.html")


@pytest.mark.parametrize("name", ["planner", "novice", "random"])
def test_a_player_that_no_page_plays_is_named(name: str) -> None:
    with pytest.raises(UserError, match=f"^{name}: a page plays the expert and trained networks"):
        make_site([name])
