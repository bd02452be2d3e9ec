"""What is learned after a fit: of new runs and names, from a prior, of a drift, of a run so far."""
