"""Judges what `fit` gives beside the simple rules, on what was left out."""
