"""Games as Minari data sets, and back into a replay."""
