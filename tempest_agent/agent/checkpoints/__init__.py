"""Checkpoint files: written atomically, checked as a whole, made into players."""
