"""Members of the expert: each a way to say a slowdown, fitted on rows and kept as arrays."""
