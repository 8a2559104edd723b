"""Train many runs, score them with the same games and compare them in one table."""
