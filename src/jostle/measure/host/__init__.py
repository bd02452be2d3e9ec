"""This machine as it is: its engines and their variants, its facts, and what /proc and perf tell."""
