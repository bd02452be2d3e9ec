"""Made campaigns whose law of slowdowns is known."""
