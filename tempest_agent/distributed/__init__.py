"""Actors that play in processes of their own while one learner learns: see docs/distributed.md."""
