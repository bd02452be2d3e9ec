"""Holds the contract of methods, what they learn from, and the registry that finds them."""
