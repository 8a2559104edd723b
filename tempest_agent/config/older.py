"""Settings that files of earlier versions leave out, and that have other defaults today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MEANT = {"game": {"observation": "features_plain"}}
"""What a run of a version without the setting did."""


def as_meant(tree: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return ``tree``, all settings of a run, with those that it was made too early to have."""
    whole = dict(tree)
    for section, meant in _MEANT.items():
        values = whole.get(section, {})
        if isinstance(values, dict):
            whole[section] = {**meant, **values}
    return whole
