"""Stored decisions, and the batches drawn from them."""
