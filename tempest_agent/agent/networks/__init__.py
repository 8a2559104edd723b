"""The value network: from observations to action values."""
