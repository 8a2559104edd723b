"""Which lanes kill in the next ticks: what a RAM image makes certain, by kinematics alone."""
