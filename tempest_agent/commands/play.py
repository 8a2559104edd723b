"""``tempest-agent play``: show, film or play games."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tempest_agent.commands.options.backend import (
    backend_option,
    introduce_machine,
    machine_from,
    require_display,
)
from tempest_agent.commands.options.types import (
    COUNT,
    PATH,
    PLAYERS,
    level_option,
    max_ticks_option,
    seed_option,
)
from tempest_agent.envs.mame.errors import MachineError, machine_errors
from tempest_agent.errors import UserError

if TYPE_CHECKING:
    from tempest_agent.envs.engine.batch import GameBatch
    from tempest_agent.evaluation.keyboard_player import Keyboard
    from tempest_agent.evaluation.players import PlayerChoice


@click.command()
@click.argument("player", default="latest", metavar=f"[{PLAYERS}|human]")
@click.option(
    "--render",
    is_flag=True,
    help="Show the game in a window (with --backend mame: MAME's own), at the game's speed.",
)
@click.option("--record", type=PATH, help="Film the games (FILE.mp4).")
@level_option
@seed_option
@click.option("--episodes", type=COUNT, default=1, show_default=True, help="Games to play.")
@max_ticks_option
@backend_option
def play(
    player: str,
    render: bool,
    record: Path | None,
    level: int,
    seed: int,
    episodes: int,
    max_ticks: int,
    backend: str,
    **machine_options: Any,
) -> None:
    """Play games and print how each ended; without a name, `latest` plays.

    With the same seed, level and tick limit they are the first games of `eval`. A human plays in
    a window, with the keys a and d to turn, space or f to fire, s for the superzapper.
    """
    from tempest_agent.console.progress import Progress
    from tempest_agent.evaluation.games import EvaluationGames
    from tempest_agent.evaluation.playback import play_ticks

    human = player == "human"
    own_window = human or (render and backend == "sim")
    mames_window = render and not own_window
    if mames_window:
        require_display()
    machine = machine_from(backend, **machine_options, window=mames_window)
    if machine is not None:
        introduce_machine(machine)
    keyboard = _keyboard() if human else None
    choice = _choice(player, keyboard)
    games = EvaluationGames(episodes, seed, level, max_ticks, machine=machine)
    with (
        machine_errors(),
        _closed_by_user(mames_window),
        _film_errors(record),
        ExitStack() as opened,
    ):
        show = _audience(opened, choice.name, own_window, record, keyboard)
        click.echo(choice.description, err=True)
        if keyboard is not None:
            click.echo(keyboard.KEYS, err=True)
        progress = opened.enter_context(Progress(episodes * max_ticks, "ticks", "play"))
        lengths: list[int] = []
        for number in range(episodes):
            watching = True
            for batch in play_ticks(choice, games, number):
                watching = show(batch)
                if not watching:
                    break
                ticks = int(batch.games["ticks"][0])
                progress.update(sum(lengths) + ticks, games.expected_ticks(lengths))
            lengths.append(int(batch.games["ticks"][0]))
            progress.message(_ending(number, batch), sys.stdout)
            if not watching:
                break
    if record is not None:
        click.echo(f"film: {record}")


@contextmanager
def _closed_by_user(mames_window: bool) -> Iterator[None]:
    """End the command normally when MAME's own window is closed."""
    try:
        yield
    except MachineError as error:
        if not mames_window or error.phase == "starting":
            raise
        click.echo(f"MAME's window is gone: {error.status}", err=True)


@contextmanager
def _film_errors(record: Path | None) -> Iterator[None]:
    """Turn errors of the film into one line for the user."""
    if record is None:
        yield
        return
    from tempest_agent.envs.render.film import FilmError

    try:
        yield
    except FilmError as error:
        raise UserError(str(error)) from error


def _keyboard() -> Keyboard:
    from tempest_agent.evaluation.keyboard_player import Keyboard

    return Keyboard()


def _choice(name: str, keyboard: Keyboard | None) -> PlayerChoice:
    from tempest_agent.evaluation.players import PlayerChoice, find_player

    if keyboard is not None:
        return PlayerChoice("human", lambda _numbers, _seed: keyboard)
    return find_player(name)


def _audience(
    opened: ExitStack, name: str, render: bool, record: Path | None, keyboard: Keyboard | None
) -> Callable[[GameBatch], bool]:
    """Return a function that shows and films each tick, and returns whether to continue."""
    if not render and record is None:
        return lambda batch: True

    from tempest_agent.envs.render.film import FilmWriter
    from tempest_agent.envs.render.renderer import Renderer
    from tempest_agent.envs.render.window import DisplayUnavailable, Window

    try:
        window = opened.enter_context(Window(f"Tempest: {name}")) if render else None
        film = opened.enter_context(FilmWriter(record)) if record is not None else None
    except DisplayUnavailable as error:
        raise UserError(str(error)) from error
    renderer = Renderer()

    def show(batch: GameBatch) -> bool:
        frame = renderer.draw(batch.ram[0], int(batch.games["score"][0]))
        if film is not None:
            film.write(frame)
        if window is None:
            return True
        key = window.show(frame)
        if keyboard is not None:
            keyboard.press(key)
        return window.open

    return show


def _ending(number: int, batch: GameBatch) -> str:
    from tempest_agent.envs.game_state.death_cause import DEATH_CAUSES

    game = batch.games[0]
    lost = [f"{cause} {n}" for cause, n in zip(DEATH_CAUSES, game["deaths"], strict=True) if n]
    end = "over" if batch.terminated[0] else "cut" if batch.truncated[0] else "left"
    return (
        f"game {number + 1}: {game['score']:,} points, level {batch.ram['cur_wave'][0] + 1}, "
        f"{game['ticks']:,} ticks, {end}; lives lost: {', '.join(lost) or 'none'}"
    )
