"""What several methods make of the names in runs: levels by least squares, and their features as numbers."""
