"""Limits what a run uses over its life, and what is left of one that goes on."""
