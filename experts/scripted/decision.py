"""The record of one decision: forecast dangers, lane values, chosen controls."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tempest_agent.envs.forecast.table import HORIZON, TABLE_FIELDS
from tempest_agent.envs.machine.memory import LANES

LETHAL = 1e6
"""Cost from which on being in a lane in a tick counts as death."""

PLAN_DTYPE = np.dtype(
    [
        *TABLE_FIELDS,
        ("chance", "<i4", (LANES,)),
        ("danger", "<f8", (HORIZON, LANES)),
        ("value", "<f8", (LANES,)),
        ("outlook", "<f8", (2, LANES)),
        ("best", "<f8"),
        ("lane", "<i8"),
        ("spin", "<i8"),
        ("fire", "<i8"),
        ("zap", "<i8"),
    ]
)
"""First the forecast.  ``chance``: the ticks ``deadly`` by what chance decides while inputs are
pending, from the image on.  ``danger[k, lane]``: cost of being in ``lane`` after tick ``k``'s move,
from LETHAL on deadly.
``value[lane]``: what a tick in that lane is worth.  ``outlook``: the escape table's two last rows.
``best``: the value of the best way found; below ``-LETHAL`` no way survives the horizon.  Then the
decision: the lane to be in after the move, the knob counts, the buttons."""

Plan: TypeAlias = Any
"""One record of PLAN_DTYPE; its fields are attributes only inside compiled code."""
