"""The card of a checkpoint: what it is and what the protocol measured, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tempest_agent.config import Config, to_dict
from tempest_agent.envs.messages import printable
from tempest_agent.errors import UserError
from tempest_agent.evaluation.players import PlayerChoice
from tempest_agent.evaluation.protocol import protocol_table
from tempest_agent.evaluation.report import markdown_table
from tempest_agent.files.atomic_files import replacing
from tempest_agent.files.own_files import require_writable
from tempest_agent.files.system_errors import system_reason
from tempest_agent.runs.provenance import command_line, git_commit, installed_version

LONGEST_CELL = 2_000
"""Characters of a name or setting, which a foreign checkpoint chooses."""


def require_card(path: Path) -> None:
    """Raise ``UserError`` if no card can be written to ``path``; creates its folder."""
    if path.suffix.lower() != ".md":
        raise UserError(f"--card {path}: the card is Markdown, so its name must end in .md")
    if path.is_dir():
        raise UserError(f"--card {path} is a folder: give the name of a file")
    require_writable(path.parent)


def write_card(path: Path, player: PlayerChoice, protocol: Mapping[str, Any]) -> None:
    """Write the card of ``player``, a checkpoint, replacing an older one when complete."""
    try:
        with replacing(path) as file:
            file.write(card(player, protocol, command_line()).encode())
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {system_reason(error)}; choose another --card"
        ) from error


def card(player: PlayerChoice, protocol: Mapping[str, Any], command: str) -> str:
    """Return the text of the card, made by the ``command``."""
    versions = (installed_version("tempest-agent"), git_commit())
    facts = [
        ("sha256 of the file", f"`{player.sha256}`"),
        ("training", f"{player.step or 0:,} decisions"),
        *_network_facts(player),
        ("tempest-agent", ", commit ".join(filter(None, versions))),
    ]
    listed = "\n".join(f"* {name}: {text}" for name, text in facts)
    return f"""# {_literal(player.name)}

A checkpoint of tempest-agent: a network that plays Tempest greedily, one forward pass a decision.

{listed}

## Evaluation

{_about_games(protocol)}

{markdown_table(*protocol_table([protocol]))}

Points are the interquartile mean of the games, for endurance (no bonus lives) the median, with 95 %
bootstrap intervals. "In these levels" are the deaths per 1,000 ticks of all late starts together
while the levels of the row were played; "over" is the share of games that ended before they were
cut.

```bash
{printable(command, LONGEST_CELL)}
```
"""


def _network_facts(player: PlayerChoice) -> list[tuple[str, str]]:
    config = player.config
    if config is None:
        return []
    every = "a tick" if config.game.frame_skip == 1 else f"{config.game.frame_skip} ticks"
    changes = " ".join(f"`{_literal(change)}`" for change in _changes(config))
    return [
        ("decides", f"once {every}; trained with an input delay of {config.game.input_delay}"),
        ("configuration", _literal(config.run.name)),
        ("differs from the defaults in", changes or "nothing"),
    ]


def _changes(config: Config) -> list[str]:
    """Return the settings of ``config`` that shape the player and are not the defaults."""
    defaults = to_dict(Config())
    return [
        f"{section}.{name}={value}"
        for section, values in to_dict(config).items()
        for name, value in values.items()
        if section not in ("run", "actors") and value != defaults[section][name]
    ]


def _about_games(protocol: Mapping[str, Any]) -> str:
    backend = {"sim": "the simulator", "mame": "the real game in MAME"}[protocol["backend"]]
    lengths = ", ".join(f"{part['part']} {part['max_ticks']:,}" for part in protocol["parts"])
    return (
        f"Played on {backend}, seed {protocol['seed']}. Games are cut after so many ticks (27.34 a "
        f"second): {lengths}."
    )


def _literal(text: str) -> str:
    """Return ``text`` on one line, without the characters that end a cell or a code span."""
    return printable(text, LONGEST_CELL).replace("|", "\\|").replace("`", "'")
