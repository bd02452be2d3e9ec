"""`jostle evaluate`: how good the answers are, beside simpler rules."""
