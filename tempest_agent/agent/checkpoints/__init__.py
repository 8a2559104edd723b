"""Checkpoint files: written atomically, checked as a whole when read."""
