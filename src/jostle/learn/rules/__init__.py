"""Holds the simple rules for slowdowns: random effects, latent factors, boosting, larger sets."""
