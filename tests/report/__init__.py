"""`jostle report`."""
