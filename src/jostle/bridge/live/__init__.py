"""Runs that go on, and several workloads at once."""
