"""Measurements of speed, with ratios to a baseline of the same run."""
