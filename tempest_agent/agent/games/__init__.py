"""What the agent plays: Tempest, any Gymnasium environment, the real machine."""
