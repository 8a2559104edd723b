"""Many training runs, scored alike and compared in one table."""
