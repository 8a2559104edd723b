"""The star field of the warp: eight planes that come nearer.  No effect on play."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.memory import Ram

GROWING = 0xFF
FAR_PLANE = 0xF0
_STEP = 7
_NEAR_PLANE = 0x10
_NEXT_PLANE = 0xD5


@rule
def start_star_field(ram: Ram) -> None:
    ram.star_field = GROWING
    for plane in range(7):
        ram.star_plane[plane] = 0
    ram.star_plane[7] = FAR_PLANE


@rule
def step_star_field(ram: Ram) -> None:
    if ram.star_field == 0:
        return
    growing = (ram.star_field & 0x80) != 0
    alive = False
    for plane in range(7, -1, -1):
        depth = int64(ram.star_plane[plane])
        if depth != 0:
            depth -= _STEP
            if depth < _NEAR_PLANE:
                depth = int64(FAR_PLANE) if growing else int64(0)
        elif growing and plane < 7:
            # A plane starts in the tick in which the one before it has come near enough.
            before = int64(ram.star_plane[plane + 1])
            if _NEXT_PLANE - _STEP <= before < _NEXT_PLANE:
                depth = int64(FAR_PLANE)
        ram.star_plane[plane] = depth
        alive = alive or depth != 0
    if not alive:
        ram.star_field = 0
