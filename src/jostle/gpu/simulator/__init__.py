"""The simulator, plain and compiled, and the models of how kernels and transfers share a device."""
