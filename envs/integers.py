"""``whole``: a RAM byte as a signed 64-bit integer, for compiled code.

Bytes load as uint8, and Numba makes floats of mixed unsigned and signed arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

# NumPy's own annotation says numpy.int64, which type checkers do not take for an int.
whole = cast("Callable[[Any], int]", np.int64)
