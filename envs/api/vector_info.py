"""Info arrays of which only some games have entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def masked(arrays: dict[str, NDArray[Any]], mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Info arrays with a copy of ``mask`` beside each; entries outside of it are blank."""
    shown = mask.copy()
    if not mask.all():
        arrays = {name: _blank_elsewhere(values, mask) for name, values in arrays.items()}
    return {**arrays, **dict.fromkeys([f"_{name}" for name in arrays], shown)}


def _blank_elsewhere(values: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    blank: Any = None if values.dtype == object else values.dtype.type(0)
    return np.where(mask, values, blank)
