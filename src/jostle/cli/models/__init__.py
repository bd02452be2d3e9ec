"""Commands on models: fit, predict and explain."""
