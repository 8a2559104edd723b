"""Layout of the default observation: which number says what.

An observation is ``LANES`` blocks of ``LANE_FEATURES`` numbers, then ``GLOBAL_FEATURES`` numbers,
then ``LANES`` blocks of ``FORECAST_FEATURES`` numbers, the forecast; without the forecast it is
``obs_type="features_plain"``.  Block 0 is the player's lane, block ``j`` the lane ``j`` steps
towards higher lane numbers, modulo 16.  An open well has 15 lanes: the missing one is flagged by
``exists`` = 0, and it is where the two edges of the well meet in this ring.  All its numbers are
0, except where a fuseball sits on the well's last edge.

Each number is a whole code from -127 to 127 divided by 127, so that a replay can keep the codes
as int8 without loss.  Numbers of a thing that is there are at least 1/127 unless they are signed;
of a thing that is not there they are 0, and its flag is 0 too.

The forecast says in which of the next 16 ticks each lane is deadly: what moves and follows from the
image alone, with every knowledge of the rules.  Tick 0 is the one in which the next decision acts:
with an input delay of ``d`` the table starts ``d`` ticks ahead, the claw then being where the
pending spinner counts take it; blocks stay relative to the lane it is in now.  Shots that pending
fire buttons will launch are left out.  A lane is deadly in a dive from the tick on in which its
spike would kill a player who goes there at once and fires.  All bits of a dead player, and between
two phases of play, are 0.

Scales used below: *nearness* is 1 at the rim, falls linearly with depth from 120/127 one unit
below the rim to 1/127 at the bottom.  *soon(n)* is 1 for the next tick, 2/(t + 2) for t ticks
later, so that the last ticks are far apart, and 1/127 from n ticks on.  *a/b* is a share, cut at 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.forecast.table import HORIZON
from tempest_agent.envs.machine.memory import LANES

from .tables import FORECAST_TABLE, GLOBAL_TABLE, LANE_TABLE, Table

FEATURE_SCALE = 127

PLACE_CODE = 8
"""Half of what the codes of two neighbouring places within a lane differ by (``position``)."""


@dataclass(frozen=True)
class Feature:
    """One number of the observation."""

    index: int
    name: str
    meaning: str
    low: float
    high: float


# Indices within a lane's block.  KIND is followed by two numbers a kind, in the order of kinds.
EXISTS = 0
KIND = 1
NEAREST_FINE, ARRIVAL, DESCENDING, CROWD = range(11, 15)
FLIP_UP, FLIP_DOWN = 15, 18
LEAVING_UP, LEAVING_DOWN, FLIP_PULSAR = range(21, 24)
WALKER_UP, WALKER_DOWN = 24, 26
PULSAR_REACH, PULSAR_STRIKE = 28, 29
ROLL_UP, ROLL_DOWN, ROLL_NEARNESS = 30, 32, 34
CARGO = 35
AIMING = 38
ENEMY_SHOT, ENEMY_SHOT_NEARNESS, ENEMY_SHOT_ARRIVAL, ENEMY_SHOTS_MORE = range(39, 43)
OWN_SHOT, OWN_SHOT_NEAREST, OWN_SHOT_FARTHEST = range(43, 46)
SPIKE, SPIKE_NEARNESS, SPIKE_MARGIN = range(46, 49)
NYMPH, NYMPH_HATCH = 49, 50
FLIP_STEPS = 51

# Indices within a lane's block of the forecast, which begins with a bit for each tick.
ROLL_UP_CLIMBS, ROLL_DOWN_CLIMBS, PULSAR_DOWN = range(HORIZON, HORIZON + 3)
FLIP_TICKS, FLIP_SIDE, FLIPS_LEFT = range(HORIZON + 3, HORIZON + 6)

LANE_FEATURES = len(LANE_TABLE)
GLOBAL_FEATURES = len(GLOBAL_TABLE)
FORECAST_FEATURES = len(FORECAST_TABLE)
GLOBALS_START = LANES * LANE_FEATURES
PLAIN_FEATURES = FORECAST_START = GLOBALS_START + GLOBAL_FEATURES
NUM_FEATURES = FORECAST_START + LANES * FORECAST_FEATURES


FEATURES: tuple[Feature, ...] = (
    tuple(
        Feature(lane * LANE_FEATURES + at, f"lane{lane:+d}.{name}", meaning, low, high)
        for lane in range(LANES)
        for at, (name, meaning, low, high) in enumerate(LANE_TABLE)
    )
    + tuple(
        Feature(GLOBALS_START + at, name, meaning, low, high)
        for at, (name, meaning, low, high) in enumerate(GLOBAL_TABLE)
    )
    + tuple(
        Feature(
            FORECAST_START + lane * FORECAST_FEATURES + at,
            f"lane{lane:+d}.{name}",
            meaning,
            low,
            high,
        )
        for lane in range(LANES)
        for at, (name, meaning, low, high) in enumerate(FORECAST_TABLE)
    )
)
"""Every number of the observation, in order; the plain one is the first ``PLAIN_FEATURES``."""

_INDEX = {feature.name: feature.index for feature in FEATURES}
POSITION_FEATURE, ZAP_LEGAL_FEATURE = _INDEX["position"], _INDEX["zap_legal"]
PENDING_SPIN_FEATURE = _INDEX["pending_1_spin"]


def describe(observation: NDArray[np.float32] | NDArray[np.int8]) -> dict[str, float]:
    """Return name -> value of the numbers that are not 0 in one observation.

    ``observation`` has shape ``(NUM_FEATURES,)`` or, of the plain kind, ``(PLAIN_FEATURES,)``:
    either floats or the int8 codes.
    """
    values = np.asarray(observation)
    if values.shape not in ((NUM_FEATURES,), (PLAIN_FEATURES,)):
        raise ValueError(
            f"observation has shape {values.shape}, not ({NUM_FEATURES},) or ({PLAIN_FEATURES},): "
            "describe() takes one observation of obs_type='features' or 'features_plain', not a "
            "batch"
        )
    if values.dtype == np.int8:
        values = values.astype(np.float32) / np.float32(FEATURE_SCALE)
    return {
        feature.name: float(values[feature.index])
        for feature in FEATURES[: len(values)]
        if values[feature.index] != 0
    }


def markdown() -> str:
    """Return the table of ``docs/features.md``."""
    notes = (__doc__ or "").split("\n\n", 1)[1].replace("``", "`").strip()
    versions = (
        "While the package is 0.x, the id stays `Tempest-v0`, and its default observation may "
        "change: checkpoints and data sets say which one they are of, and are refused where "
        "another is shown.  0.1.0 showed what is `features_plain` now, the first "
        f"{PLAIN_FEATURES} numbers.  The plain observation stays as it is."
    )
    return (
        "# The default observation\n\n"
        "Generated by `python -m tempest_agent.envs.features.layout > docs/features.md`.\n\n"
        f"{NUM_FEATURES} numbers: {LANES} lanes of {LANE_FEATURES}, then {GLOBAL_FEATURES} "
        f"about the whole game, then a forecast of {FORECAST_FEATURES} for each lane.  The first "
        f'{PLAIN_FEATURES} are `obs_type="features_plain"`.\n\n'
        f"{notes}\n\n"
        f"## Lane features\n\nLane block `j` starts at `{LANE_FEATURES} * j`.\n\n"
        f"{_rows(LANE_TABLE, 0)}\n\n"
        f"## Global features\n\n{_rows(GLOBAL_TABLE, GLOBALS_START)}\n\n"
        "## Forecast features\n\n"
        f"Lane block `j` starts at `{FORECAST_START} + {FORECAST_FEATURES} * j`.\n\n"
        f"{_rows(FORECAST_TABLE, 0)}\n\n"
        f"## Versions\n\n{versions}\n"
    )


def _rows(table: Table, start: int) -> str:
    rows = [
        f"| {start + at} | `{name}` | {meaning} | {low:g} to {high:g} |"
        for at, (name, meaning, low, high) in enumerate(table)
    ]
    return "\n".join(["| index | name | meaning | range |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(markdown(), end="")
