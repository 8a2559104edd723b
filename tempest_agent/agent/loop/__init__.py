"""The training loop: play, store, learn, log."""
