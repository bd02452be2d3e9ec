"""Holds time-resolved measurements: counter traces and GPU profiles, task by task."""
