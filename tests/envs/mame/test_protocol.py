"""The bridge's language, and MAMEs that do not speak it: none of these tests needs MAME."""

from __future__ import annotations

import dataclasses
import os
import select
import shutil
import stat
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mame_rom.assembler import assemble
from numpy.typing import NDArray

from tempest_agent.envs.mame import protocol
from tempest_agent.envs.mame.connection import MameMachine, converse
from tempest_agent.envs.mame.errors import MachineError, MameError
from tempest_agent.envs.mame.mame_batch import MachineLostWarning, MameBatch
from tempest_agent.envs.mame.mame_options import ROM_SETS, MameOptions, find_mame
from tempest_agent.envs.mame.protocol import Dialogue, Frame, Hello, ProtocolError, Trouble
from tempest_agent.envs.mame.recorder import HELD, SAMPLE, _obey
from tempest_agent.envs.mame.roms import find_rom_set, make_home, rom_folders

pytestmark = pytest.mark.xdist_group("mame")


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


def majority(new: int, last: int, held: int) -> int:
    """The machine's debounce, bit by bit: the rules' words, one button at a time."""
    found = 0
    for bit in range(8):
        votes = sum(each >> bit & 1 for each in (new, last, held))
        found |= (votes >= 2) << bit
    return found


def interrupt(image: NDArray[np.uint8], sample: int) -> None:
    image[HELD] = majority(sample, int(image[SAMPLE]), int(image[HELD]))
    image[SAMPLE] = sample


@pytest.mark.parametrize("held", [protocol.go(fire=True), protocol.go(zap=True), protocol.go()])
def test_buttons_are_as_put_after_an_interrupt_in_a_tick_however_long_the_last_one_was(
    held: bytes,
) -> None:
    """After more than 9 interrupts one comes before the game looks; nobody presses anything."""
    ((_, payload),) = protocol.split(held)
    for before in (0, protocol.BUTTONS):
        for length in range(1, 41):
            image = np.zeros(2048, np.uint8)
            image[HELD] = image[SAMPLE] = before
            for _ in range(length):
                interrupt(image, 0)
            _obey(image, held)
            assert image[HELD] & protocol.BUTTONS == payload[1]
            interrupt(image, 0)
            assert image[HELD] & protocol.BUTTONS == payload[1]


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
if "-verifyroms" in sys.argv:
    print("romset tempest1 [tempest] is good")
    sys.exit(0)
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
    machine = MameMachine(fake(body, start_timeout=limit), "tempest1")
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
    machine = MameMachine(fake("hello(version=b'0.200'); time.sleep(60)"), "tempest1")
    with pytest.raises(MameError, match=r"0\.200 is too old"):
        converse({machine: never})
    assert not machine.alive


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., MameOptions]:
    """Makes options whose MAME is a program that runs a few lines when it is to check ROM files."""

    def make(body: str, **options: Any) -> MameOptions:
        program = tmp_path / "judge"
        program.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        program.chmod(0o755)
        (tmp_path / "mine" / "tempest1").mkdir(parents=True, exist_ok=True)
        limits = {"start_timeout": 200.0, **options}
        return MameOptions(tmp_path / "mine", mame_path=program, **limits)

    return make


REV_1 = "romset tempest1 [tempest] is good"
BAD = """tempest     : 136002-133.d1 (4096 bytes) - NOT FOUND
tempest     : 136002-125.d7 (256 bytes) - INCORRECT CHECKSUM:
romset tempest is bad
tempest1    : 136002-122.r1 (2048 bytes) - INCORRECT CHECKSUM:
EXPECTED: CRC(796a9918)
   FOUND: CRC(5e855be4)
tempest1    : 136002-125.d7 (256 bytes) - INCORRECT LENGTH: 3 bytes
romset tempest1 [tempest] is bad
tempestm    : other.bin (4096 bytes) - INCORRECT CHECKSUM:
romset tempestm [intmpt03] is bad
3 romsets found, 0 were OK.
"""


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        (REV_1, "tempest1"),
        ("romset tempest is good", "tempest"),
        ("romset tempest is bad\nromset tempest3 [tempest] is best available", "tempest3"),
        (f"romset tempest is good\n{REV_1}", "tempest1"),
        (f"tempest: 1.a (4 bytes) - NOT FOUND\nromset tempest is bad\n{REV_1}", "tempest1"),
    ],
)
def test_the_set_is_the_one_that_mame_calls_good(
    said: str, chosen: str, judge: Callable[..., MameOptions]
) -> None:
    assert find_rom_set(judge(f"print({said!r})")) == chosen


