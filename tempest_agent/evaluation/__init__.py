"""Greedy games and their statistics."""
