"""Sets larger than any that is known: what smaller ones say of them, and turns on shared cores."""
