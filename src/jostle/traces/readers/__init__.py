"""Readers of the files that profilers write."""
