"""Stacks base learners, weighted by their out-of-fold predictions."""
