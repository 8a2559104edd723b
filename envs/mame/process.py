"""One MAME process: how it is started, where it may write, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from .errors import MachineError, MameError
from .mame_options import MameOptions, find_mame
from .output import Words
from .roms import make_home, rom_folders

BRIDGE = Path(__file__).with_name("bridge.lua")
_FOLDERS = ("cfg", "nvram", "sta", "snap", "diff", "inp", "comments", "plugins")
_WATCH = 'read -r _; kill -KILL "-$1" 2> /dev/null; rm -rf -- "$2"'
"""Waits for the end of its input, which comes with the parent's; then nothing may be left."""

_END_SECONDS = 5.0
_LOG_LINES = 6
_READS = 64
"""Most reads of a failed process's last output; it may never stop printing."""

_NOISE = re.compile(
    r"^ALSA|^ +(EXPECTED|FOUND):|WRONG CHECKSUMS|might not run correctly|-video none"
)
_EXIT = {
    0: "it ended by itself",
    2: "it ended with status 2: ROM files are missing",
    3: "it ended with status 3: a fatal error",
    5: "it ended with status 5: it does not know the game",
    -signal.SIGSEGV: "it crashed (SIGSEGV)",
    -signal.SIGABRT: "it crashed (SIGABRT)",
    -signal.SIGKILL: "it was killed (SIGKILL: by hand, or out of memory)",
    -signal.SIGTERM: "it was ended from outside (SIGTERM)",
    -signal.SIGPIPE: "it lost its pipe (SIGPIPE)",
}


class MameProcess:
    """A running MAME with the bridge inside, and the two pipes to it.

    It writes only into its own folder, which is removed at the end.  It ends with ``close()`` or
    with the interpreter.  If that is killed, a small watching process ends MAME, even one that is
    stopped, and removes the folder.
    """

    def __init__(self, options: MameOptions, rom_set: str) -> None:
        executable = find_mame(options.mame_path)
        self.home = make_home(options.rom_path)
        try:
            for name in _FOLDERS:
                (self.home / name).mkdir()
            self._start([str(executable), *_arguments(self.home, options, rom_set)], options)
        except BaseException:
            shutil.rmtree(self.home, ignore_errors=True)
            raise

    def _start(self, command: list[str], options: MameOptions) -> None:
        commands_out, self.commands = os.pipe()
        self.images, images_in = os.pipe()
        words_out, words_in = os.pipe()
        self.words = Words(words_out)
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "TEMPEST_AGENT_COMMANDS": str(commands_out),
            "TEMPEST_AGENT_IMAGES": str(images_in),
        }
        if not options.mame_window:
            environment.update(SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=words_in,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env=environment,
                pass_fds=(commands_out, images_in),
                # Ctrl-C is for this program, which then ends MAME properly.
                start_new_session=True,
                # SIGPIPE stays ignored, so that the bridge sees a lost pipe as an error.
                restore_signals=False,
            )
        except OSError as error:
            self._close_pipes()
            raise MameError(f"{command[0]} cannot be run: {error}") from error
        except BaseException:
            self._close_pipes()
            raise
        finally:
            os.close(commands_out)
            os.close(images_in)
            os.close(words_in)
        self._watch()
        os.set_blocking(self.images, False)
        os.set_blocking(self.commands, False)

    def _watch(self) -> None:
        try:
            self._watcher = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "sh", str(self._process.pid), str(self.home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            self._kill()
            self._close_pipes()
            raise

    @property
    def pid(self) -> int:
        """MAME's process id."""
        return self._process.pid

    def failure(self, reason: str, phase: str, *, ending: bool) -> MachineError:
        """End the process, and return how it failed; ``ending``: it seems to end by itself."""
        status: str | None = None
        try:
            code = self._process.wait(_END_SECONDS if ending else 0)
            status = _EXIT.get(code, f"it ended with status {code}")
        except subprocess.TimeoutExpired:
            status = "it was still running and has been killed"
        for _ in range(_READS):
            if not self.words.hear():
                break
        lines = [
            line.strip() for line in self.words.lines() if line.strip() and not _NOISE.search(line)
        ]
        failure = MachineError(reason, phase, status, " | ".join(lines[-_LOG_LINES:]))
        self.close(at_once=True)
        return failure

    def close(self, at_once: bool = False) -> None:
        """End MAME, its pipes and its folder; may be called twice."""
        self._close_pipes()
        # The lost pipe ends MAME, but one that hangs or is stopped would not notice.
        try:
            self._process.wait(0 if at_once else 1.0)
        except subprocess.TimeoutExpired:
            self._kill()
        shutil.rmtree(self.home, ignore_errors=True)
        self._watcher.kill()
        self._watcher.wait()
        self._let_watcher_go()

    def abandon(self) -> None:
        """Close the parent's pipes in a forked child, without touching its machine."""
        self._close_pipes()
        self._let_watcher_go()
        self._process.returncode = self._watcher.returncode = 0

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _let_watcher_go(self) -> None:
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()

    def _close_pipes(self) -> None:
        for name in ("commands", "images"):
            pipe = getattr(self, name)
            if pipe >= 0:
                os.close(pipe)
                setattr(self, name, -1)
        self.words.close()


def _arguments(home: Path, options: MameOptions, rom_set: str) -> list[str]:
    video = (
        ["-window"] if options.mame_window else ["-video", "none", "-sound", "none", "-nothrottle"]
    )
    return [
        rom_set,
        *("-rompath", rom_folders(home)),
        *("-noreadconfig", "-noplugins", "-skip_gameinfo", "-noautosave"),
        *("-inipath", str(home), "-homepath", str(home), "-pluginspath", str(home / "plugins")),
        *("-cfg_directory", str(home / "cfg"), "-nvram_directory", str(home / "nvram")),
        *("-state_directory", str(home / "sta"), "-snapshot_directory", str(home / "snap")),
        *("-diff_directory", str(home / "diff"), "-input_directory", str(home / "inp")),
        *("-comment_directory", str(home / "comments")),
        *("-numprocessors", "1"),
        *("-autoboot_delay", "0", "-autoboot_script", str(BRIDGE)),
        *video,
    ]
