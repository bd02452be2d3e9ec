"""Commands that answer: how long, how long at most, why, what will be used, and where."""
