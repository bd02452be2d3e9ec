"""Reads one foreign format per file: tables, Slurm, Kubernetes, Prometheus, perf, nsys, kineto, ..."""
