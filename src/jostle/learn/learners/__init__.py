"""Holds the base learners and named methods, one idea a folder; none knows another."""
