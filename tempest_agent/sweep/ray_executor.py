"""Run the commands of a sweep as tasks of a Ray cluster, on this machine or a larger one.

Ray decides where and when: every command reserves the CPUs and the share of a GPU that it uses.  It
runs in its own process, a child of the Ray worker, and ends with it.  The task of a lost worker is
submitted again and continues from its files.  Files are the only results, so all machines must
share the folder.
"""

from __future__ import annotations

import logging
import math
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempest_agent.errors import UserError
from tempest_agent.files.own_files import open_own
from tempest_agent.ray_support import cluster as ray_cluster
from tempest_agent.ray_support.cluster import LOCAL, keeping_sigterm
from tempest_agent.ray_support.watch import RayWatch, failing_as, watch_over
from tempest_agent.sweep.executor import (
    POLL_SECONDS,
    Command,
    Task,
    signals_interrupt,
    signals_seen,
)
from tempest_agent.sweep.ray_worker import KILLED, Outcome, Sight, carry_out

SIGHT = ".seen-by-all-"
"""Prefix of the file by which a worker finds out whether it shares the folder."""
RETRIES = 3
"""How often a task may lose its worker before it is given up."""
STORE_BYTES = 80 * 2**20
"""Shared memory of a cluster started here, about the least that Ray accepts."""

GO_ON = (
    "the same command with the --ray-address of another cluster, or without it, continues from the "
    "last checkpoint of every run"
)

log = logging.getLogger("tempest_agent")


class ClusterLostError(UserError):
    """Ray has ended on this machine, or the head of its cluster is lost."""


@dataclass(frozen=True)
class _Given:
    task: Task
    command: Command


