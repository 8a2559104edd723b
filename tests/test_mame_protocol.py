"""The bridge's language, and MAMEs that do not speak it: none of these tests needs MAME."""

from __future__ import annotations

import os
import select
import stat
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mame_rom.assembler import assemble

from tempest_agent.envs.mame import protocol
from tempest_agent.envs.mame.batch import MachineLostWarning, MameBatch
from tempest_agent.envs.mame.errors import MachineError, MameError
from tempest_agent.envs.mame.machine import MameMachine, converse
from tempest_agent.envs.mame.options import MameOptions, find_mame
from tempest_agent.envs.mame.protocol import Dialogue, Frame, Hello, ProtocolError, Trouble


def message(kind: bytes, payload: bytes) -> bytes:
    return b"TPST" + kind + struct.pack("<I", len(payload)) + payload


def tick_message(ram: bytes, entries: bytes = b"") -> bytes:
    head = struct.pack("<IQQI", 7, 55_296, 99, len(entries) // protocol.ENTRY_DTYPE.itemsize)
    return message(b"T", head + ram + entries)


def test_a_tick_is_read_back_byte_for_byte_however_it_is_cut() -> None:
    ram = bytes(range(256)) * 8
    entry = np.array([(b"R", 0x60DA, 0x9A61, 200, 0, 1234)], protocol.ENTRY_DTYPE)
    sent = message(b"H", struct.pack("<H", 1) + b"0.251") + tick_message(ram, entry.tobytes())
    for size in (1, 3, 13, 1000, len(sent)):
        buffer, got = bytearray(), []
        for at in range(0, len(sent), size):
            buffer += sent[at : at + size]
            while (found := protocol.parse(buffer)) is not None:
                got.append(found)
        assert got[0] == Hello(1, "0.251")
        frame = got[1]
        assert isinstance(frame, Frame)
        assert (frame.tick, frame.cycle, frame.stream) == (7, 55_296, 99)
        expected = np.frombuffer(ram, np.uint8).copy()
        expected[0x53] = 0  # The tick's own store of 0, under way when the image was taken.
        assert np.array_equal(frame.ram, expected)
        assert np.array_equal(frame.log, entry)
        assert not buffer


def test_trouble_is_a_text() -> None:
    assert protocol.parse(bytearray(message(b"E", b"no taps"))) == Trouble("no taps")


@pytest.mark.parametrize(
    "sent",
    [
        b"hello, is there anybody",
        b"TPSX",
        message(b"?", b""),
        message(b"T", b"short"),
        b"TPSTT" + struct.pack("<I", 2**31),
        message(b"T", struct.pack("<IQQI", 1, 1, 0, 5) + bytes(2048)),
        message(b"H", b""),
    ],
)
def test_nonsense_is_refused_at_once(sent: bytes) -> None:
    with pytest.raises(ProtocolError):
        protocol.parse(bytearray(sent))


def test_commands_can_be_taken_apart() -> None:
    commands = protocol.write([(0x102, 7), (5, 255)]) + protocol.go(-3, True, False)
    assert protocol.split(commands) == [
        (b"W", b"\x02\x01\x07\x05\x00\xff"),
        (b"G", bytes([0xFD, 0x10, 0])),
    ]
    assert protocol.split(protocol.go(31, True, True)) == [(b"G", bytes([31, 0x18, 0x08]))]


def test_the_assembler_knows_a_program_written_by_hand() -> None:
    source = """
    .org $C000
    again:
        LDA #$10     ; a comment
        STA $50
        LDA $0234,X
        BNE again
        JMP later
    later:
        RTS
        .byte 1 $FF
    """
    expected = "A9 10 85 50 BD 34 02 D0 F7 4C 0C C0 60 01 FF 00"
    assert assemble(source, 0xC000, 0xC00F) == bytes.fromhex(expected)
    with pytest.raises(ValueError, match="line 1: 'XYZ'"):
        assemble("XYZ", 0, 10)


FAKE = """#!{python}
import os, signal, struct, sys, time
out, commands = int(os.environ["TEMPEST_AGENT_IMAGES"]), int(os.environ["TEMPEST_AGENT_COMMANDS"])
def hello(protocol=1, version=b"0.251"):
    payload = struct.pack("<H", protocol) + version
    os.write(out, b"TPSTH" + struct.pack("<I", len(payload)) + payload)
with open({starts!r}, "a") as file:
    file.write("started ")
{body}
"""


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., MameOptions]:
    """Makes options whose MAME is a program of a few lines; ``tmp_path/starts`` counts its runs."""

    def make(body: str, **options: float) -> MameOptions:
        program = tmp_path / "mame"
        starts = str(tmp_path / "starts")
        program.write_text(FAKE.format(python=sys.executable, body=body, starts=starts))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        roms = tmp_path / "roms"
        (roms / "tempest1").mkdir(parents=True, exist_ok=True)
        limits = {"start_timeout": 200.0, "answer_timeout": 200.0, **options}
        return MameOptions(roms, mame_path=program, **limits)  # type: ignore[arg-type]

    return make


