"""Which lanes kill in the next ticks, by kinematics alone."""
