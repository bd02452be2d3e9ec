"""This machine as it is: its facts, and what /proc and perf tell."""