def test_a_set_can_be_named(judge: Callable[..., MameOptions]) -> None:
    said = f"print({REV_1!r}, 'romset tempest is good', sep=chr(10))"
    assert find_rom_set(judge(said, rom_set="tempest")) == "tempest"
    with pytest.raises(MameError, match=r"finds no ROM set of Tempest in it \(tempest3\)"):
        find_rom_set(judge(said, rom_set="tempest3"))
    with pytest.raises(MameError, match="rom_set='asteroid': one of tempest1, tempest,"):
        judge(said, rom_set="asteroid")


def test_files_that_are_not_the_sets_are_named(judge: Callable[..., MameOptions]) -> None:
    """Of two bad sets the nearer one is told of, which ``strict_roms=False`` plays."""
    said = f"print({BAD!r})"
    with pytest.raises(
        MameError,
        match=r"136002-122\.r1 \(and 1 more\) differs from the set tempest1 \(Tempest rev 1\) "
        r"\(wrong checksum\).*strict_roms",
    ):
        find_rom_set(judge(said))
    assert find_rom_set(judge(said, strict_roms=False)) == "tempest1"
    for strict in (True, False):
        options = judge(said, strict_roms=strict, rom_set="tempest")
        with pytest.raises(MameError, match=r"does not find 136002-133\.d1 \(1 files"):
            find_rom_set(options)
    with pytest.raises(MameError, match="finds no ROM set of Tempest"):
        find_rom_set(judge("print('0 romsets found, 0 were OK.')"))


NO_MAMES = {
    "says nothing": ("", "is no MAME that knows Tempest.*says nothing"),
    "fails": ("sys.exit('unknown option')", "is no MAME.*says 'unknown option'"),
    "another MAME": ("print('No matching systems found')", "is no MAME that knows Tempest"),
    "talks for ever": ("while True: print('words ' * 999)", "is no MAME"),
    "escape codes": (r"print('\33]0;title\7\33[31m' * 99_999)", r"is no MAME.*\\x1b\[31m"),
    "no text": ("os.write(1, bytes(range(256)) * 9)", "is no MAME"),
    "hangs": ("time.sleep(600)", "not checked the ROM files within 0.5 s: is it MAME"),
    "trickles": (
        "while True: print('x', flush=True); time.sleep(0.01)",
        "not checked the ROM files within 0.5 s: is it MAME",
    ),
    "closes its output": ("os.close(1); os.close(2); time.sleep(600)", "is no MAME"),
}


@pytest.mark.parametrize("case", NO_MAMES)
def test_a_program_that_is_no_mame_is_told_in_one_line(
    case: str, judge: Callable[..., MameOptions], tmp_path: Path
) -> None:
    body, expected = NO_MAMES[case]
    limit = 0.5 if "0.5" in expected else 200.0
    own = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    with pytest.raises(MameError, match=expected) as refused:
        find_rom_set(judge(own + body, start_timeout=limit))
    text = str(refused.value)
    assert text.isprintable()
    assert len(text) < 1000
    number = tmp_path / "pid"  # Which one that was ended at once has not written.
    if number.exists() and number.read_text():
        with pytest.raises(ProcessLookupError):
            os.kill(int(number.read_text()), 0)


@pytest.mark.parametrize("program", ["true", "cat", "sleep", "yes"])
def test_other_programs_are_no_mames(program: str, tmp_path: Path) -> None:
    (tmp_path / "tempest1.zip").touch()
    with pytest.raises(MameError, match=f"{program}' is no MAME"):
        find_rom_set(MameOptions(tmp_path, mame_path=program))