class RayTasks:
    """Runs tasks on Ray.

    Args:
        address: ``local`` starts a cluster on this machine, which ends with the sweep; ``auto`` or
            ``host:port`` joins an existing one, which stays up.
        jobs: tasks at the same time; None for as many as the cluster has room for.
        gpus: share of a GPU that a command reserves if it may use one; None for a whole one if it
            requires one.
    """

    def __init__(
        self, address: str = LOCAL, jobs: int | None = None, gpus: float | None = None
    ) -> None:
        self._address, self._jobs, self._gpus = address, jobs, gpus
        self._ray: Any = None
        self._remote: Any = None
        self._watch: RayWatch
        self._waiting: deque[Task] = deque()
        self._sight: Sight | None = None
        self._given: dict[Any, _Given] = {}
        self._lost: dict[str, int] = {}
        self._warned: set[str] = set()

    def run(
        self, tasks: Sequence[Task], watch: Callable[[], None], failed: Callable[[Task, int], None]
    ) -> None:
        """See ``Executor``.  A signal asks the commands to save and end; a second one kills them.

        Raises:
            UserError: no Ray, no such cluster, a machine that does not share the folder, or the
                cluster was lost; then the commands on the remaining machines have been asked to
                save and end.
        """
        self._waiting = deque(tasks)
        try:
            with signals_seen() as signals, self._cluster():
                try:
                    while (self._waiting or self._given) and not signals:
                        self._give_all()
                        for one in self._ended(list(self._given)):
                            self._take(one, signals, failed)
                        watch()
                finally:
                    self._end(signals)
        except ClusterLostError as error:
            raise UserError(f"{error}; {GO_ON}") from error
        if signals:
            raise KeyboardInterrupt

    def _guard(self) -> AbstractContextManager[None]:
        return self._watch.guard(self._ray, ClusterLostError)

    def _give_all(self) -> None:
        """Submit as many waiting tasks to Ray as may run at the same time."""
        # Ray without its servers would block: wait until it answers or counts as lost.
        while self._waiting and (self._jobs is None or len(self._given) < self._jobs):
            if not self._watch.look():
                break
            self._give(self._waiting.popleft())

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        """Connect to Ray, and disconnect afterwards unless this process was connected before."""
        self._ray = ray = import_ray()
        was_there = ray.is_initialized()
        if not was_there:
            self._connect()
        self._watch = watch_over(ray)
        self._remote = ray.remote(carry_out)
        try:
            yield
        finally:
            self._watch.close()
            if self._sight is not None:
                self._sight.file.unlink(missing_ok=True)
            if not was_there:
                ray.shutdown()

    def _connect(self) -> None:
        """Connect; signals end it immediately, because there is nothing to save yet."""
        try:
            with signals_interrupt():
                keeping_sigterm(
                    self._ray, lambda: ray_cluster.connect(self._ray, self._address, STORE_BYTES)
                )
        except KeyboardInterrupt:
            self._ray.shutdown()
            raise

    def _give(self, task: Task) -> None:
        """Submit the next command of ``task`` to Ray, if there is one."""
        command = task.next_command()
        if command is None:
            return
        if self._sight is None:
            self._sight = _make_sight(command.folder)
        needs = {"num_cpus": command.cpus, "num_gpus": self._share(command)}
        with self._guard():
            self._warn_of(needs)
            # No retries by Ray: the next command may be another one.
            remote = self._remote.options(max_retries=0, name=task.name, **needs)
            self._given[remote.remote(command, self._sight)] = _Given(task, command)

    def _share(self, command: Command) -> float:
        if command.device == "cpu":
            return 0.0
        whole = 1.0 if command.device == "cuda" else 0.0
        return whole if self._gpus is None else self._gpus

    def _warn_of(self, needs: dict[str, float]) -> None:
        """Warn once if no machine has what a command needs: Ray would wait silently."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        wanted = {"CPU": needs["num_cpus"], "GPU": needs["num_gpus"]}
        for what, number in wanted.items():
            most = max((node.get(what, 0.0) for node in nodes), default=0.0)
            if number <= most or what in self._warned:
                continue
            self._warned.add(what)
            log.warning(
                "a run reserves %g %ss and no machine of the cluster has more than %g: waiting for "
                "one; or stop (Ctrl-C) and lower %s",
                number,
                what,
                most,
                "run.threads" if what == "CPU" else "--gpus",
            )

    def _ended(self, given: list[Any]) -> list[Any]:
        """Return the commands that have ended, after ``POLL_SECONDS`` at most."""
        if not given:
            time.sleep(POLL_SECONDS)
        with self._guard():
            return self._done(given)

    def _done(self, given: list[Any]) -> list[Any]:
        if given:
            self._ray.wait(given, num_returns=1, timeout=POLL_SECONDS, fetch_local=False)
            given, _ = self._ray.wait(given, num_returns=len(given), timeout=0, fetch_local=False)
        return list(given)

    def _take(self, one: Any, signals: Sequence[int], failed: Callable[[Task, int], None]) -> None:
        """Continue the task of a command that has ended, or report that it failed."""
        given = self._given.pop(one)
        code, why = self._result(one, given.command)
        if signals:
            return
        if code == 0:
            self._lost.pop(given.task.name, None)
            self._waiting.appendleft(given.task)
        elif why and self._lost.get(given.task.name, 0) < RETRIES:
            self._lost[given.task.name] = self._lost.get(given.task.name, 0) + 1
            _write_line(given.command.log, f"{why}: continuing from its files")
            self._waiting.appendleft(given.task)
        else:
            if why:
                _write_line(given.command.log, f"{why}, for the {RETRIES + 1}th time")
            failed(given.task, code)

    def _result(self, one: Any, command: Command) -> tuple[int, str]:
        """Return the exit code of a command, and why it was lost if it was."""
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(one)
        except errors.TaskCancelledError:
            return KILLED, ""
        except errors.RayTaskError as error:
            raise UserError(
                f"a Ray worker cannot run commands of this sweep: {_last_line(error)}; install the "
                "same tempest-agent on every machine of the cluster"
            ) from error
        except errors.RayError as error:
            return KILLED, f"the Ray worker was lost ({type(error).__name__})"
        if outcome.blind:
            raise UserError(
                f"{outcome.blind} does not see {command.folder}, where the files of the sweep are: "
                "give a folder that all machines of the cluster share with --out, or stay on this "
                "machine with --ray-address local"
            )
        return outcome.code, "the command was killed" if outcome.code == KILLED else ""

    def _end(self, signals: Sequence[int]) -> None:
        """Ask all commands to end and wait for them; kill them at the second signal.

        Where Ray is lost, they are waited for a while, as long as it lets us: some may have heard.
        """
        killed = False
        end = math.inf
        with failing_as(ClusterLostError, self._ray):
            for one in self._given:
                self._ray.cancel(one)
            while self._given and time.monotonic() < end:
                for one in self._done(list(self._given)):
                    del self._given[one]
                if len(signals) > 1 and not killed:
                    killed = True
                    for one in self._given:
                        self._ray.cancel(one, force=True)
                if self._watch.lost:
                    end = min(end, time.monotonic() + self._watch.patience)


def import_ray() -> Any:
    """Return the module Ray.

    Raises:
        UserError: it is not installed.
    """
    return ray_cluster.import_ray("--ray-address needs", "leave it out and give --jobs")


def _make_sight(folder: Path) -> Sight:
    for old in folder.glob(f"{SIGHT}*"):
        old.unlink(missing_ok=True)
    file = folder / f"{SIGHT}{uuid.uuid4().hex}"
    file.touch()
    return Sight(file, sys.executable)


def _write_line(file: Path, text: str) -> None:
    with open(file, "a", encoding="utf-8", opener=open_own) as log_file:
        log_file.write(f"{text}\n")


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
