"""One machine: commands in, game ticks out, and a deadline for each."""

from __future__ import annotations

import os
import re
import select
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from . import protocol
from .errors import MachineError, MameError
from .mame_options import MameOptions
from .output import Words
from .process import MameProcess
from .protocol import Dialogue, Frame

OLDEST_MAME = 0.227
"""The first version whose Lua interface has the names that the bridge uses."""

_READ_SIZE = 1 << 16

T = TypeVar("T")

_machines: weakref.WeakSet[MameMachine] = weakref.WeakSet()


class MameMachine:
    """A MAME process that stands at the start of a game tick, or runs to the next one.

    Args:
        options: how MAME is run.
        rom_set: MAME's name of the set that it plays (``roms.find_rom_set``).
        setup: commands that it is given before the machine's first instruction.

    ``frame`` is the tick at which it stands; ``None`` while it runs.  ``listener`` is notified
    of every tick and of the commands given at it.  ``time_for_answer``: seconds that the next
    answers may take, where the options' limits do not fit.
    """

    def __init__(self, options: MameOptions, rom_set: str, setup: bytes = b"") -> None:
        self.options = options
        self.frame: Frame | None = None
        self.phase = "starting"
        self.version = ""
        self.time_for_answer: float | None = None
        self.listener: Callable[[Frame, bytes], None] | None = None
        self._setup = setup
        self._buffer = bytearray()
        self._process = MameProcess(options, rom_set)
        self.deadline = time.monotonic() + options.start_timeout
        self._finalizer = weakref.finalize(self, self._process.close)
        _machines.add(self)

    @property
    def pid(self) -> int:
        """MAME's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has neither failed nor been closed."""
        return self._finalizer.alive

    def fileno(self) -> int:
        """Return the file descriptor that becomes readable with the next tick."""
        return self._process.images

    @property
    def words(self) -> Words:
        """Its output, to be read while it runs."""
        return self._process.words

    def send(self, commands: bytes) -> None:
        """Give it ``commands``; it has a limited time to reach the next tick.

        Raises ``MachineError`` where it is gone.
        """
        if not self.alive:
            raise MachineError("it has already ended", self.phase)
        if self.listener is not None and self.frame is not None:
            self.listener(self.frame, commands)
        self.frame = None
        self.deadline = time.monotonic() + self._patience
        try:
            sent = os.write(self._process.commands, commands)
        except BrokenPipeError:
            # Its last output explains more than the broken pipe.
            return
        except BlockingIOError:
            sent = 0
        if sent != len(commands):
            raise self.fail("it does not read its commands")

    def receive(self) -> Frame | None:
        """Return the tick at which it has arrived, or ``None`` while that is incomplete.

        Raises ``MachineError``, and ``MameError`` for a MAME that is too old.
        """
        while True:
            frame = self._parse()
            if frame is not None:
                return frame
            try:
                part = os.read(self._process.images, _READ_SIZE)
            except BlockingIOError:
                return None
            if not part:
                raise self.fail("it has ended", ending=True)
            self._buffer += part

    def fail(self, reason: str, ending: bool = False) -> MachineError:
        """End the process, and return why and how."""
        self._finalizer.detach()
        return self._process.failure(reason, self.phase, ending=ending)

    def overdue(self) -> MachineError:
        """End the process because its time is up."""
        return self.fail(f"it has not answered within {self._patience:g} s")

    def close(self) -> None:
        """End MAME and remove its folder; may be called twice."""
        self._finalizer()

    def abandon(self) -> None:
        """Forget the machine in a forked child: it belongs to the parent."""
        if self._finalizer.detach() is not None:
            self._process.abandon()

    @property
    def _patience(self) -> float:
        if self.time_for_answer is not None:
            return self.time_for_answer
        starting = self.phase == "starting"
        return self.options.start_timeout if starting else self.options.answer_timeout

    def _parse(self) -> Frame | None:
        try:
            message = protocol.parse(self._buffer)
        except protocol.ProtocolError as error:
            raise self.fail(str(error)) from error
        if isinstance(message, protocol.Hello):
            self._greet(message)
            return None
        if isinstance(message, protocol.Trouble):
            raise self.fail(message.text, ending=True)
        if message is not None:
            self.frame = message
            self.phase = "playing" if self.phase == "starting" else self.phase
        return message

    def _greet(self, hello: protocol.Hello) -> None:
        self.version = hello.version
        number = re.match(r"\d+\.\d+", hello.version)
        if number is not None and float(number.group()) < OLDEST_MAME:
            self.close()
            raise MameError(
                f"MAME {hello.version} is too old: install {OLDEST_MAME} or newer "
                "(Debian 12 has 0.251)"
            )
        if hello.protocol != protocol.PROTOCOL:
            raise self.fail(
                f"its bridge speaks protocol {hello.protocol}, this program {protocol.PROTOCOL}: "
                "reinstall tempest-agent"
            )
        self.send(self._setup + protocol.carry_on())


