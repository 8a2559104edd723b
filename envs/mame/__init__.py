"""The real game in MAME: one process a game, driven over a socket."""
