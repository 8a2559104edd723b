"""The cache of compiled code: nothing in it is run that is not whole and this user's own."""

from __future__ import annotations

import logging
import os
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from copies import Copies, Ended

from tempest_agent.envs.machine import code_cache
from tempest_agent.envs.machine.compiled import kernel

MODULE = """
from tempest_agent.envs.machine.compiled import kernel


@kernel
def add(one: int, other: int) -> int:
    return one + other


@kernel
def subtract(one: int, other: int) -> int:
    return one - other
"""
CALLS = "import small; print(small.add(3, 2), small.subtract(3, 2))"
FIRST = "compiling the simulator (once, about a minute) ...\n"


def add(one: int, other: int) -> int:
    return one + other


def subtract(one: int, other: int) -> int:
    return one - other


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and a process that has not told of any fault."""
    monkeypatch.setenv("TEMPEST_AGENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(code_cache.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(code_cache, "_told", [])
    return tmp_path / "cache"


def is_loaded(function: Callable[[int, int], int] = add) -> bool:
    """Call ``function`` as a new process would; whether its code came from the disk."""
    fresh = cast(Any, kernel(function))
    assert fresh(5, 3) == function(5, 3)
    assert sum(fresh.stats.cache_hits.values()) + sum(fresh.stats.cache_misses.values()) == 1
    return bool(fresh.stats.cache_hits)


def only_file(root: Path) -> Path:
    (file,) = (path for path in root.rglob("*") if path.is_file())
    return file


def test_code_is_compiled_once_and_kept_in_one_file(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(root.with_name("numbas")))
    assert not is_loaded()
    assert is_loaded()
    assert only_file(root).stat().st_mode & 0o022 == 0
    assert not root.with_name("numbas").exists()
    assert not caplog.records


class Bomb:
    """Something of which unpickling shows."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


