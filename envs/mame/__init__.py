"""The real machine: MAME runs the arcade's own ROMs, one process a game."""
