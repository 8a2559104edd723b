"""Values and knowledge of the scripted expert: every number of its rules in one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

WEIGHTS_DTYPE = np.dtype(
    [
        ("kind_value", "<f8", (5,)),
        ("depth_offset", "<f8"),
        ("covered_factor", "<f8"),
        ("walker_value", "<f8"),
        ("enemy_shot_value", "<f8"),
        ("near_rim_cost", "<f8"),
        ("travel_cost", "<f8"),
        ("shot_reserve", "<i8"),
        ("idle_shots", "<i8"),
        ("knows_shots", "u1"),
        ("knows_walkers", "u1"),
        ("knows_pulsars", "u1"),
        ("knows_fuseballs", "u1"),
        ("knows_spikes", "u1"),
        ("zaps_last", "u1"),
    ]
)

WeightsRecord: TypeAlias = Any
"""One record of WEIGHTS_DTYPE; its fields are attributes only inside compiled code."""


@dataclass(frozen=True)
class Weights:
    """The expert's numbers.  A lane's value is the sum of what stands in it; see targets.py."""

    flipper: float = 0.55
    """Value of a flipper: ``value * 100 / (distance from the rim + depth_offset)``."""
    pulsar: float = 2.45
    tanker: float = 2.25
    spiker: float = 0.37
    fuseball: float = 2.6
    """Value of a rolling fuseball; a resting one cannot be shot."""
    depth_offset: float = 25.0
    """How flat the value is in depth: small means that near enemies matter much more."""
    covered_factor: float = 0.19
    """Share of its value that an enemy keeps when a shot already flies towards it."""
    walker_value: float = 27.0
    """Value of a lane from which a rim walker can be hit at the muzzle once it flips."""
    enemy_shot_value: float = 0.2
    """Value of a lane in which an enemy shot can be shot down."""
    near_rim_cost: float = 0.5
    """Cost of a lane in the ticks in which an enemy may arrive there, if it does not flip first."""
    travel_cost: float = 0.01
    """Cost of moving one lane, so that equal lanes do not attract in turn."""
    shot_reserve: int = 1
    """Shots of the eight that are kept for the muzzle while an enemy is near the rim."""
    idle_shots: int = 6
    """With fewer shots than this in flight, fire although nothing is in the lane."""
    knows_shots: bool = True
    knows_walkers: bool = True
    knows_pulsars: bool = True
    knows_fuseballs: bool = True
    knows_spikes: bool = True
    zaps_last: bool = True
    """Whether to press the superzapper once the queue of enemies is empty, to end the wave."""

    def record(self) -> NDArray[np.void]:
        """Return the weights for compiled code, an array of one WEIGHTS_DTYPE record, ``(1,)``."""
        values = asdict(self)
        record = np.zeros(1, WEIGHTS_DTYPE)
        kinds = ("flipper", "pulsar", "tanker", "spiker", "fuseball")
        record["kind_value"] = [values.pop(kind) for kind in kinds]
        for name, value in values.items():
            record[name] = value
        return record
