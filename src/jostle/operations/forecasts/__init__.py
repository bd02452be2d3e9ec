"""Answers about resource use over time: of one workload, of several together, of a run that goes on."""
