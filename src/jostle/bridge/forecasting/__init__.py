"""From snapshots to the distribution at any time: settings, methods, the choice among them, saving."""
