"""Recordings of the real machine, and the comparison of the rules with them."""
