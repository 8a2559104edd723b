"""The module that comes with the package: what it is made of, and what it asks for."""

from __future__ import annotations

import numpy as np

from tempest_agent.web.seeding import stream_state
from tempest_agent.web.sources import MODULE, RECORD, digest_of_sources

MOST_BYTES = 600_000


def test_it_is_built_from_the_rules_as_they_are() -> None:
    assert RECORD.read_text(encoding="utf-8").strip() == digest_of_sources(), (
        f"{MODULE.name} is older than the rules, players or pictures that it holds: rebuild it "
        "with  pip install -e '.[web-build]' && python -m tempest_agent.web.build"
    )


def test_it_is_small_and_imports_nothing() -> None:
    content = MODULE.read_bytes()
    assert content[:8] == b"\0asm\1\0\0\0"
    assert len(content) < MOST_BYTES
    assert 2 not in sections(content), "it has a section of imports"


def sections(content: bytes) -> list[int]:
    """Numbers of the sections of a WebAssembly module."""
    found, at = [], 8
    while at < len(content):
        found.append(content[at])
        size = shift = 0
        at += 1
        while True:
            byte = content[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += size
    return found


def test_seeds_give_the_streams_that_numpy_gives() -> None:
    pool = np.zeros(4, np.int64)
    for seed in (0, 1, 12_345, 2**32 - 1, 2**32, 2**63 + 5, 2**64 - 1):
        expected = np.random.SeedSequence(seed).spawn(1)[0].generate_state(1, np.uint64)[0]
        state = stream_state(seed & 0xFFFFFFFF, seed >> 32, pool)
        assert state & 0xFFFFFFFFFFFFFFFF == int(expected) | 1
