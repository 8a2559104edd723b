"""Many training runs, scored on the same games and compared in one table."""
