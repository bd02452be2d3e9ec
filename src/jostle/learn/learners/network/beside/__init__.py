"""What a factorization answers beyond its network: times measured alone, sets larger than known."""
