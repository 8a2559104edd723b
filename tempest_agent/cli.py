"""The command ``tempest-agent``.

Exit codes: 0 success, 2 a mistake of the user (one line on stderr), 1 a bug of this program, 130
Ctrl-C, 141 broken pipe (both as in shells).  Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
from typing import Any

import click

from tempest_agent.console.lost_output import drop_lost_output
from tempest_agent.envs.messages import printable
from tempest_agent.errors import LONGEST_MESSAGE, UserError, one_line, unknown_name
from tempest_agent.files.system_errors import (
    FOLDER_IS_GONE,
    current_folder_is_gone,
    is_out_of_memory,
    system_reason,
)

EXIT_FAULT = 1
EXIT_USER = 2
EXIT_INTERRUPTED = 130
EXIT_UNREAD = 141

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
"""System errors of a full disk, or of a folder without permission."""

FAILING = (errno.EIO, errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ENODEV, errno.ESTALE)
"""Other errors that are no bug of the program, with or without a file name."""

COMMANDS: dict[str, tuple[str, str, str]] = {
    "train": ("train", "train", "Train an agent, or resume a run (--resume)."),
    "play": ("play", "play", "Watch or film a game, or play one yourself."),
    "watch": ("watch", "watch", "Watch and play in a web page, served locally or exported."),
    "eval": ("evaluate", "evaluate", "Score a policy over a fixed set of games."),
    "sweep": ("sweep", "sweep", "Train variants of a configuration and compare them."),
    "demonstrate": ("demonstrate", "demonstrate", "Record games of a player as a Minari data set."),
    "plot": ("plot", "plot", "Draw the curves of runs: score, values, loss, deaths."),
    "verify": ("verify", "verify", "Compare the simulator with recordings of the machine."),
    "record": ("record", "record", "Record your own machine (MAME and ROMs) for verify."),
    "diagnose": ("diagnose", "diagnose", "Diagnose a training run: symptoms, causes, fixes."),
    "study": ("study", "study", "Train the runs of a study, with its figure and table."),
    "bench": ("bench", "bench", "Measure speed, as ratios if there is a baseline."),
}
"""Command -> module in ``tempest_agent.commands``, function in it, and its help.

The modules are imported when their command runs, so that ``--help`` does not import torch.
"""


class _Unread(Exception):  # noqa: N818  (not an error)
    """A broken pipe: click would exit with 1 on ``BrokenPipeError`` itself."""


@contextmanager
def _past_click() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _Unread from error


class LazyGroup(click.Group):
    """A group that imports its commands on use and turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        command = getattr(import_module(f"tempest_agent.commands.{module}"), function)
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _past_click():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _past_click():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if current_folder_is_gone():  # Torch's libraries would end the process.
            raise UserError(FOLDER_IS_GONE)
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UserError(unknown_name("command", args[0], COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in COMMANDS.items()])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and end the process with its exit code; arguments as for ``Group.main``."""
        _open_closed_streams()
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except UserError as error:
            code = _complain(str(error), EXIT_USER)
        except click.ClickException as error:
            code = _complain(_one_line(error), EXIT_USER)
        except (click.Abort, KeyboardInterrupt):
            code = _complain("interrupted", EXIT_INTERRUPTED)
        except (_Unread, BrokenPipeError) as error:
            # The reader is gone: there is nobody to notify.
            code = EXIT_UNREAD if drop_lost_output() else _unexpected(error)
        except Exception as error:
            code = _unexpected(error)
        sys.exit(code if isinstance(code, int) else 0)


def _unexpected(error: Exception) -> int:
    """Report an error that no other code handles, and return its exit code."""
    if isinstance(error, OSError) and error.errno in FULL:
        what = f" {error.filename}" if error.filename else ""
        advice = "free some space, or use another folder"
        return _complain(f"cannot write{what}: {error.strerror}; {advice}", EXIT_USER)
    if is_out_of_memory(error):
        advice = "use fewer games, or a smaller network, batch or replay"
        return _complain(f"not enough memory ({one_line(error)}); {advice}", EXIT_USER)
    if isinstance(error, OSError) and (error.filename or error.errno in FAILING):
        what = error.filename or "a file or folder"
        return _complain(f"cannot use {what}: {system_reason(error)}; check it", EXIT_USER)
    traceback.print_exception(error)
    return _complain("this is a fault of tempest-agent, not yours", EXIT_FAULT)


def _open_closed_streams() -> None:
    """Redirect output and errors to nowhere if the caller closed them (``2>&-``).

    Otherwise the next opened file would get their number, and what libraries print.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: SIM115


def _complain(message: str, code: int) -> int:
    message = printable(message, LONGEST_MESSAGE)
    with suppress(OSError):  # stderr may be on a full disk; the exit code must still be returned.
        click.echo(f"tempest-agent: {message}", err=True)
    return code


def _one_line(error: click.ClickException) -> str:
    """Return a click error as one line that says where help is."""
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    return message + where


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(metadata.version("tempest-agent"), prog_name="tempest-agent")
def cli() -> None:
    """Atari's Tempest as an environment, a teacher, and an agent that learns from it."""


def main() -> None:
    """Run the command line: the entry point of the console script."""
    cli(prog_name="tempest-agent")


if __name__ == "__main__":
    main()
