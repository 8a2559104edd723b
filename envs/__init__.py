"""Tempest as a Gymnasium environment: rules, observations, rewards, pictures."""
