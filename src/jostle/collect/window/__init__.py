"""One window: members side by side for a fraction of a second, and whether it can be believed."""
