"""factorization."""
