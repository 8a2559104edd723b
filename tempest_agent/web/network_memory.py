"""The form of a network's file, and the memory that its decision works in.

A file holds int32 words, those of the head and then the rows of ``LAYERS``; then float32 numbers,
to which the rows point.
"""

from __future__ import annotations

from tempest_agent.agent.networks.lane_head import NODES, OFFSETS
from tempest_agent.envs.features.layout import (
    FORECAST_FEATURES,
    GLOBAL_FEATURES,
    LANE_FEATURES,
    NUM_FEATURES,
)
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES

LAYERS = ("first", "second", "dense", "state", "mix", "nodes", "proposals")
FIRST, SECOND, DENSE, STATE, MIX, NODE_VALUES, PROPOSALS = range(len(LAYERS))
"""Layers of a file: the encoder's, then those of the head that acts."""

ROW = 6
"""Words of a layer: inputs, outputs, then where weights ``(inputs, outputs)``, bias, gain and shift
begin, in bytes from the start of the file; gain and shift are 0 without LayerNorm."""

WIDTH, LATENT, SEEN, LATE, AVOIDS, BY_POLICY, PROPOSES, QUADRATIC, TABLE = range(9)
"""Words of the head: numbers of a lane's encoding, of the whole state's, and of an observation;
then flags: whether it knows where inputs under way take the claw, whether it avoids deadly lanes,
whether its values are a policy's logits, whether it has proposals, whether values between knots lie
on parabolas."""

WORDS = TABLE + ROW * len(LAYERS)

KNOTS = 2 * SPINNER_MAX + 1
REACH = len(OFFSETS)
MOST_WIDTH, MOST_LATENT = 256, 4096
"""Largest networks that the scratch memory has room for."""

MOST_INPUTS = LANES * MOST_WIDTH + GLOBAL_FEATURES
"""Of the widest layer."""

_LANE_NUMBERS = LANES * max(MOST_WIDTH, LANE_FEATURES + FORECAST_FEATURES)

# Where each array begins.  Numbers of 8 bytes come first, those of 1 byte last, so that each lies
# at a multiple of its size.
VALUES = 0
PLACES = VALUES + 8 * BUTTON_PAIRS * KNOTS
PROPOSED = PLACES + 8 * BUTTON_PAIRS
POSITION = PROPOSED + 8 * BUTTON_PAIRS
LANDED = POSITION + 8
USED = LANDED + 8 * KNOTS
SEEN_NUMBERS = USED + 8 * (MOST_INPUTS + 1)
ENCODED = SEEN_NUMBERS + 4 * (NUM_FEATURES + 1)
AROUND = ENCODED + 4 * _LANE_NUMBERS
FLAT = AROUND + 3 * 4 * _LANE_NUMBERS
SUMMARY = FLAT + 4 * (MOST_INPUTS + 1)
STATE_NUMBERS = SUMMARY + 4 * MOST_LATENT
MIX_INPUTS = STATE_NUMBERS + 4 * MOST_WIDTH
MIXED = MIX_INPUTS + 4 * REACH * (2 * MOST_WIDTH + REACH)
NODE_NUMBERS = MIXED + 4 * REACH * MOST_WIDTH
RAW = NODE_NUMBERS + 4 * REACH * BUTTON_PAIRS * NODES
LEGAL = RAW + 4 * BUTTON_PAIRS
PAIR = LEGAL + BUTTON_PAIRS
DEADLY = PAIR + 1
DEADLY_PROPOSED = DEADLY + KNOTS
SCRATCH_BYTES = DEADLY_PROPOSED + BUTTON_PAIRS
