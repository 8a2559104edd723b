"""The files of a training run."""
