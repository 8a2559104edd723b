"""Gymnasium and Stable-Baselines3 environments: spaces, rewards, options, info."""
