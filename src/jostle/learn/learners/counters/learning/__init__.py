"""From windows to a learned slowdown: rows, features, the choice of counters, and the learners."""
