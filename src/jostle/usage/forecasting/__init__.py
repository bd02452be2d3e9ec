"""Makes forecasts from snapshots: settings, methods, the choice among them, saving."""
