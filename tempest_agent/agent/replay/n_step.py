"""n-step returns, assembled when rows are sampled.

A sample that starts at row ``t``, case by case (n = ``n_steps``):

* nothing ends within n steps: rewards of t .. t+n-1, bootstrap on the observation of t+n;
* a **termination** at t+k: rewards of t .. t+k, no bootstrap.  The last n-1 steps before a death
  are sampled like all others, with returns of 1 to n-1 rewards;
* a **truncation** at t+k: rewards of t .. t+k, bootstrap on the observation that the truncated game
  ended with (a final observation; row t+k+1 already belongs to the next game).  A step that both
  terminates and is cut counts as a termination;
* the **write head**: the newest row has an observation but no successor yet.  It is not sampled as
  a start (one vector step later it is), and returns that would pass it bootstrap on it with fewer
  rewards;
* the **oldest rows** are ordinary starts until they are overwritten, and no return reaches over the
  write head into them;
* **another driver** (only with ``cut``): a return ends, with a bootstrap, before the first later
  step that was not the agent's own greedy one.  The first step always counts, whoever the driver:
  its value is what is learned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tempest_agent.envs.machine.compiled import kernel

from .rows import AGENT, DRIVER_SHIFT, TERMINATED, TRUNCATED

NO_ROW = -1
FINAL = -2


@kernel
def assemble(
    rows: NDArray[np.int64],
    codes: NDArray[np.int8],
    reward: NDArray[np.float32],
    flags: NDArray[np.uint8],
    newest: int,
    n_steps: int,
    gamma: float,
    cut: bool,
    out_codes: NDArray[np.int8],
    out_next: NDArray[np.int8],
    out_returns: NDArray[np.float32],
    out_discounts: NDArray[np.float32],
    out_horizons: NDArray[np.int64],
    out_boot: NDArray[np.int64],
) -> None:
    """Write the n-step returns that start at ``rows``.

    ``out_boot`` is the flat row to bootstrap on, ``NO_ROW``, or ``FINAL`` minus the row of a
    truncation.
    """
    length, games, features = codes.shape
    for i in range(rows.size):
        t = rows[i] // games
        game = rows[i] % games
        for f in range(features):
            out_codes[i, f] = codes[t, game, f]
        total = 0.0
        discount = 1.0
        steps = 0
        boot = NO_ROW
        last = t
        while True:
            total += discount * reward[t, game]
            discount *= gamma
            steps += 1
            last = t
            flag = flags[t, game]
            if flag & TERMINATED:
                discount = 0.0
                break
            if flag & TRUNCATED:
                boot = FINAL
                break
            t = (t + 1) % length
            others = cut and ((flags[t, game] >> DRIVER_SHIFT) & 3) != AGENT
            if steps == n_steps or t == newest or others:
                boot = t * games + game
                break
        if boot >= 0:
            for f in range(features):
                out_next[i, f] = codes[t, game, f]
        elif boot == NO_ROW:
            for f in range(features):
                out_next[i, f] = 0
        else:
            boot = FINAL - (last * games + game)
        out_returns[i] = total
        out_discounts[i] = discount
        out_horizons[i] = steps
        out_boot[i] = boot
