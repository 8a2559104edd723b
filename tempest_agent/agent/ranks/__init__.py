"""Several processes, one network."""