DAMAGES: dict[str, Callable[[bytes, Path], bytes]] = {
    "emptied": lambda content, _: b"",
    "halved": lambda content, _: content[: len(content) // 2],
    "without its end": lambda content, _: content[:-1],
    "longer": lambda content, _: content + b"\0",
    "first byte": lambda content, _: flipped(content, 0),
    "in the middle": lambda content, _: flipped(content, len(content) // 2),
    "last byte": lambda content, _: flipped(content, len(content) - 1),
    "zeros": lambda content, _: bytes(len(content)),
    "text": lambda content, _: b"compile me\n" * 50,
    "pickle": lambda content, trace: pickle.dumps(Bomb(trace)),
    "pickle behind the digest": lambda content, trace: content[:32] + pickle.dumps(Bomb(trace)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told_once_compiled_again_and_replaced(
    root: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    is_loaded()
    file, trace = only_file(root), root.with_name("unpickled")
    file.write_bytes(DAMAGES[damage](file.read_bytes(), trace))
    assert not is_loaded()
    assert is_loaded()
    assert only_file(root) == file
    assert not trace.exists()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message == f"{file} is damaged: compiling again, up to a minute in all ..."


def test_no_byte_of_a_file_can_change_unseen(tmp_path: Path) -> None:
    file, payload = tmp_path / "file", bytes(range(256)) * 4
    whole = code_cache._seal(b"key", payload) + payload
    for content in [whole, *(flipped(whole, at) for at in range(len(whole)))]:
        file.write_bytes(content)
        found = code_cache._read(file, b"key")
        assert (found == payload) == (content is whole)
    file.write_bytes(whole)
    assert code_cache._read(file, b"another key") is None


def test_the_file_of_another_function_is_not_taken_for_it(root: Path) -> None:
    is_loaded()
    file = only_file(root)
    is_loaded(subtract)
    (other,) = (path for path in root.rglob("*.nbc") if path != file)
    other.write_bytes(file.read_bytes())
    assert not is_loaded(subtract)
    assert is_loaded(subtract)


@pytest.mark.parametrize("what", ["writable", "folder", "pipe", "huge", "dangling"])
def test_what_may_not_be_this_users_own_file_is_not_read(
    root: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    is_loaded()
    file = only_file(root)
    if what == "writable":
        file.chmod(0o666)
    elif what == "huge":
        os.truncate(file, 2**40)
    else:
        file.unlink()
        if what == "folder":
            file.mkdir()
        elif what == "pipe":
            os.mkfifo(file)
        else:
            file.symlink_to("nowhere")
    assert not is_loaded()
    # A folder that is in the place cannot be replaced: the temporary one is used.
    assert is_loaded()
    assert len(caplog.records) == (what != "dangling")


def test_a_cache_that_cannot_be_written_gives_way_to_the_temporary_folder(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root.touch()
    assert not is_loaded()
    assert is_loaded()
    place = root.with_name("temporary") / f"tempest-agent-{os.getuid()}"
    assert only_file(place).suffix == ".nbc"
    assert place.stat().st_mode & 0o777 == 0o700
    (record,) = caplog.records
    assert record.message.startswith(f"compiled code cannot be kept in {root} (")
    assert record.message.endswith(f"), and goes to {place}")


@pytest.mark.parametrize("theirs", ["writable", "link"])
def test_a_temporary_folder_of_strangers_is_left_alone(
    root: Path, caplog: pytest.LogCaptureFixture, theirs: str
) -> None:
    root.touch()
    place = root.with_name("temporary") / f"tempest-agent-{os.getuid()}"
    elsewhere = root.with_name("elsewhere")
    elsewhere.mkdir()
    if theirs == "writable":
        place.mkdir()
        place.chmod(0o777)
    else:
        place.symlink_to(elsewhere)
    assert not is_loaded()
    assert not is_loaded()
    assert not list(place.iterdir())
    (record,) = caplog.records
    assert record.message.startswith(f"compiled code cannot be kept in {root} (")
    assert "it is not this user's alone" in record.message
    assert record.message.endswith(": every start compiles again; name another folder in "
                                   "TEMPEST_AGENT_CACHE")  # fmt: skip


def test_a_folder_that_is_removed_meanwhile_is_made_again(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fresh = cast(Any, kernel(add))
    assert fresh(1, 2) == 3
    only_file(root).unlink()
    only_file_folder = next(root.iterdir())
    only_file_folder.rmdir()
    root.rmdir()
    assert fresh(1.5, 2) == 3.5
    assert only_file(root)
    assert not caplog.records


@pytest.mark.parametrize("home", [None, "", "~", "relative", "/nowhere/to/be/found"])
def test_without_a_home_the_temporary_folder_serves(
    root: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.delenv("TEMPEST_AGENT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if home is None:
        monkeypatch.setattr(code_cache.os.path, "expanduser", lambda path: path)  # No such user.
    else:
        monkeypatch.setenv("HOME", home)
    folders = list(code_cache._roots())
    assert folders[-1] == root.with_name("temporary") / f"tempest-agent-{os.getuid()}"
    assert all(folder.is_absolute() for folder in folders)


def test_without_any_folder_it_is_compiled_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(code_cache.tempfile, "gettempdir", nowhere)
    root.touch()
    assert not is_loaded()
    (record,) = caplog.records
    assert "every start compiles again" in record.message


def test_versions_that_have_long_not_been_used_are_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(number: int, days: float, file: str = "f.nbc") -> Path:
        folder = root / f"{number:016x}"
        folder.mkdir(parents=True)
        (folder / file).touch()
        then = time.time() - days * code_cache.DAY
        os.utime(folder, (then, then))
        return folder

    monkeypatch.setattr(code_cache, "NEWEST", 4)
    late = [version(number, 0.5) for number in range(4)]
    fifth, month, not_ours = version(4, 2), version(5, 31), version(6, 40, "thesis.tex")
    before = version(7, 50, "g.nbc.tmp.0a")
    (before / "arcade_0a").mkdir()
    (before / "arcade_0a" / "g.nbi").touch()
    os.utime(before, (0, 0))
    others = root / "others"
    others.mkdir()
    os.utime(others, (0, 0))
    (root / f"{8:016x}").symlink_to(others)
    is_loaded()
    assert all(folder.is_dir() for folder in [*late, not_ours, others])
    assert (not_ours / "thesis.tex").exists()
    assert not any(folder.exists() for folder in (fifth, month, before))
    assert is_loaded()
    # What is used is young again.
    os.utime(late[0], (0, 0))
    code_cache._note_use(late[0])
    assert late[0].stat().st_mtime > time.time() - 60


def test_a_few_that_are_used_are_kept_for_a_month(root: Path) -> None:
    folder = root / f"{1:016x}"
    folder.mkdir(parents=True)
    (folder / "f.nbc").touch()
    then = time.time() - 29 * code_cache.DAY
    os.utime(folder, (then, then))
    is_loaded()
    assert folder.is_dir()


def said(ended: Ended) -> str:
    """What it wrote to stderr, and that it came to its end."""
    assert (ended.returncode, ended.stdout) == (0, "5 1\n"), ended.stderr
    return ended.stderr


@pytest.fixture
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    started = Copies(tmp_path_factory.mktemp("pipes"))
    yield started
    started.close()


def test_processes_of_their_own(tmp_path: Path, root: Path, copies: Copies) -> None:
    (tmp_path / "small.py").write_text(MODULE)

    def start(times: int = 1, before: str = "", **variables: str) -> list[str]:
        """What so many processes said that call both kernels at the same time."""
        environment = {**os.environ, **variables}
        return [said(each) for each in copies.run(before + CALLS, tmp_path, environment, times)]

    # Those that write at the same time; one that is late may find the code already kept.
    words = start(3)
    assert FIRST in words
    assert set(words) <= {FIRST, ""}
    assert start() == [""]
    # All that is kept is damaged: one line.
    for file in root.rglob("*.nbc"):
        file.write_bytes(b"")
    assert start()[0].count("\n") == 1
    assert start() == [""]
    # No room for anything.
    for file in root.rglob("*.nbc"):
        file.unlink()
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (99, 99)); "
    [errors] = start(1, limited, TMPDIR=str(tmp_path))
    assert errors.count("\n") == 2
    assert errors.startswith(FIRST)
    assert "every start compiles again" in errors
    assert not list(tmp_path.rglob("*.nbc*"))
