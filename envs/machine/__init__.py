"""The arcade board: RAM map, switches, inputs, random source, and how rules are compiled."""
