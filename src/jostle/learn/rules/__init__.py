"""Holds the simple rules for slowdowns: random effects, latent factors, trees, larger sets."""
