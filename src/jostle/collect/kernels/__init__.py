"""Holds kernels of known work, the engines that run them, and counts of what a program executes."""
