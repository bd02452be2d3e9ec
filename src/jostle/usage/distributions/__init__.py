"""Holds what a forecast answers: the distribution at one time, and sums of several."""
