"""Teachers: scripted players that read the RAM image and nothing else."""
