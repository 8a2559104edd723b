"""The enemies' movement programs: a small language of the machine's, assembled from text.

An enemy runs its program until HALT; the next tick continues behind it.  ``CODE`` holds the
programs one after the other from address 0x00, so that the program counters in RAM are the
machine's own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .memory import byte_table

HALT, MOVE, SPIKE, LOOP, LOOP_RIM, LOOP_PULSAR, AGAIN, GOTO, IF0, SKIP0 = range(10)
FLIP_START, FLIP, REVERSE, AIM, GRAB, ON_SPIKE, PULSING, PULSAR_MOVE = range(10, 18)
FUSE_MOVE, FUSE_KILL = range(18, 20)

_OPERATIONS = {
    "HALT": HALT,
    "MOVE": MOVE,
    "SPIKE": SPIKE,
    "LOOP": LOOP,
    "LOOP@rim_flip_steps": LOOP_RIM,
    "LOOP@pulsar_flip_delay": LOOP_PULSAR,
    "AGAIN": AGAIN,
    "GOTO": GOTO,
    "IF0": IF0,
    "SKIP0": SKIP0,
    "FLIP!": FLIP_START,
    "FLIP": FLIP,
    "REVERSE": REVERSE,
    "AIM": AIM,
    "GRAB?": GRAB,
    "ONSPIKE?": ON_SPIKE,
    "PULSARMOVE": PULSAR_MOVE,
    "PULSING?": PULSING,
    "FUSEMOVE": FUSE_MOVE,
    "FUSEKILL?": FUSE_KILL,
}
_TWO_BYTES = {"LOOP", "LOOP@rim_flip_steps", "LOOP@pulsar_flip_delay", "AGAIN", "GOTO", "IF0"}

# Labels in capitals are programs; single letters are local to theirs.
PROGRAMS = """
SPIKER:           MOVE SPIKE IF0 STRAIGHT HALT GOTO SPIKER
STRAIGHT:         MOVE HALT GOTO STRAIGHT
STEP8_FLIP:       LOOP 8  b: MOVE HALT AGAIN b  FLIP!  c: HALT FLIP SKIP0 GOTO c  GOTO STEP8_FLIP
SPIRAL:           MOVE HALT FLIP!  b: HALT FLIP MOVE SKIP0 GOTO b  GOTO SPIRAL
SPIRAL_ALTERNATE: MOVE HALT
                  LOOP 2  b: FLIP!  c: HALT FLIP MOVE SKIP0 GOTO c  HALT AGAIN b  REVERSE
                  LOOP 3  d: FLIP!  e: HALT FLIP MOVE SKIP0 GOTO e  HALT AGAIN d  REVERSE
                  GOTO SPIRAL_ALTERNATE
RIM:              LOOP 4  b: GRAB? HALT AGAIN b  FLIP!
                  c: HALT LOOP@rim_flip_steps -  d: FLIP IF0 RIM AGAIN d  GOTO c
SPIKE_RIDER:      HALT MOVE ONSPIKE? IF0 SPIKE_RIDER  FLIP! HALT MOVE
                  b: FLIP IF0 SPIKE_RIDER HALT GOTO b
FUSE:             FUSEMOVE FUSEKILL? HALT GOTO FUSE
FUSE_ROLL:        HALT  b: LOOP 3  c: FUSEKILL? HALT AGAIN c  FLIP IF0 FUSE GOTO FUSE_ROLL
PULSAR:           LOOP@pulsar_flip_delay -  b: PULSARMOVE HALT AGAIN b
                  c: PULSING? IF0 d  PULSARMOVE HALT GOTO c
                  d: AIM FLIP!  e: HALT FLIP IF0 PULSAR GOTO e
AVOIDER:          AIM REVERSE FLIP!  b: HALT MOVE FLIP SKIP0 GOTO b
                  LOOP 4  c: HALT MOVE AGAIN c  GOTO AVOIDER
"""


def assemble(text: str) -> tuple[NDArray[np.uint8], list[int], dict[str, int]]:
    """Return the code of the programs in ``text``, and the addresses of steps and labels."""
    starts: dict[str, int] = {}
    steps: list[int] = []
    code: list[int | tuple[str, str]] = []
    program = ""
    words = iter(text.split())
    for word in words:
        if word.endswith(":"):
            label = word[:-1]
            if label.isupper():
                program = label
                starts[label] = len(code)
            else:
                starts[f"{program}.{label}"] = len(code)
            continue
        steps.append(len(code))
        code.append(_OPERATIONS[word])
        if word in _TWO_BYTES:
            operand = next(words)
            if operand == "-":
                code.append(0)
            elif operand.isdigit():
                code.append(int(operand))
            else:
                code.append((program, operand))
    resolved = [
        byte
        if isinstance(byte, int)
        else starts[byte[1] if byte[1].isupper() else f"{byte[0]}.{byte[1]}"]
        for byte in code
    ]
    return np.array(resolved, np.uint8), steps, starts


CODE, _STEPS, PROGRAM_STARTS = assemble(PROGRAMS)

IS_STEP: NDArray[np.bool_] = np.isin(np.arange(256), _STEPS)
"""Whether a step begins at an address, for every byte that a program counter can hold."""

OPERATION: NDArray[np.uint8] = byte_table(
    np.where(IS_STEP[: len(CODE)], CODE, HALT), HALT, np.uint8
)
"""The operation at every address; HALT where no step begins, so that every program comes to one."""

P_SPIKER = PROGRAM_STARTS["SPIKER"]
P_STRAIGHT = PROGRAM_STARTS["STRAIGHT"]
P_STEP8_FLIP = PROGRAM_STARTS["STEP8_FLIP"]
P_SPIRAL = PROGRAM_STARTS["SPIRAL"]
P_SPIRAL_ALTERNATE = PROGRAM_STARTS["SPIRAL_ALTERNATE"]
P_RIM = PROGRAM_STARTS["RIM"]
P_SPIKE_RIDER = PROGRAM_STARTS["SPIKE_RIDER"]
P_FUSE = PROGRAM_STARTS["FUSE"]
P_FUSE_ROLL = PROGRAM_STARTS["FUSE_ROLL.b"]
"""Where a roll begins: behind the first HALT."""

P_PULSAR = PROGRAM_STARTS["PULSAR"]
P_AVOIDER = PROGRAM_STARTS["AVOIDER"]
