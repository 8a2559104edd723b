"""One gradient step: targets, losses, optimiser, followers."""
