"""Synthetic laws and campaigns, once for all studies: slowdowns, errors, resource use over time."""
