"""Makes weighted snapshots of all runs at the same times, out of traces."""
