"""The decision of a network from one observation, on memory that the page lays out.

The arithmetic is that of ``agent/inference``, so a page chooses what Python chooses, to the last
bit.  A network file (``network_file.py``) holds int32 words: ``WIDTH``, ``COUNTS``, ``PROPOSES``,
``QUADRATIC``, then the rows of ``LAYERS``; then float32 numbers, to which the rows point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.inference.deterministic_arithmetic import (
    Floats,
    between,
    normalise,
    pick,
    squash,
    surround,
    write_dense,
)
from tempest_agent.agent.networks.lane_head import HALVES, NODES, OFFSETS, landing_weights
from tempest_agent.envs.features.layout import (
    EXISTS,
    FEATURE_SCALE,
    GLOBAL_FEATURES,
    GLOBALS_START,
    LANE_FEATURES,
    PLAIN_FEATURES,
    POSITION_FEATURE,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX, ZAP
from tempest_agent.envs.machine.intrinsics import array_at
from tempest_agent.envs.machine.memory import LANES

LAYERS = ("first", "second", "dense", "state", "mix", "nodes", "proposals")
FIRST, SECOND, DENSE, STATE, MIX, NODE_VALUES, PROPOSALS = range(len(LAYERS))
ROW = 6
"""Words of a layer: inputs, outputs, then where weights ``(inputs, outputs)``, bias, gain and shift
begin, in bytes from the start of the file; gain and shift are 0 without LayerNorm."""

WIDTH, LATENT, PROPOSES, QUADRATIC, TABLE = range(5)
"""Words of the head: numbers of a lane's encoding and of the whole state's, two flags."""

WORDS = TABLE + ROW * len(LAYERS)

KNOTS = 2 * SPINNER_MAX + 1
REACH = len(OFFSETS)
MOST_WIDTH, MOST_LATENT = 256, 4096
"""Largest networks that the scratch memory has room for."""

EPSILON = 1e-5
"""Of every LayerNorm of the project."""

_LANDING = landing_weights(SPINNER_MAX)
_LANE_CODE = 8
_PLACES = 16

# Scratch memory: float64 first, then int64 and float32, each at a multiple of 8 bytes.
_VALUES = 0
_PLACES_AT = _VALUES + 8 * BUTTON_PAIRS * KNOTS
_PROPOSED_AT = _PLACES_AT + 8 * BUTTON_PAIRS
_POSITION_AT = _PROPOSED_AT + 8 * BUTTON_PAIRS
_USED = _POSITION_AT + 8
_MOST_INPUTS = LANES * MOST_WIDTH + GLOBAL_FEATURES
_OBSERVATION = _USED + 8 * _MOST_INPUTS
_LANES_AT = _OBSERVATION + 4 * (PLAIN_FEATURES + 1)
_LANE_BYTES = 4 * LANES * max(MOST_WIDTH, LANE_FEATURES)
_AROUND = _LANES_AT + _LANE_BYTES
_FLAT = _AROUND + 3 * _LANE_BYTES
_LATENT_AT = _FLAT + 4 * (_MOST_INPUTS + 1)
_STATE_AT = _LATENT_AT + 4 * MOST_LATENT
_INPUTS_AT = _STATE_AT + 4 * MOST_WIDTH
_HIDDEN_AT = _INPUTS_AT + 4 * REACH * (2 * MOST_WIDTH + REACH + 1)
_NODES_AT = _HIDDEN_AT + 4 * REACH * MOST_WIDTH
_RAW_AT = _NODES_AT + 4 * REACH * BUTTON_PAIRS * NODES
_LEGAL_AT = _RAW_AT + 4 * BUTTON_PAIRS
_PAIR_AT = _LEGAL_AT + BUTTON_PAIRS
_DEADLY_AT = _PAIR_AT + 8
SCRATCH_BYTES = _DEADLY_AT + KNOTS + BUTTON_PAIRS + 5


@rule
def apply_layer(
    net: int, layer: int, inputs: Floats, out: Floats, used: Any, rectify: bool
) -> None:
    """Write a layer's answer, with its LayerNorm and ReLU as the file says."""
    row = array_at(net + 4 * (TABLE + ROW * layer), (ROW,), np.int32)
    width = int64(row[1])
    weights = array_at(net + row[2], (int64(row[0]), width), np.float32)
    bias = array_at(net + row[3], (width,), np.float32)
    write_dense(inputs, weights, bias, out, used)
    if row[4] != 0:
        gain = array_at(net + row[4], (width,), np.float32)
        shift = array_at(net + row[5], (width,), np.float32)
        normalise(out, gain, shift, EPSILON)
    elif rectify:
        for i in range(out.shape[0]):
            for j in range(width):
                out[i, j] = max(out[i, j], np.float32(0.0))


@rule
def _encode_lanes(net: int, scratch: int, codes: NDArray[np.int8], width: int) -> None:
    """Write the encoding of each lane ``(16, width)``, zeros where the well has none."""
    used = array_at(scratch + _USED, (_MOST_INPUTS,), np.int64)
    observation = array_at(scratch + _OBSERVATION, (PLAIN_FEATURES,), np.float32)
    for i in range(PLAIN_FEATURES):
        observation[i] = np.float32(codes[i]) / np.float32(FEATURE_SCALE)
    seen = array_at(scratch + _LANES_AT, (1, LANES, LANE_FEATURES), np.float32)
    for lane in range(LANES):
        exists = codes[lane * LANE_FEATURES + EXISTS] > 0
        for i in range(LANE_FEATURES):
            value = observation[lane * LANE_FEATURES + i]
            seen[0, lane, i] = value if exists else np.float32(0.0)
    around = array_at(scratch + _AROUND, (LANES, 3 * LANE_FEATURES), np.float32)
    surround(seen, around)
    lanes = array_at(scratch + _LANES_AT, (LANES, width), np.float32)
    apply_layer(net, FIRST, around, lanes, used, True)
    _blank(lanes, codes)
    wide = array_at(scratch + _AROUND, (LANES, 3 * width), np.float32)
    surround(array_at(scratch + _LANES_AT, (1, LANES, width), np.float32), wide)
    apply_layer(net, SECOND, wide, lanes, used, True)
    _blank(lanes, codes)


