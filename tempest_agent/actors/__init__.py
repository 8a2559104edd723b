"""Games played by other processes, for one learner."""
