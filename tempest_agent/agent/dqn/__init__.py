"""``HybridDQN``: the training loop as a Stable-Baselines3 algorithm."""
