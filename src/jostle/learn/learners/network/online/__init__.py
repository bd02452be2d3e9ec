"""Names and runs that a fitted factorization learns without being trained again."""