def test_what_a_mame_prints_is_bounded_and_printable(fake: Callable[..., MameOptions]) -> None:
    """A MAME that talks without end needs neither memory nor disk, and still answers."""
    body = (
        "for _ in range(500): print('\\33[2J\\33]0;title\\7' + 'x' * 9_999)\n"
        "hello(version=b'0.251\\x1b[0m')\n"
        "os.read(commands, 9)\n"
        "tick = struct.pack('<IQQI', 1, 1, 0, 0) + bytes(2048)\n"
        "os.write(out, b'TPSTT' + struct.pack('<I', len(tick)) + tick)\n"
        "os.read(commands, 99)\n"
        "print('y' * 5_000_000, flush=True)\n"
        "os.write(1, b'\\33[31m the end \\xff\\n')\n"
        "text = b'\\x1b[5m' * 500_000\n"
        "os.write(out, b'TPSTE' + struct.pack('<I', len(text)))\n"
        "while text: text = text[os.write(out, text):]\n"
    )
    machine = MameMachine(fake(body), "tempest1")
    home = machine._process.home

    def play(_frame: Frame) -> Dialogue[None]:
        assert sum(each.stat().st_size for each in home.rglob("*") if each.is_file()) == 0
        yield protocol.go()

    result = converse({machine: play})[machine]
    assert isinstance(result, MachineError)
    assert machine.version == r"0.251\x1b[0m"
    text = str(result)
    assert text.isprintable()
    assert len(text) < 1500
    assert text.endswith(r"\x1b[31m the end \xff")
    assert r"\x1b[5m\x1b[5m" in text
    assert not home.exists()


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
    machines = [MameMachine(fake(body), "tempest1") for _ in range(2)]
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
    machine = MameMachine(fake(body, start_timeout=1.0), "tempest1")
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
    monkeypatch.setattr(
        "tempest_agent.envs.mame.mame_options._USUAL_FOLDERS", (str(tmp_path / "games"),)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    for chosen, expected in ((None, r"not installed.*apt-get install mame"), ("mame", "'mame' is")):
        with pytest.raises(MameError, match=expected):
            find_mame(chosen)
    program = tmp_path / "games" / "mame"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for chosen in (None, "mame", str(program)):
        assert find_mame(chosen) == program


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ([], r"has no ROM set of Tempest \(tempest1, .*it is empty"),
        (["asteroid.bin"], r"has no ROM set.*it holds asteroid\.bin"),
        ([f"{n}.zip" for n in range(30)], r"has no ROM set.*it holds 0\.zip, 1\.zip"),
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
        MameMachine(MameOptions(folder, mame_path=program), "tempest1")


@pytest.mark.parametrize(
    ("files", "given"),
    [
        (["mine/136002-133.d1"], "mine"),
        (["mine/tempest1/136002-113.d1"], "mine"),
        (["mine/tempest.zip"], "mine"),
        (["mine/tempest.zip"], "mine/tempest.zip"),
        (["mine/whatever.ZIP", "mine/readme.txt"], "mine"),
        (["mine/tempest1.zip", "mine/tempest.7z", "mine/other.zip"], "mine"),
        (["odd;name/tempest3.zip"], "odd;name"),
    ],
)
def test_every_place_of_a_set_is_under_the_name_of_every_set(
    files: list[str], given: str, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    home = make_home(tmp_path / given)
    folders = [Path(folder) for folder in rom_folders(home).split(";")]
    wanted = [name for name in files if not name.endswith(("readme.txt", "other.zip"))]
    assert len(folders) == len(wanted)
    found = set()
    for folder in folders:
        assert sorted(each.stem for each in folder.iterdir()) == sorted(ROM_SETS)
        assert len({each.resolve() for each in folder.iterdir()}) == 1
        place = (folder / next(folder.iterdir())).resolve()
        inside = next(place.glob("136002-*")) if place.is_dir() else place
        found.add(inside.read_text())
    assert found == set(wanted)
    shutil.rmtree(home)


@pytest.mark.parametrize("place", ["x" * 5_000, "~nosuchuser/roms", "\33[31m", "nul\0byte"])
def test_odd_rom_paths_are_one_line(place: str, judge: Callable[..., MameOptions]) -> None:
    with pytest.raises(MameError, match="rom_path=") as refused:
        find_rom_set(dataclasses.replace(judge(""), rom_path=place))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


def test_options_are_checked() -> None:
    with pytest.raises(MameError, match="random_bytes='dice'"):
        MameOptions("x", random_bytes="dice")
    with pytest.raises(MameError, match="answer_timeout=0"):
        MameOptions("x", answer_timeout=0)
    with pytest.raises(MameError, match="max_restarts=-1"):
        MameOptions("x", max_restarts=-1)
