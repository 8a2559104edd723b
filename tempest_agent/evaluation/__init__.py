"""Greedy games, and what they say."""