@rule
def _blank(lanes: Floats, codes: NDArray[np.int8]) -> None:
    for lane in range(LANES):
        if codes[lane * LANE_FEATURES + EXISTS] <= 0:
            for i in range(lanes.shape[1]):
                lanes[lane, i] = np.float32(0.0)


@rule
def _value_landings(net: int, scratch: int, codes: NDArray[np.int8], width: int, wide: int) -> None:
    """Write the encoding of the state, and the values ``(4, 63)`` of all turns and buttons."""
    used = array_at(scratch + _USED, (_MOST_INPUTS,), np.int64)
    observation = array_at(scratch + _OBSERVATION, (PLAIN_FEATURES,), np.float32)
    lanes = array_at(scratch + _LANES_AT, (LANES, width), np.float32)
    flat = array_at(scratch + _FLAT, (1, LANES * width + GLOBAL_FEATURES), np.float32)
    for lane in range(LANES):
        for i in range(width):
            flat[0, lane * width + i] = lanes[lane, i]
    for i in range(GLOBAL_FEATURES):
        flat[0, LANES * width + i] = observation[GLOBALS_START + i]
    latent = array_at(scratch + _LATENT_AT, (1, wide), np.float32)
    apply_layer(net, DENSE, flat, latent, used, True)
    state = array_at(scratch + _STATE_AT, (1, width), np.float32)
    apply_layer(net, STATE, latent, state, used, True)
    inputs = array_at(scratch + _INPUTS_AT, (REACH, 2 * width + REACH), np.float32)
    for i in range(REACH):
        for j in range(width):
            inputs[i, j] = lanes[OFFSETS[i] % LANES, j]
            inputs[i, width + j] = state[0, j]
        for j in range(REACH):
            inputs[i, 2 * width + j] = np.float32(1.0) if i == j else np.float32(0.0)
    hidden = array_at(scratch + _HIDDEN_AT, (REACH, width), np.float32)
    apply_layer(net, MIX, inputs, hidden, used, True)
    nodes = array_at(scratch + _NODES_AT, (REACH, BUTTON_PAIRS * NODES), np.float32)
    apply_layer(net, NODE_VALUES, hidden, nodes, used, False)
    place = (int64(codes[POSITION_FEATURE]) // _LANE_CODE + _PLACES - 1) // 2
    values = array_at(scratch + _VALUES, (BUTTON_PAIRS, KNOTS), np.float64)
    for pair in range(BUTTON_PAIRS):
        for knot in range(KNOTS):
            total = 0.0
            for node in range(REACH * NODES):
                value = np.float64(nodes[node // NODES, pair * NODES + node % NODES])
                total += value * np.float64(_LANDING[place, node, knot])
            values[pair, knot] = total / HALVES


@rule
def choose_action(net: int, scratch: int, codes: NDArray[np.int8], zap_legal: bool) -> int:
    """Return the best action, ``counts & 0xFF | buttons << 8``; its values stay in ``scratch``."""
    head = array_at(net, (TABLE,), np.int32)
    width, wide = int64(head[WIDTH]), int64(head[LATENT])
    _encode_lanes(net, scratch, codes, width)
    _value_landings(net, scratch, codes, width, wide)
    values = array_at(scratch + _VALUES, (1, BUTTON_PAIRS, KNOTS), np.float64)
    positions = array_at(scratch + _PLACES_AT, (1, BUTTON_PAIRS), np.float64)
    proposed = array_at(scratch + _PROPOSED_AT, (1, BUTTON_PAIRS), np.float64)
    legal = array_at(scratch + _LEGAL_AT, (1, BUTTON_PAIRS), np.bool_)
    for pair in range(BUTTON_PAIRS):
        positions[0, pair] = 0.0
        proposed[0, pair] = -np.inf
        legal[0, pair] = zap_legal or pair & ZAP == 0
    if head[PROPOSES] != 0:
        used = array_at(scratch + _USED, (_MOST_INPUTS,), np.int64)
        raw = array_at(scratch + _RAW_AT, (1, BUTTON_PAIRS), np.float32)
        latent = array_at(scratch + _LATENT_AT, (1, wide), np.float32)
        apply_layer(net, PROPOSALS, latent, raw, used, False)
        squash(raw, positions)
        numbers = array_at(scratch + _PROPOSED_AT, (1, BUTTON_PAIRS, 1), np.float64)
        knots = array_at(scratch + _VALUES, (1, BUTTON_PAIRS, KNOTS, 1), np.float64)
        between(knots, positions, head[QUADRATIC] != 0, numbers)
    pair = array_at(scratch + _PAIR_AT, (1,), np.uint8)
    position = array_at(scratch + _POSITION_AT, (1,), np.float64)
    pair[0] = 0
    position[0] = 0.0
    # No mask: the observation has no forecast.
    deadly = array_at(scratch + _DEADLY_AT, (1, KNOTS), np.bool_)
    deadly[:] = False
    deadly_proposed = array_at(scratch + _DEADLY_AT + KNOTS, (1, BUTTON_PAIRS), np.bool_)
    deadly_proposed[:] = False
    pick(values, proposed, positions, legal, deadly, deadly_proposed, pair, position)
    counts = int64(np.rint(position[0] * SPINNER_MAX))
    return (counts & 0xFF) | (int64(pair[0]) << 8)
