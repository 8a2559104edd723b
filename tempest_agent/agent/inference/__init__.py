"""The network without gradients: greedy actions, and bit-exact play."""
