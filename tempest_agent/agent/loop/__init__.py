"""Play, store, learn, log: the training loop, without SB3."""
