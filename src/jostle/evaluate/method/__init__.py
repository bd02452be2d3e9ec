"""Any method on runs that it has not seen, Jostle's own or that of another package."""
