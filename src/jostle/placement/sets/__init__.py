"""Sets of workloads that share a platform: their bounds, and the limits they have to keep."""
