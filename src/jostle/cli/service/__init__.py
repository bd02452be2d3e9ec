"""`jostle serve`."""
