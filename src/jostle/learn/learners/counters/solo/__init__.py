"""One workload alone: its counters over its own time, and how they are laid over a run beside others."""
