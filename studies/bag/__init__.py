"""Bags of GPU kernels: the protocol after Moolchandani et al., its bounds and figures."""