def converse(
    work: Mapping[MameMachine, Callable[[Frame], Dialogue[T]]],
) -> dict[MameMachine, T | MachineError]:
    """Run one dialogue with each machine, all at the same time.

    A dialogue starts with the tick at which its machine stands.  Returns each one's result, or
    the failure that ended it; the others are not touched by that.  Any other exception ends the
    machines that were running, whose answers would never be read.
    """
    conversations = _Conversations(work)
    try:
        conversations.hold()
    except BaseException:
        for machine in conversations.running:
            if machine.frame is None:
                machine.close()
        raise
    return conversations.results


class _Conversations(Generic[T]):
    """Running dialogues: ``running`` ones (``None`` if not started), and ``results``."""

    def __init__(self, work: Mapping[MameMachine, Callable[[Frame], Dialogue[T]]]) -> None:
        self.results: dict[MameMachine, T | MachineError] = {}
        self.running: dict[MameMachine, Dialogue[T] | None] = dict.fromkeys(work)
        self._work = work
        self._poller = select.poll()
        self._machines: dict[int, MameMachine] = {}
        self._words: dict[int, MameMachine] = {}

    def hold(self) -> None:
        """Run until every dialogue has ended."""
        for machine in list(self.running):
            if not machine.alive:
                self._finish(machine, MachineError("it has already ended", machine.phase))
                continue
            self._machines[machine.fileno()] = machine
            self._poller.register(machine.fileno(), select.POLLIN)
            if machine.words.number >= 0:
                self._words[machine.words.number] = machine
                self._poller.register(machine.words.number, select.POLLIN)
            if machine.frame is not None:
                self._advance(machine)
        while self.running:
            now = time.monotonic()
            wait = min(each.deadline for each in self.running) - now
            for number, _ in self._poller.poll(max(wait, 0) * 1000):
                if number in self._machines:
                    self._advance(self._machines[number])
                elif number in self._words and not self._words[number].words.hear():
                    del self._words[number]
                    self._poller.unregister(number)
            # Only after a look at what has arrived: this process may itself have been busy since.
            for machine in [each for each in self.running if each.deadline <= now]:
                self._finish(machine, machine.overdue())

    def _advance(self, machine: MameMachine) -> None:
        """Take the tick at which ``machine`` has arrived, if it has, and answer it."""
        try:
            frame = machine.frame or machine.receive()
            if frame is None:
                return
            dialogue = self.running[machine]
            if dialogue is None:
                dialogue = self.running[machine] = self._work[machine](frame)
                commands = next(dialogue)
            else:
                commands = dialogue.send(frame)
            machine.send(commands)
        except StopIteration as stop:
            self._finish(machine, stop.value)
        except MachineError as error:
            if machine.alive:  # A dialogue found that the machine does not play the game.
                machine.close()
            self._finish(machine, error)

    def _finish(self, machine: MameMachine, result: T | MachineError) -> None:
        self.results[machine] = result
        del self.running[machine]
        for watched in (self._machines, self._words):
            for number in [n for n, each in watched.items() if each is machine]:
                del watched[number]
                self._poller.unregister(number)


def _abandon_machines() -> None:
    for machine in list(_machines):
        machine.abandon()


# A forked child holds copies of the pipes: MAME would outlive its parent for as long as the child.
os.register_at_fork(after_in_child=_abandon_machines)
