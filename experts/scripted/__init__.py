"""The rule player: danger, targets and escapes, one module each."""
