"""Who drives each game, and what is stored of it."""
