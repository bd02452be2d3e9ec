"""The members of the stack: each a way to say a slowdown, fitted on rows and kept as arrays."""
