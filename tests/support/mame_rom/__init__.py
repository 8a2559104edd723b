"""A machine's program of our own, for MAME to run where the game's ROMs may not be."""
