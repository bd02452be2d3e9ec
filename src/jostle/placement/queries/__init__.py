"""Reads fleets and requests from tables, row by row."""
