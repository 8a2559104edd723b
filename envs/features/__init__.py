"""The default observation: features of a RAM image."""
