"""Simple methods that every predictor is measured beside."""
