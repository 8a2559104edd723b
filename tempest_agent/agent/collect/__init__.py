"""Who drives each game, and which rows are stored."""
