"""`jostle tour`: everything once, on this machine."""