def never(_frame: Frame) -> Dialogue[None]:
    raise AssertionError("the machine came to a tick")
    yield b""


FAILURES = {
    "never answers": ("time.sleep(60)", "not answered within 0.5 s", "has been killed"),
    "ignores everything": (
        "signal.signal(15, signal.SIG_IGN)\nwhile True: pass",
        "not answered within 0.5 s",
        "has been killed",
    ),
    "says hello only": ("hello(); time.sleep(60)", "not answered within 0.5 s", "been killed"),
    "garbage": ("os.write(out, b'welcome'); time.sleep(60)", "no message", "been killed"),
    "half a message": (
        "hello(); os.read(commands, 9)\n"
        "os.write(out, b'TPSTT' + struct.pack('<I', 5000) + bytes(100))",
        "it has ended",
        "ended by itself",
    ),
    "fatal error": ("print('cannot do this'); sys.exit(3)", "cannot do this", "a fatal error"),
    "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "it has ended", "crashed (SIGSEGV)"),
    "another protocol": ("hello(99); time.sleep(60)", "speaks protocol 99", "been killed"),
    "trouble": (
        "os.write(out, b'TPSTE' + struct.pack('<I', 4) + b'alas')",
        "alas",
        "ended by itself",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failing_mame_is_reported_with_phase_status_and_log(
    case: str, fake: Callable[..., MameOptions]
) -> None:
    body, reason, status = FAILURES[case]
    limit = 0.5 if "0.5" in reason else 200.0
    machine = MameMachine(fake(body, start_timeout=limit))
    result = converse({machine: never})[machine]
    assert isinstance(result, MachineError)
    assert result.phase == "starting"
    text = str(result)
    assert reason in text
    assert status in text
    assert not machine.alive
    with pytest.raises(ProcessLookupError):
        os.kill(machine.pid, 0)


def test_an_old_mame_is_refused(fake: Callable[..., MameOptions]) -> None:
    machine = MameMachine(fake("hello(version=b'0.200'); time.sleep(60)"))
    with pytest.raises(MameError, match=r"0\.200 is too old"):
        converse({machine: never})
    assert not machine.alive


def test_a_missing_rom_file_is_named(fake: Callable[..., MameOptions]) -> None:
    body = "print('136002-113.d1 NOT FOUND (tried in tempest1)', flush=True); sys.exit(2)"
    machine = MameMachine(fake(body))
    with pytest.raises(MameError, match=r"does not find 136002-113\.d1 \(1 files"):
        converse({machine: never})


def test_a_wrong_checksum_is_named(fake: Callable[..., MameOptions]) -> None:
    body = "print('136002-122.r1 WRONG CHECKSUMS:', flush=True); hello(); time.sleep(60)"
    machine = MameMachine(fake(body))
    with pytest.raises(MameError, match=r"136002-122\.r1 differs .*wrong checksum.*strict_roms"):
        converse({machine: never})


def test_an_answer_that_waited_for_a_busy_program_is_not_late(
    fake: Callable[..., MameOptions],
) -> None:
    """One machine's dialogue goes on until the other's answer is there, and past its deadline."""
    body = (
        "hello(); os.read(commands, 9)\n"
        "for number in (1, 2):\n"
        "    tick = struct.pack('<IQQI', number, 1, 0, 0) + bytes(2048)\n"
        "    os.write(out, b'TPSTT' + struct.pack('<I', len(tick)) + tick)\n"
        "    os.read(commands, 99)\n"
    )
    machines = [MameMachine(fake(body)) for _ in range(2)]
    late = 0

    def play(_frame: Frame) -> Dialogue[int]:
        nonlocal late
        frame = yield protocol.go()
        for other in (each for each in machines if each.frame is None):
            assert select.select([other], [], [], 200.0)[0]
            other.deadline = time.monotonic()
            late += 1
        return frame.tick

    assert list(converse(dict.fromkeys(machines, play)).values()) == [2, 2]
    assert late == 1
    for machine in machines:
        machine.close()


def test_a_trickle_of_bytes_is_no_answer(fake: Callable[..., MameOptions]) -> None:
    body = (
        "hello(); os.read(commands, 9)\n"
        "os.write(out, b'TPSTT' + struct.pack('<I', 5000))\n"
        "while True:\n"
        "    time.sleep(0.05); os.write(out, b'.')\n"
    )
    machine = MameMachine(fake(body, start_timeout=1.0))
    result = converse({machine: never})[machine]
    assert isinstance(result, MachineError)
    assert "not answered within 1 s" in str(result)


def test_restarts_are_counted(fake: Callable[..., MameOptions], tmp_path: Path) -> None:
    options = fake("sys.exit(3)", max_restarts=2)
    batch = MameBatch(1, None, options)
    with pytest.warns(MachineLostWarning), pytest.raises(MachineError, match="fatal error"):
        batch.reset(seeds=0)
    assert (tmp_path / "starts").read_text().split() == ["started"] * 3
    assert len(batch.failures) == 3


def test_no_mame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(MameError, match="no executable file"):
        find_mame(tmp_path / "mame")
    monkeypatch.setattr("tempest_agent.envs.mame.options._USUAL_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MameError, match=r"MAME is not installed.*apt-get install mame"):
        find_mame(None)


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ([], "has no ROM set 'tempest1'.*it is empty"),
        (["asteroid.zip"], r"has no ROM set.*it holds asteroid\.zip"),
        (None, "does not exist"),
    ],
)
def test_no_roms(
    present: list[str] | None, expected: str, fake: Callable[..., MameOptions], tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    if present is not None:
        folder.mkdir()
        for name in present:
            (folder / name).touch()
    program = fake("").mame_path
    with pytest.raises(MameError, match=expected):
        MameMachine(MameOptions(folder, mame_path=program))


@pytest.mark.parametrize("given", ["files", "folder", "zip", "zip in folder", "odd;name"])
def test_every_place_of_a_set_is_found(
    given: str, fake: Callable[..., MameOptions], tmp_path: Path
) -> None:
    """The fake prints what MAME would find below its ROM folder."""
    body = (
        "path = sys.argv[sys.argv.index('-rompath') + 1]\n"
        "found = [os.path.join(at, name) for at, _, names in os.walk(path, followlinks=True)"
        " for name in names]\n"
        "print('found', *sorted(os.path.relpath(each, path) for each in found))\nsys.exit(3)"
    )
    program = fake(body).mame_path
    folder = tmp_path / ("odd;name" if given == "odd;name" else "mine")
    inner = folder if given == "files" else folder / "tempest1"
    (folder if "zip" in given else inner).mkdir(parents=True)
    if "zip" in given:
        (folder / "tempest1.zip").touch()
    else:
        (inner / "136002-113.d1").touch()
    path = folder / "tempest1.zip" if given == "zip" else folder
    machine = MameMachine(MameOptions(path, mame_path=program))
    result = converse({machine: never})[machine]
    expected = "found tempest1.zip" if "zip" in given else "found tempest1/136002-113.d1"
    assert expected in str(result)


def test_options_are_checked() -> None:
    with pytest.raises(MameError, match="random_bytes='dice'"):
        MameOptions("x", random_bytes="dice")
    with pytest.raises(MameError, match="answer_timeout=0"):
        MameOptions("x", answer_timeout=0)
    with pytest.raises(MameError, match="max_restarts=-1"):
        MameOptions("x", max_restarts=-1)
