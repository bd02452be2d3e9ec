"""Holds what base learners learn from: runs in codes, rows of slowdowns, times alone, shared cores."""
