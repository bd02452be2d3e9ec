"""`jostle doctor`: what Jostle can do on this machine."""
