"""A small 6502 assembler: one instruction, label or directive a line."""

from __future__ import annotations

import re

IMPLIED = {
    "BRK": 0x00, "CLC": 0x18, "SEC": 0x38, "CLI": 0x58, "SEI": 0x78, "CLD": 0xD8, "SED": 0xF8,
    "PHA": 0x48, "PLA": 0x68, "RTI": 0x40, "RTS": 0x60, "TAX": 0xAA, "TXA": 0x8A, "TAY": 0xA8,
    "TYA": 0x98, "TXS": 0x9A, "INX": 0xE8, "DEX": 0xCA, "INY": 0xC8, "DEY": 0x88, "NOP": 0xEA,
    "ASL": 0x0A, "LSR": 0x4A,
}  # fmt: skip
BRANCHES = {
    "BPL": 0x10, "BMI": 0x30, "BCC": 0x90, "BCS": 0xB0, "BNE": 0xD0, "BEQ": 0xF0,
}  # fmt: skip
# Opcodes by operand: immediate, zero page, absolute, absolute indexed by X.
MEMORY = {
    "LDA": (0xA9, 0xA5, 0xAD, 0xBD), "LDX": (0xA2, 0xA6, 0xAE, None),
    "LDY": (0xA0, 0xA4, 0xAC, 0xBC), "STA": (None, 0x85, 0x8D, 0x9D),
    "STX": (None, 0x86, 0x8E, None), "AND": (0x29, 0x25, 0x2D, 0x3D),
    "ORA": (0x09, 0x05, 0x0D, 0x1D), "EOR": (0x49, 0x45, 0x4D, 0x5D),
    "ADC": (0x69, 0x65, 0x6D, 0x7D), "SBC": (0xE9, 0xE5, 0xED, 0xFD),
    "CMP": (0xC9, 0xC5, 0xCD, 0xDD), "CPX": (0xE0, 0xE4, 0xEC, None),
    "INC": (None, 0xE6, 0xEE, 0xFE), "DEC": (None, 0xC6, 0xCE, 0xDE),
    "JMP": (None, None, 0x4C, None), "JSR": (None, None, 0x20, None),
}  # fmt: skip


def assemble(source: str, first: int, last: int) -> bytes:
    """The memory from ``first`` to ``last`` (both included) that ``source`` describes.

    ``.org $C000`` moves on, ``.byte 1 2 3`` puts in bytes, ``name:`` is a label, ``;`` begins a
    comment.  Numbers are hexadecimal after ``$`` and decimal otherwise.  Labels are absolute.
    Raises ``ValueError`` with the line that cannot be understood.
    """
    labels: dict[str, int] = {}
    memory = bytearray(last - first + 1)
    for final in (False, True):
        at = first
        for number, line in enumerate(source.splitlines(), 1):
            try:
                at, code = _line(line.split(";")[0].strip(), at, labels, final)
            except (KeyError, ValueError) as error:
                raise ValueError(f"line {number}: {line.strip()!r}: {error}") from error
            memory[at - first : at - first + len(code)] = code
            at += len(code)
    return bytes(memory)


def _line(text: str, at: int, labels: dict[str, int], final: bool) -> tuple[int, bytes]:
    if not text:
        return at, b""
    if text.endswith(":"):
        labels[text[:-1]] = at
        return at, b""
    word, _, operand = text.partition(" ")
    operand = operand.strip()
    if word == ".org":
        return _number(operand, labels, final), b""
    if word == ".byte":
        return at, bytes(_number(each, labels, final) for each in operand.split())
    if word in BRANCHES:
        distance = _number(operand, labels, final) - (at + 2) if final else 0
        if not -128 <= distance <= 127:
            raise ValueError(f"the branch is {distance} bytes long")
        return at, bytes([BRANCHES[word], distance & 0xFF])
    if not operand:
        return at, bytes([IMPLIED[word]])
    return at, _with_operand(word, operand, labels, final)


def _with_operand(word: str, operand: str, labels: dict[str, int], final: bool) -> bytes:
    immediate, zero_page, absolute, indexed = MEMORY[word]
    if operand.startswith("#"):
        return _encode(immediate, _number(operand[1:], labels, final), 1)
    if operand.endswith(",X"):
        return _encode(indexed, _number(operand[:-2], labels, final), 2)
    value = _number(operand, labels, final)
    if zero_page is not None and re.fullmatch(r"\$[0-9A-F]{2}", operand):
        return _encode(zero_page, value, 1)
    return _encode(absolute, value, 2)


def _encode(opcode: int | None, value: int, size: int) -> bytes:
    if opcode is None:
        raise ValueError("this instruction has no such operand")
    return bytes([opcode]) + value.to_bytes(size, "little")


def _number(text: str, labels: dict[str, int], final: bool) -> int:
    if text.startswith("$"):
        return int(text[1:], 16)
    if text.isdigit():
        return int(text)
    return labels[text] if final else labels.get(text, 0)
