"""What members do over time: counter samples, and whether they were disturbed."""
