"""Requests of memory and time that cost least, from a log of runs: found, replayed, and written down."""
