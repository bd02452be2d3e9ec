"""What is behind the answers: the model that is served, placements and observed runs."""
