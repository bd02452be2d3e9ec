"""HTTP itself: requests read under limits, problems, metrics, the application."""
