"""The decision of a network from one observation, on memory that the page lays out.

The arithmetic is that of ``agent/inference``, so a page chooses what Python chooses, to the last
bit.  ``network_memory`` says what lies where.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tempest_agent.agent.inference.deterministic_arithmetic import (
    Doubles,
    Floats,
    between,
    normalise,
    pick,
    squash,
    surround,
    write_dense,
)
from tempest_agent.agent.networks.landings import LANE_COUNTS
from tempest_agent.agent.networks.lane_head import HALVES, NODES, OFFSETS, landing_weights
from tempest_agent.envs.features.layout import (
    EXISTS,
    FEATURE_SCALE,
    FORECAST_FEATURES,
    FORECAST_START,
    GLOBAL_FEATURES,
    GLOBALS_START,
    LANE_FEATURES,
    ZAP_LEGAL_FEATURE,
)
from tempest_agent.envs.machine.compiled import int64, rule
from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, SPINNER_MAX, ZAP
from tempest_agent.envs.machine.intrinsics import array_at
from tempest_agent.envs.machine.memory import LANES, Ram

from . import network_memory as at
from .claw_landings import write_deadly, write_landings
from .mind import turn_into_chances, worth_of_turns
from .network_memory import KNOTS, REACH, ROW, TABLE

EPSILON = 1e-5
"""Of every LayerNorm of the project."""

_LANDING = landing_weights(SPINNER_MAX)


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
def _encode_lanes(
    net: int, scratch: int, codes: NDArray[np.int8], width: int, foresees: bool
) -> None:
    """Write the encoding of each lane ``(16, width)``, zeros where the well has none."""
    used = array_at(scratch + at.USED, (at.MOST_INPUTS,), np.int64)
    observation = array_at(scratch + at.SEEN_NUMBERS, (len(codes),), np.float32)
    for i in range(len(codes)):
        observation[i] = np.float32(codes[i]) / np.float32(FEATURE_SCALE)
    numbers = LANE_FEATURES + (FORECAST_FEATURES if foresees else 0)
    seen = array_at(scratch + at.ENCODED, (1, LANES, numbers), np.float32)
    for lane in range(LANES):
        exists = codes[lane * LANE_FEATURES + EXISTS] > 0
        for i in range(numbers):
            index = lane * LANE_FEATURES + i
            if i >= LANE_FEATURES:
                index = FORECAST_START + lane * FORECAST_FEATURES + i - LANE_FEATURES
            seen[0, lane, i] = observation[index] if exists else np.float32(0.0)
    around = array_at(scratch + at.AROUND, (LANES, 3 * numbers), np.float32)
    surround(seen, around)
    lanes = array_at(scratch + at.ENCODED, (LANES, width), np.float32)
    apply_layer(net, at.FIRST, around, lanes, used, True)
    _blank(lanes, codes)
    wide = array_at(scratch + at.AROUND, (LANES, 3 * width), np.float32)
    surround(array_at(scratch + at.ENCODED, (1, LANES, width), np.float32), wide)
    apply_layer(net, at.SECOND, wide, lanes, used, True)
    _blank(lanes, codes)


@rule
def _blank(lanes: Floats, codes: NDArray[np.int8]) -> None:
    for lane in range(LANES):
        if codes[lane * LANE_FEATURES + EXISTS] <= 0:
            for i in range(lanes.shape[1]):
                lanes[lane, i] = np.float32(0.0)


@rule
def _value_turns(net: int, scratch: int, claw: int, width: int, wide: int) -> None:
    """Write the encoding of the state, and the values ``(4, 63)`` of all turns and buttons.

    ``claw``: where it is before the turn, in counts from the lane where it stands now.
    """
    used = array_at(scratch + at.USED, (at.MOST_INPUTS,), np.int64)
    others = array_at(scratch + at.SEEN_NUMBERS + 4 * GLOBALS_START, (GLOBAL_FEATURES,), np.float32)
    lanes = array_at(scratch + at.ENCODED, (LANES, width), np.float32)
    flat = array_at(scratch + at.FLAT, (1, LANES * width + GLOBAL_FEATURES), np.float32)
    for lane in range(LANES):
        for i in range(width):
            flat[0, lane * width + i] = lanes[lane, i]
    for i in range(GLOBAL_FEATURES):
        flat[0, LANES * width + i] = others[i]
    latent = array_at(scratch + at.SUMMARY, (1, wide), np.float32)
    apply_layer(net, at.DENSE, flat, latent, used, True)
    state = array_at(scratch + at.STATE_NUMBERS, (1, width), np.float32)
    apply_layer(net, at.STATE, latent, state, used, True)
    inputs = array_at(scratch + at.MIX_INPUTS, (REACH, 2 * width + REACH), np.float32)
    for i in range(REACH):
        lane = (claw // LANE_COUNTS + OFFSETS[i]) % LANES
        for j in range(width):
            inputs[i, j] = lanes[lane, j]
            inputs[i, width + j] = state[0, j]
        for j in range(REACH):
            inputs[i, 2 * width + j] = np.float32(1.0) if i == j else np.float32(0.0)
    hidden = array_at(scratch + at.MIXED, (REACH, width), np.float32)
    apply_layer(net, at.MIX, inputs, hidden, used, True)
    nodes = array_at(scratch + at.NODE_NUMBERS, (REACH, BUTTON_PAIRS * NODES), np.float32)
    apply_layer(net, at.NODE_VALUES, hidden, nodes, used, False)
    place = claw % LANE_COUNTS
    values = array_at(scratch + at.VALUES, (BUTTON_PAIRS, KNOTS), np.float64)
    for pair in range(BUTTON_PAIRS):
        for knot in range(KNOTS):
            total = 0.0
            for node in range(REACH * NODES):
                value = np.float64(nodes[node // NODES, pair * NODES + node % NODES])
                total += value * np.float64(_LANDING[place, node, knot])
            values[pair, knot] = total / HALVES


@rule
def _propose(net: int, scratch: int, wide: int, positions: Doubles) -> None:
    """Write the spinner proposal of each pair, ``(1, 4)``, and the values of these."""
    used = array_at(scratch + at.USED, (at.MOST_INPUTS,), np.int64)
    raw = array_at(scratch + at.RAW, (1, BUTTON_PAIRS), np.float32)
    latent = array_at(scratch + at.SUMMARY, (1, wide), np.float32)
    apply_layer(net, at.PROPOSALS, latent, raw, used, False)
    squash(raw, positions)
    quadratic = array_at(net, (TABLE,), np.int32)[at.QUADRATIC] != 0
    knots = array_at(scratch + at.VALUES, (1, BUTTON_PAIRS, KNOTS, 1), np.float64)
    proposed = array_at(scratch + at.PROPOSED, (1, BUTTON_PAIRS, 1), np.float64)
    between(knots, positions, quadratic, proposed)


@rule
def _counts(position: float) -> int:
    """Return the nearest knob counts for a position in [-1, 1]."""
    return int64(np.rint(position * SPINNER_MAX))


@rule
def choose_action(net: int, scratch: int, observed: NDArray[np.int8]) -> int:
    """Return the best action, ``counts & 0xFF | buttons << 8``; its values stay in ``scratch``.

    ``observed``: codes of the whole observation, of which a network may see the beginning only.
    """
    head = array_at(net, (TABLE,), np.int32)
    width, wide = int64(head[at.WIDTH]), int64(head[at.LATENT])
    codes = observed[: head[at.SEEN]]
    _encode_lanes(net, scratch, codes, width, len(codes) > FORECAST_START)
    landed = array_at(scratch + at.LANDED, (KNOTS,), np.int64)
    claw = write_landings(codes, head[at.LATE] != 0, landed)
    _value_turns(net, scratch, claw, width, wide)
    deadly = array_at(scratch + at.DEADLY, (1, KNOTS), np.bool_)
    deadly[:] = False
    if head[at.AVOIDS] != 0:
        write_deadly(codes, landed, deadly[0])
    positions = array_at(scratch + at.PLACES, (1, BUTTON_PAIRS), np.float64)
    proposed = array_at(scratch + at.PROPOSED, (1, BUTTON_PAIRS), np.float64)
    positions[:] = 0.0
    proposed[:] = -np.inf
    if head[at.PROPOSES] != 0:
        _propose(net, scratch, wide, positions)
    legal = array_at(scratch + at.LEGAL, (1, BUTTON_PAIRS), np.bool_)
    spoilt = array_at(scratch + at.DEADLY_PROPOSED, (1, BUTTON_PAIRS), np.bool_)
    for pair in range(BUTTON_PAIRS):
        legal[0, pair] = codes[ZAP_LEGAL_FEATURE] > 0 or pair & ZAP == 0
        spoilt[0, pair] = deadly[0, _counts(positions[0, pair]) + SPINNER_MAX]
    values = array_at(scratch + at.VALUES, (1, BUTTON_PAIRS, KNOTS), np.float64)
    pair = array_at(scratch + at.PAIR, (1,), np.uint8)
    position = array_at(scratch + at.POSITION, (1,), np.float64)
    pair[0] = 0
    position[0] = 0.0
    pick(values, proposed, positions, legal, deadly, spoilt, pair, position)
    return (_counts(position[0]) & 0xFF) | (int64(pair[0]) << 8)


@rule
def write_worth(net: int, scratch: int, ram: Ram, zap_legal: bool, worth: Doubles) -> bool:
    """Write each lane's worth ``(16,)`` to the network that has just been asked.

    Return whether these are the chances that its policy goes there, rather than values.
    """
    values = array_at(scratch + at.VALUES, (BUTTON_PAIRS, KNOTS), np.float64)
    deadly = array_at(scratch + at.DEADLY, (KNOTS,), np.bool_)
    worth_of_turns(ram, values, deadly, zap_legal, worth)
    by_policy = array_at(net, (TABLE,), np.int32)[at.BY_POLICY] != 0
    if by_policy:
        turn_into_chances(ram, values, deadly, zap_legal, worth)
    return by_policy
