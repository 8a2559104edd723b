"""The network without gradients: acting on CPU and GPU, and bit-exact play."""
