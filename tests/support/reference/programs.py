"""The enemies' movement programs, written as text and laid out in memory one after another.

An operation takes one byte, or two if it has an operand.
"""

from __future__ import annotations

_TEXT = """
SPIKER:           MOVE  SPIKE  IF0 STRAIGHT  HALT  GOTO SPIKER
STRAIGHT:         MOVE  HALT  GOTO STRAIGHT
STEP8_FLIP:       LOOP 8
  s8_b:           MOVE  HALT  AGAIN s8_b  START_FLIP
  s8_c:           HALT  FLIP  SKIP0  GOTO s8_c  GOTO STEP8_FLIP
SPIRAL:           MOVE  HALT  START_FLIP
  sp_b:           HALT  FLIP  MOVE  SKIP0  GOTO sp_b  GOTO SPIRAL
SPIRAL_ALTERNATE: MOVE  HALT  LOOP 2
  sa_b:           START_FLIP
  sa_c:           HALT  FLIP  MOVE  SKIP0  GOTO sa_c  HALT  AGAIN sa_b  REVERSE  LOOP 3
  sa_d:           START_FLIP
  sa_e:           HALT  FLIP  MOVE  SKIP0  GOTO sa_e  HALT  AGAIN sa_d  REVERSE
                  GOTO SPIRAL_ALTERNATE
RIM:              LOOP 4
  rim_b:          GRAB  HALT  AGAIN rim_b  START_FLIP
  rim_c:          HALT  LOOP @B3
  rim_d:          FLIP  IF0 RIM  AGAIN rim_d  GOTO rim_c
SPIKE_RIDER:      HALT  MOVE  ON_SPIKE  IF0 SPIKE_RIDER  START_FLIP  HALT  MOVE
  sr_b:           FLIP  IF0 SPIKE_RIDER  HALT  GOTO sr_b
FUSE:             FUSE_MOVE  FUSE_KILL  HALT  GOTO FUSE
FUSE_ROLL:        HALT
  FUSE_ROLL_B:    LOOP 3
  fr_c:           FUSE_KILL  HALT  AGAIN fr_c  FLIP  IF0 FUSE  GOTO FUSE_ROLL
PULSAR:           LOOP @B2
  pu_b:           PULSAR_MOVE  HALT  AGAIN pu_b
  pu_c:           PULSING  IF0 pu_d  PULSAR_MOVE  HALT  GOTO pu_c
  pu_d:           AIM  START_FLIP
  pu_e:           HALT  FLIP  IF0 PULSAR  GOTO pu_e
AVOIDER:          AIM  REVERSE  START_FLIP
  av_b:           HALT  MOVE  FLIP  SKIP0  GOTO av_b  LOOP 4
  av_c:           HALT  MOVE  AGAIN av_c  GOTO AVOIDER
"""

_WITH_OPERAND = {"LOOP", "AGAIN", "GOTO", "IF0"}


def _assemble() -> tuple[dict[int, tuple[str, str]], dict[str, int]]:
    steps: dict[int, tuple[str, str]] = {}
    labels: dict[str, int] = {}
    address = 0
    words = iter(_TEXT.split())
    for word in words:
        if word.endswith(":"):
            labels[word[:-1]] = address
        elif word in _WITH_OPERAND:
            steps[address] = (word, next(words))
            address += 2
        else:
            steps[address] = (word, "")
            address += 1
    labels["END"] = address
    return steps, labels


STEPS, LABELS = _assemble()
"""Address -> (operation, operand), and label -> address."""
