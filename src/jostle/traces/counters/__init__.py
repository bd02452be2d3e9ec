"""What a workload did over time, by processor counters: traces, their files, windows of time."""
