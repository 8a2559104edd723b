"""Tempest as a Gymnasium environment: the machine's rules, observations, rewards and pictures."""
