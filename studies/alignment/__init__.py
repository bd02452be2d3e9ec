"""Run times beside others from counters, on recorded and on simulated programs, and the paper's tables."""
