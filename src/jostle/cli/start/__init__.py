"""First steps: everything once on this machine, and what works on it."""
