"""The form of observations and actions, as the network and the replay see them."""

from __future__ import annotations

from dataclasses import dataclass

from tempest_agent.envs.machine.inputs import BUTTON_PAIRS, MAX_INPUT_DELAY, SPINNER_MAX
from tempest_agent.envs.machine.memory import LANES


@dataclass(frozen=True)
class Layout:
    """The form of observations and actions.

    The arcade's observation is flat: 16 equal lane blocks, then globals, then 16 more blocks.
    ``lane_exists`` is the index, inside a lane's first block, of the feature above 0 on real lanes.
    """

    num_features: int
    lane_features: int = 0
    lane_exists: int = 0
    lane_position: int = -1
    """Index of the feature that holds the player's position within its lane; -1 without one."""
    forecast_features: int = 0
    """Numbers of each lane in the tail after the globals, lane by lane; the first 16 of a lane say
    whether it is deadly in each of the ticks 0 to 15.  0 without a forecast."""
    pending_spin: int = -1
    """Index of the knob counts of the first input under way, as a share of 31; those of the three
    after it follow every four numbers.  -1 without them."""
    num_pairs: int = BUTTON_PAIRS
    """Values of the discrete action."""
    counts: int = SPINNER_MAX
    """Whole steps of the continuous action from its middle to either end, as it is stored."""
    stored: str = "int8"
    """Type in which an observation is stored: a whole number stands for itself divided by the
    largest of its type."""
    fire_and_zap: bool = True
    """Whether the discrete action is fire + 2 * zap, with a zap that may be illegal."""

    @property
    def global_features(self) -> int:
        return self.forecast_start - LANES * self.lane_features

    @property
    def forecast_start(self) -> int:
        """Index of the tail's first number."""
        return self.num_features - LANES * self.forecast_features

    @property
    def pending_spins(self) -> range:
        """Indices of the knob counts of inputs under way, the next one first."""
        first = self.pending_spin
        return range(first, first + 4 * MAX_INPUT_DELAY, 4) if first >= 0 else range(0)

    @property
    def unit(self) -> float:
        """Factor from a stored number to its feature."""
        return {"int8": 1.0 / 127.0, "uint8": 1.0 / 255.0}.get(self.stored, 1.0)

    @property
    def stored_counts(self) -> str:
        """Type in which the continuous action is stored."""
        return "int8" if self.counts <= 127 else "int16"
