"""The arcade board: RAM map, switches, inputs, random source, compilation of rules."""
