"""Commands on models: fit, teach, watch, evaluate and report."""
